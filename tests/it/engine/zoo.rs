//! A zoo of robots.txt files as they are met: each is read, and what both dialects make of it is
//! what a site owner would be told. The files are in `tests/zoo`; their line ends and bytes are
//! part of them.

use crawlgate::robots::{
    Dialect, DialectRules, FileFormat, GroupMatch, KeySpelling, LineIssue, MAX_LINE_BYTES,
    MAX_ROBOTS_BYTES, RobotsFile, RobotsKey, RobotsLine,
};
use std::collections::BTreeSet;
use std::path::PathBuf;

struct Animal {
    file: RobotsFile,
}

fn animal(name: &str) -> Animal {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/zoo")
        .join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Animal {
        file: RobotsFile::parse(bytes),
    }
}

impl Animal {
    fn shape(&self) -> FileFormat {
        self.file.shape()
    }

    fn reading(&self, dialect: Dialect) -> DialectRules {
        DialectRules::new(&self.file, dialect, &["Sogou web spider"])
    }

    /// `allow` or `deny` and the number of the line, by the RFC and for Google.
    #[track_caller]
    fn says(&self, token: &str, url: &str, rfc: &str, google: &str) {
        for (dialect, expected) in [(Dialect::Rfc9309, rfc), (Dialect::Google, google)] {
            let verdict = self
                .reading(dialect)
                .verdict(token.as_bytes(), url.as_bytes());
            let word = if verdict.allowed { "allow" } else { "deny" };
            let said = verdict
                .line
                .map_or(word.to_owned(), |line| format!("{word} {line}"));
            assert_eq!(said, expected, "{}: {token} asks for {url}", dialect.name());
        }
    }

    #[track_caller]
    fn both_say(&self, token: &str, url: &str, expected: &str) {
        self.says(token, url, expected, expected);
    }

    /// Numbers of the lines that have something odd about them, and what.
    fn issues(&self) -> Vec<(usize, LineIssue)> {
        let lines = self.file.lines().iter();
        lines
            .flat_map(|line| line.issues.iter().map(|issue| (line.number, *issue)))
            .collect()
    }

    fn lines_of(&self, key: RobotsKey) -> Vec<usize> {
        let lines = self
            .file
            .lines()
            .iter()
            .filter(|line| line.key_value.as_ref().is_some_and(|it| it.key == key));
        lines.map(|line| line.number).collect()
    }

    fn line_end(&self, line: &RobotsLine) -> &str {
        match self.file.bytes().get(line.text.end..) {
            Some([b'\r', b'\n', ..]) => "\r\n",
            Some([b'\r', ..]) => "\r",
            Some([b'\n', ..]) => "\n",
            _ => "",
        }
    }

    fn line_ends(&self) -> BTreeSet<&str> {
        let lines = self.file.lines().iter();
        lines.map(|line| self.line_end(line)).collect()
    }
}

#[test]
fn every_animal_is_looked_at_and_lossless() {
    let zoo = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/zoo");
    let this = include_str!("zoo.rs");
    let mut seen = 0;
    for entry in std::fs::read_dir(zoo).expect("the zoo") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name")
            .to_owned();
        assert!(
            this.contains(&format!("animal(\"{name}\")")),
            "nobody looks at {name}"
        );
        let animal = animal(&name);
        let lines = animal.file.lines().iter();
        let together: Vec<u8> = lines
            .flat_map(|line| {
                [
                    animal.file.slice(&line.text),
                    animal.line_end(line).as_bytes(),
                ]
                .concat()
            })
            .collect();
        assert_eq!(together, std::fs::read(&path).expect("readable"), "{name}");
        seen += 1;
    }
    assert!(seen >= 15, "only {seen} files");
}

#[test]
fn a_page_in_place_of_a_file_forbids_nothing() {
    let html = animal("html.txt");
    assert_eq!(html.shape(), FileFormat::Html);
    html.both_say("GPTBot", "/", "allow");
    html.both_say("GPTBot", "/private/", "allow");
    for dialect in Dialect::ALL {
        assert!(html.reading(dialect).groups().is_empty());
    }
    // Its tags are lines that say nothing.
    assert!(html.issues().contains(&(1, LineIssue::NotKeyValue)));
    assert!(
        html.lines_of(RobotsKey::UserAgent).is_empty()
            && html.lines_of(RobotsKey::Disallow).is_empty()
    );
}

#[test]
fn rules_in_a_page_are_rules_all_the_same() {
    let html = animal("html-with-rules.txt");
    assert_eq!(html.shape(), FileFormat::Text);
    html.both_say("GPTBot", "/private/x", "deny 3");
    html.both_say("GPTBot", "/public", "allow");
    assert_eq!(
        html.issues(),
        [(1, LineIssue::NotKeyValue), (4, LineIssue::NotKeyValue)]
    );
}

#[test]
fn nothing_in_utf_16_is_a_rule() {
    for utf16 in [animal("utf16le-bom.txt"), animal("utf16le.txt")] {
        assert_eq!(utf16.shape(), FileFormat::Utf16);
        utf16.both_say("GPTBot", "/", "allow");
        assert!(utf16.reading(Dialect::Rfc9309).groups().is_empty());
        assert!(
            utf16.issues().contains(&(1, LineIssue::Nul)),
            "{:?}",
            utf16.issues()
        );
    }
    assert!(
        animal("utf16le-bom.txt")
            .issues()
            .contains(&(1, LineIssue::NotUtf8))
    );
}

#[test]
fn lines_that_end_in_cr_are_lines() {
    let cr = animal("cr-only.txt");
    assert_eq!(
        (cr.shape(), cr.line_ends()),
        (FileFormat::Text, BTreeSet::from(["", "\r"]))
    );
    assert_eq!(cr.file.lines().len(), 7);
    cr.both_say("Bingbot", "/cgi-bin/x", "deny 3");
    cr.both_say("GPTBot", "/", "deny 6");
    assert_eq!(
        (cr.lines_of(RobotsKey::Sitemap), cr.issues()),
        (vec![7], vec![])
    );
}

#[test]
fn whole_byte_order_mark_at_the_start_is_skipped() {
    for (bom, length) in [(animal("bom.txt"), 3), (animal("bom-cut.txt"), 2)] {
        assert_eq!(
            (bom.file.bom(), bom.shape(), bom.line_ends()),
            (length, FileFormat::Text, BTreeSet::from(["\r\n"]))
        );
        bom.both_say("GPTBot", "/admin/", "deny 2");
        bom.both_say("GPTBot", "/", "allow");
        assert_eq!(
            (bom.issues(), bom.lines_of(RobotsKey::Sitemap)),
            (vec![], vec![4])
        );
    }
    // The first line is spoiled, so the rule after it is nobody's.
    let broken = animal("bom-broken.txt");
    assert_eq!(
        broken
            .file
            .line(1)
            .and_then(|line| line.key_value.as_ref())
            .map(|record| record.key),
        Some(RobotsKey::Unknown)
    );
    assert!(
        broken.issues().contains(&(1, LineIssue::NotUtf8)),
        "{:?}",
        broken.issues()
    );
    broken.both_say("GPTBot", "/admin/", "allow");
}

#[test]
fn byte_order_mark_amid_a_file_spoils_its_line() {
    let middle = animal("bom-middle.txt");
    assert_eq!(middle.issues(), [(3, LineIssue::StrayBom)]);
    // So the second group is a part of the first.
    middle.both_say("One", "/all/", "deny 4");
    middle.both_say("GPTBot", "/all/", "allow");
}

#[test]
fn a_line_of_16_kib_is_read_and_a_longer_one_is_cut() {
    let fits = animal("long-16k.txt");
    let long = animal("long-20k.txt");
    assert_eq!(
        (fits.issues(), long.issues()),
        (vec![], vec![(3, LineIssue::TooLong)])
    );
    let path = format!("/{}", "l".repeat(MAX_LINE_BYTES - "Disallow: /".len()));
    for file in [fits, long] {
        file.both_say("GPTBot", &path, "deny 3");
        file.both_say("GPTBot", &path[..path.len() - 1], "allow");
        file.both_say("GPTBot", "/first/", "deny 2");
        file.both_say("GPTBot", "/last/", "deny 4");
    }
}

#[test]
fn of_a_huge_file_the_rfc_reads_500_kib() {
    let mut text = "User-agent: *\n".to_owned();
    let mut count = 0;
    while text.len() < 1_400_000 {
        text.push_str(&format!("Disallow: /products/discontinued/{count:06}/\n"));
        count += 1;
    }
    text.push_str("\nUser-agent: GPTBot\nDisallow: /\n");
    let huge = Animal {
        file: RobotsFile::parse(text.as_bytes()),
    };
    assert_eq!(
        (huge.shape(), huge.issues(), huge.file.lines().len()),
        (FileFormat::Text, vec![], count + 4)
    );
    huge.both_say("Bingbot", "/products/discontinued/000000/", "deny 2");
    huge.both_say("Bingbot", "/products/discontinued/", "allow");
    // The last line that lies within the limit, counted apart from the engine.
    let read = text.as_bytes()[..MAX_ROBOTS_BYTES]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    let url = |line: usize| format!("/products/discontinued/{:06}/x", line - 2);
    huge.both_say("Bingbot", &url(read), &format!("deny {read}"));
    huge.says(
        "Bingbot",
        &url(read + 1),
        "allow",
        &format!("deny {}", read + 1),
    );
    huge.says(
        "Bingbot",
        &url(count + 1),
        "allow",
        &format!("deny {}", count + 1),
    );
    huge.says("GPTBot", "/", "allow", &format!("deny {}", count + 4));
}

#[test]
fn an_empty_file_says_nothing() {
    let empty = animal("empty.txt");
    assert_eq!(
        (empty.shape(), empty.file.lines().len(), empty.file.bom()),
        (FileFormat::Text, 0, 0)
    );
    empty.both_say("GPTBot", "/", "allow");
    assert_eq!(
        empty.reading(Dialect::Rfc9309).groups_for(b"GPTBot").0,
        GroupMatch::Nothing
    );
}

#[test]
fn non_utf8_paths_are_compared_by_bytes() {
    let latin1 = animal("latin1.txt");
    assert_eq!(
        latin1.issues(),
        [(1, LineIssue::NotUtf8), (3, LineIssue::NotUtf8)]
    );
    latin1.both_say("GPTBot", "/gr%F6%DFe/", "deny 3");
    // What the owner meant is another path.
    latin1.both_say("GPTBot", "/gr%C3%B6%C3%9Fe/", "allow");
    latin1.both_say("GPTBot", "/plain/", "deny 4");
}

#[test]
fn everything_on_one_line_is_an_agent_without_rules() {
    let one = animal("one-line.txt");
    assert_eq!(
        (
            one.file.lines().len(),
            one.lines_of(RobotsKey::UserAgent),
            one.issues()
        ),
        (1, vec![1], vec![])
    );
    one.both_say("GPTBot", "/admin/", "allow");
    for dialect in Dialect::ALL {
        let reading = one.reading(dialect);
        // `*` followed by a blank and more is still everybody.
        assert_eq!(reading.groups_for(b"GPTBot"), (GroupMatch::Star, &[0][..]));
        assert!(reading.groups()[0].rules.is_empty());
    }
}

#[test]
fn a_blog_is_read_as_it_was_meant() {
    let blog = animal("wordpress.txt");
    assert_eq!((blog.shape(), blog.issues()), (FileFormat::Text, vec![]));
    for (url, expected) in [
        ("/", "allow"),
        ("/2026/11/a-post/", "allow"),
        ("/wp-admin/", "deny 4"),
        ("/wp-admin/options.php", "deny 4"),
        ("/wp-admin/admin-ajax.php", "allow 5"),
        ("/wp-admin/admin-ajax.php?action=x", "allow 5"),
        ("/?s=robots", "deny 6"),
        ("/search/robots", "deny 7"),
        ("/a-post/feed/", "deny 8"),
        ("/a-post/feed/atom", "allow"),
        ("/feed/", "allow"),
        ("/a-post?replytocom=7", "deny 9"),
    ] {
        blog.both_say("GPTBot", &format!("https://blog.example{url}"), expected);
    }
    let comments = blog
        .file
        .lines()
        .iter()
        .filter(|line| line.comment.is_some())
        .count();
    assert_eq!((comments, blog.lines_of(RobotsKey::Sitemap)), (4, vec![11]));
}

#[test]
fn a_managed_part_is_merged_with_the_owners_own() {
    let managed = animal("managed-signals.txt");
    assert_eq!(
        (managed.issues(), managed.lines_of(RobotsKey::ContentSignal)),
        (vec![], vec![8])
    );
    for (token, line) in [
        ("Amazonbot", 12),
        ("CCBot", 15),
        ("ClaudeBot", 18),
        ("GPTBot", 21),
        ("Meta-ExternalAgent", 24),
    ] {
        managed.both_say(token, "/account/", &format!("deny {line}"));
    }
    // Both `*` groups bind everybody else.
    managed.both_say("Googlebot", "/account/me", "deny 29");
    managed.both_say("Googlebot", "/checkout", "deny 30");
    managed.both_say("Googlebot", "/", "allow 9");
    let reading = managed.reading(Dialect::Rfc9309);
    let (bound, groups) = reading.groups_for(b"Googlebot");
    assert_eq!((bound, groups), (GroupMatch::Star, &[0, 6][..]));
    assert_eq!(reading.groups()[0].other_lines, [8]);
}

#[test]
fn lines_for_one_search_engine_are_known_and_bind_no_crawler() {
    let yandex = animal("yandex.txt");
    assert_eq!(yandex.issues(), []);
    assert_eq!(yandex.lines_of(RobotsKey::CleanParam), [4, 5]);
    assert_eq!(
        (
            yandex.lines_of(RobotsKey::Host),
            yandex.lines_of(RobotsKey::CrawlDelay)
        ),
        (vec![7, 14], vec![6])
    );
    yandex.both_say("Yandex", "/cgi-bin/x", "deny 2");
    yandex.both_say("Yandex", "/catalogue/?sort=price", "deny 3");
    yandex.both_say("Yandex", "/catalogue/?ref=a", "allow");
    // Tokens are whole: the group of Yandex is not that of YandexBot.
    yandex.both_say("YandexBot", "/cgi-bin/x", "allow 10");
    yandex.both_say("YandexImages", "/cgi-bin/x", "deny 13");
    assert_eq!(
        yandex.reading(Dialect::Rfc9309).groups()[0].other_lines,
        [4, 5, 6, 7]
    );
}

#[test]
fn groups_of_a_crawl_delay_only_get_the_rules_of_the_next() {
    let delays = animal("crawl-delay-only.txt");
    for token in ["msnbot", "Slurp", "Baiduspider"] {
        delays.both_say(token, "/", "deny 8");
    }
    delays.both_say("GPTBot", "/", "allow");
    for dialect in Dialect::ALL {
        let reading = delays.reading(dialect);
        let agents: Vec<Vec<&str>> = reading
            .groups()
            .iter()
            .map(|group| group.agents.iter().map(|agent| &*agent.token).collect())
            .collect();
        assert_eq!(agents, [vec!["msnbot", "Slurp", "Baiduspider"], vec!["*"]]);
        assert_eq!(reading.groups()[0].other_lines, [2, 5]);
    }
}

#[test]
fn tokens_with_digits_dots_and_blanks_are_cut_by_google() {
    let file = animal("digits-and-spaces.txt");
    assert_eq!(file.issues(), []);
    file.says("MJ12bot", "/all/", "deny 2", "deny 17");
    file.says("MJ12bot", "/", "deny 2", "allow");
    file.says("MJ", "/", "allow", "deny 2");
    file.says("360Spider", "/", "deny 5", "allow");
    file.says("Sogou web spider", "/", "deny 8", "allow");
    file.says("Sogou", "/", "allow", "deny 8");
    file.says("Mail.RU_Bot", "/", "deny 11", "allow");
    file.says("Mail", "/", "allow", "deny 11");
    file.both_say("Foo", "/foo/", "deny 14");
    file.both_say("Foo", "/all/", "allow");
    file.both_say("Foobar", "/foo/", "allow");
    file.both_say("Foobar", "/all/", "deny 17");
}

#[test]
fn handwritten_files_are_read_with_findings() {
    let file = animal("by-hand.txt");
    file.both_say("GPTBot", "/a/", "deny 2");
    file.both_say("GPTBot", "/b/", "deny 3");
    file.says("GPTBot", "/c/", "allow", "deny 4");
    file.both_say("GPTBot", "/a/open/", "allow 5");
    file.both_say("GPTBot", "/d/", "allow");
    file.both_say("GPTBot", "/e/", "allow");
    assert_eq!(
        file.issues(),
        [
            (1, LineIssue::Typo),
            (2, LineIssue::Typo),
            (3, LineIssue::MissingColon),
            (4, LineIssue::Typo),
            (8, LineIssue::NotKeyValue)
        ]
    );
    let spelling = |number| {
        file.file
            .line(number)
            .and_then(|line| line.key_value.as_ref())
            .map(|record| record.spelling)
    };
    assert_eq!(
        (spelling(2), spelling(4), spelling(5)),
        (
            Some(KeySpelling::Typo),
            Some(KeySpelling::Longer),
            Some(KeySpelling::Exact)
        )
    );
    assert_eq!(
        (
            file.lines_of(RobotsKey::Noindex),
            file.lines_of(RobotsKey::CrawlDelay)
        ),
        (vec![7], vec![9])
    );
}
