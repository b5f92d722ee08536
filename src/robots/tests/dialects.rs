//! Tests of what a robots.txt says about a URL, read by RFC 9309 and by Google's library: groups,
//! agents, precedence, patterns, escapes, URLs. Where the two differ, a test states both answers.

use crate::robots::{
    AgentName, Dialect, DialectRules, GroupMatch, MAX_ROBOTS_BYTES, RobotsFile, url_path,
};

/// The answer of one dialect: `allow` or `deny`, and the number of the line that decided if there
/// is one.
pub fn verdict_text(
    dialect: Dialect,
    text: impl AsRef<[u8]>,
    token: &str,
    url: impl AsRef<[u8]>,
) -> String {
    let file = RobotsFile::parse(text.as_ref());
    let verdict = DialectRules::new(&file, dialect, &["Sogou web spider"])
        .verdict(token.as_bytes(), url.as_ref());
    let word = if verdict.allowed { "allow" } else { "deny" };
    verdict
        .line
        .map_or(word.to_owned(), |line| format!("{word} {line}"))
}

/// Both dialects say the same.
#[track_caller]
pub fn assert_both(text: impl AsRef<[u8]>, token: &str, url: impl AsRef<[u8]>, expected: &str) {
    assert_each(text, token, url, expected, expected);
}

/// What RFC 9309 says, and what Google's library says.
#[track_caller]
pub fn assert_each(
    text: impl AsRef<[u8]>,
    token: &str,
    url: impl AsRef<[u8]>,
    rfc: &str,
    google: &str,
) {
    let (text, url) = (text.as_ref(), url.as_ref());
    let context = || {
        format!(
            "{token:?} asks for {:?}:\n{}",
            url.escape_ascii().to_string(),
            text.escape_ascii()
        )
    };
    assert_eq!(
        verdict_text(Dialect::Rfc9309, text, token, url),
        rfc,
        "rfc9309: {}",
        context()
    );
    assert_eq!(
        verdict_text(Dialect::Google, text, token, url),
        google,
        "google: {}",
        context()
    );
}

/// A file for `*` with these rules on its second and following lines.
fn star_group(rules: &str) -> String {
    format!("User-agent: *\n{rules}\n")
}

// ---- nothing said
// ------------------------------------------------------------------------------------------------------

#[test]
fn empty_file_allows_everything() {
    for empty in ["", "\n", "\r\n\r\n", "# nothing\n", " \t\n", "\u{FEFF}"] {
        assert_both(empty, "GPTBot", "/a", "allow");
    }
}

#[test]
fn file_naming_other_agents_allows() {
    assert_both("User-agent: Other\nDisallow: /\n", "GPTBot", "/a", "allow");
    assert_both("User-agent: Other\nDisallow: /\n", "", "/a", "allow");
}

#[test]
fn empty_url_is_the_root() {
    assert_both(star_group("Disallow: /"), "GPTBot", "", "deny 2");
    assert_both(star_group("Disallow: /a"), "GPTBot", "", "allow");
    assert_both(star_group("Disallow: /$"), "GPTBot", "", "deny 2");
}

// ---- groups
// ------------------------------------------------------------------------------------------------------------

#[test]
fn rules_before_the_first_agent_belong_to_no_group() {
    assert_both(
        "Disallow: /\nUser-agent: *\nDisallow: /b\n",
        "GPTBot",
        "/a",
        "allow",
    );
    assert_both(
        "Allow: /b\nUser-agent: *\nDisallow: /\n",
        "GPTBot",
        "/b",
        "deny 3",
    );
    assert_both("Disallow: /\n", "GPTBot", "/a", "allow");
}

#[test]
fn several_agents_share_the_rules_that_follow() {
    let file = "User-agent: One\nUser-agent: Two\n\nUser-agent: Three\nDisallow: /a\n";
    for token in ["One", "Two", "Three"] {
        assert_both(file, token, "/a", "deny 5");
    }
    assert_both(file, "Four", "/a", "allow");
}

#[test]
fn rule_closes_the_list_of_agents() {
    let file = "User-agent: One\nAllow: /x\nUser-agent: Two\nDisallow: /\n";
    assert_both(file, "One", "/a", "allow");
    assert_both(file, "Two", "/a", "deny 4");
}

#[test]
fn empty_rule_closes_the_list_of_agents_too() {
    let file = "User-agent: One\nDisallow:\nUser-agent: Two\nDisallow: /\n";
    assert_both(file, "One", "/a", "allow 2");
    assert_both(file, "Two", "/a", "deny 4");
}

#[test]
fn blank_lines_and_comments_do_not_end_a_group() {
    assert_both(
        "User-agent: *\n\n\n# x\n\nDisallow: /\n",
        "GPTBot",
        "/a",
        "deny 6",
    );
    assert_both(
        "User-agent: *\nAllow: /a\n\nDisallow: /\n",
        "GPTBot",
        "/b",
        "deny 4",
    );
}

#[test]
fn only_allow_and_disallow_close_a_list_of_agents() {
    for between in [
        "Sitemap: https://a.example/s",
        "Crawl-delay: 10",
        "Host: a.example",
        "Banana: x",
        "Noindex: /",
        "x",
    ] {
        let file = format!("User-agent: One\n{between}\nUser-agent: Two\nDisallow: /\n");
        assert_both(&file, "One", "/a", "deny 4");
        assert_both(&file, "Two", "/a", "deny 4");
        // Neither do they end a group that has rules.
        let file = format!("User-agent: One\nAllow: /x\n{between}\nDisallow: /\n");
        assert_both(&file, "One", "/a", "deny 4");
    }
}

#[test]
fn group_with_only_crawl_delay_joins_the_next() {
    let file = "User-agent: msnbot\nCrawl-delay: 10\n\nUser-agent: Baiduspider\nDisallow: /\n";
    assert_both(file, "msnbot", "/a", "deny 5");
    assert_both(file, "Baiduspider", "/a", "deny 5");
    let parsed = RobotsFile::parse(file.as_bytes());
    for dialect in Dialect::ALL {
        let reading = DialectRules::new(&parsed, dialect, &[]);
        let [group] = reading.groups() else {
            panic!("{:?}", reading.groups())
        };
        assert_eq!(
            group
                .agents
                .iter()
                .map(|agent| (&*agent.token, agent.line))
                .collect::<Vec<_>>(),
            [("msnbot", 1), ("Baiduspider", 4)]
        );
        assert_eq!((group.rules.len(), &group.other_lines[..]), (1, &[2][..]));
    }
}

#[test]
fn groups_of_one_token_are_merged() {
    let file = "User-agent: One\nDisallow: /a\n\nUser-agent: Two\nDisallow: /b\n\nUser-agent: ONE\nDisallow: /c\n";
    assert_both(file, "one", "/a", "deny 2");
    assert_both(file, "one", "/b", "allow");
    assert_both(file, "one", "/c", "deny 8");
    let parsed = RobotsFile::parse(file.as_bytes());
    for dialect in Dialect::ALL {
        let reading = DialectRules::new(&parsed, dialect, &[]);
        assert_eq!(reading.groups_for(b"oNe"), (GroupMatch::Named, &[0, 2][..]));
        assert_eq!(reading.groups_for(b"three"), (GroupMatch::Nothing, &[][..]));
    }
}

#[test]
fn star_groups_are_merged() {
    let file =
        "User-agent: *\nDisallow: /a\nUser-agent: One\nDisallow: /b\nUser-agent: *\nDisallow: /c\n";
    assert_both(file, "Two", "/a", "deny 2");
    assert_both(file, "Two", "/b", "allow");
    assert_both(file, "Two", "/c", "deny 6");
    let parsed = RobotsFile::parse(file.as_bytes());
    assert_eq!(
        DialectRules::new(&parsed, Dialect::Rfc9309, &[]).groups_for(b"Two"),
        (GroupMatch::Star, &[0, 2][..])
    );
}

#[test]
fn named_group_replaces_star_group() {
    assert_both(
        "User-agent: *\nDisallow: /\nUser-agent: One\nDisallow: /a\n",
        "One",
        "/b",
        "allow",
    );
    assert_both(
        "User-agent: One\nDisallow: /a\nUser-agent: *\nDisallow: /\n",
        "One",
        "/b",
        "allow",
    );
    assert_both(
        "User-agent: *\nAllow: /\nUser-agent: One\nDisallow: /\n",
        "One",
        "/b",
        "deny 4",
    );
}

#[test]
fn named_group_without_rules_replaces_star_group() {
    assert_both(
        "User-agent: *\nDisallow: /\nUser-agent: One\n",
        "One",
        "/b",
        "allow",
    );
    assert_both(
        "User-agent: *\nDisallow: /\nUser-agent: One\nDisallow:\n",
        "One",
        "/b",
        "allow 4",
    );
}

#[test]
fn group_may_name_star_and_token() {
    let file = "User-agent: *\nUser-agent: One\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n";
    assert_both(file, "One", "/a", "deny 3");
    assert_both(file, "One", "/b", "allow");
    assert_both(file, "Two", "/a", "deny 3");
    assert_both(file, "Two", "/b", "deny 6");
}

#[test]
fn token_named_twice_in_a_group_counts_once() {
    let file = RobotsFile::parse(
        *b"User-agent: One\nUser-agent: one\nUser-agent: *\nUser-agent: * \nDisallow: /a\n",
    );
    for dialect in Dialect::ALL {
        let reading = DialectRules::new(&file, dialect, &[]);
        assert_eq!(reading.groups_for(b"One"), (GroupMatch::Named, &[0][..]));
        assert_eq!(reading.groups_for(b"Two"), (GroupMatch::Star, &[0][..]));
    }
}

// ---- agents
// ------------------------------------------------------------------------------------------------------------

#[test]
fn tokens_are_compared_without_regard_to_case_and_whole() {
    let file = "User-agent: FooBot\nDisallow: /\n";
    for token in ["FooBot", "foobot", "FOOBOT"] {
        assert_both(file, token, "/", "deny 2");
    }
    for token in [
        "Foo",
        "FooBot-Image",
        "Bot",
        "FooBot ",
        " FooBot",
        "FooBot/1.0",
        "*",
        "",
    ] {
        assert_both(file, token, "/", "allow");
    }
    assert_both(
        "User-agent: Googlebot\nDisallow: /\n",
        "Googlebot-Image",
        "/",
        "allow",
    );
    assert_both(
        "User-agent: Foo_Bar-Baz\nDisallow: /\n",
        "foo_bar-baz",
        "/",
        "deny 2",
    );
}

/// The value of a User-agent line, and whom it names: by the RFC, and for Google's library.
#[test]
fn agent_values_are_cut_by_dialect() {
    let spaced = ["Sogou web spider", "Sogou"];
    let name = |dialect: Dialect, value: &str| match dialect.parse_agent(value.as_bytes(), &spaced)
    {
        AgentName::Star => "everybody".to_owned(),
        AgentName::Token(token) => String::from_utf8(token.to_vec()).expect("ASCII"),
    };
    for (value, rfc, google) in [
        ("Foobot", "Foobot", "Foobot"),
        ("Foo_Bar-Baz", "Foo_Bar-Baz", "Foo_Bar-Baz"),
        ("*", "everybody", "everybody"),
        ("* x", "everybody", "everybody"),
        ("*\tx", "everybody", "everybody"),
        ("*\u{b}x", "everybody", "everybody"),
        ("*bot", "*bot", ""),
        ("*/2.1", "", ""),
        ("**", "", ""),
        ("", "", ""),
        ("Foo*", "Foo", "Foo"),
        ("Foo**", "Foo", "Foo"),
        ("Foo*bar", "Foo*bar", "Foo"),
        ("Foo/2.1", "Foo", "Foo"),
        ("Foo*/2.1", "Foo", "Foo"),
        ("Foo Bar", "Foo", "Foo"),
        ("Foo\tBar", "Foo", "Foo"),
        ("MJ12bot", "MJ12bot", "MJ"),
        ("MJ12bot/v1.4.8", "MJ12bot", "MJ"),
        ("360Spider", "360Spider", ""),
        ("008", "008", ""),
        ("One, Two", "One", "One"),
        ("One; Two", "One", "One"),
        ("ia.archiver", "ia.archiver", "ia"),
        ("Sogou web spider", "Sogou web spider", "Sogou"),
        ("sogou WEB spider/4.0", "sogou WEB spider", "sogou"),
        ("Sogou web spider, One", "Sogou web spider", "Sogou"),
        ("Sogou web spider*", "Sogou web spider", "Sogou"),
        ("Sogou web spiders", "Sogou", "Sogou"),
        ("Sogou inst spider", "Sogou", "Sogou"),
    ] {
        assert_eq!(name(Dialect::Rfc9309, value), rfc, "rfc9309: {value:?}");
        assert_eq!(name(Dialect::Google, value), google, "google: {value:?}");
    }
}

#[test]
fn star_may_be_followed_by_blank_and_text() {
    assert_both("User-agent: * x\nDisallow: /\n", "GPTBot", "/", "deny 2");
    assert_both("User-agent: *\tx\nDisallow: /\n", "GPTBot", "/", "deny 2");
    assert_both("User-agent: *bot\nDisallow: /\n", "GPTBot", "/", "allow");
    assert_both("User-agent: **\nDisallow: /\n", "GPTBot", "/", "allow");
}

#[test]
fn tokens_with_digits_exist_for_the_rfc_only() {
    let file = "User-agent: MJ12bot\nDisallow: /\n";
    assert_each(file, "MJ12bot", "/", "deny 2", "allow");
    assert_each(file, "MJ", "/", "allow", "deny 2");
    let file = "User-agent: 360Spider\nDisallow: /\nUser-agent: *\nDisallow: /a\n";
    assert_each(file, "360Spider", "/a", "deny 2", "deny 4");
    assert_each(file, "360Spider", "/b", "deny 2", "allow");
}

#[test]
fn empty_agent_names_the_nameless_crawler_for_google() {
    for value in ["", "360Spider", "*bot", "/"] {
        let file = format!("User-agent: {value}\nDisallow: /\n");
        assert_each(&file, "", "/a", "allow", "deny 2");
        // It opens a group all the same.
        let file = format!("User-agent: One\nAllow: /\nUser-agent: {value}\nDisallow: /\n");
        assert_both(&file, "One", "/a", "allow 2");
    }
}

#[test]
fn tokens_with_blanks_are_those_that_are_known_to_exist() {
    let file = "User-agent: Sogou web spider\nDisallow: /\n";
    assert_each(file, "Sogou web spider", "/", "deny 2", "allow");
    assert_each(file, "Sogou", "/", "allow", "deny 2");
    // Others are cut at the blank, as the RFC's grammar has it.
    assert_both("User-agent: Foo Bar\nDisallow: /\n", "Foo", "/", "deny 2");
    assert_both(
        "User-agent: Foo Bar\nDisallow: /\n",
        "Foo Bar",
        "/",
        "allow",
    );
}

#[test]
fn one_line_names_one_agent() {
    let file = "User-agent: One, Two\nDisallow: /\n";
    assert_both(file, "One", "/", "deny 2");
    assert_both(file, "Two", "/", "allow");
}

#[test]
fn versions_and_stars_behind_a_token_are_no_part_of_it() {
    for value in ["Foo/2.1", "Foo*", "Foo Bar", "  foo\t", "FOO/2.1 (x)"] {
        assert_both(
            format!("User-agent: {value}\nDisallow: /\n"),
            "Foo",
            "/",
            "deny 2",
        );
    }
}

// ---- precedence
// --------------------------------------------------------------------------------------------------------

#[test]
fn longest_pattern_wins_in_any_order() {
    assert_both(
        star_group("Disallow: /x/page.html\nAllow: /x/"),
        "GPTBot",
        "/x/page.html",
        "deny 2",
    );
    assert_both(
        star_group("Allow: /x/page.html\nDisallow: /x/"),
        "GPTBot",
        "/x/page.html",
        "allow 2",
    );
    assert_both(
        star_group("Allow: /x/page.html\nDisallow: /x/"),
        "GPTBot",
        "/x/",
        "deny 3",
    );
    assert_both(
        star_group("Disallow: /x\nAllow: /x/"),
        "GPTBot",
        "/x",
        "deny 2",
    );
    assert_both(
        star_group("Disallow: /x\nAllow: /x/"),
        "GPTBot",
        "/x/",
        "allow 3",
    );
}

#[test]
fn allow_wins_a_tie_and_its_line_is_reported() {
    assert_both(
        star_group("Disallow: /a\nAllow: /a"),
        "GPTBot",
        "/a",
        "allow 3",
    );
    assert_both(
        star_group("Allow: /a\nDisallow: /a"),
        "GPTBot",
        "/a",
        "allow 2",
    );
    assert_both(
        star_group("Disallow: /a*\nAllow: /ab"),
        "GPTBot",
        "/ab",
        "allow 3",
    );
}

#[test]
fn first_line_of_equal_rules_is_reported() {
    assert_both(
        star_group("Disallow: /a\nDisallow: /a\nDisallow: /*"),
        "GPTBot",
        "/a",
        "deny 2",
    );
    assert_both(
        star_group("Disallow: /*\nDisallow: /a"),
        "GPTBot",
        "/a",
        "deny 2",
    );
    assert_both(
        star_group("Disallow: /a\nAllow: /*\nAllow: /a"),
        "GPTBot",
        "/a",
        "allow 3",
    );
}

#[test]
fn wildcards_and_the_end_count_as_bytes() {
    assert_both(
        star_group("Disallow: /a*b\nAllow: /a"),
        "GPTBot",
        "/axb",
        "deny 2",
    );
    assert_both(
        star_group("Allow: /abcd\nDisallow: /*d***"),
        "GPTBot",
        "/abcd",
        "deny 3",
    );
    assert_both(
        star_group("Disallow: /ab\nAllow: /a*$"),
        "GPTBot",
        "/ab",
        "allow 3",
    );
    assert_both(
        star_group("Disallow: /ab$\nAllow: /ab"),
        "GPTBot",
        "/ab",
        "deny 2",
    );
}

#[test]
fn bytes_above_ascii_count_as_escaped() {
    // Nine bytes against eight.
    assert_both(
        star_group("Allow: /caf*****\nDisallow: /café"),
        "GPTBot",
        "/caf%C3%A9",
        "deny 3",
    );
    assert_both(
        star_group("Allow: /caf******\nDisallow: /café"),
        "GPTBot",
        "/caf%C3%A9",
        "allow 2",
    );
}

#[test]
fn empty_pattern_has_no_effect_but_is_reported() {
    assert_both(star_group("Disallow:"), "GPTBot", "/a", "allow 2");
    assert_both(star_group("Allow:"), "GPTBot", "/a", "allow 2");
    assert_both(star_group("Disallow:\nAllow:"), "GPTBot", "/a", "allow 3");
    assert_both(star_group("Allow:\nDisallow:"), "GPTBot", "/a", "allow 2");
    assert_both(
        star_group("Disallow:\nDisallow:"),
        "GPTBot",
        "/a",
        "allow 2",
    );
    assert_both(star_group("Allow:\nDisallow: /a"), "GPTBot", "/a", "deny 3");
    assert_both(
        star_group("Disallow:\nDisallow: /a"),
        "GPTBot",
        "/b",
        "allow 2",
    );
    assert_both(star_group("Disallow: # all"), "GPTBot", "/a", "allow 2");
}

#[test]
fn no_line_is_reported_when_no_rule_matches() {
    assert_both(
        star_group("Disallow: /a\nAllow: /b"),
        "GPTBot",
        "/c",
        "allow",
    );
    assert_both(
        "User-agent: *\nDisallow: /\nUser-agent: One\nDisallow: /a\n",
        "One",
        "/c",
        "allow",
    );
}

/// The examples of precedence in Google's documentation.
#[test]
fn precedence_as_google_documents_it() {
    for (rules, url, expected) in [
        ("Allow: /p\nDisallow: /", "/page", "allow 2"),
        (
            "Allow: /folder\nDisallow: /folder",
            "/folder/page",
            "allow 2",
        ),
        ("Allow: /page\nDisallow: /*.htm", "/page.htm", "deny 3"),
        ("Allow: /page\nDisallow: /*.ph", "/page.php5", "allow 2"),
        ("Allow: /$\nDisallow: /", "/", "allow 2"),
        ("Allow: /$\nDisallow: /", "/page.htm", "deny 3"),
    ] {
        assert_both(
            star_group(rules),
            "GPTBot",
            format!("https://example.com{url}"),
            expected,
        );
    }
}

// ---- patterns
// ----------------------------------------------------------------------------------------------------------

/// The table of paths in Google's documentation.
#[test]
fn paths_as_google_documents_them() {
    let fish = [
        "/fish",
        "/fish.html",
        "/fish/salmon.html",
        "/fishheads",
        "/fishheads/yummy.html",
        "/fish.php?id=any",
    ];
    let no_fish = ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"];
    let table: [(&str, &[&str], &[&str]); 9] = [
        ("/", &["/", "/a", "/a/b?c"], &[]),
        ("/*", &["/", "/a", "/a/b?c"], &[]),
        ("/$", &["/"], &["/a", "/?a"]),
        ("/fish", &fish, &no_fish),
        ("/fish*", &fish, &no_fish),
        (
            "/fish/",
            &["/fish/", "/fish/?id=any", "/fish/salmon.htm"],
            &["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
        ),
        (
            "/*.php",
            &[
                "/index.php",
                "/f.php",
                "/folder/f.php",
                "/folder/f.php?p",
                "/folder/any.php.file.html",
                "/f.php/",
            ],
            &["/", "/windows.PHP"],
        ),
        (
            "/*.php$",
            &["/f.php", "/folder/f.php"],
            &[
                "/f.php?p",
                "/f.php/",
                "/f.php5",
                "/windows.PHP",
                "/windows.PHP",
                "/",
            ],
        ),
        (
            "/fish*.php",
            &["/fish.php", "/fishheads/catfish.php?p"],
            &["/Fish.PHP", "/catfish.php"],
        ),
    ];
    for (pattern, matching, others) in table {
        for url in matching {
            assert_both(
                star_group(&format!("Disallow: {pattern}")),
                "GPTBot",
                format!("http://foo.bar{url}"),
                "deny 2",
            );
        }
        for url in others {
            assert_both(
                star_group(&format!("Disallow: {pattern}")),
                "GPTBot",
                format!("http://foo.bar{url}"),
                "allow",
            );
        }
    }
}

#[test]
fn paths_are_compared_with_regard_to_case() {
    assert_both(star_group("Disallow: /X/"), "GPTBot", "/x/y", "allow");
    assert_both(star_group("Disallow: /x/"), "GPTBot", "/x/y", "deny 2");
    assert_both(star_group("disallow: /x/"), "GPTBot", "/X/y", "allow");
}

#[test]
fn dollar_is_special_at_the_end_only() {
    assert_both(star_group("Disallow: /a$"), "GPTBot", "/a", "deny 2");
    assert_both(star_group("Disallow: /a$"), "GPTBot", "/ab", "allow");
    assert_both(star_group("Disallow: /a$b"), "GPTBot", "/a$b", "deny 2");
    assert_both(star_group("Disallow: /a$b"), "GPTBot", "/a", "allow");
    assert_both(star_group("Disallow: /a$$"), "GPTBot", "/a$", "deny 2");
    assert_both(star_group("Disallow: /a$$"), "GPTBot", "/a", "allow");
    assert_both(star_group("Disallow: /a$$"), "GPTBot", "/a$$", "allow");
    assert_both(star_group("Disallow: $"), "GPTBot", "/", "allow");
    assert_both(star_group("Disallow: *$"), "GPTBot", "/anything", "deny 2");
}

#[test]
fn pattern_without_a_slash_matches_by_its_wildcard_only() {
    assert_both(
        star_group("Disallow: private"),
        "GPTBot",
        "/private",
        "allow",
    );
    assert_both(
        star_group("Disallow: *private"),
        "GPTBot",
        "/a/private/b",
        "deny 2",
    );
    assert_both(
        star_group("Disallow: *.gif$"),
        "GPTBot",
        "/a/b.gif",
        "deny 2",
    );
    assert_both(
        star_group("Disallow: *.gif$"),
        "GPTBot",
        "/a/b.gif?x",
        "allow",
    );
    assert_both(star_group("Disallow: *"), "GPTBot", "/", "deny 2");
}

#[test]
fn colon_in_a_value_belongs_to_it() {
    assert_both(star_group("Disallow: /a:b"), "GPTBot", "/a:b", "deny 2");
    assert_both(
        star_group("Disallow: https://a.example/x"),
        "GPTBot",
        "https://a.example/x",
        "allow",
    );
    assert_both(star_group("Disallow:: /a"), "GPTBot", "/a", "allow");
}

#[test]
fn allowing_an_index_page_allows_its_directory_for_google() {
    let file = star_group("Allow: /dir/index.html\nDisallow: /");
    assert_each(&file, "GPTBot", "/dir/", "deny 3", "allow 2");
    assert_each(&file, "GPTBot", "/dir/index.htm", "deny 3", "deny 3");
    assert_both(&file, "GPTBot", "/dir/index.html", "allow 2");
    assert_both(&file, "GPTBot", "/dir", "deny 3");
    assert_both(&file, "GPTBot", "/dir/x", "deny 3");
    // Whatever follows `/index.htm`, and at any depth.
    assert_each(
        star_group("Allow: /index.htmFOO\nDisallow: /"),
        "GPTBot",
        "/",
        "deny 3",
        "allow 2",
    );
    assert_each(
        star_group("Allow: /a/*/index.htm\nDisallow: /"),
        "GPTBot",
        "/a/b/",
        "deny 3",
        "allow 2",
    );
    // The directory counts with its own length.
    assert_each(
        star_group("Allow: /d/index.html\nDisallow: /*d/"),
        "GPTBot",
        "/d/",
        "deny 3",
        "allow 2",
    );
    assert_both(
        star_group("Allow: /d/index.html\nDisallow: /**d/"),
        "GPTBot",
        "/d/",
        "deny 3",
    );
    // Disallow knows no such thing, nor do other names.
    assert_both(
        star_group("Disallow: /dir/index.html"),
        "GPTBot",
        "/dir/",
        "allow",
    );
    assert_both(
        star_group("Allow: /dir/Index.html\nDisallow: /"),
        "GPTBot",
        "/dir/",
        "deny 3",
    );
    assert_both(
        star_group("Allow: /dir/index.php\nDisallow: /"),
        "GPTBot",
        "/dir/",
        "deny 3",
    );
    assert_both(
        star_group("Allow: index.html\nDisallow: /"),
        "GPTBot",
        "/",
        "deny 3",
    );
}

#[test]
fn robots_txt_is_always_allowed_by_the_rfc() {
    for url in [
        "/robots.txt",
        "https://a.example/robots.txt",
        "/robots.txt?x",
        "/robots%2Etxt",
        "/robots.txt#a",
    ] {
        assert_each(star_group("Disallow: /"), "GPTBot", url, "allow", "deny 2");
    }
    for url in [
        "/robots.txt/",
        "/a/robots.txt",
        "/robots.txt2",
        "/Robots.txt",
    ] {
        assert_both(star_group("Disallow: /"), "GPTBot", url, "deny 2");
    }
    assert_each(
        "User-agent: One\nDisallow: /robots.txt\n",
        "One",
        "/robots.txt",
        "allow",
        "deny 2",
    );
}

// ---- escapes
// -----------------------------------------------------------------------------------------------------------

#[test]
fn bytes_above_ascii_in_rules_are_escaped() {
    for rule in ["/foo/bar/ツ", "/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"] {
        let file = star_group(&format!("Disallow: {rule}"));
        assert_both(&file, "GPTBot", "/foo/bar/%E3%83%84", "deny 2");
        // In a URL, Google's library normalises nothing.
        assert_each(&file, "GPTBot", "/foo/bar/%e3%83%84", "deny 2", "allow");
        assert_each(&file, "GPTBot", "/foo/bar/ツ", "deny 2", "allow");
    }
    assert_both(
        b"User-agent: *\nDisallow: /\xE9\n",
        "GPTBot",
        "/%E9",
        "deny 2",
    );
    assert_each(
        b"User-agent: *\nDisallow: /\xE9\n",
        "GPTBot",
        b"/\xE9",
        "deny 2",
        "allow",
    );
}

#[test]
fn escapes_of_unreserved_bytes_are_the_bytes_for_the_rfc() {
    assert_each(
        star_group("Disallow: /foo/%62%61%7A"),
        "GPTBot",
        "/foo/baz",
        "deny 2",
        "allow",
    );
    assert_both(
        star_group("Disallow: /foo/%62%61%7A"),
        "GPTBot",
        "/foo/%62%61%7A",
        "deny 2",
    );
    assert_each(
        star_group("Disallow: /private"),
        "GPTBot",
        "/%70rivate",
        "deny 2",
        "allow",
    );
    assert_each(
        star_group("Disallow: /~joe"),
        "GPTBot",
        "/%7Ejoe",
        "deny 2",
        "allow",
    );
}

#[test]
fn escapes_of_reserved_bytes_are_not_the_bytes() {
    assert_both(star_group("Disallow: /a%2Fb"), "GPTBot", "/a/b", "allow");
    assert_both(star_group("Disallow: /a/b"), "GPTBot", "/a%2Fb", "allow");
    assert_both(star_group("Disallow: /a%2Fb"), "GPTBot", "/a%2Fb", "deny 2");
    assert_both(star_group("Disallow: /a%2fb"), "GPTBot", "/a%2Fb", "deny 2");
    assert_each(
        star_group("Disallow: /a%2fb"),
        "GPTBot",
        "/a%2fb",
        "deny 2",
        "allow",
    );
    assert_both(
        star_group("Disallow: /a?b=c"),
        "GPTBot",
        "/a%3Fb=c",
        "allow",
    );
}

#[test]
fn query_may_hold_a_raw_url() {
    let file = star_group("Disallow: /foo/bar?baz=https://foo.bar");
    assert_both(&file, "GPTBot", "/foo/bar?baz=https://foo.bar/x", "deny 2");
    assert_both(
        &file,
        "GPTBot",
        "https://a.example/foo/bar?baz=https://foo.bar",
        "deny 2",
    );
    assert_both(&file, "GPTBot", "/foo/bar?baz=http://foo.bar", "allow");
}

#[test]
fn escaped_wildcard_or_dollar_is_the_character_for_the_rfc() {
    assert_each(
        star_group("Disallow: /path/file-with-a-%2A.html"),
        "GPTBot",
        "/path/file-with-a-*.html",
        "deny 2",
        "allow",
    );
    assert_each(
        star_group("Disallow: /path/foo-%24"),
        "GPTBot",
        "/path/foo-$",
        "deny 2",
        "allow",
    );
    assert_both(
        star_group("Disallow: /path/foo-%24"),
        "GPTBot",
        "/path/foo-%24",
        "deny 2",
    );
    assert_both(star_group("Disallow: /%2A"), "GPTBot", "/anything", "allow");
    // A raw `$` that is not at the end is one as well.
    assert_each(
        star_group("Disallow: /a$b"),
        "GPTBot",
        "/a%24b",
        "deny 2",
        "allow",
    );
}

#[test]
fn space_in_a_rule_is_an_escaped_space_for_the_rfc() {
    assert_each(
        star_group("Disallow: /a b"),
        "GPTBot",
        "/a%20b",
        "deny 2",
        "allow",
    );
    assert_both(star_group("Disallow: /a b"), "GPTBot", "/a b", "deny 2");
    assert_both(star_group("Disallow: /a%20b"), "GPTBot", "/a%20b", "deny 2");
    assert_each(
        star_group("Disallow: /a%20b"),
        "GPTBot",
        "/a b",
        "deny 2",
        "allow",
    );
}

#[test]
fn stray_percent_sign_is_itself() {
    for pattern in ["/100%", "/100%x", "/100%4", "/%%41"] {
        assert_both(
            star_group(&format!("Disallow: {pattern}")),
            "GPTBot",
            pattern,
            "deny 2",
        );
    }
    assert_both(
        star_group("Disallow: /100%zz"),
        "GPTBot",
        "/100%ZZ",
        "allow",
    );
}

// ---- URLs
// --------------------------------------------------------------------------------------------------------------

#[test]
fn url_path_is_extracted() {
    for (url, path) in [
        ("", "/"),
        ("http://www.shop.example", "/"),
        ("http://www.shop.example/", "/"),
        ("http://www.shop.example/a", "/a"),
        ("http://www.shop.example/a/", "/a/"),
        (
            "http://www.shop.example/a/b?c=http://d.e/",
            "/a/b?c=http://d.e/",
        ),
        (
            "http://www.shop.example/a/b?c=d&e=f#fragment",
            "/a/b?c=d&e=f",
        ),
        ("shop.example", "/"),
        ("shop.example/", "/"),
        ("shop.example/a", "/a"),
        ("shop.example/a/", "/a/"),
        ("shop.example/a/b?c=d&e=f#fragment", "/a/b?c=d&e=f"),
        ("a", "/"),
        ("a/", "/"),
        ("/a", "/a"),
        ("a/b", "/b"),
        ("shop.example?a", "/?a"),
        ("shop.example/a;b#c", "/a;b"),
        ("//a/b/c", "/b/c"),
        ("//shop.example", "/"),
        ("https://shop.example?a=b", "/?a=b"),
        ("https://shop.example;a", "/;a"),
        ("https://shop.example#/a", "/"),
        ("/a?b=c://d/e", "/a?b=c://d/e"),
        ("/a#b?c", "/a"),
        ("#", "/"),
        ("http://user:pass@shop.example:8080/a", "/a"),
    ] {
        assert_eq!(
            String::from_utf8_lossy(&url_path(url.as_bytes())),
            path,
            "{url}"
        );
        let is_relative =
            !url.starts_with('/') && !url.contains("://") && !["", "#"].contains(&url);
        assert_each(
            star_group(&format!("Disallow: {path}$")),
            "GPTBot",
            url,
            if is_relative { "allow" } else { "deny 2" },
            "deny 2",
        );
    }
}

#[test]
fn relative_url_is_a_path_except_for_google() {
    for url in ["cart/1", "cart/1#a", "cart/1?b=c://d/"] {
        let file = star_group("Disallow: /cart/");
        assert_each(file, "GPTBot", url, "deny 2", "allow");
    }
}

#[test]
fn nul_ends_a_url_for_google() {
    assert_each(
        star_group("Disallow: /a$"),
        "GPTBot",
        b"/a\0b",
        "allow",
        "deny 2",
    );
    assert_each(
        star_group("Disallow: /a%00b"),
        "GPTBot",
        b"/a\0b",
        "deny 2",
        "allow",
    );
    assert_both(star_group("Disallow: /ab"), "GPTBot", b"/a\0b", "allow");
}

// ---- size
// --------------------------------------------------------------------------------------------------------------

#[test]
fn bytes_beyond_500_kib_are_ignored_by_the_rfc() {
    let head = "User-agent: *\nDisallow: /first\n";
    let rule = "Disallow: /last\n";
    let padded = |to: usize| {
        let mut text = head.to_owned();
        while text.len() < to {
            let line = "#".repeat((to - text.len() - 1).min(99));
            text.push_str(&line);
            text.push('\n');
        }
        assert_eq!(text.len(), to);
        text + rule
    };
    // The line is read if all of it lies within the limit; whether its end does as well is nothing
    // to it.
    let whole = padded(MAX_ROBOTS_BYTES - rule.len() + 1);
    let line = whole.lines().count();
    assert_both(&whole, "GPTBot", "/last", &format!("deny {line}"));
    let cut = padded(MAX_ROBOTS_BYTES - rule.len() + 2);
    let line = cut.lines().count();
    assert_each(&cut, "GPTBot", "/last", "allow", &format!("deny {line}"));
    assert_both(&cut, "GPTBot", "/first", "deny 2");
}

#[test]
fn threads_share_rules() {
    let file = RobotsFile::parse(*b"User-agent: *\nDisallow: /a\n");
    let rules = DialectRules::new(&file, Dialect::Rfc9309, &[]);
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(!rules.verdict(b"GPTBot", b"/a").allowed));
        scope.spawn(|| assert!(rules.verdict(b"GPTBot", b"/b#c").allowed));
    });
}
