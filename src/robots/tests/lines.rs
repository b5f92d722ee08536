//! The lines of a file: keys, separators, comments, line ends, byte order marks, and what is odd
//! about them.

use super::dialects::{both, each};
use crate::robots::{File, Key, LineEnd, MAX_LINE, Oddity, Shape, Spelling};

fn keys(text: &[u8]) -> Vec<Option<(Key, Spelling)>> {
    let file = File::parse(text);
    file.lines()
        .iter()
        .map(|line| {
            line.record
                .as_ref()
                .map(|record| (record.key, record.spelling))
        })
        .collect()
}

fn oddities(text: impl AsRef<[u8]>) -> Vec<Oddity> {
    let file = File::parse(text.as_ref());
    file.lines()
        .iter()
        .flat_map(|line| line.oddities.iter().copied())
        .collect()
}

// ---- keys
// --------------------------------------------------------------------------------------------------------------

#[test]
fn keys_are_read_without_regard_to_case() {
    for file in [
        "USER-AGENT: *\nDISALLOW: /\n",
        "user-agent: *\ndisallow: /\n",
        "uSeR-aGeNt: *\ndIsAlLoW: /\n",
    ] {
        both(file, "GPTBot", "/a", "deny 2");
    }
    both(
        "user-agent: *\nALLOW: /a\nDisallow: /\n",
        "GPTBot",
        "/a",
        "allow 2",
    );
}

#[test]
fn known_misspellings_are_read_and_said() {
    for typo in ["useragent", "User Agent"] {
        both(
            format!("{typo}: *\nDisallow: /\n"),
            "GPTBot",
            "/a",
            "deny 2",
        );
        assert_eq!(oddities(format!("{typo}: *\n")), [Oddity::Typo]);
    }
    for typo in ["dissallow", "Dissalow", "disalow", "DIASLLOW", "disallaw"] {
        both(
            format!("User-agent: *\n{typo}: /\n"),
            "GPTBot",
            "/a",
            "deny 2",
        );
        assert_eq!(keys(typo.to_owned().as_bytes()), [None]);
        assert_eq!(
            keys(format!("{typo}:").as_bytes()),
            [Some((Key::Disallow, Spelling::Typo))]
        );
    }
    assert_eq!(
        keys(b"site-map: x\nsitemap: x"),
        [
            Some((Key::Sitemap, Spelling::Typo)),
            Some((Key::Sitemap, Spelling::Exact))
        ]
    );
    // Others are no keys.
    for other in ["disalllow", "dsallow", "alow", "user_agent", "agent", "bot"] {
        both(
            format!("User-agent: *\n{other}: /\nUser-agent: One\n{other}: /\n"),
            "One",
            "/a",
            "allow",
        );
        assert_eq!(
            keys(format!("{other}: x").as_bytes()),
            [Some((Key::Unknown, Spelling::Exact))]
        );
    }
}

#[test]
fn a_key_with_more_behind_it_is_the_key_for_google() {
    each(
        "User-agent: *\nDisallowed: /\n",
        "GPTBot",
        "/a",
        "allow",
        "deny 2",
    );
    each(
        "User-agent: *\nDisalow-all: /\n",
        "GPTBot",
        "/a",
        "allow",
        "deny 2",
    );
    each(
        "User-agent: *\nDisallow: /\nAllowed: /a\n",
        "GPTBot",
        "/a",
        "deny 2",
        "allow 3",
    );
    each(
        "User-agent-extra: *\nDisallow: /\n",
        "GPTBot",
        "/a",
        "allow",
        "deny 2",
    );
    each(
        "User-agents: One\nDisallow: /\nUser-agent: *\nAllow: /\n",
        "One",
        "/a",
        "allow 4",
        "deny 2",
    );
    // For the RFC such a line is unknown, so it does not close a list of agents either.
    each(
        "User-agent: One\nDisallowed: /x\nUser-agent: Two\nDisallow: /\n",
        "One",
        "/a",
        "deny 4",
        "allow",
    );
    assert_eq!(
        keys(b"Disallow all: /\nAllow-me: /\nUseragents: x\nSitemaps: y"),
        [
            Some((Key::Disallow, Spelling::Longer)),
            Some((Key::Allow, Spelling::Longer)),
            Some((Key::UserAgent, Spelling::Longer)),
            Some((Key::Sitemap, Spelling::Longer)),
        ]
    );
    assert_eq!(oddities("Disallowed: /\n"), [Oddity::Typo]);
}

#[test]
fn keys_of_others_are_told_apart() {
    for (name, key) in [
        ("Crawl-delay", Key::CrawlDelay),
        ("request-rate", Key::RequestRate),
        ("Visit-time", Key::VisitTime),
        ("HOST", Key::Host),
        ("Clean-param", Key::CleanParam),
        ("Content-Signal", Key::ContentSignal),
        ("Content-Usage", Key::ContentUsage),
        ("License", Key::License),
        ("Noindex", Key::Noindex),
        ("Nofollow", Key::Noindex),
        ("Noarchive", Key::Noindex),
        ("Crawl-delays", Key::Unknown),
        ("x", Key::Unknown),
    ] {
        assert_eq!(
            keys(format!("{name}: 1").as_bytes()),
            [Some((key, Spelling::Exact))],
            "{name}"
        );
        assert_eq!(oddities(format!("{name}: 1")), []);
    }
}

#[test]
fn noindex_is_no_rule() {
    both("User-agent: *\nNoindex: /\n", "GPTBot", "/a", "allow");
}

// ---- separators, blanks, comments
// ------------------------------------------------------------------------------------

#[test]
fn blanks_around_key_and_value_do_not_matter() {
    for rule in [
        "Disallow:/a",
        " \tDisallow \t: \t/a \t",
        "Disallow\t:/a",
        "\u{b}Disallow:\u{c}/a\u{b}",
    ] {
        both(format!("User-agent: *\n{rule}\n"), "GPTBot", "/a", "deny 2");
        both(
            format!("User-agent: *\n{rule}$\n"),
            "GPTBot",
            "/ab",
            "allow",
        );
    }
}

#[test]
fn a_missing_colon_is_accepted_between_two_words() {
    for rule in [
        "Disallow /a",
        "Disallow\t/a",
        "Disallow \t  /a",
        "  Disallow /a  ",
        "Disallow /a # why not",
    ] {
        let file = format!("User-agent *\n{rule}\n");
        both(&file, "GPTBot", "/a", "deny 2");
        assert_eq!(
            oddities(&file),
            [Oddity::MissingColon, Oddity::MissingColon]
        );
    }
    // Not between three, not for words that are no key, not without a value.
    for line in ["Disallow /a /b", "Banana split", "Disallow", "Disallow/a"] {
        both(format!("User-agent: *\n{line}\n"), "GPTBot", "/a", "allow");
        assert_eq!(oddities(line), [Oddity::NoRecord], "{line}");
    }
    // `User agent x` is three words.
    both("User agent *\nDisallow: /\n", "GPTBot", "/a", "allow");
}

#[test]
fn both_oddities_of_a_line_are_said() {
    assert_eq!(
        oddities("Disalow /a\n"),
        [Oddity::Typo, Oddity::MissingColon]
    );
}

#[test]
fn a_line_without_a_key_is_no_record() {
    for line in [":", ": /a", " : /a", ":Disallow: /a"] {
        both(format!("User-agent: *\n{line}\n"), "GPTBot", "/a", "allow");
        assert_eq!(oddities(line), [Oddity::NoRecord], "{line}");
    }
}

#[test]
fn a_comment_ends_what_is_read() {
    both(
        "User-agent: * # x\nDisallow: /a#b\n",
        "GPTBot",
        "/a",
        "deny 2",
    );
    both(
        "User-agent: *\nDisallow: /a #b\n",
        "GPTBot",
        "/ab",
        "deny 2",
    );
    both("User-agent: *\nDisallow # : /a\n", "GPTBot", "/a", "allow");
    both("User-agent: *\n#Disallow: /a\n", "GPTBot", "/a", "allow");
    let file = File::parse(*b"# one \nAllow: / ##two\nx#\n\n");
    let comments: Vec<_> = file
        .lines()
        .iter()
        .map(|line| line.comment.as_ref().map(|text| file.text(text)))
        .collect();
    assert_eq!(
        comments,
        [
            Some(" one ".into()),
            Some("#two".into()),
            Some("".into()),
            None
        ]
    );
}

#[test]
fn a_record_says_where_it_stands() {
    let file = File::parse(*b"\xEF\xBB\xBF User-agent :\tFoo Bar \r\nAllow:\n");
    let record = file.lines()[0].record.clone().expect("a record");
    assert_eq!(
        (file.octets(&record.name), file.octets(&record.value)),
        (&b"User-agent"[..], &b"Foo Bar"[..])
    );
    let record = file.lines()[1].record.clone().expect("a record");
    assert_eq!(
        (file.octets(&record.name), file.octets(&record.value)),
        (&b"Allow"[..], &b""[..])
    );
    assert_eq!(file.line(2), file.lines().last());
    assert_eq!((file.line(0), file.line(3)), (None, None));
}

// ---- line ends
// ---------------------------------------------------------------------------------------------------------

#[test]
fn lines_are_counted_whatever_ends_them() {
    let lines = [
        "User-agent: One",
        "Allow: /a",
        "",
        "# x",
        "User-agent: *",
        "Disallow: /",
    ];
    for end in ["\n", "\r", "\r\n"] {
        both(lines.join(end), "GPTBot", "/a", "deny 6");
        both(lines.join(end) + end, "GPTBot", "/a", "deny 6");
    }
    // Mixed; LF CR is two ends, CR LF one.
    both("User-agent: *\n\r\r\nDisallow: /", "GPTBot", "/a", "deny 4");
    both("User-agent: *\r\n\nDisallow: /", "GPTBot", "/a", "deny 3");
    both(
        "User-agent: *\r\r\n\n\rDisallow: /",
        "GPTBot",
        "/a",
        "deny 5",
    );
    both(
        "\n\r\n\rUser-agent: *\rDisallow: /\r\n",
        "GPTBot",
        "/a",
        "deny 5",
    );
}

#[test]
fn a_line_knows_its_end() {
    let file = File::parse(*b"a\nb\rc\r\n\r\n\nd");
    let seen: Vec<_> = file
        .lines()
        .iter()
        .map(|line| (line.number, !line.text.is_empty(), line.end))
        .collect();
    assert_eq!(
        seen,
        [
            (1, true, LineEnd::Lf),
            (2, true, LineEnd::Cr),
            (3, true, LineEnd::CrLf),
            (4, false, LineEnd::CrLf),
            (5, false, LineEnd::Lf),
            (6, true, LineEnd::Nothing)
        ]
    );
    assert_eq!(File::parse(*b"").lines(), []);
    assert_eq!(File::parse(*b"a\n").lines().len(), 1);
}

// ---- byte order marks
// --------------------------------------------------------------------------------------------------

#[test]
fn a_byte_order_mark_at_the_beginning_is_skipped() {
    let file = b"User-agent: *\nDisallow: /\n";
    for length in 0..=3 {
        let text = [&b"\xEF\xBB\xBF"[..length], file].concat();
        both(&text, "GPTBot", "/a", "deny 2");
        let parsed = File::parse(text);
        assert_eq!(parsed.bom(), length);
        assert!(!parsed.lines()[0].oddities.contains(&Oddity::StrayBom));
    }
}

#[test]
fn a_broken_byte_order_mark_spoils_its_line() {
    for broken in [
        &b"\xEF\x11\xBF"[..],
        b"\xBB\xBF",
        b"\xEF\xBB\xBB",
        b"\xFE\xFF",
        b"\xEF\xBB\xBF\xEF\xBB\xBF",
    ] {
        both(
            [broken, b"User-agent: *\nDisallow: /\n"].concat(),
            "GPTBot",
            "/a",
            "allow",
        );
        // Only its line.
        both(
            [broken, b"\nUser-agent: *\nDisallow: /\n"].concat(),
            "GPTBot",
            "/a",
            "deny 3",
        );
    }
    assert_eq!(
        oddities("\u{FEFF}\u{FEFF}User-agent: *\n"),
        [Oddity::StrayBom]
    );
}

#[test]
fn a_byte_order_mark_in_the_middle_spoils_its_line() {
    both(
        "User-agent: *\n\u{FEFF}Disallow: /\n",
        "GPTBot",
        "/a",
        "allow",
    );
    both(
        "User-agent: *\nAllow: /b\n\u{FEFF}User-agent: One\nDisallow: /\n",
        "Two",
        "/a",
        "deny 4",
    );
    assert_eq!(
        oddities("User-agent: *\n\u{FEFF}Disallow: /\n"),
        [Oddity::StrayBom]
    );
}

// ---- octets
// ------------------------------------------------------------------------------------------------------------

#[test]
fn what_follows_a_nul_in_a_line_is_not_read() {
    both(
        b"User-agent: *\nDisallow: /a\0b\n",
        "GPTBot",
        "/a",
        "deny 2",
    );
    both(
        b"User-agent: *\nDisallow: /a \0b\n",
        "GPTBot",
        "/ac",
        "deny 2",
    );
    both(b"User-agent: *\nDis\0allow: /a\n", "GPTBot", "/a", "allow");
    both(b"User-agent: *\n\0Disallow: /a\n", "GPTBot", "/a", "allow");
    both(
        b"User-agent: *\0x\nDisallow: /a\n",
        "GPTBot",
        "/a",
        "deny 2",
    );
    both(
        b"User-agent: One\0Two\nDisallow: /a\n",
        "One",
        "/a",
        "deny 2",
    );
    // A NUL after a CR is a line, so the LF that follows ends another one.
    both(
        b"User-agent: *\r\0\nDisallow: /a\n",
        "GPTBot",
        "/a",
        "deny 3",
    );
    assert_eq!(oddities(b"Disallow: /a\0b\n"), [Oddity::Nul]);
    assert_eq!(oddities(b"Disallow: /a#\0b\n"), [Oddity::Nul]);
}

#[test]
fn what_is_not_utf_8_is_said() {
    assert_eq!(
        oddities(b"Disallow: /\xE9\nAllow: /\xC3\xA9\n# \xFF\n"),
        [Oddity::NotUtf8, Oddity::NotUtf8]
    );
}

// ---- long lines
// --------------------------------------------------------------------------------------------------------

#[test]
fn a_line_too_long_is_cut_and_what_is_left_is_used() {
    assert_eq!(MAX_LINE, 16_663);
    let key = "Disallow: /";
    let room = MAX_LINE - key.len();
    let file = |path: &str| format!("User-agent: *\n{key}{path}\n");
    let fits = "x".repeat(room);
    both(file(&fits), "GPTBot", format!("/{fits}"), "deny 2");
    both(file(&fits), "GPTBot", format!("/{}", &fits[1..]), "allow");
    let long = format!("{fits}/qux");
    both(file(&long), "GPTBot", format!("/{fits}"), "deny 2");
    both(file(&long), "GPTBot", format!("/{fits}/fux"), "deny 2");
    both(file(&long), "GPTBot", format!("/{}", &fits[1..]), "allow");
    assert_eq!(oddities(file(&fits)), []);
    assert_eq!(oddities(file(&long)), [Oddity::TooLong]);
    // The next line is a line again.
    both(
        format!("{}Disallow: /b\n", file(&long)),
        "GPTBot",
        "/b",
        "deny 3",
    );
}

#[test]
fn the_length_of_a_line_is_counted_after_the_byte_order_mark() {
    let value = "x".repeat(MAX_LINE - "User-agent: ".len());
    let file = format!("\u{FEFF}User-agent: {value}\nDisallow: /\n");
    both(&file, &value, "/a", "deny 2");
    assert_eq!(oddities(&file), []);
}

#[test]
fn an_escape_cut_in_two_is_no_escape() {
    let key = "Disallow: /*";
    let file = format!(
        "User-agent: *\n{key}{}%41\n",
        "x".repeat(MAX_LINE - key.len() - 2)
    );
    let url = format!("/{}%4", "x".repeat(MAX_LINE - key.len() - 2));
    both(file, "GPTBot", url, "deny 2");
}

// ---- shapes
// ------------------------------------------------------------------------------------------------------------

#[test]
fn the_shape_of_a_file_is_recognised() {
    for html in [
        "<!DOCTYPE html>",
        "\u{FEFF}\r\n <HTML lang=en>",
        "<?xml version='1.0'?>",
        "<!-- x -->",
        "<script>",
    ] {
        assert_eq!(File::parse(html.as_bytes()).shape(), Shape::Html, "{html}");
    }
    let units = |big: bool| -> Vec<u8> {
        let unit = |unit: u16| {
            if big {
                unit.to_be_bytes()
            } else {
                unit.to_le_bytes()
            }
        };
        "User-agent: *\n".encode_utf16().flat_map(unit).collect()
    };
    for big in [false, true] {
        assert_eq!(File::parse(units(big)).shape(), Shape::Utf16);
        let mark = if big { b"\xFE\xFF" } else { b"\xFF\xFE" };
        assert_eq!(
            File::parse([&mark[..], &units(big)].concat()).shape(),
            Shape::Utf16
        );
    }
    for text in [
        "",
        "User-agent: *\n",
        "# <html>\n",
        "\0\0\0\0\0\0\0\0\0\0",
        "a <html>",
    ] {
        assert_eq!(
            File::parse(text.as_bytes()).shape(),
            Shape::Text,
            "{text:?}"
        );
    }
}

#[test]
fn a_comment_of_html_above_rules_makes_no_page() {
    use crate::robots::Shape;
    let shape = |text: &str| File::parse(text.as_bytes()).shape();
    assert_eq!(
        shape("<!-- robots of the shop -->\nUser-agent: *\nDisallow: /a/\n"),
        Shape::Text
    );
    assert_eq!(
        shape("<!-- a page -->\n<html><body>Disallow nothing</body></html>\n"),
        Shape::Html
    );
    assert_eq!(shape("<!DOCTYPE html>\nUser-agent: *\n"), Shape::Html);
}
