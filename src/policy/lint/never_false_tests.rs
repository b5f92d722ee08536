//! Checks that two kinds of lint are always right: those about rules that match nothing, and those about a noindex
//! that no crawler sees. Each finding is compared with the verdicts of the policy.

use super::tests::linted;
use crate::crawlers::Registry;
use crate::policy::origin::Origin;
use crate::policy::site::Site;
use crate::policy::{compile_with_origin, read};
use crate::robots::TargetScratch;
use crate::time::Timestamp;
use crate::yaml::{Diagnostics, Source};
use proptest::prelude::*;
use std::sync::Arc;

fn site(conditions: &str) -> Site {
    let text = format!("robots: {{ origin: replace }}\nindexing:\n  - {{ {conditions}, tag: noai }}\n");
    let source = Source { name: "shop.yaml".into(), text: text.as_str().into() };
    let (policy, found) = read("shop", &source);
    let policy = policy.unwrap_or_else(|| panic!("{text}: {found:?}"));
    compile_with_origin(
        Arc::new(policy),
        &Origin::Unknown,
        Registry::builtin(),
        Timestamp::parse("2026-11-21").expect("a day"),
    )
    .expect("compiles")
}

fn said(site: &Site) -> Vec<String> {
    let mut found = Diagnostics::default();
    super::lint(site, Registry::builtin(), &mut found);
    let here = found.items.into_iter().filter(|item| item.id == "rule-never-matches");
    here.map(|item| item.message).collect()
}

fn is_tagged(site: &Site, target: &str) -> bool {
    let mut scratch = TargetScratch::default();
    let rules = site.tags.for_path(scratch.normalise(target.as_bytes()), &mut Vec::new());
    [200, 206, 404].iter().any(|status| site.tags.tags(&rules, *status, Some(b"text/html")).is_some())
}

#[test]
fn rules_that_match_something_are_let_be() {
    for (conditions, url) in [
        ("path_regex: '^a|^/b/'", "/b/x"),
        ("path_regex: '^x?/c2/'", "/c2/"),
        ("path_regex: '^a*/c/'", "/c/"),
        ("path_regex: '^a{0,3}/c3/'", "/c3/"),
        (r"path_regex: '^/d2/(\?)?$'", "/d2/"),
        ("path_regex: '^/d3[?]*x'", "/d3x"),
        ("path_regex: '^/d4$a*'", "/d4"),
        ("path_regex: '(?i)^/NEWS/'", "/news/"),
        ("path_regex: '(?x) ^ /n   # news'", "/n"),
        ("path_regex: '^/100%/'", "/100%25/"),
        ("path_regex: '^/caf\u{e9}/'", "/caf%C3%A9/"),
        ("path_regex: '\\.(png|jpe?g)$'", "/a.jpeg"),
        ("path_regex: 'a'", "/a"),
        ("path_regex: '^/[^/]+$'", "/a"),
        ("path_regex: '^/a%zz'", "/a%zz"),
        ("paths: '/%7Euser/', path_regex: '^/~user/x'", "/~user/x"),
        ("paths: '/*?id=', path_regex: '^/a$'", "/a?id=1"),
        ("paths: '/*.pdf$', path_regex: '\\.png$'", "/a.png?.pdf"),
        ("paths: '/a*b$', path_regex: '^/a/x$', not: { paths: '/*c$' }", "/a/x?b"),
        ("path_regex: '^/n/a', not: { path_regex: '^/n/ab' }", "/n/ac"),
        ("path_regex: '^/n/a', not: { paths: '/n/' }", "/n%2Fa"),
        ("paths: /m/, not: { path_regex: '^/m/$' }", "/m/x"),
        ("status: [206, 404], not: { status: 200 }", "/"),
        ("status: 200, not: { status: 206 }", "/"),
        ("types: 'text/*', not: { types: text/plain }", "/"),
        ("paths: '/a%23b'", "/a%23b"),
    ] {
        let site = site(conditions);
        assert!(is_tagged(&site, url), "{conditions} on {url}");
        assert_eq!(said(&site), Vec::<String>::new(), "{conditions}");
    }
}

#[test]
fn rules_that_match_nothing_are_told() {
    let site = site("path_regex: '^events/'");
    for url in ["/", "/events/", "/a", "/n/"] {
        assert!(!is_tagged(&site, url), "{url}");
    }
    let said = said(&site);
    assert!(matches!(&said[..], [only] if only.contains("a path begins with `/`")), "{said:?}");
}

/// What an expression matches is not what its writer means: said so, and not that it matches nothing.
#[test]
fn rules_that_match_unlikely_paths_are_reported() {
    for (conditions, seldom, never, why) in [
        (r"path_regex: '^/d\?x=1'", "/d%3Fx=1", "/d?x=1", "the query is no part of the path"),
        ("path_regex: '^/caf%C3%A9/'", "/caf%25C3%25A9/", "/caf%C3%A9/", "with its escapes decoded"),
        ("path_regex: '^/%41/'", "/%2541/", "/%41/", "with its escapes decoded"),
        ("paths: '/a#b'", "/a%23b", "/a", "what follows `#` in a URL"),
    ] {
        let site = site(conditions);
        assert!(is_tagged(&site, seldom) && !is_tagged(&site, never), "{conditions}");
        let said = said(&site);
        assert!(matches!(&said[..], [only] if only.contains(why)), "{conditions}: {said:?}");
    }
}

/// Groups, alternatives, flags, boundaries and repeated repetitions are not read: nothing is said.
#[test]
fn expressions_with_pieces_that_are_not_read_are_let_be() {
    for regex in ["^(a|b)/", "(?i)^a", "^a{0}{2}", "^[[:alpha:]]?a$b|c", r"^\x61", "^a|^/b"] {
        assert_eq!(said(&site(&format!("path_regex: '{regex}'"))), Vec::<String>::new(), "{regex}");
    }
}

/// Expressions of a few pieces that meet in few ways.
fn expressions() -> impl Strategy<Value = String> {
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

fn paths() -> impl Strategy<Value = String> {
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
    (proptest::collection::vec(piece, 0..5), end).prop_map(|(pieces, end)| format!("/{}{end}", pieces.concat()))
}

fn urls() -> impl Strategy<Value = String> {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Of a rule that tags some URL it is never said that it matches nothing.
    #[test]
    fn nothing_false_is_said(
        regex in proptest::option::of(expressions()),
        path in proptest::option::of(paths()),
        not_regex in proptest::option::of(expressions()),
        not_path in proptest::option::of(paths()),
        urls in proptest::collection::vec(urls(), 60),
    ) {
        let compiles = |text: &Option<String>| text.as_ref().is_none_or(|text| regex::bytes::Regex::new(text).is_ok());
        prop_assume!(compiles(&regex) && compiles(&not_regex));
        let conditions = |regex: &Option<String>, path: &Option<String>| {
            let regex = regex.iter().map(|regex| format!("path_regex: '{regex}'"));
            regex.chain(path.iter().map(|path| format!("paths: '{path}'"))).collect::<Vec<_>>().join(", ")
        };
        let (when, not) = (conditions(&regex, &path), conditions(&not_regex, &not_path));
        prop_assume!(!when.is_empty());
        let not = if not.is_empty() { String::new() } else { format!(", not: {{ {not} }}") };
        let site = site(&format!("{when}{not}"));
        if let Some(url) = urls.iter().find(|url| is_tagged(&site, url)) {
            let said = said(&site);
            let false_here = said.iter().find(|said| {
                let nothing = said.contains("nothing") || said.contains("no path of");
                let query = said.contains("no part of the path") && !url.contains("%3F");
                let escapes = said.contains("escapes decoded") && !url.contains("%25") && !url.contains('%');
                nothing || query || escapes
            });
            prop_assert!(false_here.is_none(), "{}{}: {:?} is matched, and said is {:?}", when, not, url, said);
        }
    }
}

/// What is said of a noindex that robots.txt hides, in a policy with these groups and conditions.
fn hidden(rules: &str, conditions: &str) -> (Site, Vec<String>) {
    let text = format!(
        "acknowledge: [site_disallowed]\nrobots: {{ origin: replace, groups: [{{ agents: '*', {rules} }}] }}\nindexing:\n  \
         - {{ {conditions}, tag: noindex }}\n"
    );
    let (site, found) = linted(&text);
    let here = found.items.into_iter().filter(|item| item.id == "noindex-unseen");
    let messages = here.map(|item| item.message).collect();
    (site, messages)
}

/// Whether a crawler that follows `*` may fetch it.
fn may_be_fetched(site: &Site, target: &str) -> bool {
    let star = site.matcher.star().expect("a group of `*`");
    let rules = site.matcher.rules(star);
    let mut scratch = TargetScratch::default();
    rules.find(scratch.normalise(target.as_bytes()).sent).is_none_or(|rule| rules.rules()[rule].allow)
}

#[test]
fn a_noindex_that_is_seen_somewhere_is_let_be() {
    for (rules, conditions, seen) in [
        ("disallow: '/old$'", "paths: /old", "/old/a"),
        ("disallow: '/$'", "types: text/html", "/a"),
        ("disallow: /shop/, allow: /shop/help/", "paths: /shop/", "/shop/help/"),
        ("disallow: '/private$'", "path_regex: '^/private'", "/private/"),
        ("disallow: /private/", "path_regex: '^/private'", "/privateer"),
        ("disallow: /a, allow: '/*b$'", "paths: /a, not: { paths: /a/b }", "/ab"),
        ("disallow: '/*.pdf$'", "paths: '/*.pdf'", "/a.pdf?b"),
        ("disallow: '/a?'", "paths: /a", "/a"),
    ] {
        let (site, said) = hidden(rules, conditions);
        assert!(is_tagged(&site, seen) && may_be_fetched(&site, seen), "{rules}, {conditions}: {seen}");
        assert_eq!(said, Vec::<String>::new(), "{rules}, {conditions}");
    }
}

#[test]
fn a_noindex_that_no_crawler_may_fetch_is_reported() {
    for (rules, conditions) in [
        ("disallow: /old", "paths: /old"),
        ("disallow: /old", "paths: /old/"),
        ("disallow: /shop/, allow: /shop", "paths: /shop/"),
        ("disallow: ['/a$', '/a?', /a/]", "paths: ['/a$', '/a/']"),
        ("disallow: /", "path_regex: 'a'"),
    ] {
        let (_, said) = hidden(rules, conditions);
        let only = said.first().unwrap_or_else(|| panic!("{rules}, {conditions}"));
        assert!(only.starts_with("this noindex is never seen: "), "{conditions}: {said:?}");
    }
}

fn short_urls() -> Vec<String> {
    let pieces = ["/", "a", "b", "%2F", "?", "%41", "*", "1"];
    let mut urls = vec!["/".to_owned()];
    let mut from = 0;
    for _ in 0..3 {
        let to = urls.len();
        let longer: Vec<_> =
            urls[from..to].iter().flat_map(|url| pieces.map(|piece| format!("{url}{piece}"))).collect();
        from = to;
        urls.extend(longer);
    }
    urls
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// The lint never says of a noindex that a crawler may fetch that no crawler sees it.
    #[test]
    fn never_seen_is_never_false(
        disallow in proptest::collection::vec(paths(), 1..4),
        allow in proptest::collection::vec(paths(), 0..3),
        listed in proptest::option::of(paths()),
        regex in proptest::option::weighted(0.4, expressions()),
        not in proptest::option::weighted(0.3, paths()),
        urls in proptest::collection::vec(urls(), 40),
    ) {
        prop_assume!(regex.as_ref().is_none_or(|text| regex::bytes::Regex::new(text).is_ok()));
        let list = |paths: &[String]| paths.iter().map(|path| format!("'{path}'")).collect::<Vec<_>>().join(", ");
        let mut conditions = vec!["status: 200".to_owned()];
        conditions.extend(listed.map(|path| format!("paths: '{path}'")));
        conditions.extend(regex.map(|regex| format!("path_regex: '{regex}'")));
        conditions.extend(not.map(|path| format!("not: {{ paths: '{path}' }}")));
        let allow = if allow.is_empty() { String::new() } else { format!(", allow: [{}]", list(&allow)) };
        let (rules, conditions) = (format!("disallow: [{}]{allow}", list(&disallow)), conditions.join(", "));
        let (site, said) = hidden(&rules, &conditions);
        if let Some(said) = said.first() {
            for url in short_urls().iter().chain(&urls) {
                let mut scratch = TargetScratch::default();
                let resolved = scratch.normalise(url.as_bytes()).resolutions().next().is_some();
                if resolved {
                    continue;
                }
                prop_assert!(!is_tagged(&site, url) || !may_be_fetched(&site, url), "{}; {}: {} is seen: {}", rules, conditions, url, said);
            }
        }
    }
}
