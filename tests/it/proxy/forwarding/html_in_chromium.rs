//! A real browser before and after: it finds the metas where metas belong, and shows the page as it
//! was.

use crate::proxy::support::{Gate, Origin, Received, Setup, chromium};
use std::io::Write;

const POLICY: &str = r#"
robots: { origin: replace }
indexing: [{ paths: [/after/], tags: { "*": [noindex, "max-snippet: 20"], googlebot: nofollow } }]
html: { meta: yes, paths: [/after/] }
"#;

const ROBOTS: &str = "<meta name=\"robots\" content=\"noindex, max-snippet: 20\">";
const GOOGLEBOT: &str = "<meta name=\"googlebot\" content=\"nofollow\">";

/// Pages by name. All but those of [`WITHOUT_METAS`] are to have both metas in their head.
const PAGES: &[(&str, &str)] = &[
    (
        "ordinary",
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n<title>Ordinary</title>\n<style>p { color: #a00; \
         margin: 2em } head + body { background: #eef }</style>\n</head>\n<body>\n<p>One.\n<p class=price>Two €.</p>\n\
         <div class=comments><a href=/x>who</a></div>\n</body>\n</html>\n",
    ),
    (
        "no-tags-but-a-title",
        "<!doctype html><title>Bare</title>\n<p>first<p>second",
    ),
    (
        "text-first",
        "<!doctype html>\n  just text &amp; nothing else",
    ),
    (
        "head-not-closed",
        "<html><head><title>Open</title><link rel=icon href=data:,><body>text</body></html>",
    ),
    (
        "broken-head",
        "<html><head><title>Broken</title><h1>Heading</h1><style>h1 { color: green }</style></head><body>x",
    ),
    (
        "hidden-metas",
        "<!doctype html><head><!-- <meta name=robots content=all> <p> --><noscript><meta name=robots content=all></noscript>\
         <template><p>t</p></template><script>document.title = '<p>' + document.querySelectorAll('p').length</script>\
         </head><svg width=20 height=20><title>s</title><circle r=9 cx=10 cy=10 /></svg><p>x</p>",
    ),
    (
        "misnested",
        "<!doctype html><title>m</title><b><p>x</b>y</p><table><tr><td>z<div>w</table><a href=1>p<a href=2>q",
    ),
    (
        "frames",
        "<html><title>f</title><frameset cols=50%,50%><frame src=about:blank><frame src=about:blank></frameset></html>",
    ),
    (
        "quirks",
        "<title>q</title><table height=100%><tr><td>quirks</table>",
    ),
    (
        "byte-order-mark",
        "\u{FEFF}<!doctype html><title>é</title><p>ü €</p>",
    ),
    (
        "own-meta",
        "<!doctype html><title>o</title><meta name=robots content=\"max-snippet:50\"><p>x</p>",
    ),
    ("fragment", "<p>no document <b class=price>5</b></p>"),
    (
        "select-and-xmp",
        "<!doctype html><title>s</title><select><option>1<xmp></select><p>x</p>",
    ),
];

/// One is no document, of the other all is title.
const WITHOUT_METAS: [&str; 2] = ["fragment", "open-title"];

/// Heads that are hard to read. Both metas are to be in their head as a visitor's browser reads it,
/// with scripting. `DOMParser` and plain parsers read without scripting.
const ODD_HEADS: &[(&str, &str)] = &[
    (
        "counted",
        "<!doctype html><head><title>T</title><noscript><img src=data:,></noscript><meta name=description content=d>\
         <link rel=icon href=data:,></head><body>x",
    ),
    (
        "counted-no-tags",
        "<!doctype html><title>T</title>\n<noscript>text</noscript>\n<meta name=a content=b>\n<p>x",
    ),
    (
        "counted-then-meta",
        "<html><head><noscript><iframe src=data:,></iframe></noscript><meta name=robots content=\"all\"></head><p>x",
    ),
    (
        "styled-noscript",
        "<html><head><noscript><style>p{}</style><link rel=x href=data:,></noscript><title>T</title></head>x",
    ),
    (
        "scripted-noscript",
        "<html><head><noscript><script>1</script><title>t</title></noscript><title>T</title></head>x",
    ),
    (
        "noscript-before-head",
        "<!doctype html><html><noscript><p>no</p></noscript><head class=a><title>T</title></head>x",
    ),
    (
        "two-noscripts",
        "<html><head><noscript><link></noscript><noscript><b>1</b></noscript><noscript>2</noscript></head>x",
    ),
    (
        "comment-over-noscript",
        "<html><head><noscript><!-- </noscript><title>T</title></head><body>--></noscript>x",
    ),
    (
        "style-over-noscript",
        "<html><head><noscript><style></noscript></style></noscript><title>T</title></head><body>x",
    ),
    (
        "nested-noscript",
        "<html><head><noscript><noscript><link></noscript><p>a</noscript><title>T</title></head>x",
    ),
    (
        "noscript-breaks",
        "<html><head><noscript></br></noscript><title>T</title></head>x",
    ),
    (
        "noscript-with-end-tags",
        "<html><head><noscript></p></head></noscript><title>T</title></head>x",
    ),
    (
        "template",
        "<!doctype html><head><template><noscript><p>n</p></noscript><p>t</template><title>T</title></head>x",
    ),
    (
        "base",
        "<!doctype html><head><base href=/other/><noscript><img></noscript><title>T</title></head><a href=b>x</a>",
    ),
    (
        "comment-before-doctype",
        "<!-- c --><!doctype html><!-- d --><html><!-- e --><head><title>T</title></head>x",
    ),
    (
        "two-heads",
        "<html><head><title>T</title></head><head><meta name=robots content=all></head><body>x",
    ),
    (
        "escaped-script",
        "<html><head><script><!-- <script> '</script><p>' --></script><title>T</title></head>x",
    ),
    (
        "svg",
        "<html><head><svg><title>s</title><meta name=a></svg><title>T</title></head>x",
    ),
    (
        "marked",
        "\u{FEFF}<!doctype html><noscript>é</noscript><title>é</title><p>x",
    ),
    (
        "self-closing",
        "<html/><head/><noscript/><img></noscript><title/>T</title><p>x",
    ),
    (
        "declaration",
        "<?xml version='1.0'?><!doctype html><html><head><![CDATA[<p>]]><title>T</title></head>x",
    ),
    (
        "odd-comments",
        "<html><head><!--><!---><!-- a --!><!-- -- ><p> --><title>T</title></head>x",
    ),
    (
        "frameset",
        "<html><head><noscript><p>x</p></noscript><title>f</title></head><frameset><frame></frameset>",
    ),
    (
        "noframes",
        "<html><head><noframes><p><meta name=robots content=all></noframes><title>T</title></head>x",
    ),
    (
        "raw-style",
        "<html><head><style><!-- </style><title>T</title></head>x",
    ),
    (
        "blank-reference",
        "<html><head>&#32;<title>T</title>&#9;<meta name=a content=b></head>x",
    ),
    ("nul", "<html><head>\0<title>T</title></head>x"),
    (
        "capitals",
        "<HTML><HEAD><NOSCRIPT><IMG></NOSCRIPT\n ><TITLE>T</TITLE></HEAD><BODY>x</BODY></HTML>",
    ),
    (
        "object",
        "<html><head><title>T</title><object></object><meta name=a content=b></head>x",
    ),
    (
        "open-title",
        "<html><head><title>never </head><body><p>x</p></body></html>",
    ),
    (
        "stray-head",
        "<!doctype html><title>T</title></head><meta name=a content=b><p>x",
    ),
    (
        "stray-others",
        "<html><head></p></div></template></noscript></title><title>T</title></head>x",
    ),
    (
        "closed-title-in-script",
        "<html><head><script>'</title>'</script><title>'<script>'</title></head>x",
    ),
];

/// Heads that end in a `<noscript>` for readers without scripting: metas that are written behind it
/// stand in the body for them.
const ENDED_WITHOUT_SCRIPTING: &[&str] = &[
    "counted",
    "counted-no-tags",
    "counted-then-meta",
    "noscript-before-head",
    "two-noscripts",
    "noscript-breaks",
    "base",
    "marked",
    "self-closing",
    "frameset",
    "capitals",
    "long-head",
];

/// And one with much in it, before and behind.
fn long_head() -> String {
    let style = format!("<style>{}</style>", "p { color: red }\n".repeat(1 << 15));
    format!(
        "<!doctype html><head>{style}<noscript><img></noscript>{style}<title>T</title></head><body>x"
    )
}

fn gate() -> (Origin, Gate) {
    let origin = Origin::start(|request: &Received, stream| {
        let long_head = long_head();
        let pages = PAGES
            .iter()
            .chain(ODD_HEADS)
            .chain([&("long-head", long_head.as_str())])
            .copied()
            .collect::<Vec<_>>();
        let page = pages
            .iter()
            .find(|(name, _)| request.target().ends_with(&format!("/{name}")));
        let shown = request.target().strip_prefix("/shown/").map(show);
        let page = shown.as_deref().or(page.map(|(_, body)| *body));
        let (status, body) = page.map_or(("404 Not Found", ""), |body| ("200 OK", body));
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
    });
    let gate = Setup::before(origin.address).policy("site", POLICY).start();
    (origin, gate)
}

/// A page that shows other pages in frames and writes down the document that the browser made of
/// each. `targets` are separated by `+`.
fn show(targets: &str) -> String {
    let frames: String = targets
        .split('+')
        .map(|target| format!("<iframe src=/{target}></iframe>\n"))
        .collect();
    format!(
        "<!doctype html><style>iframe {{ width: 600px; height: 140px }}</style>{frames}{DOCUMENTS}"
    )
}

const DOCUMENTS: &str = r#"<pre id=out></pre><script>
onload = () => {
  const read = frame => frame.contentDocument.documentElement.outerHTML;
  const documents = [...document.querySelectorAll("iframe")].map(read);
  document.getElementById("out").textContent = JSON.stringify(documents);
}
</script>"#;

/// The documents that the browser makes of pages, in the order of `targets`.
fn documents(gate: &Gate, targets: &[String]) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let url = format!("http://{}/shown/{}", gate.address, targets.join("+"));
    let json = output(&chromium(directory.path(), &["--dump-dom"], &url));
    serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The text of `<pre id=out>` in a dumped page.
fn output(dom: &[u8]) -> String {
    let dom = std::str::from_utf8(dom).expect("UTF-8");
    let (_, rest) = dom
        .split_once("<pre id=\"out\">")
        .unwrap_or_else(|| panic!("no output: {dom}"));
    let text = rest.split_once("</pre>").expect("the end of the output").0;
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&nbsp;", "\u{A0}")
        .replace("&amp;", "&")
}

/// A picture of pages below each other.
fn picture(gate: &Gate, targets: &[String]) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("page.png");
    let url = format!("http://{}/shown/{}", gate.address, targets.join("+"));
    chromium(
        &directory.path().join("profile"),
        &[&format!("--screenshot={}", file.display())],
        &url,
    );
    std::fs::read(file).expect("a picture")
}

#[test]
fn rewritten_page_differs_by_the_meta_alone() {
    let (_origin, gate) = gate();
    let named = |place: &str| -> Vec<String> {
        PAGES
            .iter()
            .map(|(name, _)| format!("{place}/{name}"))
            .collect()
    };
    let all = documents(&gate, &[named("before"), named("after")].concat());
    let (before, after) = all.split_at(PAGES.len());
    assert_eq!(after.len(), PAGES.len());
    for ((name, _), (before, after)) in PAGES.iter().zip(before.iter().zip(after)) {
        assert!(
            before.contains("<head>") && !before.contains(ROBOTS),
            "{name}: {before}"
        );
        let (head, rest) = after.split_once("</head>").expect("a head");
        if !WITHOUT_METAS.contains(name) {
            // Written by the browser in its own way, from where it found them: once each, in the
            // head.
            for meta in [ROBOTS, GOOGLEBOT] {
                assert_eq!(
                    (head.matches(meta).count(), rest.matches(meta).count()),
                    (1, 0),
                    "{name}: {after}"
                );
            }
        }
        let without_ours = after
            .replace(
                ROBOTS,
                if *name == "own-meta" {
                    "<meta name=\"robots\" content=\"max-snippet:50\">"
                } else {
                    ""
                },
            )
            .replace(GOOGLEBOT, "");
        assert_eq!(&without_ours, before, "{name}");
    }
}

#[test]
fn rewritten_page_looks_as_before() {
    let (_origin, gate) = gate();
    let named =
        |place: &str| ["ordinary", "broken-head", "quirks"].map(|name| format!("{place}/{name}"));
    let (before, after) = (
        picture(&gate, &named("before")),
        picture(&gate, &named("after")),
    );
    assert!(before.len() > 500, "{} bytes of picture", before.len());
    assert!(before == after, "the pages look different");
    assert!(
        before != picture(&gate, &["before/ordinary".into()]),
        "pictures tell pages apart"
    );
}

/// Reads pages with scripting and without, and says for each which metas it found, and whether the
/// rest is what it was.
const READER: &str = r#"<!doctype html><body><pre id=out></pre><script>
const pages = PAGES, lines = [];
function without(html) { return new DOMParser().parseFromString(html, "text/html") }
function withScripting(html) {
  const frame = document.body.appendChild(document.createElement("iframe"));
  const page = frame.contentDocument;
  page.open(); page.write(html); page.close();
  return page;
}
function metas(page) {
  const found = [...page.querySelectorAll("meta[name=robots], meta[name=googlebot]")];
  return found.filter(meta => !meta.closest("noscript"));
}
for (const [name, before, after] of pages) {
  for (const read of [without, withScripting]) {
    // Read from the network, a byte order mark is no text.
    const was = read(before.replace("\uFEFF", "")), is = read(after.replace("\uFEFF", ""));
    const said = metas(is).map(m => (m.parentNode == is.head ? "head" : "body") + " " + m.name + "=" + m.content);
    for (const page of [was, is]) metas(page).forEach(meta => meta.remove());
    const same = was.documentElement.outerHTML === is.documentElement.outerHTML;
    lines.push([name, read.name, said.join("; "), same ? "same" : "other"].join(" | "));
  }
}
document.querySelectorAll("iframe").forEach(frame => frame.remove());
document.getElementById("out").textContent = lines.join("\n");
document.currentScript.remove();
</script>"#;

#[test]
fn metas_are_in_the_head_that_a_browser_reads() {
    let (_origin, gate) = gate();
    let body = |path: String| gate.get("any.example", &path, "").text().to_owned();
    let names: Vec<&str> = PAGES
        .iter()
        .chain(ODD_HEADS)
        .map(|(name, _)| *name)
        .chain(["long-head"])
        .collect();
    let texts = |name: &&str| {
        [
            name.to_string(),
            body(format!("/before/{name}")),
            body(format!("/after/{name}")),
        ]
    };
    let pages: Vec<[String; 3]> = names.iter().map(texts).collect();
    let pages = serde_json::to_string(&pages)
        .expect("JSON")
        .replace('<', "\\u003c");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("reader.html");
    std::fs::write(&file, READER.replace("PAGES", &pages)).expect("a page");
    let url = format!("file://{}", file.display());
    let dom = chromium(&directory.path().join("profile"), &["--dump-dom"], &url);
    let said = output(&dom);
    assert_eq!(said.lines().count(), 2 * names.len(), "{said}");
    let both = "head robots=noindex, max-snippet: 20; head googlebot=nofollow";
    let mut wrong = Vec::new();
    for line in said.lines() {
        let expected = match line.split(" | ").next().expect("a name") {
            name if WITHOUT_METAS.contains(&name) => String::new(),
            name if ENDED_WITHOUT_SCRIPTING.contains(&name) && line.contains(" | without | ") => {
                both.replace("head ", "body ")
            }
            // What stands behind `</head>` is let be, and taken into it by browsers.
            "two-heads" => format!("{both}; head robots=all"),
            _ => both.to_owned(),
        };
        // Without scripting all of its head is a comment, the metas too.
        let expected = match line.starts_with("comment-over-noscript | without ") {
            true => " |  | other".to_owned(),
            false => format!(" | {expected} | same"),
        };
        if !line.ends_with(&expected) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
