//! Tests of splitting a robots.txt into lines: keys, separators, comments, line ends and byte order
//! marks, and the issues that are reported for a line.

use super::dialects::{assert_both, assert_each};
use crate::robots::{FileFormat, KeySpelling, LineIssue, MAX_LINE_BYTES, RobotsFile, RobotsKey};

fn parsed_keys(text: &[u8]) -> Vec<Option<(RobotsKey, KeySpelling)>> {
    let file = RobotsFile::parse(text);
    file.lines()
        .iter()
        .map(|line| {
            line.key_value
                .as_ref()
                .map(|record| (record.key, record.spelling))
        })
        .collect()
}

fn issues(text: impl AsRef<[u8]>) -> Vec<LineIssue> {
    let file = RobotsFile::parse(text.as_ref());
    file.lines()
        .iter()
        .flat_map(|line| line.issues.iter().copied())
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
        assert_both(file, "GPTBot", "/a", "deny 2");
    }
    assert_both(
        "user-agent: *\nALLOW: /a\nDisallow: /\n",
        "GPTBot",
        "/a",
        "allow 2",
    );
}

#[test]
fn known_misspellings_are_read_and_reported() {
    for typo in ["useragent", "User Agent"] {
        assert_both(
            format!("{typo}: *\nDisallow: /\n"),
            "GPTBot",
            "/a",
            "deny 2",
        );
        assert_eq!(issues(format!("{typo}: *\n")), [LineIssue::Typo]);
    }
    for typo in ["dissallow", "Dissalow", "disalow", "DIASLLOW", "disallaw"] {
        assert_both(
            format!("User-agent: *\n{typo}: /\n"),
            "GPTBot",
            "/a",
            "deny 2",
        );
        assert_eq!(parsed_keys(typo.to_owned().as_bytes()), [None]);
        assert_eq!(
            parsed_keys(format!("{typo}:").as_bytes()),
            [Some((RobotsKey::Disallow, KeySpelling::Typo))]
        );
    }
    assert_eq!(
        parsed_keys(b"site-map: x\nsitemap: x"),
        [
            Some((RobotsKey::Sitemap, KeySpelling::Typo)),
            Some((RobotsKey::Sitemap, KeySpelling::Exact))
        ]
    );
    // Others are no keys.
    for other in ["disalllow", "dsallow", "alow", "user_agent", "agent", "bot"] {
        assert_both(
            format!("User-agent: *\n{other}: /\nUser-agent: One\n{other}: /\n"),
            "One",
            "/a",
            "allow",
        );
        assert_eq!(
            parsed_keys(format!("{other}: x").as_bytes()),
            [Some((RobotsKey::Unknown, KeySpelling::Exact))]
        );
    }
}

#[test]
fn longer_key_is_the_key_for_google() {
    assert_each(
        "User-agent: *\nDisallowed: /\n",
        "GPTBot",
        "/a",
        "allow",
        "deny 2",
    );
    assert_each(
        "User-agent: *\nDisalow-all: /\n",
        "GPTBot",
        "/a",
        "allow",
        "deny 2",
    );
    assert_each(
        "User-agent: *\nDisallow: /\nAllowed: /a\n",
        "GPTBot",
        "/a",
        "deny 2",
        "allow 3",
    );
    assert_each(
        "User-agent-extra: *\nDisallow: /\n",
        "GPTBot",
        "/a",
        "allow",
        "deny 2",
    );
    assert_each(
        "User-agents: One\nDisallow: /\nUser-agent: *\nAllow: /\n",
        "One",
        "/a",
        "allow 4",
        "deny 2",
    );
    // For the RFC such a line is unknown, so it does not close a list of agents either.
    assert_each(
        "User-agent: One\nDisallowed: /x\nUser-agent: Two\nDisallow: /\n",
        "One",
        "/a",
        "deny 4",
        "allow",
    );
    assert_eq!(
        parsed_keys(b"Disallow all: /\nAllow-me: /\nUseragents: x\nSitemaps: y"),
        [
            Some((RobotsKey::Disallow, KeySpelling::Longer)),
            Some((RobotsKey::Allow, KeySpelling::Longer)),
            Some((RobotsKey::UserAgent, KeySpelling::Longer)),
            Some((RobotsKey::Sitemap, KeySpelling::Longer)),
        ]
    );
    assert_eq!(issues("Disallowed: /\n"), [LineIssue::Typo]);
}

#[test]
fn extension_keys_are_distinguished() {
    for (name, key) in [
        ("Crawl-delay", RobotsKey::CrawlDelay),
        ("request-rate", RobotsKey::RequestRate),
        ("Visit-time", RobotsKey::VisitTime),
        ("HOST", RobotsKey::Host),
        ("Clean-param", RobotsKey::CleanParam),
        ("Content-Signal", RobotsKey::ContentSignal),
        ("Content-Usage", RobotsKey::ContentUsage),
        ("License", RobotsKey::License),
        ("Noindex", RobotsKey::Noindex),
        ("Nofollow", RobotsKey::Noindex),
        ("Noarchive", RobotsKey::Noindex),
        ("Crawl-delays", RobotsKey::Unknown),
        ("x", RobotsKey::Unknown),
    ] {
        assert_eq!(
            parsed_keys(format!("{name}: 1").as_bytes()),
            [Some((key, KeySpelling::Exact))],
            "{name}"
        );
        assert_eq!(issues(format!("{name}: 1")), []);
    }
}

#[test]
fn noindex_is_no_rule() {
    assert_both("User-agent: *\nNoindex: /\n", "GPTBot", "/a", "allow");
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
        assert_both(format!("User-agent: *\n{rule}\n"), "GPTBot", "/a", "deny 2");
        assert_both(
            format!("User-agent: *\n{rule}$\n"),
            "GPTBot",
            "/ab",
            "allow",
        );
    }
}

#[test]
fn missing_colon_is_accepted_between_two_words() {
    for rule in [
        "Disallow /a",
        "Disallow\t/a",
        "Disallow \t  /a",
        "  Disallow /a  ",
        "Disallow /a # why not",
    ] {
        let file = format!("User-agent *\n{rule}\n");
        assert_both(&file, "GPTBot", "/a", "deny 2");
        assert_eq!(
            issues(&file),
            [LineIssue::MissingColon, LineIssue::MissingColon]
        );
    }
    // Not between three, not for words that are no key, not without a value.
    for line in ["Disallow /a /b", "Banana split", "Disallow", "Disallow/a"] {
        assert_both(format!("User-agent: *\n{line}\n"), "GPTBot", "/a", "allow");
        assert_eq!(issues(line), [LineIssue::NotKeyValue], "{line}");
    }
    // `User agent x` is three words.
    assert_both("User agent *\nDisallow: /\n", "GPTBot", "/a", "allow");
}

#[test]
fn line_reports_all_its_issues() {
    assert_eq!(
        issues("Disalow /a\n"),
        [LineIssue::Typo, LineIssue::MissingColon]
    );
}

#[test]
fn line_without_key_is_no_key_value() {
    for line in [":", ": /a", " : /a", ":Disallow: /a"] {
        assert_both(format!("User-agent: *\n{line}\n"), "GPTBot", "/a", "allow");
        assert_eq!(issues(line), [LineIssue::NotKeyValue], "{line}");
    }
}

#[test]
fn comment_ends_the_value() {
    assert_both(
        "User-agent: * # x\nDisallow: /a#b\n",
        "GPTBot",
        "/a",
        "deny 2",
    );
    assert_both(
        "User-agent: *\nDisallow: /a #b\n",
        "GPTBot",
        "/ab",
        "deny 2",
    );
    assert_both("User-agent: *\nDisallow # : /a\n", "GPTBot", "/a", "allow");
    assert_both("User-agent: *\n#Disallow: /a\n", "GPTBot", "/a", "allow");
    let file = RobotsFile::parse(*b"# one \nAllow: / ##two\nx#\n\n");
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
fn key_and_value_have_ranges() {
    let file = RobotsFile::parse(*b"\xEF\xBB\xBF User-agent :\tFoo Bar \r\nAllow:\n");
    let record = file.lines()[0].key_value.clone().expect("a record");
    assert_eq!(
        (file.slice(&record.name), file.slice(&record.value)),
        (&b"User-agent"[..], &b"Foo Bar"[..])
    );
    let record = file.lines()[1].key_value.clone().expect("a record");
    assert_eq!(
        (file.slice(&record.name), file.slice(&record.value)),
        (&b"Allow"[..], &b""[..])
    );
    assert_eq!(file.line(2), file.lines().last());
    assert_eq!((file.line(0), file.line(3)), (None, None));
}

// ---- line ends
// ---------------------------------------------------------------------------------------------------------

#[test]
fn lines_are_counted_with_any_line_end() {
    let lines = [
        "User-agent: One",
        "Allow: /a",
        "",
        "# x",
        "User-agent: *",
        "Disallow: /",
    ];
    for end in ["\n", "\r", "\r\n"] {
        assert_both(lines.join(end), "GPTBot", "/a", "deny 6");
        assert_both(lines.join(end) + end, "GPTBot", "/a", "deny 6");
    }
    // Mixed; LF CR is two ends, CR LF one.
    assert_both("User-agent: *\n\r\r\nDisallow: /", "GPTBot", "/a", "deny 4");
    assert_both("User-agent: *\r\n\nDisallow: /", "GPTBot", "/a", "deny 3");
    assert_both(
        "User-agent: *\r\r\n\n\rDisallow: /",
        "GPTBot",
        "/a",
        "deny 5",
    );
    assert_both(
        "\n\r\n\rUser-agent: *\rDisallow: /\r\n",
        "GPTBot",
        "/a",
        "deny 5",
    );
}

#[test]
fn every_line_end_begins_a_new_line() {
    let file = RobotsFile::parse(*b"a\nb\rc\r\n\r\n\nd");
    let seen: Vec<_> = file
        .lines()
        .iter()
        .map(|line| (line.number, file.text(&line.text)))
        .collect();
    assert_eq!(
        seen,
        [
            (1, "a".into()),
            (2, "b".into()),
            (3, "c".into()),
            (4, "".into()),
            (5, "".into()),
            (6, "d".into())
        ]
    );
    assert_eq!(RobotsFile::parse(*b"").lines(), []);
    assert_eq!(RobotsFile::parse(*b"a\n").lines().len(), 1);
}

// ---- byte order marks
// --------------------------------------------------------------------------------------------------

#[test]
fn byte_order_mark_at_the_beginning_is_skipped() {
    let file = b"User-agent: *\nDisallow: /\n";
    for length in 0..=3 {
        let text = [&b"\xEF\xBB\xBF"[..length], file].concat();
        assert_both(&text, "GPTBot", "/a", "deny 2");
        let parsed = RobotsFile::parse(text);
        assert_eq!(parsed.bom(), length);
        assert!(!parsed.lines()[0].issues.contains(&LineIssue::StrayBom));
    }
}

#[test]
fn broken_byte_order_mark_spoils_its_line() {
    for broken in [
        &b"\xEF\x11\xBF"[..],
        b"\xBB\xBF",
        b"\xEF\xBB\xBB",
        b"\xFE\xFF",
        b"\xEF\xBB\xBF\xEF\xBB\xBF",
    ] {
        assert_both(
            [broken, b"User-agent: *\nDisallow: /\n"].concat(),
            "GPTBot",
            "/a",
            "allow",
        );
        // Only its line.
        assert_both(
            [broken, b"\nUser-agent: *\nDisallow: /\n"].concat(),
            "GPTBot",
            "/a",
            "deny 3",
        );
    }
    assert_eq!(
        issues("\u{FEFF}\u{FEFF}User-agent: *\n"),
        [LineIssue::StrayBom]
    );
}

#[test]
fn byte_order_mark_in_the_middle_spoils_its_line() {
    assert_both(
        "User-agent: *\n\u{FEFF}Disallow: /\n",
        "GPTBot",
        "/a",
        "allow",
    );
    assert_both(
        "User-agent: *\nAllow: /b\n\u{FEFF}User-agent: One\nDisallow: /\n",
        "Two",
        "/a",
        "deny 4",
    );
    assert_eq!(
        issues("User-agent: *\n\u{FEFF}Disallow: /\n"),
        [LineIssue::StrayBom]
    );
}

// ---- bytes
// ------------------------------------------------------------------------------------------------------------

#[test]
fn bytes_after_nul_are_ignored() {
    assert_both(
        b"User-agent: *\nDisallow: /a\0b\n",
        "GPTBot",
        "/a",
        "deny 2",
    );
    assert_both(
        b"User-agent: *\nDisallow: /a \0b\n",
        "GPTBot",
        "/ac",
        "deny 2",
    );
    assert_both(b"User-agent: *\nDis\0allow: /a\n", "GPTBot", "/a", "allow");
    assert_both(b"User-agent: *\n\0Disallow: /a\n", "GPTBot", "/a", "allow");
    assert_both(
        b"User-agent: *\0x\nDisallow: /a\n",
        "GPTBot",
        "/a",
        "deny 2",
    );
    assert_both(
        b"User-agent: One\0Two\nDisallow: /a\n",
        "One",
        "/a",
        "deny 2",
    );
    // A NUL after a CR is a line, so the LF that follows ends another one.
    assert_both(
        b"User-agent: *\r\0\nDisallow: /a\n",
        "GPTBot",
        "/a",
        "deny 3",
    );
    assert_eq!(issues(b"Disallow: /a\0b\n"), [LineIssue::Nul]);
    assert_eq!(issues(b"Disallow: /a#\0b\n"), [LineIssue::Nul]);
}

#[test]
fn invalid_utf_8_is_reported() {
    assert_eq!(
        issues(b"Disallow: /\xE9\nAllow: /\xC3\xA9\n# \xFF\n"),
        [LineIssue::NotUtf8, LineIssue::NotUtf8]
    );
}

// ---- long lines
// --------------------------------------------------------------------------------------------------------

#[test]
fn too_long_line_is_cut_and_used() {
    assert_eq!(MAX_LINE_BYTES, 16_663);
    let key = "Disallow: /";
    let room = MAX_LINE_BYTES - key.len();
    let file = |path: &str| format!("User-agent: *\n{key}{path}\n");
    let fits = "x".repeat(room);
    assert_both(file(&fits), "GPTBot", format!("/{fits}"), "deny 2");
    assert_both(file(&fits), "GPTBot", format!("/{}", &fits[1..]), "allow");
    let long = format!("{fits}/qux");
    assert_both(file(&long), "GPTBot", format!("/{fits}"), "deny 2");
    assert_both(file(&long), "GPTBot", format!("/{fits}/fux"), "deny 2");
    assert_both(file(&long), "GPTBot", format!("/{}", &fits[1..]), "allow");
    assert_eq!(issues(file(&fits)), []);
    assert_eq!(issues(file(&long)), [LineIssue::TooLong]);
    // The next line is a line again.
    assert_both(
        format!("{}Disallow: /b\n", file(&long)),
        "GPTBot",
        "/b",
        "deny 3",
    );
}

#[test]
fn line_length_excludes_byte_order_mark() {
    let value = "x".repeat(MAX_LINE_BYTES - "User-agent: ".len());
    let file = format!("\u{FEFF}User-agent: {value}\nDisallow: /\n");
    assert_both(&file, &value, "/a", "deny 2");
    assert_eq!(issues(&file), []);
}

#[test]
fn escape_cut_in_two_is_no_escape() {
    let key = "Disallow: /*";
    let file = format!(
        "User-agent: *\n{key}{}%41\n",
        "x".repeat(MAX_LINE_BYTES - key.len() - 2)
    );
    let url = format!("/{}%4", "x".repeat(MAX_LINE_BYTES - key.len() - 2));
    assert_both(file, "GPTBot", url, "deny 2");
}

// ---- shapes
// ------------------------------------------------------------------------------------------------------------

#[test]
fn file_format_is_detected() {
    for html in [
        "<!DOCTYPE html>",
        "\u{FEFF}\r\n <HTML lang=en>",
        "<?xml version='1.0'?>",
        "<!-- x -->",
        "<script>",
    ] {
        assert_eq!(
            RobotsFile::parse(html.as_bytes()).shape(),
            FileFormat::Html,
            "{html}"
        );
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
        assert_eq!(RobotsFile::parse(units(big)).shape(), FileFormat::Utf16);
        let mark = if big { b"\xFE\xFF" } else { b"\xFF\xFE" };
        assert_eq!(
            RobotsFile::parse([&mark[..], &units(big)].concat()).shape(),
            FileFormat::Utf16
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
            RobotsFile::parse(text.as_bytes()).shape(),
            FileFormat::Text,
            "{text:?}"
        );
    }
}

#[test]
fn html_comment_above_rules_is_no_page() {
    use crate::robots::FileFormat;
    let shape = |text: &str| RobotsFile::parse(text.as_bytes()).shape();
    assert_eq!(
        shape("<!-- robots of the shop -->\nUser-agent: *\nDisallow: /a/\n"),
        FileFormat::Text
    );
    assert_eq!(
        shape("<!-- a page -->\n<html><body>Disallow nothing</body></html>\n"),
        FileFormat::Html
    );
    assert_eq!(shape("<!DOCTYPE html>\nUser-agent: *\n"), FileFormat::Html);
}
