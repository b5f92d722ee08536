//! A random test of the lint in `blocked_noindex.rs`. That lint reports a noindex that crawlers
//! cannot see, because robots.txt disallows the page. The test makes random policies, compares each
//! report with the verdicts of the policy, and checks that the report is true.

use super::tests::compile_and_lint;
use crate::policy::site::Site;
use crate::robots::TargetScratch;
use proptest::prelude::*;

fn is_tagged(site: &Site, target: &str) -> bool {
    let mut scratch = TargetScratch::default();
    let rules = site
        .tags
        .for_path(scratch.normalise(target.as_bytes()), &mut Vec::new());
    [200, 206, 404].iter().any(|status| {
        site.tags
            .tags(&rules, *status, Some(b"text/html"))
            .is_some()
    })
}

/// Regular expressions of a few pieces, so that they often match the generated URLs.
fn arbitrary_path_regex() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("^"),
        Just("$"),
        Just("/"),
        Just("a"),
        Just("b?"),
        Just("a*"),
        Just("(a|/b)"),
        Just("[^a]"),
        Just("."),
        Just(r"\?"),
        Just("%"),
        Just("é"),
        Just("|"),
        Just("4"),
        Just("1"),
        Just("C3"),
        Just(r"\*"),
        Just("(?i)A"),
    ];
    proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

fn arbitrary_pattern() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/"),
        Just("a"),
        Just("b"),
        Just("*"),
        Just("%2F"),
        Just("%41"),
        Just("?"),
        Just("%"),
        Just("%C3%A9"),
        Just("%2A"),
        Just("4"),
        Just("1"),
    ];
    let end = prop_oneof![Just(""), Just("$")];
    (proptest::collection::vec(piece, 0..5), end)
        .prop_map(|(pieces, end)| format!("/{}{end}", pieces.concat()))
}

fn arbitrary_url() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/"),
        Just("a"),
        Just("A"),
        Just("b"),
        Just("*"),
        Just("%2f"),
        Just("%41"),
        Just("?"),
        Just("%3F"),
        Just("%"),
        Just("%25"),
        Just("%34"),
        Just("%C3%A9"),
        Just("$"),
        Just("4"),
        Just("1"),
        Just("%0A"),
        Just("%2A"),
    ];
    proptest::collection::vec(piece, 0..7).prop_map(|pieces| format!("/{}", pieces.concat()))
}

/// The messages about an unseen noindex, for a policy with these rules and conditions.
fn unseen_messages(rules: &str, conditions: &str) -> (Site, Vec<String>) {
    let text = format!(
        "acknowledge: [site_disallowed]\nrobots: {{ origin: replace, groups: [{{ agents: '*', {rules} }}] }}\nindexing:\n  \
         - {{ {conditions}, tag: noindex }}\n"
    );
    let (site, found) = compile_and_lint(&text);
    let here = found
        .items
        .into_iter()
        .filter(|item| item.id == "noindex-unseen");
    let messages = here.map(|item| item.message).collect();
    (site, messages)
}

/// Whether the group for `*` allows a target.
fn star_group_allows(site: &Site, target: &str) -> bool {
    let star = site.matcher.star_group().expect("a group of `*`");
    let rules = site.matcher.rules(star);
    let mut scratch = TargetScratch::default();
    rules
        .find(scratch.normalise(target.as_bytes()).sent)
        .is_none_or(|rule| rules.rules()[rule].allow)
}

#[test]
fn noindex_that_is_seen_is_not_reported() {
    for (rules, conditions, seen) in [
        ("disallow: '/old$'", "paths: /old", "/old/a"),
        ("disallow: '/$'", "types: text/html", "/a"),
        (
            "disallow: /shop/, allow: /shop/help/",
            "paths: /shop/",
            "/shop/help/",
        ),
        (
            "disallow: '/private$'",
            "path_regex: '^/private'",
            "/private/",
        ),
        (
            "disallow: /private/",
            "path_regex: '^/private'",
            "/privateer",
        ),
        (
            "disallow: /a, allow: '/*b$'",
            "paths: /a, not: { paths: /a/b }",
            "/ab",
        ),
        ("disallow: '/*.pdf$'", "paths: '/*.pdf'", "/a.pdf?b"),
        ("disallow: '/a?'", "paths: /a", "/a"),
    ] {
        let (site, said) = unseen_messages(rules, conditions);
        assert!(
            is_tagged(&site, seen) && star_group_allows(&site, seen),
            "{rules}, {conditions}: {seen}"
        );
        assert_eq!(said, Vec::<String>::new(), "{rules}, {conditions}");
    }
}

#[test]
fn noindex_of_disallowed_pages_is_reported() {
    for (rules, conditions) in [
        ("disallow: /old", "paths: /old"),
        ("disallow: /old", "paths: /old/"),
        ("disallow: /shop/, allow: /shop", "paths: /shop/"),
        ("disallow: ['/a$', '/a?', /a/]", "paths: ['/a$', '/a/']"),
        ("disallow: /", "path_regex: 'a'"),
    ] {
        let (_, said) = unseen_messages(rules, conditions);
        assert!(!said.is_empty(), "{rules}, {conditions}");
    }
}

fn short_urls() -> Vec<String> {
    let pieces = ["/", "a", "b", "%2F", "?", "%41", "*", "1"];
    let mut urls = vec!["/".to_owned()];
    let mut from = 0;
    for _ in 0..3 {
        let to = urls.len();
        let longer: Vec<_> = urls[from..to]
            .iter()
            .flat_map(|url| pieces.map(|piece| format!("{url}{piece}")))
            .collect();
        from = to;
        urls.extend(longer);
    }
    urls
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn unseen_noindex_has_no_false_reports(
        disallow in proptest::collection::vec(arbitrary_pattern(), 1..4),
        allow in proptest::collection::vec(arbitrary_pattern(), 0..3),
        listed in proptest::option::of(arbitrary_pattern()),
        regex in proptest::option::weighted(0.4, arbitrary_path_regex()),
        not in proptest::option::weighted(0.3, arbitrary_pattern()),
        urls in proptest::collection::vec(arbitrary_url(), 40),
    ) {
        prop_assume!(regex.as_ref().is_none_or(|text| regex::bytes::Regex::new(text).is_ok()));
        let list = |paths: &[String]| paths.iter().map(|path| format!("'{path}'")).collect::<Vec<_>>().join(", ");
        let mut conditions = vec!["status: 200".to_owned()];
        conditions.extend(listed.map(|path| format!("paths: '{path}'")));
        conditions.extend(regex.map(|regex| format!("path_regex: '{regex}'")));
        conditions.extend(not.map(|path| format!("not: {{ paths: '{path}' }}")));
        let allow = if allow.is_empty() { String::new() } else { format!(", allow: [{}]", list(&allow)) };
        let (rules, conditions) = (format!("disallow: [{}]{allow}", list(&disallow)), conditions.join(", "));
        let (site, said) = unseen_messages(&rules, &conditions);
        if let Some(said) = said.first() {
            for url in short_urls().iter().chain(&urls) {
                let mut scratch = TargetScratch::default();
                let resolved = scratch.normalise(url.as_bytes()).resolutions().next().is_some();
                if resolved {
                    continue;
                }
                prop_assert!(!is_tagged(&site, url) || !star_group_allows(&site, url), "{}; {}: {} is seen: {}", rules, conditions, url, said);
            }
        }
    }
}
