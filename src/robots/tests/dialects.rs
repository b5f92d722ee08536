//! What a file says about a URL, in both dialects: groups, agents, precedence, patterns, escapes,
//! URLs. Where the dialects differ, both answers stand side by side.

use crate::robots::{Agent, Bound, Dialect, File, MAX_BYTES, Reading, path_of_url};

/// The answer of one dialect: `allow` or `deny`, and the number of the line that decided if there
/// is one.
pub fn said(
    dialect: Dialect,
    text: impl AsRef<[u8]>,
    token: &str,
    url: impl AsRef<[u8]>,
) -> String {
    let file = File::parse(text.as_ref());
    let verdict =
        Reading::new(&file, dialect, &["Sogou web spider"]).verdict(token.as_bytes(), url.as_ref());
    let word = if verdict.allowed { "allow" } else { "deny" };
    verdict
        .line
        .map_or(word.to_owned(), |line| format!("{word} {line}"))
}

/// Both dialects say the same.
#[track_caller]
pub fn both(text: impl AsRef<[u8]>, token: &str, url: impl AsRef<[u8]>, expected: &str) {
    each(text, token, url, expected, expected);
}

/// What RFC 9309 says, and what Google's library says.
#[track_caller]
pub fn each(text: impl AsRef<[u8]>, token: &str, url: impl AsRef<[u8]>, rfc: &str, google: &str) {
    let (text, url) = (text.as_ref(), url.as_ref());
    let context = || {
        format!(
            "{token:?} asks for {:?}:\n{}",
            url.escape_ascii().to_string(),
            text.escape_ascii()
        )
    };
    assert_eq!(
        said(Dialect::Rfc9309, text, token, url),
        rfc,
        "rfc9309: {}",
        context()
    );
    assert_eq!(
        said(Dialect::Google, text, token, url),
        google,
        "google: {}",
        context()
    );
}

/// A file for `*` with these rules on its second and following lines.
fn star(rules: &str) -> String {
    format!("User-agent: *\n{rules}\n")
}

// ---- nothing said
// ------------------------------------------------------------------------------------------------------

#[test]
fn an_empty_file_allows_everything() {
    for empty in ["", "\n", "\r\n\r\n", "# nothing\n", " \t\n", "\u{FEFF}"] {
        both(empty, "GPTBot", "/a", "allow");
    }
}

#[test]
fn a_file_that_names_others_allows() {
    both("User-agent: Other\nDisallow: /\n", "GPTBot", "/a", "allow");
    both("User-agent: Other\nDisallow: /\n", "", "/a", "allow");
}

#[test]
fn an_empty_url_is_the_root() {
    both(star("Disallow: /"), "GPTBot", "", "deny 2");
    both(star("Disallow: /a"), "GPTBot", "", "allow");
    both(star("Disallow: /$"), "GPTBot", "", "deny 2");
}

// ---- groups
// ------------------------------------------------------------------------------------------------------------

#[test]
fn rules_before_the_first_agent_belong_to_no_group() {
    both(
        "Disallow: /\nUser-agent: *\nDisallow: /b\n",
        "GPTBot",
        "/a",
        "allow",
    );
    both(
        "Allow: /b\nUser-agent: *\nDisallow: /\n",
        "GPTBot",
        "/b",
        "deny 3",
    );
    both("Disallow: /\n", "GPTBot", "/a", "allow");
}

#[test]
fn several_agents_share_the_rules_that_follow() {
    let file = "User-agent: One\nUser-agent: Two\n\nUser-agent: Three\nDisallow: /a\n";
    for token in ["One", "Two", "Three"] {
        both(file, token, "/a", "deny 5");
    }
    both(file, "Four", "/a", "allow");
}

#[test]
fn a_rule_closes_the_list_of_agents() {
    let file = "User-agent: One\nAllow: /x\nUser-agent: Two\nDisallow: /\n";
    both(file, "One", "/a", "allow");
    both(file, "Two", "/a", "deny 4");
}

#[test]
fn an_empty_rule_closes_the_list_of_agents_too() {
    let file = "User-agent: One\nDisallow:\nUser-agent: Two\nDisallow: /\n";
    both(file, "One", "/a", "allow 2");
    both(file, "Two", "/a", "deny 4");
}

#[test]
fn blank_lines_and_comments_do_not_end_a_group() {
    both(
        "User-agent: *\n\n\n# x\n\nDisallow: /\n",
        "GPTBot",
        "/a",
        "deny 6",
    );
    both(
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
        both(&file, "One", "/a", "deny 4");
        both(&file, "Two", "/a", "deny 4");
        // Neither do they end a group that has rules.
        let file = format!("User-agent: One\nAllow: /x\n{between}\nDisallow: /\n");
        both(&file, "One", "/a", "deny 4");
    }
}

#[test]
fn a_group_of_a_crawl_delay_only_is_glued_to_the_next() {
    let file = "User-agent: msnbot\nCrawl-delay: 10\n\nUser-agent: Baiduspider\nDisallow: /\n";
    both(file, "msnbot", "/a", "deny 5");
    both(file, "Baiduspider", "/a", "deny 5");
    let parsed = File::parse(file.as_bytes());
    for dialect in Dialect::ALL {
        let reading = Reading::new(&parsed, dialect, &[]);
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
        assert_eq!((group.rules.len(), &group.others[..]), (1, &[2][..]));
    }
}

#[test]
fn groups_of_one_token_are_merged() {
    let file = "User-agent: One\nDisallow: /a\n\nUser-agent: Two\nDisallow: /b\n\nUser-agent: ONE\nDisallow: /c\n";
    both(file, "one", "/a", "deny 2");
    both(file, "one", "/b", "allow");
    both(file, "one", "/c", "deny 8");
    let parsed = File::parse(file.as_bytes());
    for dialect in Dialect::ALL {
        let reading = Reading::new(&parsed, dialect, &[]);
        assert_eq!(reading.binding(b"oNe"), (Bound::Named, &[0, 2][..]));
        assert_eq!(reading.binding(b"three"), (Bound::Nothing, &[][..]));
    }
}

#[test]
fn groups_of_everybody_are_merged() {
    let file =
        "User-agent: *\nDisallow: /a\nUser-agent: One\nDisallow: /b\nUser-agent: *\nDisallow: /c\n";
    both(file, "Two", "/a", "deny 2");
    both(file, "Two", "/b", "allow");
    both(file, "Two", "/c", "deny 6");
    let parsed = File::parse(file.as_bytes());
    assert_eq!(
        Reading::new(&parsed, Dialect::Rfc9309, &[]).binding(b"Two"),
        (Bound::Star, &[0, 2][..])
    );
}

#[test]
fn a_group_that_names_the_token_replaces_everybodys() {
    both(
        "User-agent: *\nDisallow: /\nUser-agent: One\nDisallow: /a\n",
        "One",
        "/b",
        "allow",
    );
    both(
        "User-agent: One\nDisallow: /a\nUser-agent: *\nDisallow: /\n",
        "One",
        "/b",
        "allow",
    );
    both(
        "User-agent: *\nAllow: /\nUser-agent: One\nDisallow: /\n",
        "One",
        "/b",
        "deny 4",
    );
}

#[test]
fn a_group_without_rules_replaces_everybodys_too() {
    both(
        "User-agent: *\nDisallow: /\nUser-agent: One\n",
        "One",
        "/b",
        "allow",
    );
    both(
        "User-agent: *\nDisallow: /\nUser-agent: One\nDisallow:\n",
        "One",
        "/b",
        "allow 4",
    );
}

#[test]
fn a_group_may_name_both_everybody_and_a_token() {
    let file = "User-agent: *\nUser-agent: One\nDisallow: /a\n\nUser-agent: *\nDisallow: /b\n";
    both(file, "One", "/a", "deny 3");
    both(file, "One", "/b", "allow");
    both(file, "Two", "/a", "deny 3");
    both(file, "Two", "/b", "deny 6");
}

#[test]
fn a_token_named_twice_in_a_group_is_there_once() {
    let file = File::parse(
        *b"User-agent: One\nUser-agent: one\nUser-agent: *\nUser-agent: * \nDisallow: /a\n",
    );
    for dialect in Dialect::ALL {
        let reading = Reading::new(&file, dialect, &[]);
        assert_eq!(reading.binding(b"One"), (Bound::Named, &[0][..]));
        assert_eq!(reading.binding(b"Two"), (Bound::Star, &[0][..]));
    }
}

// ---- agents
// ------------------------------------------------------------------------------------------------------------

#[test]
fn tokens_are_compared_without_regard_to_case_and_whole() {
    let file = "User-agent: FooBot\nDisallow: /\n";
    for token in ["FooBot", "foobot", "FOOBOT"] {
        both(file, token, "/", "deny 2");
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
        both(file, token, "/", "allow");
    }
    both(
        "User-agent: Googlebot\nDisallow: /\n",
        "Googlebot-Image",
        "/",
        "allow",
    );
    both(
        "User-agent: Foo_Bar-Baz\nDisallow: /\n",
        "foo_bar-baz",
        "/",
        "deny 2",
    );
}

/// The value of a User-agent line, and whom it names: by the RFC, and for Google's library.
#[test]
fn whom_an_agent_line_names() {
    let spaced = ["Sogou web spider", "Sogou"];
    let name = |dialect: Dialect, value: &str| match dialect.agent(value.as_bytes(), &spaced) {
        Agent::Star => "everybody".to_owned(),
        Agent::Token(token) => String::from_utf8(token.to_vec()).expect("ASCII"),
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
fn everybody_may_be_followed_by_a_blank_and_more() {
    both("User-agent: * x\nDisallow: /\n", "GPTBot", "/", "deny 2");
    both("User-agent: *\tx\nDisallow: /\n", "GPTBot", "/", "deny 2");
    both("User-agent: *bot\nDisallow: /\n", "GPTBot", "/", "allow");
    both("User-agent: **\nDisallow: /\n", "GPTBot", "/", "allow");
}

#[test]
fn tokens_with_digits_exist_for_the_rfc_only() {
    let file = "User-agent: MJ12bot\nDisallow: /\n";
    each(file, "MJ12bot", "/", "deny 2", "allow");
    each(file, "MJ", "/", "allow", "deny 2");
    let file = "User-agent: 360Spider\nDisallow: /\nUser-agent: *\nDisallow: /a\n";
    each(file, "360Spider", "/a", "deny 2", "deny 4");
    each(file, "360Spider", "/b", "deny 2", "allow");
}

#[test]
fn an_empty_agent_names_a_nameless_crawler_for_google() {
    for value in ["", "360Spider", "*bot", "/"] {
        let file = format!("User-agent: {value}\nDisallow: /\n");
        each(&file, "", "/a", "allow", "deny 2");
        // It opens a group all the same.
        let file = format!("User-agent: One\nAllow: /\nUser-agent: {value}\nDisallow: /\n");
        both(&file, "One", "/a", "allow 2");
    }
}

#[test]
fn tokens_with_blanks_are_those_that_are_known_to_exist() {
    let file = "User-agent: Sogou web spider\nDisallow: /\n";
    each(file, "Sogou web spider", "/", "deny 2", "allow");
    each(file, "Sogou", "/", "allow", "deny 2");
    // Others are cut at the blank, as the RFC's grammar has it.
    both("User-agent: Foo Bar\nDisallow: /\n", "Foo", "/", "deny 2");
    both(
        "User-agent: Foo Bar\nDisallow: /\n",
        "Foo Bar",
        "/",
        "allow",
    );
}

#[test]
fn one_line_names_one_agent() {
    let file = "User-agent: One, Two\nDisallow: /\n";
    both(file, "One", "/", "deny 2");
    both(file, "Two", "/", "allow");
}

#[test]
fn versions_and_stars_behind_a_token_are_no_part_of_it() {
    for value in ["Foo/2.1", "Foo*", "Foo Bar", "  foo\t", "FOO/2.1 (x)"] {
        both(
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
fn the_longest_pattern_wins_whatever_its_place() {
    both(
        star("Disallow: /x/page.html\nAllow: /x/"),
        "GPTBot",
        "/x/page.html",
        "deny 2",
    );
    both(
        star("Allow: /x/page.html\nDisallow: /x/"),
        "GPTBot",
        "/x/page.html",
        "allow 2",
    );
    both(
        star("Allow: /x/page.html\nDisallow: /x/"),
        "GPTBot",
        "/x/",
        "deny 3",
    );
    both(star("Disallow: /x\nAllow: /x/"), "GPTBot", "/x", "deny 2");
    both(star("Disallow: /x\nAllow: /x/"), "GPTBot", "/x/", "allow 3");
}

#[test]
fn allow_wins_a_tie_and_its_line_is_reported() {
    both(star("Disallow: /a\nAllow: /a"), "GPTBot", "/a", "allow 3");
    both(star("Allow: /a\nDisallow: /a"), "GPTBot", "/a", "allow 2");
    both(
        star("Disallow: /a*\nAllow: /ab"),
        "GPTBot",
        "/ab",
        "allow 3",
    );
}

#[test]
fn of_equal_rules_the_first_line_is_reported() {
    both(
        star("Disallow: /a\nDisallow: /a\nDisallow: /*"),
        "GPTBot",
        "/a",
        "deny 2",
    );
    both(star("Disallow: /*\nDisallow: /a"), "GPTBot", "/a", "deny 2");
    both(
        star("Disallow: /a\nAllow: /*\nAllow: /a"),
        "GPTBot",
        "/a",
        "allow 3",
    );
}

#[test]
fn wildcards_and_the_end_count_as_octets() {
    both(
        star("Disallow: /a*b\nAllow: /a"),
        "GPTBot",
        "/axb",
        "deny 2",
    );
    both(
        star("Allow: /abcd\nDisallow: /*d***"),
        "GPTBot",
        "/abcd",
        "deny 3",
    );
    both(
        star("Disallow: /ab\nAllow: /a*$"),
        "GPTBot",
        "/ab",
        "allow 3",
    );
    both(
        star("Disallow: /ab$\nAllow: /ab"),
        "GPTBot",
        "/ab",
        "deny 2",
    );
}

#[test]
fn octets_above_ascii_count_as_escaped() {
    // Nine octets against eight.
    both(
        star("Allow: /caf*****\nDisallow: /café"),
        "GPTBot",
        "/caf%C3%A9",
        "deny 3",
    );
    both(
        star("Allow: /caf******\nDisallow: /café"),
        "GPTBot",
        "/caf%C3%A9",
        "allow 2",
    );
}

#[test]
fn an_empty_pattern_has_no_effect_but_is_reported() {
    both(star("Disallow:"), "GPTBot", "/a", "allow 2");
    both(star("Allow:"), "GPTBot", "/a", "allow 2");
    both(star("Disallow:\nAllow:"), "GPTBot", "/a", "allow 3");
    both(star("Allow:\nDisallow:"), "GPTBot", "/a", "allow 2");
    both(star("Disallow:\nDisallow:"), "GPTBot", "/a", "allow 2");
    both(star("Allow:\nDisallow: /a"), "GPTBot", "/a", "deny 3");
    both(star("Disallow:\nDisallow: /a"), "GPTBot", "/b", "allow 2");
    both(star("Disallow: # all"), "GPTBot", "/a", "allow 2");
}

#[test]
fn no_line_is_reported_when_no_rule_matches() {
    both(star("Disallow: /a\nAllow: /b"), "GPTBot", "/c", "allow");
    both(
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
        both(
            star(rules),
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
            both(
                star(&format!("Disallow: {pattern}")),
                "GPTBot",
                format!("http://foo.bar{url}"),
                "deny 2",
            );
        }
        for url in others {
            both(
                star(&format!("Disallow: {pattern}")),
                "GPTBot",
                format!("http://foo.bar{url}"),
                "allow",
            );
        }
    }
}

#[test]
fn paths_are_compared_with_regard_to_case() {
    both(star("Disallow: /X/"), "GPTBot", "/x/y", "allow");
    both(star("Disallow: /x/"), "GPTBot", "/x/y", "deny 2");
    both(star("disallow: /x/"), "GPTBot", "/X/y", "allow");
}

#[test]
fn the_end_is_special_at_the_end_only() {
    both(star("Disallow: /a$"), "GPTBot", "/a", "deny 2");
    both(star("Disallow: /a$"), "GPTBot", "/ab", "allow");
    both(star("Disallow: /a$b"), "GPTBot", "/a$b", "deny 2");
    both(star("Disallow: /a$b"), "GPTBot", "/a", "allow");
    both(star("Disallow: /a$$"), "GPTBot", "/a$", "deny 2");
    both(star("Disallow: /a$$"), "GPTBot", "/a", "allow");
    both(star("Disallow: /a$$"), "GPTBot", "/a$$", "allow");
    both(star("Disallow: $"), "GPTBot", "/", "allow");
    both(star("Disallow: *$"), "GPTBot", "/anything", "deny 2");
}

#[test]
fn a_pattern_without_a_slash_matches_by_its_wildcard_only() {
    both(star("Disallow: private"), "GPTBot", "/private", "allow");
    both(
        star("Disallow: *private"),
        "GPTBot",
        "/a/private/b",
        "deny 2",
    );
    both(star("Disallow: *.gif$"), "GPTBot", "/a/b.gif", "deny 2");
    both(star("Disallow: *.gif$"), "GPTBot", "/a/b.gif?x", "allow");
    both(star("Disallow: *"), "GPTBot", "/", "deny 2");
}

#[test]
fn a_colon_in_a_value_belongs_to_it() {
    both(star("Disallow: /a:b"), "GPTBot", "/a:b", "deny 2");
    both(
        star("Disallow: https://a.example/x"),
        "GPTBot",
        "https://a.example/x",
        "allow",
    );
    both(star("Disallow:: /a"), "GPTBot", "/a", "allow");
}

#[test]
fn allowing_an_index_page_allows_its_directory_for_google() {
    let file = star("Allow: /dir/index.html\nDisallow: /");
    each(&file, "GPTBot", "/dir/", "deny 3", "allow 2");
    each(&file, "GPTBot", "/dir/index.htm", "deny 3", "deny 3");
    both(&file, "GPTBot", "/dir/index.html", "allow 2");
    both(&file, "GPTBot", "/dir", "deny 3");
    both(&file, "GPTBot", "/dir/x", "deny 3");
    // Whatever follows `/index.htm`, and at any depth.
    each(
        star("Allow: /index.htmFOO\nDisallow: /"),
        "GPTBot",
        "/",
        "deny 3",
        "allow 2",
    );
    each(
        star("Allow: /a/*/index.htm\nDisallow: /"),
        "GPTBot",
        "/a/b/",
        "deny 3",
        "allow 2",
    );
    // The directory counts with its own length.
    each(
        star("Allow: /d/index.html\nDisallow: /*d/"),
        "GPTBot",
        "/d/",
        "deny 3",
        "allow 2",
    );
    both(
        star("Allow: /d/index.html\nDisallow: /**d/"),
        "GPTBot",
        "/d/",
        "deny 3",
    );
    // Disallow knows no such thing, nor do other names.
    both(
        star("Disallow: /dir/index.html"),
        "GPTBot",
        "/dir/",
        "allow",
    );
    both(
        star("Allow: /dir/Index.html\nDisallow: /"),
        "GPTBot",
        "/dir/",
        "deny 3",
    );
    both(
        star("Allow: /dir/index.php\nDisallow: /"),
        "GPTBot",
        "/dir/",
        "deny 3",
    );
    both(
        star("Allow: index.html\nDisallow: /"),
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
        each(star("Disallow: /"), "GPTBot", url, "allow", "deny 2");
    }
    for url in [
        "/robots.txt/",
        "/a/robots.txt",
        "/robots.txt2",
        "/Robots.txt",
    ] {
        both(star("Disallow: /"), "GPTBot", url, "deny 2");
    }
    each(
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
fn octets_above_ascii_in_rules_are_escaped() {
    for rule in ["/foo/bar/ツ", "/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"] {
        let file = star(&format!("Disallow: {rule}"));
        both(&file, "GPTBot", "/foo/bar/%E3%83%84", "deny 2");
        // In a URL, Google's library normalises nothing.
        each(&file, "GPTBot", "/foo/bar/%e3%83%84", "deny 2", "allow");
        each(&file, "GPTBot", "/foo/bar/ツ", "deny 2", "allow");
    }
    both(
        b"User-agent: *\nDisallow: /\xE9\n",
        "GPTBot",
        "/%E9",
        "deny 2",
    );
    each(
        b"User-agent: *\nDisallow: /\xE9\n",
        "GPTBot",
        b"/\xE9",
        "deny 2",
        "allow",
    );
}

#[test]
fn escapes_of_unreserved_octets_are_the_octets_for_the_rfc() {
    each(
        star("Disallow: /foo/%62%61%7A"),
        "GPTBot",
        "/foo/baz",
        "deny 2",
        "allow",
    );
    both(
        star("Disallow: /foo/%62%61%7A"),
        "GPTBot",
        "/foo/%62%61%7A",
        "deny 2",
    );
    each(
        star("Disallow: /private"),
        "GPTBot",
        "/%70rivate",
        "deny 2",
        "allow",
    );
    each(
        star("Disallow: /~joe"),
        "GPTBot",
        "/%7Ejoe",
        "deny 2",
        "allow",
    );
}

#[test]
fn escapes_of_reserved_octets_are_not_the_octets() {
    both(star("Disallow: /a%2Fb"), "GPTBot", "/a/b", "allow");
    both(star("Disallow: /a/b"), "GPTBot", "/a%2Fb", "allow");
    both(star("Disallow: /a%2Fb"), "GPTBot", "/a%2Fb", "deny 2");
    both(star("Disallow: /a%2fb"), "GPTBot", "/a%2Fb", "deny 2");
    each(
        star("Disallow: /a%2fb"),
        "GPTBot",
        "/a%2fb",
        "deny 2",
        "allow",
    );
    both(star("Disallow: /a?b=c"), "GPTBot", "/a%3Fb=c", "allow");
}

#[test]
fn a_query_may_hold_a_raw_url() {
    let file = star("Disallow: /foo/bar?baz=https://foo.bar");
    both(&file, "GPTBot", "/foo/bar?baz=https://foo.bar/x", "deny 2");
    both(
        &file,
        "GPTBot",
        "https://a.example/foo/bar?baz=https://foo.bar",
        "deny 2",
    );
    both(&file, "GPTBot", "/foo/bar?baz=http://foo.bar", "allow");
}

#[test]
fn an_escaped_wildcard_or_dollar_is_the_character_for_the_rfc() {
    each(
        star("Disallow: /path/file-with-a-%2A.html"),
        "GPTBot",
        "/path/file-with-a-*.html",
        "deny 2",
        "allow",
    );
    each(
        star("Disallow: /path/foo-%24"),
        "GPTBot",
        "/path/foo-$",
        "deny 2",
        "allow",
    );
    both(
        star("Disallow: /path/foo-%24"),
        "GPTBot",
        "/path/foo-%24",
        "deny 2",
    );
    both(star("Disallow: /%2A"), "GPTBot", "/anything", "allow");
    // A raw `$` that is not at the end is one as well.
    each(
        star("Disallow: /a$b"),
        "GPTBot",
        "/a%24b",
        "deny 2",
        "allow",
    );
}

#[test]
fn a_space_in_a_rule_is_an_escaped_space_for_the_rfc() {
    each(
        star("Disallow: /a b"),
        "GPTBot",
        "/a%20b",
        "deny 2",
        "allow",
    );
    both(star("Disallow: /a b"), "GPTBot", "/a b", "deny 2");
    both(star("Disallow: /a%20b"), "GPTBot", "/a%20b", "deny 2");
    each(
        star("Disallow: /a%20b"),
        "GPTBot",
        "/a b",
        "deny 2",
        "allow",
    );
}

#[test]
fn a_stray_percent_sign_is_itself() {
    for pattern in ["/100%", "/100%x", "/100%4", "/%%41"] {
        both(
            star(&format!("Disallow: {pattern}")),
            "GPTBot",
            pattern,
            "deny 2",
        );
    }
    both(star("Disallow: /100%zz"), "GPTBot", "/100%ZZ", "allow");
}

// ---- URLs
// --------------------------------------------------------------------------------------------------------------

#[test]
fn the_path_of_a_url() {
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
            String::from_utf8_lossy(&path_of_url(url.as_bytes())),
            path,
            "{url}"
        );
        both(star(&format!("Disallow: {path}$")), "GPTBot", url, "deny 2");
    }
}

#[test]
fn a_nul_ends_a_url_for_google() {
    each(star("Disallow: /a$"), "GPTBot", b"/a\0b", "allow", "deny 2");
    each(
        star("Disallow: /a%00b"),
        "GPTBot",
        b"/a\0b",
        "deny 2",
        "allow",
    );
    both(star("Disallow: /ab"), "GPTBot", b"/a\0b", "allow");
}

// ---- size
// --------------------------------------------------------------------------------------------------------------

#[test]
fn what_lies_beyond_500_kib_is_not_read_by_the_rfc() {
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
    let whole = padded(MAX_BYTES - rule.len() + 1);
    let line = whole.lines().count();
    both(&whole, "GPTBot", "/last", &format!("deny {line}"));
    let cut = padded(MAX_BYTES - rule.len() + 2);
    let line = cut.lines().count();
    each(&cut, "GPTBot", "/last", "allow", &format!("deny {line}"));
    both(&cut, "GPTBot", "/first", "deny 2");
}
