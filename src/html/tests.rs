//! Tests of rewriting HTML pages: a page as the origin sends it, and as the client gets it. The
//! tests find robots metas by text search, independently of the code that writes them.

use super::*;
use crate::indexing::{Directives, RobotsTags, TagScope, parse_lines};
use proptest::prelude::*;

fn tags(lines: &[&str]) -> RobotsTags {
    parse_lines(lines.iter().map(|line| line.as_bytes()))
}

/// The page in pieces of these sizes, over and over.
fn rewrite_in_pieces(
    mut page: PageRewriter,
    html: &[u8],
    sizes: &[usize],
) -> (Vec<u8>, RewriteResult) {
    let (mut out, mut rest, mut sizes) = (Vec::new(), html, sizes.iter().cycle());
    while !rest.is_empty() {
        let size = sizes.next().copied().unwrap_or(1).clamp(1, rest.len());
        out.extend(page.write(&rest[..size]));
        rest = &rest[size..];
    }
    out.extend(page.end());
    (out, page.outcome())
}

fn rewrite_whole(page: PageRewriter, html: &[u8]) -> (Vec<u8>, RewriteResult) {
    rewrite_in_pieces(page, html, &[usize::MAX])
}

fn rewritten(html: &str, lines: &[&str]) -> String {
    let page = PageRewriter::new(&tags(lines), None).expect("something to say");
    String::from_utf8(rewrite_whole(page, html.as_bytes()).0).expect("UTF-8 stays UTF-8")
}

const NOINDEX: &str = "<meta name=\"robots\" content=\"noindex\">";

#[test]
fn missing_directives_are_written_where_the_head_ends() {
    for (before, after) in [
        (
            "<!doctype html><html><head>",
            "</head><body>x</body></html>",
        ),
        ("<HTML><HEAD><TITLE>a</TITLE>\n", "</HEAD><BODY>x"),
        ("<!doctype html><title>a</title>\n", "<p>x"),
        ("<!doctype html>\n ", "hello"),
        (
            "<title>a</title>\n<link rel=icon href=i><style>p { color: red }</style>\n",
            "hello",
        ),
        ("<html>", "<body>x</body></html>"),
        ("<html><head><title>a</title></head></html>", ""),
        (
            "<title>a</title><base href=/>",
            "<frameset><frame src=x></frameset>",
        ),
        ("<html><title>a</title>", "</html>"),
        (
            "<!doctype html><!-- <p> --><script>if (a<b) '<p>'</script><noscript><style>p{}</style></noscript>",
            "<p>x",
        ),
        (
            "<!doctype html><title>&lt;p&gt; <p></title><template><p>t</p></template>",
            "<svg><title>s</title></svg>",
        ),
        (
            "<html><head><title>a</title>",
            "<h1>broken</h1></head><body>x",
        ),
        ("<!doctype html>", "<p>x</p><meta name=robots content=all>"),
        ("\u{FEFF}<!doctype html><title>a</title>", "<p>x"),
    ] {
        // The one page of these whose head has its end tag as the last thing in it.
        let (before, after) = match before.strip_suffix("</head></html>") {
            Some(start) => (start, "</head></html>"),
            None => (before, after),
        };
        assert_eq!(
            rewritten(&format!("{before}{after}"), &["noindex"]),
            format!("{before}{NOINDEX}{after}")
        );
    }
}

#[test]
fn nothing_is_written_outside_of_the_head() {
    for html in [
        "",
        "<!doctype html>",
        "<!doctype html><title>never closed",
        "<!doctype html><!-- never closed <p>x</p>",
        "<!doctype html><script>'<p>x</p>'",
        "<html><head><template><p>x</p></head><body>y</body>",
        "<html><head><title>a</title><meta na",
        "<!doctype html><plaintex",
    ] {
        assert_eq!(rewritten(html, &["noindex"]), html);
    }
}

/// Browsers read the content of a `<noscript>` in a head as text, because they run scripts.
#[test]
fn noscript_does_not_end_the_head() {
    let counted = "<noscript><img src=x></noscript>";
    for (before, after) in [
        (
            format!("<html><head><title>T</title>{counted}<meta name=description content=d>"),
            "</head><body>",
        ),
        (format!("<!doctype html>{counted}<title>T</title>"), "<p>x"),
        (
            format!("<!doctype html><title>T</title>{counted}\n "),
            "text",
        ),
        (
            format!(
                "<html><head><noscript><link href=a></noscript>{counted}<noscript>two</noscript>"
            ),
            "</head>",
        ),
        ("<html><noscript><!-- </noscript> ".into(), "--></html>"),
        (
            "<html><NOSCRIPT class=a>text</NOSCRIPT ><link href=b>".into(),
            "</html>",
        ),
    ] {
        assert_eq!(
            rewritten(&format!("{before}{after}"), &["noindex"]),
            format!("{before}{NOINDEX}{after}")
        );
    }
    for (theirs, merged) in [
        ("index, follow", "noindex"),
        ("none", "none"),
        ("nofollow", "noindex, nofollow"),
    ] {
        let html =
            format!("<html><head>{counted}<meta name=robots content=\"{theirs}\"></head><body>");
        let expected = html.replace(
            &format!("content=\"{theirs}\""),
            &format!("content=\"{merged}\""),
        );
        assert_eq!(rewritten(&html, &["noindex"]), expected);
    }
}

#[test]
fn truncated_head_keeps_its_merged_metas() {
    let html = "<html><head><noscript><img></noscript><meta name=robots content=nofollow><title>";
    let expected = "<html><head><noscript><img></noscript><meta name=robots content=\"noindex, nofollow\"><title>";
    assert_eq!(rewritten(html, &["noindex"]), expected);
    let large = format!("{html}</title><p {}", "a".repeat(300_000));
    assert_eq!(
        rewritten(&large, &["noindex"]),
        large.replace(html, expected)
    );
    let unreadable = html.replace("<title>", "<meta charset=iso-2022-jp>");
    let expected = expected.replace("<title>", "<meta charset=iso-2022-jp>");
    let padded = format!("<!--{}-->", "-".repeat(1_024));
    assert_eq!(
        rewritten(&format!("{padded}{unreadable}"), &["noindex"]),
        format!("{padded}{expected}")
    );
    let open = "<html><head><noscript><img><meta name=robots content=nofollow>";
    assert_eq!(rewritten(open, &["noindex"]), open);
}

#[test]
fn endless_head_is_passed_on_as_it_comes() {
    let start = "<html><head><noscript><img></noscript>";
    for filler in [
        "<!---->",
        "</x>",
        " ",
        "<link>",
        "<meta name=a>",
        "<style></style>",
        "<noscript></noscript>",
    ] {
        let mut page =
            PageRewriter::new(&tags(&["noindex"]), Some(b"utf-8")).expect("something to say");
        let mut released = page.write(start.as_bytes());
        let piece = filler.repeat(4_096 / filler.len());
        let mut written = start.len();
        for _ in 0..20 {
            released.extend(page.write(piece.as_bytes()));
            written += piece.len();
            assert!(
                written < released.len() + 100,
                "{filler}: {} of {written}",
                released.len()
            );
        }
        released.extend(page.end());
        assert!(
            released == format!("{start}{}", piece.repeat(20)).as_bytes(),
            "{filler}"
        );
    }
}

#[test]
fn fragment_is_not_changed() {
    for html in [
        "{\"html\": \"<p>x</p>\"}",
        "3",
        "<p>a fragment</p>",
        "<div><a href=x>y</a></div><title>late</title>",
        "<script>1</script><p>x",
        "  \n)]}'\n[1]",
    ] {
        assert_eq!(rewritten(html, &["noindex"]), html);
    }
}

#[test]
fn page_meta_keeps_the_stricter_value() {
    for (theirs, lines, merged) in [
        ("index, follow", "noindex", "noindex"),
        ("nofollow", "noindex", "noindex, nofollow"),
        ("none", "noarchive", "noindex, nofollow, noarchive"),
        (
            "max-snippet:10",
            "max-snippet: 50, noarchive",
            "noarchive, max-snippet: 10",
        ),
        ("max-snippet:50", "max-snippet: 10", "max-snippet: 10"),
        (
            "noindex nofollow",
            "noarchive",
            "noarchive, noindex nofollow",
        ),
        (
            "NOINDEX;NOFOLLOW",
            "noarchive",
            "noarchive, NOINDEX;NOFOLLOW",
        ),
        (
            "unavailable_after: Tuesday, 25-Jun-30 15:00:00 PST, nofollow",
            "noarchive",
            "nofollow, noarchive, unavailable_after: 2030-06-25T23:00:00Z",
        ),
        (
            "unavailable_after: Tuesday, June 25, 2030 15:00 IST, nofollow",
            "zoo",
            "nofollow, zoo, unavailable_after: Tuesday, June 25, 2030 15:00 IST",
        ),
        (
            "x-foo: 1, unavailable_after: someday",
            "noarchive",
            "noarchive, x-foo: 1, unavailable_after: someday",
        ),
        ("", "noindex", "noindex"),
        ("noindex, indexifembedded", "noindex", "noindex"),
        ("noarchive", "nocache", "noarchive"),
        (
            "max-image-preview:large",
            "max-image-preview: none",
            "max-image-preview: none",
        ),
    ] {
        let html = format!("<!doctype html><meta name=robots content=\"{theirs}\"><p>x");
        let expected = format!("<!doctype html><meta name=robots content=\"{merged}\"><p>x");
        assert_eq!(rewritten(&html, &[lines]), expected, "{theirs} and {lines}");
    }
    let html = "<html><meta NAME = 'Robots'\n content='none' id=m ></html>";
    assert_eq!(
        rewritten(html, &["noindex"]),
        html,
        "what says it all already stays byte for byte"
    );
    assert_eq!(
        rewritten("<html><meta name=ROBOTS></html>", &["noindex"]),
        "<html><meta name=ROBOTS content=\"noindex\"></html>"
    );
}

/// Google adds up what `robots` and `googlebot` say, and Bing goes by the milder of noarchive and
/// nocache: neither the page nor we may take back what the other says, in whichever metas it
/// stands.
#[test]
fn softening_directive_stays_only_if_both_have_it() {
    for (page, lines, after) in [
        (
            &["googlebot: noindex, indexifembedded"][..],
            &["noindex"][..],
            &["googlebot: noindex", "robots: noindex"][..],
        ),
        (
            &["robots: noindex, indexifembedded"],
            &["googlebot: noindex"],
            &["robots: noindex", "googlebot: noindex"],
        ),
        (
            &["robots: noindex"],
            &["googlebot: noindex, indexifembedded"],
            &["robots: noindex", "googlebot: noindex"],
        ),
        (
            &["googlebot: nofollow", "robots: noindex"],
            &["googlebot: noindex, indexifembedded"],
            &["googlebot: noindex, nofollow", "robots: noindex"],
        ),
        (
            &["googlebot: nofollow"],
            &["googlebot: noindex, indexifembedded"],
            &["googlebot: noindex, nofollow", "googlebot: indexifembedded"],
        ),
        (
            &["robots: noindex, indexifembedded"],
            &["noindex, indexifembedded"],
            &["robots: noindex, indexifembedded"],
        ),
        (
            &["robots: noarchive"],
            &["bingbot: nocache"],
            &["robots: noarchive"],
        ),
        (
            &["robots: nocache"],
            &["bingbot: noarchive"],
            &["robots: ", "bingbot: noarchive"],
        ),
        (
            &["bingbot: noarchive"],
            &["noarchive, nocache"],
            &["bingbot: noarchive", "robots: noarchive"],
        ),
    ] {
        let metas = |of: &[&str]| {
            let meta = |meta: &&str| {
                let (name, content) = meta.split_once(": ").expect("a name and a content");
                format!("<meta name=\"{name}\" content=\"{content}\">")
            };
            format!(
                "<html><head>{}</head>",
                of.iter().map(meta).collect::<String>()
            )
        };
        assert_eq!(
            rewritten(&metas(page), lines),
            metas(after),
            "{page:?} and {lines:?}"
        );
    }
}

/// An origin that sends the shell of a page and then thinks must not have it held.
#[test]
fn start_of_page_is_not_buffered_longer_than_needed() {
    let first = |html: &str, label: Option<&[u8]>| {
        let mut page = PageRewriter::new(&tags(&["noindex"]), label).expect("something to say");
        String::from_utf8(page.write(html.as_bytes())).expect("UTF-8")
    };
    let head = format!("<html><head>{NOINDEX}</head><body>");
    assert_eq!(
        first("<html><head></head><body>Working", None),
        format!("{head}Working")
    );
    assert_eq!(first("<html><head></head><body>", Some(b"utf-8")), head);
    assert_eq!(
        first("<html><title>a</title>\n", Some(b"utf-8")),
        "<html><title>a</title>\n"
    );
    assert_eq!(
        first("<html><meta charset=utf-8><title>", None),
        "<html><meta charset=utf-8><title>"
    );
    assert_eq!(first("\u{FEFF}<html>", None), "\u{FEFF}<html>");
    let long_answer = "<!doctype html><title>t</title><ul><li>one</li>";
    assert_eq!(
        first(long_answer, None),
        format!("<!doctype html><title>t</title>{NOINDEX}<ul><li>one</li>")
    );
    assert_eq!(first("<li>a fragment</li>", None), "<li>a fragment</li>");
    assert_eq!(first("hello", None), "hello");
    assert_eq!(first("  \n\n", Some(b"utf-8")), "", "it may be no page");
}

#[test]
fn second_meta_stays_only_if_it_adds_something() {
    let twice = "<html><meta name=robots content=nofollow><meta name=robots content=noindex><body>";
    assert_eq!(
        rewritten(twice, &["noindex"]),
        "<html><meta name=robots content=\"noindex, nofollow\"><body>"
    );
    let adds =
        "<html><meta name=robots content=nofollow><meta name=robots content=noarchive><body>";
    assert_eq!(
        rewritten(adds, &["noindex"]),
        "<html><meta name=robots content=\"noindex, nofollow\"><meta name=robots content=noarchive><body>"
    );
}

#[test]
fn each_scope_has_its_own_meta() {
    let html = "<html><head><meta name=GoogleBot content=noarchive><meta name=otherbot content=all></head>";
    assert_eq!(
        rewritten(
            html,
            &["noindex", "googlebot: nofollow", "bingbot: nosnippet"]
        ),
        "<html><head><meta name=GoogleBot content=\"nofollow, noarchive\"><meta name=otherbot content=all>\
         <meta name=\"robots\" content=\"noindex\"><meta name=\"bingbot\" content=\"nosnippet\"></head>"
    );
}

#[test]
fn metas_without_meaning_are_not_changed() {
    let inner = "<template><meta name=robots content=all></template><noscript><meta name=robots content=all></noscript>\
                 <!-- <meta name=robots content=all> --><script>'<meta name=robots content=all>'</script>";
    let html = format!(
        "<html><head>{inner}</head><body><svg><meta name=robots content=all></svg></body></html>"
    );
    assert_eq!(
        rewritten(&html, &["noindex"]),
        format!(
            "<html><head>{inner}{NOINDEX}</head><body><svg><meta name=robots content=all></svg></body></html>"
        )
    );
}

#[test]
fn unparsed_meta_stays_and_ours_is_added() {
    for theirs in ["no&#105;ndex", "googlebot: nofollow", "nöindex"] {
        let meta = format!("<meta name=robots content=\"{theirs}\">");
        assert_eq!(
            rewritten(&format!("<html>{meta}<body>"), &["noindex"]),
            format!("<html>{meta}{NOINDEX}<body>")
        );
    }
}

#[test]
fn values_of_the_origin_are_escaped() {
    let mut tags_of_field = tags(&["x&'bot: noindex"]);
    tags_of_field.merge(&tags(&["note: \"><script>alert(1)</script> é"]));
    let page = PageRewriter::new(&tags_of_field, None).expect("something to say");
    let out = String::from_utf8(rewrite_whole(page, b"<html><body>").0).expect("ASCII");
    assert!(!out.contains("<script"), "{out}");
    assert!(
        out.contains("&quot;&gt;&lt;script&gt;")
            && out.contains("&#233;")
            && out.contains("name=\"x&amp;'bot\""),
        "{out}"
    );
}

#[test]
fn names_of_other_metas_are_not_for_bots() {
    let lines = [
        "csrf-token: noindex",
        "google-site-verification: noindex",
        "rating: noindex",
        "viewport: noindex",
        "robots: noindex",
        "referrer: nofollow",
        "apple-mobile-web-app-capable: noindex",
    ];
    assert!(PageRewriter::new(&tags(&lines), None).is_none());
    assert!(
        PageRewriter::new(&tags(&["all", "bingbot: all"]), None).is_none(),
        "nothing is restricted"
    );
}

#[test]
fn page_in_unreadable_encoding_passes_unchanged() {
    let utf_16: Vec<u8> = "\u{FEFF}<!doctype html><title>a</title><p>x"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let bare = utf_16[2..].to_vec();
    let iso_2022 =
        b"<!doctype html><meta charset=iso-2022-jp><title>\x1B$B%F%9%H\x1B(B</title><p>x".to_vec();
    let by_pragma =
        b"<!doctype html><meta http-equiv=Content-Type content='text/html; charset=\"ISO-2022-JP\"'><p>x".to_vec();
    for html in [utf_16, bare, iso_2022, by_pragma] {
        let page = PageRewriter::new(&tags(&["noindex"]), None).expect("something to do");
        assert_eq!(
            rewrite_whole(page, &html),
            (html.clone(), RewriteResult::Encoding)
        );
    }
    assert!(
        is_readable(None) && is_readable(Some(b"Shift_JIS")) && is_readable(Some(b"no-such-thing"))
    );
    assert!(
        !is_readable(Some(b"utf-16"))
            && !is_readable(Some(b"iso-2022-jp"))
            && !is_readable(Some(b"hz-gb-2312"))
    );
}

#[test]
fn non_ascii_bytes_are_not_changed() {
    let every: Vec<u8> = (1..=255).filter(|byte| !b"<>&\"'".contains(byte)).collect();
    for label in [
        None,
        Some(b"shift_jis".as_slice()),
        Some(b"utf-8"),
        Some(b"gb18030"),
        Some(b"windows-1252"),
    ] {
        let mut html = b"<!doctype html><title>".to_vec();
        html.extend(&every);
        html.extend(b"</title>");
        let head = html.len();
        html.extend(&every);
        html.extend(b"<p class=price title='\x83\x5C'>");
        html.extend(&every);
        // The table begins with \x01, which is no blank: the head ends before it.
        let mut expected = html[..head].to_vec();
        expected.extend(NOINDEX.bytes());
        expected.extend(&html[head..]);
        let page = PageRewriter::new(&tags(&["noindex"]), label).expect("something to do");
        assert_eq!(
            rewrite_whole(page, &html),
            (expected, RewriteResult::Rewritten),
            "{label:?}"
        );
    }
}

#[test]
fn charset_of_the_field_overrides_the_page() {
    let html = b"<!doctype html><meta charset=iso-2022-jp><p>x";
    let page = PageRewriter::new(&tags(&["noindex"]), Some(b"utf-8")).expect("something to say");
    assert!(String::from_utf8_lossy(&rewrite_whole(page, html).0).contains(NOINDEX));
}

/// A page of this many bytes, an ordinary one.
fn long_page(bytes: usize) -> String {
    let mut html = String::from("<!doctype html><html><head><title>Long</title></head><body>\n");
    let mut number = 0;
    while html.len() < bytes {
        number += 1;
        html.push_str(&format!(
            "<section id=s{number}><h2>Section {number}</h2><p>Some text that goes on, <b class=price>{number} €</b> and \
             <a href=\"/page/{number}\">a link</a>.</p><div class=comments><a href=x>who</a></div></section>\n"
        ));
    }
    html.push_str("</body></html>\n");
    html
}

#[test]
fn long_page_is_rewritten_in_pieces_of_any_size() {
    let html = long_page(1 << 20);
    let expected = html.replace("</head>", &format!("{NOINDEX}</head>"));
    let new = || PageRewriter::new(&tags(&["noindex"]), None).expect("something to say");
    for sizes in [[1 << 20, 1], [65_536, 65_536], [1_024, 7], [3_000, 1]] {
        assert!(
            rewrite_in_pieces(new(), html.as_bytes(), &sizes).0 == expected.as_bytes(),
            "{sizes:?}"
        );
    }
}

#[test]
fn page_passes_after_the_head() {
    let mut page = PageRewriter::new(&tags(&["noindex"]), None).expect("something to say");
    let html = long_page(4_000);
    page.write(html.as_bytes());
    assert!(page.passes_rest_unchanged());
}

#[test]
fn too_large_tag_passes_with_the_rest() {
    let huge = format!("<link rel=icon href=\"data:{}\">", "x".repeat(1 << 20));
    let html = format!("<!doctype html><title>a</title>{huge}<p>x<b class=price>y</b>");
    for sizes in [usize::MAX, 4_096] {
        let page = PageRewriter::new(&tags(&["noindex"]), None).expect("something to do");
        assert_eq!(
            rewrite_in_pieces(page, html.as_bytes(), &[sizes]),
            (html.clone().into_bytes(), RewriteResult::TooLarge)
        );
    }
}

#[test]
fn broken_page_loses_nothing() {
    for html in [
        "<!doctype html><select><xmp></select><p>x</p>",
        "<!doctype html><table><tr><p>x<table></p></tr>",
        "<!doctype html><p <b class=price <i>",
        "<html <head <body>",
        "<!doctype html><a href=\"x>y</a><p class='comments'><a",
        "<!doctype html><svg><desc><p>x</svg><math><mtext><b></math>",
        "<!doctype html></p></br></body></html><p>after</p>",
        "<!doctype html><![CDATA[ x ]]><?php echo 1 ?><p>",
        "<!doctype html>\0<p>\0",
    ] {
        let page = PageRewriter::new(&tags(&["noindex"]), None).expect("something to do");
        let out =
            String::from_utf8(rewrite_whole(page, html.as_bytes()).0).expect("UTF-8 stays UTF-8");
        let without = out.replace(NOINDEX, "");
        // Attributes of an element that is written anew are put in order; nothing else changes.
        let plain = |text: &str| text.split_ascii_whitespace().collect::<String>();
        assert_eq!(plain(&without), plain(html), "{out}");
    }
}

fn any_directives() -> impl Strategy<Value = Directives> {
    let one = prop_oneof![
        "none|noindex|nofollow|noarchive|nosnippet|noai|noimageindex",
        (0u32..100).prop_map(|limit| format!("max-snippet: {limit}")),
        "max-image-preview: (none|standard|large)",
        Just("unavailable_after: 2027-01-02T03:04:05Z".to_owned()),
    ];
    proptest::collection::vec(one, 1..4)
        .prop_map(|parts| Directives::parse(&parts.join(", ")).expect("valid"))
}

fn any_tags() -> impl Strategy<Value = RobotsTags> {
    proptest::collection::vec(
        ("[*]|googlebot|bingbot|[a-z]{3,8}bot", any_directives()),
        1..4,
    )
    .prop_map(|scopes| {
        let mut tags = RobotsTags::default();
        scopes
            .iter()
            .for_each(|(scope, directives)| tags.add(TagScope::from_name(scope), directives));
        tags
    })
}

/// Pieces of pages, some well-formed, some not.
fn any_page() -> impl Strategy<Value = String> {
    let part = proptest::sample::select(vec![
        "<!doctype html>",
        "<html>",
        "<head>",
        "</head>",
        "<body>",
        "</body>",
        "</html>",
        "<title>",
        "</title>",
        "a title",
        "<meta name=robots content=nofollow>",
        "<meta name=\"robots\" content=\"index\">",
        "<meta charset=utf-8>",
        "<meta name=googlebot content='max-snippet:20'>",
        "<template>",
        "</template>",
        "<noscript>",
        "</noscript>",
        "<noscript><img src=x></noscript>",
        "<noscript><link rel=icon></noscript>",
        "<script>",
        "</script>",
        "<!--",
        "-->",
        "<svg>",
        "</svg>",
        "<p>",
        "</p>",
        "text é",
        " \n",
        "<div class=comments>",
        "<a href=x>",
        "</a>",
        "</div>",
        "<b class=\"price\">",
        "</b>",
        "<select>",
        "<xmp>",
        "<plaintext>",
        "<",
        ">",
        "\"",
        "<link rel=icon href=x>",
        "<style>",
        "</style>",
        "&amp;",
        "<table>",
        "<![CDATA[",
        "<p",
        " class=price",
    ]);
    proptest::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

/// What the metas in the head of a well-formed page say, by text search.
fn extracted_metas(html: &str) -> RobotsTags {
    let head = html.split("</head>").next().expect("a head");
    let mut tags = RobotsTags::default();
    for element in head.split("<meta ").skip(1) {
        let element = element.split('>').next().expect("its end");
        let value = |name: &str| {
            let rest = element.split(&format!("{name}=\"")).nth(1)?;
            rest.split('"').next()
        };
        if let (Some(name), Some(content)) = (value("name"), value("content")) {
            let scope = if name == "robots" {
                TagScope::All
            } else {
                TagScope::from_name(name)
            };
            tags.add(
                scope,
                &Directives::parse(content).expect("strictly readable"),
            );
        }
    }
    tags
}

proptest! {
    #[test]
    fn ends_of_pieces_do_not_matter(
        html in any_page(),
        pad in 0usize..3,
        sizes in proptest::collection::vec(1usize..40, 1..6),
        tags_of_field in any_tags(),
    ) {
        // Beyond the bytes that are looked at first, and within them.
        let html = format!("{}{html}", "<!-- 0123456789 -->\n".repeat(pad * 30));
        let page = || PageRewriter::new(&tags_of_field, None).expect("something to do");
        let (at_once, outcome) = rewrite_whole(page(), html.as_bytes());
        prop_assert_eq!(rewrite_in_pieces(page(), html.as_bytes(), &sizes), (at_once, outcome));
    }

    #[test]
    fn any_bytes_are_accepted(
        html in proptest::collection::vec(any::<u8>(), 0..300),
        sizes in proptest::collection::vec(1usize..40, 1..4),
    ) {
        let html = [b"<!doctype html>".as_slice(), &html].concat();
        let page = || PageRewriter::new(&tags(&["noindex"]), None).expect("something to do");
        let at_once = rewrite_whole(page(), &html);
        prop_assert!(at_once.0.len() >= html.len());
        prop_assert_eq!(rewrite_in_pieces(page(), &html, &sizes), at_once);
    }

    #[test]
    fn metas_have_exactly_the_directives_of_the_field(tags_of_field in any_tags(), theirs in proptest::option::of(any_tags())) {
        let metas: String = theirs.iter().flat_map(RobotsTags::iter).map(|(scope, directives)| {
            let name = if let TagScope::Bot(name) = scope { name } else { "robots" };
            format!("<meta name=\"{name}\" content=\"{directives}\">")
        }).collect();
        let html = format!("<!doctype html><html><head><title>t</title>{metas}</head><body>x</body></html>");
        let page = PageRewriter::new(&tags_of_field, None).expect("something to say");
        let out = String::from_utf8(rewrite_whole(page, html.as_bytes()).0).expect("UTF-8");
        let mut expected = theirs.unwrap_or_default();
        expected.merge(&tags_of_field);
        let found = extracted_metas(&out);
        prop_assert_eq!(out.matches("<meta").count(), found.iter().count(), "one for each scope: {}", out);
        prop_assert_eq!(found, expected);
    }
}
