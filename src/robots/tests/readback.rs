//! Tests that crawlgate reads its own robots.txt files correctly. A random document is written as a
//! robots.txt, and parsed again. The result must be the same document, and the same bytes when it
//! is written once more. By RFC 9309 and by Google's library, the file must have the same groups.

use super::oracle::config;
use super::{PathPattern, RobotsDocument, Rule, RuleGroup};
use crate::robots::{Dialect, DialectRules, FileFormat, RobotsFile, RobotsKey, render_robots_txt};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

/// A file of ours back as the document it was rendered from.
fn parse_document(file: &RobotsFile) -> RobotsDocument {
    let mut document = RobotsDocument::default();
    let mut comments: Vec<String> = Vec::new();
    let mut open = false;
    for line in file.lines() {
        if let (None, Some(comment)) = (&line.key_value, &line.comment) {
            let text = file.text(comment);
            comments.push(text.strip_prefix(' ').unwrap_or(&text).to_owned());
        }
        if line.text.is_empty() {
            // What stands apart from the first group is about the file.
            document.comments.append(&mut comments);
        }
        let Some(record) = &line.key_value else {
            continue;
        };
        let value = file.text(&record.value).into_owned();
        let group = document.groups.last_mut();
        match (record.key, group) {
            (RobotsKey::UserAgent, Some(group)) if open => group.agents.push(value),
            (RobotsKey::UserAgent, _) => {
                let comments = std::mem::take(&mut comments);
                document.groups.push(RuleGroup {
                    comments,
                    agents: vec![value],
                    ..RuleGroup::default()
                });
                open = true;
            }
            (RobotsKey::Allow | RobotsKey::Disallow, Some(group)) => {
                group.rules.push(Rule {
                    allow: record.key == RobotsKey::Allow,
                    pattern: PathPattern::new(&value),
                });
                open = false;
            }
            (RobotsKey::CrawlDelay, Some(group)) => {
                group.crawl_delay = Some(format_seconds(&value))
            }
            (RobotsKey::Sitemap, _) => document.sitemaps.push(value),
            (key, _) => panic!("{key:?} on line {}", line.number),
        }
    }
    document.comments.append(&mut comments);
    document
}

fn format_seconds(text: &str) -> Duration {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    Duration::new(
        whole.parse().expect("seconds"),
        format!("{part:0<9}").parse().expect("nanoseconds"),
    )
}

/// Text in which nothing has to be replaced.
fn plain_text() -> impl Strategy<Value = String> {
    "([!-~é]( ?[!-~é#]){0,8})?"
}

fn any_pattern() -> impl Strategy<Value = PathPattern> {
    prop_oneof![".{0,20}".boxed(), "[/a*$%12 é#.]{0,12}".boxed()]
        .prop_map(|written| PathPattern::new(&written))
}

fn any_rule() -> impl Strategy<Value = Rule> {
    (any::<bool>(), any_pattern()).prop_map(|(allow, pattern)| Rule { allow, pattern })
}

fn any_delay() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of(
        (0u64..100_000, 0u32..1_000_000_000)
            .prop_map(|(seconds, nanos)| Duration::new(seconds, nanos)),
    )
}

fn any_group(
    comment: BoxedStrategy<String>,
    agent: BoxedStrategy<String>,
    fewest: usize,
) -> impl Strategy<Value = RuleGroup> {
    (
        vec(comment, 0..3),
        vec(agent, fewest..4),
        vec(any_rule(), fewest..6),
        any_delay(),
    )
        .prop_map(|(comments, agents, rules, crawl_delay)| RuleGroup {
            comments,
            agents,
            rules,
            crawl_delay,
            extensions: Vec::new(),
        })
}

fn any_document(
    comment: BoxedStrategy<String>,
    agent: BoxedStrategy<String>,
    sitemap: BoxedStrategy<String>,
    fewest: usize,
) -> impl Strategy<Value = RobotsDocument> {
    (
        vec(comment.clone(), 0..3),
        vec(any_group(comment, agent, fewest), 0..5),
        vec(sitemap, 0..3),
    )
        .prop_map(|(comments, groups, sitemaps)| RobotsDocument {
            comments,
            groups,
            extensions: Vec::new(),
            sitemaps,
        })
}

fn wild_text() -> BoxedStrategy<String> {
    prop_oneof![
        ".{0,20}".boxed(),
        "[ \t\r\n\0#:*a\u{b}\u{85}\u{2028}\u{feff}\u{a0}é/]{0,10}".boxed()
    ]
    .boxed()
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn rendered_document_reads_back(
        document in any_document(plain_text().boxed(), "[A-Za-z0-9_-]{1,8}|\\*|Sogou web spider".boxed(), "https://[a-z./?é]{0,9}".boxed(), 1),
    ) {
        let text = render_robots_txt(&document);
        let file = RobotsFile::parse(text.as_bytes());
        prop_assert_eq!(file.shape(), FileFormat::Text);
        prop_assert!(file.lines().iter().all(|line| line.issues.is_empty()), "{}", text);
        prop_assert_eq!(parse_document(&file), document, "{}", text);
    }

    #[test]
    fn rendering_is_stable_after_reading_back(document in any_document(wild_text(), wild_text(), wild_text(), 0)) {
        let text = render_robots_txt(&document);
        let again = render_robots_txt(&parse_document(&RobotsFile::parse(text.as_bytes())));
        prop_assert_eq!(again, text);
    }

    #[test]
    fn both_dialects_read_rendering_in_same_groups(
        document in any_document(wild_text(), "[A-Za-z_-]{1,8}|\\*".boxed(), wild_text(), 0),
    ) {
        let file = RobotsFile::parse(render_robots_txt(&document).into_bytes());
        let groups = |dialect| {
            let reading = DialectRules::new(&file, dialect, &[]);
            let groups = reading.groups().iter().map(|group| (group.agents.clone(), group.rules.len()));
            groups.unzip::<_, _, Vec<_>, Vec<_>>()
        };
        let expected: Vec<usize> = document
            .groups
            .iter()
            .filter(|group| !group.agents.is_empty())
            .map(|group| group.rules.len().max(1))
            .collect();
        let (agents, rules) = groups(Dialect::Rfc9309);
        prop_assert_eq!(rules, expected);
        prop_assert_eq!(agents, groups(Dialect::Google).0);
    }
}
