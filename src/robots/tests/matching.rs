//! Tests of which path patterns match a URL and which rule decides, with the figures of RFC 9309
//! and the tables of Google's documentation. Other tests check that matching takes linear time.

use super::{deciding_line, parse_rules, pattern_matches};
use crate::robots::{PathPattern, Rule, RuleSet};

fn assert_matches(pattern: &str, matching: &[&str], others: &[&str]) {
    for url in matching {
        assert!(
            pattern_matches(pattern, url),
            "{pattern} should match {url}"
        );
    }
    for url in others {
        assert!(
            !pattern_matches(pattern, url),
            "{pattern} should not match {url}"
        );
    }
}

#[test]
fn rfc_9309_figure_4_encodings_compare_equal() {
    for (written, spelled) in [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        (
            "/foo/bar?baz=https://foo.bar",
            "/foo/bar?baz=https://foo.bar",
        ),
        (
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            "/foo/bar?baz=https%3a%2f%2Ffoo.bar",
        ),
        ("/foo/bar/\u{30C4}", "/foo/bar/%E3%83%84"),
        ("/foo/bar/\u{30C4}", "/foo/bar/\u{30C4}"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7a"),
    ] {
        assert!(
            pattern_matches(written, spelled),
            "{written} should match {spelled}"
        );
        assert!(
            pattern_matches(spelled, written),
            "{spelled} should match {written}"
        );
        assert!(
            pattern_matches(&format!("{written}$"), spelled),
            "{written}$ should match {spelled} to its end"
        );
    }
}

#[test]
fn rfc_9309_section_2_2_3_special_characters() {
    assert_eq!(
        deciding_line(&["Allow: /this/path/exactly$"], "/this/path/exactly"),
        Some("Allow: /this/path/exactly$")
    );
    assert_eq!(
        deciding_line(&["Allow: /this/path/exactly$"], "/this/path/exactly/"),
        None
    );
    assert_eq!(
        deciding_line(&["Disallow: /this/*/exactly"], "/this/long/path/exactly?x"),
        Some("Disallow: /this/*/exactly")
    );
    assert_eq!(
        deciding_line(&["Disallow: /this/*/exactly"], "/this/exactly"),
        None
    );
}

#[test]
fn rfc_9309_figure_6_escaped_star_and_dollar_are_characters() {
    assert_matches(
        "/path/file-with-a-%2A.html",
        &[
            "/path/file-with-a-*.html",
            "/path/file-with-a-%2A.html",
            "/path/file-with-a-%2a.html",
        ],
        &["/path/file-with-a-x.html", "/path/file-with-a-.html"],
    );
    assert_matches(
        "/path/foo-%24",
        &["/path/foo-$", "/path/foo-%24", "/path/foo-$more"],
        &["/path/foo-"],
    );
}

#[test]
fn dollar_before_the_end_is_a_character() {
    assert_matches("/a$b", &["/a$b", "/a%24b", "/a$bc"], &["/a", "/ab"]);
    assert_matches("/a$$", &["/a$", "/a%24"], &["/a", "/a$$", "/a$b"]);
    assert_matches("/$*x", &["/$x", "/%24--x"], &["/x"]);
    assert_eq!(PathPattern::new("/a$b").priority(), 4);
    assert_eq!(PathPattern::new("/a%24b").priority(), 6);
}

#[test]
fn rfc_9309_example_5_1_groups() {
    let star = [
        "Disallow: *.gif$",
        "Disallow: /example/",
        "Allow: /publications/",
    ];
    assert_eq!(deciding_line(&star, "/images/a.gif"), Some(star[0]));
    assert_eq!(deciding_line(&star, "/images/a.gif?x"), None);
    assert_eq!(deciding_line(&star, "/example/page"), Some(star[1]));
    assert_eq!(deciding_line(&star, "/publications/x"), Some(star[2]));
    let foobot = [
        "Disallow:/",
        "Allow:/example/page.html",
        "Allow:/example/allowed.gif",
    ];
    assert_eq!(
        deciding_line(&foobot, "/example/page.html"),
        Some(foobot[1])
    );
    assert_eq!(
        deciding_line(&foobot, "/example/allowed.gif"),
        Some(foobot[2])
    );
    assert_eq!(deciding_line(&foobot, "/example/other"), Some(foobot[0]));
    let barbot = ["Disallow: /example/page.html"];
    assert_eq!(
        deciding_line(&barbot, "/example/page.html"),
        Some(barbot[0])
    );
    assert_eq!(deciding_line(&barbot, "/example/"), None);
}

#[test]
fn rfc_9309_example_5_2_longest_match() {
    let lines = [
        "Allow: /example/page/",
        "Disallow: /example/page/disallowed.gif",
    ];
    assert_eq!(
        deciding_line(&lines, "/example/page/disallowed.gif"),
        Some(lines[1])
    );
    assert_eq!(
        deciding_line(&lines, "/example/page/allowed.gif"),
        Some(lines[0])
    );
}

#[test]
fn google_table_of_path_values() {
    assert_matches("/", &["/", "/x", "/?q"], &[]);
    assert_matches("/*", &["/", "/x"], &[]);
    assert_matches("/$", &["/"], &["/x", "/?q"]);
    let fish = [
        "/fish",
        "/fish.html",
        "/fish/salmon.html",
        "/fishheads",
        "/fishheads/yummy.html",
        "/fish.php?id=anything",
    ];
    assert_matches(
        "/fish",
        &fish,
        &["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    );
    assert_matches(
        "/fish*",
        &fish,
        &["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    );
    assert_matches(
        "/fish/",
        &["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
        &["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    );
    assert_matches(
        "/*.php",
        &[
            "/index.php",
            "/filename.php",
            "/folder/filename.php",
            "/folder/filename.php?parameters",
            "/folder/any.php.file.html",
            "/filename.php/",
        ],
        &["/", "/windows.PHP"],
    );
    assert_matches(
        "/*.php$",
        &["/filename.php", "/folder/filename.php"],
        &[
            "/filename.php?parameters",
            "/filename.php/",
            "/filename.php5",
            "/windows.PHP",
        ],
    );
    assert_matches(
        "/fish*.php",
        &["/fish.php", "/fishheads/catfish.php?parameters"],
        &["/Fish.PHP"],
    );
}

#[test]
fn google_precedence_examples() {
    for (lines, url, winner) in [
        (["Allow: /p", "Disallow: /"], "/page", 0),
        (["Allow: /folder", "Disallow: /folder"], "/folder/page", 0),
        (["Allow: /page", "Disallow: /*.htm"], "/page.htm", 1),
        (["Allow: /page", "Disallow: /*.ph"], "/page.php5", 0),
        (["Allow: /$", "Disallow: /"], "/", 0),
        (["Allow: /$", "Disallow: /"], "/page.htm", 1),
    ] {
        assert_eq!(
            deciding_line(&lines, url),
            Some(lines[winner]),
            "{lines:?} {url}"
        );
        let turned = [lines[1], lines[0]];
        assert_eq!(
            deciding_line(&turned, url),
            Some(lines[winner]),
            "{turned:?} {url}"
        );
    }
}

#[test]
fn first_of_equal_rules_decides() {
    let set = RuleSet::new(parse_rules(&[
        "Disallow: /b",
        "Disallow: /a",
        "Disallow: /*",
        "Disallow: /a",
    ]));
    assert_eq!(set.find(b"/a"), Some(1));
    assert_eq!(set.find(b"/c"), Some(2));
}

#[test]
fn empty_pattern_is_no_rule() {
    assert_eq!(deciding_line(&["Disallow:", "Allow: "], "/"), None);
    assert!(!PathPattern::new("").matches(b"") && !PathPattern::new("").matches(b"/"));
    assert_eq!(RuleSet::default().find(b"/"), None);
}

#[test]
fn pattern_without_leading_slash_or_star_never_matches() {
    assert_matches("private", &[], &["/private", "private", "/"]);
}

#[test]
fn paths_are_compared_with_regard_to_case() {
    assert_matches("/Private", &["/Private"], &["/private"]);
}

#[test]
fn pieces_of_a_pattern_match_in_order_without_overlap() {
    assert_matches(
        "/*ab*ab$",
        &["/abab", "/ab-ab", "/abxabab"],
        &["/ab", "/aab", "/abab?"],
    );
    assert_matches("/a*a$", &["/aa", "/axa"], &["/a", "/ab"]);
    assert_matches("*", &["/", "/x"], &[]);
    assert_matches("/**//$", &["///", "/a//"], &["//", "/"]);
    assert_matches("/x*$", &["/x", "/xy"], &["/y"]);
    assert_matches("$", &[], &["/", ""]);
}

#[test]
fn respelled_url_does_not_evade_a_rule() {
    assert_matches(
        "/private",
        &[
            "/%70rivate",
            "/priv%61te",
            "http://host.example/private",
            "/private#x",
            "private",
        ],
        &["/%2Fprivate", "/public"],
    );
    assert_matches("/a b", &["/a%20b", "/a b"], &["/a+b"]);
    assert_matches(
        "/%7euser%2fx",
        &["/~user%2Fx", "/%7Euser%2fx"],
        &["/~user/x"],
    );
    assert_matches("/100%", &["/100%", "/100%?x"], &["/100"]);
}

#[test]
fn pattern_stays_within_its_line() {
    for (written, normal) in [
        ("/a\r\nDisallow: /", "/a%0D%0ADisallow:%20/"),
        ("/a#b", "/a%23b"),
        (" \t/a b\t ", "/a%20b"),
        ("/\u{0}\u{7f}\"<>\\^`{|}", "/%00%7F\"<>\\^`{|}"),
        ("/é\u{2028}", "/%C3%A9%E2%80%A8"),
        ("/%zz%2", "/%zz%2"),
        ("/%2a%2A*$", "/%2A%2A*$"),
    ] {
        assert_eq!(PathPattern::new(written).as_str(), normal);
    }
}

#[test]
fn decoding_does_not_make_new_escapes() {
    for written in ["/%%341", "/%4%31", "/%%34%31", "/%%%33%34", "/%4%4%31"] {
        let pattern = PathPattern::new(written);
        assert_eq!(PathPattern::new(pattern.as_str()), pattern, "{written}");
        assert!(!pattern.matches(b"/A"), "{written}");
    }
}

/// A backtracking matcher would need longer than the age of the universe: that this ends is what is
/// tested.
#[test]
fn many_wildcards_take_linear_time() {
    let target = format!("/{}", "a".repeat(60_000));
    assert!(!PathPattern::new(&format!("/{}b", "*a".repeat(1_000))).matches(target.as_bytes()));
    assert!(!PathPattern::new(&format!("/*{}b", "a".repeat(30_000))).matches(target.as_bytes()));
    assert!(PathPattern::new(&format!("/{}$", "*a".repeat(1_000))).matches(target.as_bytes()));
}

/// Were a rule tried wherever something of it stands in the target, these would take hours: that
/// this ends is what is tested.
#[test]
fn target_of_rule_windows_takes_linear_time() {
    let rules: Vec<Rule> = (0..1_000)
        .map(|n| Rule {
            allow: n % 2 == 0,
            pattern: PathPattern::new(&format!("/*abab*{}{n}b$", "baba*".repeat(n % 50))),
        })
        .collect();
    let target = format!("/{}", "ab".repeat(30_000));
    assert_eq!(RuleSet::new(rules).find(target.as_bytes()), None);
}

#[test]
fn among_a_thousand_rules_the_longest_is_found() {
    let lines: Vec<String> = (0..1_000)
        .map(|n| match n % 4 {
            0 => format!("Disallow: /s{n}/"),
            1 => format!("Allow: /s{}/open{n}$", n - 1),
            2 => format!("Disallow: /{}", "d".repeat(n)),
            _ => format!("Allow: /*/x{n}."),
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(
        deciding_line(&lines, "/s400/page"),
        Some("Disallow: /s400/")
    );
    assert_eq!(
        deciding_line(&lines, "/s400/open401"),
        Some("Allow: /s400/open401$")
    );
    assert_eq!(
        deciding_line(&lines, "/s400/open401/"),
        Some("Disallow: /s400/")
    );
    assert_eq!(
        deciding_line(&lines, "/s400/x403."),
        Some("Allow: /*/x403.")
    );
    let deep = format!("/{}", "d".repeat(500));
    assert_eq!(
        deciding_line(&lines, &deep),
        Some(format!("Disallow: /{}", "d".repeat(498)).as_str())
    );
    assert_eq!(deciding_line(&lines, "/other"), None);
}

/// The characters `*` and `$` of a URL are one character each: no part of how they are escaped can
/// be matched.
#[test]
fn escapes_of_star_and_dollar_match_only_themselves() {
    for (pattern, url) in [
        ("/*4$", "/menu$"),
        ("/*2", "/a$b"),
        ("/*2", "/a*b"),
        ("/*%", "/price$5"),
        ("/*A", "/**'"),
    ] {
        assert!(!pattern_matches(pattern, url), "{pattern} {url}");
    }
    assert_matches("/*$b", &["/a$b", "/a%24b"], &["/a%2424b", "/ab"]);
    assert_matches(
        "/%2A%24$",
        &["/*$", "/%2a$", "/*%24"],
        &["/x", "/*", "/*$x"],
    );
}
