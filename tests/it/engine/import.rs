//! `import` keeps the verdicts: the robots.txt that the policy serves says about every token and
//! target what the file said from which it was made.

use crawlgate::Engine;
use crawlgate::crawlers::Registry;
use crawlgate::internals::policy::import::{ImportNote, ImportedPolicy, import};
use crawlgate::robots::{Dialect, DialectRules, RobotsFile};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn imported(text: &[u8]) -> ImportedPolicy {
    import(&RobotsFile::parse(text), None, Registry::builtin())
}

/// The robots.txt that the imported policy serves.
fn served(policy: &str) -> Vec<u8> {
    let policy = &policy.replace("# acknowledge:", "acknowledge:");
    let loaded = Engine::load(policy).unwrap_or_else(|rejected| panic!("{rejected}\n{policy}"));
    loaded.engine.robots_txt().to_vec()
}

const TARGETS: [&str; 24] = [
    "/",
    "/a",
    "/a/",
    "/a/b",
    "/a/b.html",
    "/A",
    "/b",
    "/b?x=1",
    "/a?x=1",
    "/a/b?session=2",
    "/cart/",
    "/cart/help",
    "/private/",
    "/private/index.html",
    "/x.pdf",
    "/x.pdf?y",
    "/%61",
    "/a%2Fb",
    "/%C3%A9",
    "/é",
    "/a$",
    "/a*b",
    "/wp-admin/admin-ajax.php",
    "//a",
];

/// Both files read as crawlers read them. Tokens that the notes say are left out are left out.
fn assert_same_verdicts(text: &[u8]) {
    let imported = imported(text);
    let spaced = Registry::builtin().tokens_with_blanks();
    let before = DialectRules::new(&RobotsFile::parse(text), Dialect::Rfc9309, &spaced);
    let after = DialectRules::new(
        &RobotsFile::parse(served(&imported.text)),
        Dialect::Rfc9309,
        &spaced,
    );
    let left_out = |token: &str| {
        imported
            .notes
            .iter()
            .any(|(_, left)| matches!(left, ImportNote::Group(left) if left == token))
    };
    let tokens = before
        .groups()
        .iter()
        .flat_map(|group| &group.agents)
        .map(|agent| agent.token.as_str());
    for token in tokens
        .chain(["GPTBot", "Googlebot", "NobodyNamesMe"])
        .filter(|token| !left_out(token))
    {
        for target in TARGETS {
            assert_eq!(
                after.verdict(token.as_bytes(), target.as_bytes()).allowed,
                before.verdict(token.as_bytes(), target.as_bytes()).allowed,
                "{token} {target}\n{}\n{}",
                String::from_utf8_lossy(text),
                imported.text
            );
        }
    }
}

fn line() -> impl Strategy<Value = String> {
    let key = select(vec![
        "User-agent: ",
        "User-agent: ",
        "User-agent: ",
        "user agent ",
        "Disallow: ",
        "Disallow: ",
        "Disallow:",
        "Allow: ",
        "Allow: ",
        "Dissalow: ",
        "Disallowed: ",
        "Crawl-delay: ",
        "Sitemap: ",
        "Clean-param: ",
        "Noindex: ",
        "# ",
        "#",
        "Content-Signal: ",
        "Content-Usage: ",
        "",
    ]);
    let value = select(vec![
        "*",
        "GPTBot",
        "gptbot",
        "Googlebot",
        "Bingbot/2.0",
        "MJ12bot",
        "Sogou web spider",
        "Foo*",
        "*bot",
        "One, Two",
        "Mozilla",
        "/",
        "/a",
        "/a/",
        "/a/b",
        "/*?",
        "/*.pdf$",
        "*",
        "/a$",
        "/%61",
        "/é",
        "/a%2fb",
        "private",
        "/cart/ # why",
        "\"/a\"",
        "/a: b",
        "/a #",
        "/a'b",
        "/{a}",
        "/[a",
        "/a,b",
        "/*?session=",
        "10",
        "0.5",
        "0",
        "x",
        "search=yes",
        "search=no, use=full, other=1",
        "train-ai=n, x*.y=y;p=1",
        "/a train-ai=y, no=n",
        "/ search=n,",
        "https://shop.example/s.xml",
        "",
        "/private/",
        "/*",
        "/\u{85}x",
        "/a\\b",
        "- /x",
        "null",
        "ClaudeBot",
        "CCBot",
    ]);
    (key, value).prop_map(|(key, value)| format!("{key}{value}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_imported_policy_gives_the_verdicts_of_its_file(lines in vec(line(), 0..24)) {
        assert_same_verdicts(lines.join("\n").as_bytes());
    }

    #[test]
    fn any_bytes_can_be_imported(bytes in vec(prop_oneof![any::<u8>(), select(b":#\n\r\0 */$%\xef\xbb\xbf".to_vec())], 0..300)) {
        let text = [b"User-agent: *\nDisallow: /".as_slice(), &bytes].concat();
        assert_same_verdicts(&text);
        assert_same_verdicts(&bytes);
    }
}

/// Files as they are found: generators, WordPress, a CDN's, a Russian shop's.
#[test]
fn files_as_they_are_found_keep_their_verdicts() {
    for text in [
        "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n\nSitemap: https://blog.example/sitemap_index.xml\n",
        "# BEGIN managed content\n\nUser-agent: *\nContent-Signal: search=yes,ai-train=no\nAllow: /\n\nUser-agent: Amazonbot\nDisallow: /\n\nUser-agent: GPTBot\nDisallow: /\n\n# END managed content\n\nUser-agent: *\nDisallow: /private/\n",
        "User-agent: Yandex\nDisallow: /a\nClean-param: ref /a/\nHost: shop.example\n\nUser-agent: *\nCrawl-delay: 3\nDisallow: /cart/\n",
        "User-agent: msnbot\nCrawl-delay: 10\n\nUser-agent: Baiduspider\nDisallow: /\n",
        "User-agent: *\nDisallow:\n\nUser-agent: Googlebot\nUser-agent: Bingbot\n",
        "\u{feff}User-agent: *\r\nDisallow: /a\r\nDisallow: /a/b.html$\r\n",
        "User-agent: *\rDisallow: /a\r\rUser-agent: GPTBot\rDisallow: /\r",
        "<!DOCTYPE html>\n<html><head><title>Not found</title></head><body>Disallow: /a</body></html>\n",
    ] {
        assert_same_verdicts(text.as_bytes());
    }
}

#[test]
fn a_policy_is_written_as_a_person_would_write_it() {
    let text = "\
# robots.txt of shop.example

# Everybody
User-agent: *
Disallow: /cart/   # one page per visitor
Disallow: /*?sessionid=
# the help is fine
Allow: /cart/help
Crawl-delay: 10
Clean-param: ref /articles/

User-agent: GPTBot
User-agent: CCBot
Disallow: /

User-agent: ClaudeBot/1.0
Disallow: /

User-agent: Bingbot
Disallow: /cart/
Disallow: /*?sessionid=
Allow: /cart/help
Disallow: /bing-only/
Crawl-delay: 0.5

Sitemap: https://shop.example/sitemap.xml
Sitemap: /relative.xml
";
    let imported = imported(text.as_bytes());
    let expected = "\
# robots.txt of shop.example

robots:
  origin: replace
  groups:
    # Everybody
    - agents: [\"*\"]
      disallow:
        - /cart/   # one page per visitor
        - \"/*?sessionid=\"
      allow:
        # the help is fine
        - /cart/help
      crawl_delay: 10s
      # left out: Clean-param: ref /articles/
    - agents: [GPTBot, CCBot, ClaudeBot]
      disallow: /
    - agents: [Bingbot]
      disallow:
        - /cart/
        - \"/*?sessionid=\"
        - /bing-only/
      allow: /cart/help
      crawl_delay: 500ms
  sitemaps:
    - https://shop.example/sitemap.xml
";
    assert!(imported.text.starts_with(expected), "{}", imported.text);
    let places: Vec<usize> = imported.notes.iter().map(|(line, _)| *line).collect();
    assert_eq!(
        places,
        [10, 27],
        "what is left out is said: {:?}",
        imported.notes
    );
}

#[test]
fn file_that_shuts_googlebot_out_asks_whether_that_is_meant() {
    let closed = imported(b"User-agent: *\nDisallow: /\n");
    assert!(closed.text.contains("\n# acknowledge: [site_disallowed]\n"));
    assert_eq!(closed.notes, vec![(1, ImportNote::Acknowledgement)]);
    for open in [
        "User-agent: *\nDisallow: /a\n",
        "User-agent: bingbot\nDisallow: /\n",
    ] {
        let open = imported(open.as_bytes());
        assert!(!open.text.contains("acknowledge") && open.notes.is_empty());
    }
}

#[test]
fn usage_preferences_are_imported() {
    let text = "\
License: https://shop.example/license.xml

User-agent: *
Content-Signal: ai-train=no,Search=yes
Disallow: /cart/

User-agent: Bingbot
Disallow: /cart/
Content-Signal: search=yes, use=reference

License: https://shop.example/license.xml
License: /relative.xml
";
    let imported = imported(text.as_bytes());
    assert!(
        imported
            .text
            .contains("content_signal: { search: yes, ai-train: no }"),
        "{}",
        imported.text
    );
    assert!(
        imported
            .text
            .contains("content_signal: { search: yes, use: reference }"),
        "{}",
        imported.text
    );
    assert!(
        imported
            .text
            .contains("license: [https://shop.example/license.xml]"),
        "{}",
        imported.text
    );
    let lines: Vec<usize> = imported.notes.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [12], "{:?}", imported.notes);
    let body = String::from_utf8(served(&imported.text)).expect("UTF-8");
    assert!(
        body.contains("Disallow: /cart/\nContent-Signal: search=yes, ai-train=no\n"),
        "{body}"
    );
    assert!(
        body.contains("License: https://shop.example/license.xml\n\n"),
        "{body}"
    );
}

/// What the policy serves about use, for one file of lines of one group.
fn rendered_again(lines: &str) -> (Vec<String>, ImportedPolicy) {
    let text = format!("User-agent: *\nDisallow: /cart/\n{lines}");
    let imported = imported(text.as_bytes());
    let body = String::from_utf8(served(&imported.text)).expect("UTF-8");
    (
        body.lines()
            .filter(|line| line.starts_with("Content-"))
            .map(str::to_owned)
            .collect(),
        imported,
    )
}

#[test]
fn partly_known_signal_is_imported_with_a_finding() {
    let (again, imported) =
        rendered_again("Content-Signal: USE=Immediate, ai-input=no, price=9, search=maybe\n");
    assert_eq!(again, ["Content-Signal: ai-input=no, use=immediate"]);
    assert!(
        imported
            .text
            .contains("# left out: Content-Signal: price=9, search=maybe\n"),
        "{}",
        imported.text
    );
    assert!(
        imported.notes.iter().all(|(line, _)| *line == 3) && imported.notes.len() == 2,
        "{:?}",
        imported.notes
    );
    // Two lines, one of which contradicts the other in part.
    let (again, imported) =
        rendered_again("Content-Signal: search=yes\nContent-Signal: search=no, ai-train=no\n");
    assert_eq!(again, ["Content-Signal: search=yes, ai-train=no"]);
    assert!(
        imported
            .text
            .contains("# left out: Content-Signal: search=no\n"),
        "{}",
        imported.text
    );
    // Nothing of it.
    let (again, imported) = rendered_again("Content-Signal: search\nContent-Signal:\n");
    assert!(again.is_empty());
    assert!(
        imported
            .text
            .contains("# left out: Content-Signal: search\n"),
        "{}",
        imported.text
    );
    assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
}

#[test]
fn content_usage_comes_along_path_by_path() {
    let lines = "\
Content-Usage: train-ai=n, search=y
Content-Usage: /open/ train-ai=y
Content-Usage: /open/ ai-use=n
Content-Usage: /*.pdf$ train-genai=n, no=y
";
    let (again, imported) = rendered_again(lines);
    assert_eq!(
        again,
        [
            "Content-Usage: train-ai=n, search=y",
            "Content-Usage: /open/ train-ai=y, ai-use=n",
            "Content-Usage: /*.pdf$ no=y, train-genai=n",
        ],
        "{}",
        imported.text
    );
    assert!(imported.notes.is_empty(), "{:?}", imported.notes);
    // By itself it needs no list.
    let (_, imported) = rendered_again("Content-Usage: train-ai=n\n");
    assert!(
        imported
            .text
            .contains("      content_usage: { train-ai: no }\n"),
        "{}",
        imported.text
    );
    // A parameter, a value and a path that a policy cannot say; the same path again with another
    // value.
    let lines = "\
Content-Usage: train-ai=n;until=2030, search=?1
Content-Usage: / train-ai=y
Content-Usage: /a\u{1}b train-ai=y
";
    let (again, imported) = rendered_again(lines);
    assert_eq!(again, ["Content-Usage: train-ai=n"]);
    assert!(
        imported
            .text
            .contains("# left out: Content-Usage: ;until=2030, search=?1\n"),
        "{}",
        imported.text
    );
    assert!(
        imported
            .text
            .contains("# left out: Content-Usage: / train-ai=y\n"),
        "{}",
        imported.text
    );
    assert_eq!(imported.notes.len(), 4, "{:?}", imported.notes);
    // One key that is none, and by RFC 9651 the line says nothing: nor does the policy.
    for line in [
        "train-ai=n, Search=y",
        "train-ai=n, search = y",
        "train-ai=n,",
        "train-ai=n, search=y n",
    ] {
        let (again, imported) = rendered_again(&format!("Content-Usage: {line}\n"));
        assert!(again.is_empty(), "{line}: {again:?}");
        assert!(
            imported
                .text
                .contains(&format!("# left out: Content-Usage: {line}\n")),
            "{}",
            imported.text
        );
    }
}

#[test]
fn paths_that_a_policy_cannot_have_are_left_out() {
    let of = |path: &str| {
        let (again, imported) = rendered_again(&format!("Content-Usage: {path} train-ai=n\n"));
        (again.len(), imported.notes.len())
    };
    assert_eq!(of(&format!("/{}", "a".repeat(1_999))), (1, 0));
    assert_eq!(of(&format!("/{}", "a".repeat(2_000))), (0, 1));
    assert_eq!(of("/a\u{FFFD}b"), (0, 1));
    let lines: String = (0..=1_000)
        .map(|number| format!("Content-Usage: /{number} train-ai=n\n"))
        .collect();
    let (again, imported) = rendered_again(&lines);
    assert_eq!((again.len(), imported.notes.len()), (1_000, 1));
}

#[test]
fn names_behind_the_first_of_a_line_are_noted() {
    let imported = imported(b"User-agent: Googlebot, Bingbot\nDisallow: /a\n");
    assert!(
        matches!(&imported.notes[..], [(1, ImportNote::Finding(text))] if text.contains("Bingbot")),
        "{:?}",
        imported.notes
    );
    assert!(
        imported.text.contains("- agents: [Googlebot]\n"),
        "{}",
        imported.text
    );
}

#[test]
fn rules_that_only_google_reads_are_noted() {
    let imported = imported(b"User-agent: *\nDisallowed: /cart/\nAllow: /\n");
    assert!(
        matches!(&imported.notes[..], [(2, ImportNote::Finding(text))] if text.contains("write \"Disallow\"")),
        "{:?}",
        imported.notes
    );
    assert!(!imported.text.contains("/cart/"), "{}", imported.text);
    // Google reads this misspelling.
    let imported = self::imported(b"User-agent: *\nDisalow: /cart/\nAllow: /\n");
    let (_, note) = &imported.notes[0];
    assert!(
        imported.text.contains("disallow: /cart/"),
        "{}",
        imported.text
    );
    assert!(!note.to_string().contains("left out"), "{note}");
}

#[test]
fn notes_count_the_rules_that_they_do_not_list() {
    let rules: String = (0..5).map(|n| format!("Disallow: p{n}/\n")).collect();
    let imported = imported(format!("User-agent: *\nDisallow: /a\n{rules}").as_bytes());
    let notes: Vec<String> = imported
        .notes
        .iter()
        .map(|(_, note)| note.to_string())
        .collect();
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[2].contains("and 2 more"), "{notes:?}");
}
