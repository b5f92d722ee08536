//! Property tests of robots.txt matching and rendering, with random patterns, targets and
//! documents. The results are compared with simple implementations that share no code with the real
//! ones.

use super::{PathPattern, RobotsDocument, Rule, RuleGroup, RuleSet, TargetScratch};
use crate::robots::{ExtensionLine, GroupMatcher, RequestTarget, render_robots_txt};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::time::Duration;

/// What one byte of a URL may be, decoded as far as RFC 9309 allows: two spellings of the same
/// thing are one unit.
#[derive(PartialEq, Eq)]
enum UrlUnit {
    /// A byte that stands for itself.
    Plain(u8),
    /// An escape that is not the same as the raw byte.
    Escaped(u8),
    Star,
    End,
}

/// Reads the alphabet of [`spelling`] only.
fn parse_units(text: &str, is_rule: bool) -> Vec<UrlUnit> {
    let mut units = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (unit, length) = match first {
            '%' => match u8::from_str_radix(&rest[1..3], 16)
                .expect("the alphabet has whole escapes only")
            {
                // Figure 6: these are the raw characters of a URL.
                byte @ (b'*' | b'$') => (UrlUnit::Plain(byte), 3),
                byte if byte.is_ascii_alphanumeric() => (UrlUnit::Plain(byte), 3),
                byte => (UrlUnit::Escaped(byte), 3),
            },
            '*' if is_rule => (UrlUnit::Star, 1),
            '$' if is_rule && rest.len() == 1 => (UrlUnit::End, 1),
            byte => (UrlUnit::Plain(byte as u8), 1),
        };
        units.push(unit);
        rest = &rest[length..];
    }
    units
}

fn naive_match(
    pattern: &[UrlUnit],
    target: &[UrlUnit],
    memo: &mut HashMap<(usize, usize), bool>,
) -> bool {
    let key = (pattern.len(), target.len());
    if let Some(&known) = memo.get(&key) {
        return known;
    }
    let result = match (pattern.first(), target.first()) {
        (None, _) => true,
        (Some(UrlUnit::End), first) => first.is_none(),
        (Some(UrlUnit::Star), None) => naive_match(&pattern[1..], target, memo),
        (Some(UrlUnit::Star), Some(_)) => {
            naive_match(&pattern[1..], target, memo) || naive_match(pattern, &target[1..], memo)
        }
        (Some(_), None) => false,
        (Some(a), Some(b)) => a == b && naive_match(&pattern[1..], &target[1..], memo),
    };
    memo.insert(key, result);
    result
}

/// The bytes of a pattern as rendered: an escaped letter is one, the rest as written.
fn naive_priority(pattern: &str) -> usize {
    pattern.replace("%61", "a").len()
}

/// (allow, pattern as written): the longest of those that match, Allow first, then the first.
fn naive_find(rules: &[(bool, String)], target: &str) -> Option<usize> {
    let target = parse_units(target, false);
    let mut found: Option<usize> = None;
    for (index, (allow, pattern)) in rules.iter().enumerate() {
        if pattern.is_empty()
            || !naive_match(&parse_units(pattern, true), &target, &mut HashMap::new())
        {
            continue;
        }
        let better = found.is_none_or(|best| {
            let (best_allow, best_pattern) = &rules[best];
            (naive_priority(pattern), *allow) > (naive_priority(best_pattern), *best_allow)
        });
        if better {
            found = Some(index);
        }
    }
    found
}

/// Few symbols, so that random patterns and targets meet.
fn any_spelling(longest: usize) -> impl Strategy<Value = String> {
    let symbol = prop::sample::select(vec![
        "/", "/", "a", "a", "%61", "b", "*", "*", "$", "%2A", "%2a", "%24", "%2F",
    ]);
    vec(symbol, 0..longest).prop_map(|symbols| symbols.concat())
}

fn any_pattern_text() -> impl Strategy<Value = String> {
    prop_oneof![6 => any_spelling(8).prop_map(|rest| format!("/{rest}")), 1 => any_spelling(6)]
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,40}",
        // Dense in what normalisation has to decide about.
        vec(
            prop::sample::select(vec![
                "%", "3", "4", "1", "%3", "%2f", "2F", "a", "/", ".", "*", "$", "#", " ", "\n",
                "é", "?"
            ]),
            0..24
        )
        .prop_map(|symbols| symbols.concat()),
    ]
}

fn any_rule() -> impl Strategy<Value = Rule> {
    (any::<bool>(), any_text()).prop_map(|(allow, written)| Rule {
        allow,
        pattern: PathPattern::new(&written),
    })
}

fn any_group() -> impl Strategy<Value = RuleGroup> {
    let delay = prop::option::of((0u64..100_000).prop_map(Duration::from_millis));
    (
        vec("[A-Za-z0-9_-]{1,8}|\\*", 1..4),
        vec(any_rule(), 0..6),
        delay,
        vec(any_text(), 0..3),
        any_extensions(),
    )
        .prop_map(
            |(agents, rules, crawl_delay, comments, extensions)| RuleGroup {
                comments,
                agents,
                rules,
                crawl_delay,
                extensions,
            },
        )
}

fn any_extensions() -> impl Strategy<Value = Vec<ExtensionLine>> {
    let key = prop_oneof![
        "Content-Signal",
        "Allow",
        "user agent",
        "Disallowed",
        "dissallow",
        any_text()
    ];
    vec(
        (key, any_text()).prop_map(|(key, value)| ExtensionLine { key, value }),
        0..3,
    )
}

fn any_document() -> impl Strategy<Value = RobotsDocument> {
    (
        vec(any_text(), 0..3),
        vec(any_group(), 0..5),
        any_extensions(),
        vec(any_text(), 0..3),
    )
        .prop_map(|(comments, groups, extensions, sitemaps)| RobotsDocument {
            comments,
            groups,
            extensions,
            sitemaps,
        })
}

/// A group as a parser of RFC 9309 sees it: agents, rules as (allow, path).
type ParsedGroup = (Vec<String>, Vec<(bool, String)>);

fn parse_groups(text: &str) -> Vec<ParsedGroup> {
    let mut groups: Vec<ParsedGroup> = Vec::new();
    let mut agents_open = false;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((key, value)) = line.split_once(':') else {
            assert!(line.is_empty(), "not a record: {line:?}");
            continue;
        };
        let value = value.trim().to_owned();
        match key.trim() {
            "User-agent" => {
                if !agents_open {
                    groups.push(ParsedGroup::default());
                }
                agents_open = true;
                groups.last_mut().expect("pushed above").0.push(value);
            }
            key @ ("Allow" | "Disallow") => {
                agents_open = false;
                groups
                    .last_mut()
                    .expect("a rule stands in a group")
                    .1
                    .push((key == "Allow", value));
            }
            "Crawl-delay" => assert!(
                value.parse::<f64>().is_ok_and(|seconds| seconds >= 0.0),
                "{value}"
            ),
            "Sitemap" => assert!(!value.is_empty()),
            "Disallowed" | "dissallow" | "user agent" => {
                panic!("some parsers read this as a rule or agent: {line:?}")
            }
            other => assert!(!other.is_empty(), "{line:?}"),
        }
    }
    groups
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn found_rule_agrees_with_naive_matcher(
        rules in vec((any::<bool>(), any_pattern_text()), 0..12),
        targets in vec(any_spelling(10), 1..6),
    ) {
        let set = RuleSet::new(
            rules.iter().map(|(allow, text)| Rule { allow: *allow, pattern: PathPattern::new(text) }).collect(),
        );
        let mut scratch = TargetScratch::default();
        for rest in targets {
            let url = format!("/{rest}");
            let found = set.find(scratch.normalise(url.as_bytes()).sent);
            prop_assert_eq!(found, naive_find(&rules, &url), "{:?} {}", &rules, url);
        }
    }

    #[test]
    fn index_agrees_with_trying_every_rule(
        rules in vec((any::<bool>(), any_text()), 0..12),
        raw in vec(any::<u8>(), 0..40),
        text in any_text(),
    ) {
        let rules: Vec<Rule> = rules
            .iter()
            .map(|(allow, text)| Rule { allow: *allow, pattern: PathPattern::new(&format!("/{text}")) })
            .collect();
        let set = RuleSet::new(rules.clone());
        let mut scratch = TargetScratch::default();
        for raw in [&raw[..], text.as_bytes()] {
            let target = scratch.normalise(raw).sent;
            let best = rules
                .iter()
                .enumerate()
                .filter(|(_, rule)| rule.pattern.matches(target))
                .max_by_key(|(index, rule)| (rule.pattern.priority(), rule.allow, std::cmp::Reverse(*index)))
                .map(|(index, _)| index);
            prop_assert_eq!(set.find(target), best);
            // Not normalised: no promise but not to panic.
            let _ = set.find(raw);
        }
    }

    /// So many begin alike that they are told apart by what they contain, and targets in which that
    /// stands often.
    #[test]
    fn crowded_rules_agree_with_trying_every_rule(
        rules in vec((any::<bool>(), "(/|/a|)\\*[ab/*]{0,6}\\$?"), 5..150),
        targets in vec("/[ab/]{0,60}", 1..8),
    ) {
        let rules: Vec<Rule> =
            rules.iter().map(|(allow, text)| Rule { allow: *allow, pattern: PathPattern::new(text) }).collect();
        let set = RuleSet::new(rules.clone());
        for target in targets {
            let best = rules
                .iter()
                .enumerate()
                .filter(|(_, rule)| rule.pattern.matches(target.as_bytes()))
                .max_by_key(|(index, rule)| (rule.pattern.priority(), rule.allow, std::cmp::Reverse(*index)))
                .map(|(index, _)| index);
            prop_assert_eq!(set.find(target.as_bytes()), best);
        }
    }

    #[test]
    fn normalising_again_changes_nothing(text in any_text()) {
        let pattern = PathPattern::new(&text);
        prop_assert_eq!(&PathPattern::new(pattern.as_str()), &pattern);
        prop_assert!(pattern.as_str().bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'));

        let (mut first, mut second) = (TargetScratch::default(), TargetScratch::default());
        let once = first.normalise(text.as_bytes());
        let spelled: Vec<u8> = once.sent.iter().map(|byte| if *byte == 1 { b'*' } else { *byte }).collect();
        let twice = second.normalise(&spelled);
        prop_assert_eq!(RequestTarget { written: twice.written, ..once }, twice);
        prop_assert_eq!(twice.is_normal(), twice.resolutions().next().is_none());
        for resolved in once.resolutions() {
            let mut third = TargetScratch::default();
            prop_assert_eq!(third.normalise(resolved.target).resolved, None);
            let path = resolved.target.split(|byte| *byte == b'?').next().unwrap_or_default();
            prop_assert!(!path.windows(3).any(|bytes| bytes == b"%2F"));
        }
        if let Some(stripped) = once.stripped {
            let mut third = TargetScratch::default();
            prop_assert_eq!(third.normalise(stripped.target).stripped, None);
        }
    }

    #[test]
    fn any_bytes_normalise_to_a_target(raw in vec(any::<u8>(), 0..200)) {
        let mut scratch = TargetScratch::default();
        let target = scratch.normalise(&raw);
        for form in target.forms() {
            prop_assert!(form.starts_with(b"/"));
            prop_assert!(form.iter().all(|byte| *byte == 1 || byte.is_ascii_graphic() && !b"#*".contains(byte)));
            prop_assert!(form.len() <= 3 * raw.len() + 1);
        }
        let _ = target.is_robots_txt();
    }

    #[test]
    fn literal_rule_matches_its_own_text(text in any_text()) {
        let literal = text.replace(['*', '$', '#'], "");
        let url = format!("/{}", literal.trim_matches([' ', '\t']));
        let mut scratch = TargetScratch::default();
        prop_assert!(PathPattern::new(&url).matches(scratch.normalise(url.as_bytes()).sent), "{}", url);
    }

    #[test]
    fn rendered_text_parses_into_same_groups(document in any_document()) {
        let expected: Vec<ParsedGroup> = document
            .groups
            .iter()
            .map(|group| {
                let mut rules: Vec<(bool, String)> =
                    group.rules.iter().map(|rule| (rule.allow, rule.pattern.as_str().to_owned())).collect();
                if rules.is_empty() {
                    rules.push((true, "/".to_owned()));
                }
                (group.agents.clone(), rules)
            })
            .collect();
        prop_assert_eq!(parse_groups(&render_robots_txt(&document)), expected);
    }

    #[test]
    fn each_token_is_bound_by_the_first_group_that_names_it(document in any_document()) {
        let matcher = GroupMatcher::new(&document);
        let first = |token: &str| {
            document.groups.iter().position(|group| group.agents.iter().any(|agent| agent.eq_ignore_ascii_case(token)))
        };
        prop_assert_eq!(matcher.star_group(), first("*"));
        for agent in document.groups.iter().flat_map(|group| &group.agents).filter(|agent| *agent != "*") {
            prop_assert_eq!(matcher.named_group(&agent.to_uppercase()), first(agent));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn overlap_agrees_with_naive_search(one in "/[ab*]{0,3}[$]?", two in "/[ab*]{0,3}[$]?") {
        let (one, two) = (PathPattern::new(&one), PathPattern::new(&two));
        // A target that matches both need not be longer than the two together.
        let targets = (0..8_u32).flat_map(|length| (0..1_u32 << length).map(move |bits| {
            let letters = (0..length).map(|place| if bits >> place & 1 == 1 { 'a' } else { 'b' });
            std::iter::once('/').chain(letters).collect::<String>()
        }));
        let targets: Vec<String> = targets.collect();
        let matches = |pattern: &PathPattern, target: &String| pattern.matches(target.as_bytes());
        let both = targets.iter().any(|target| matches(&one, target) && matches(&two, target));
        prop_assert_eq!(one.overlaps(&two, &mut 1_000_000), both);
        if one.covers(&two) {
            prop_assert!(targets.iter().all(|target| matches(&one, target) || !matches(&two, target)));
        }
    }
}
