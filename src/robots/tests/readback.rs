//! Our own rendering, read back: the same document, the same bytes, the same groups in both
//! dialects.

use super::oracle::config;
use super::{Document, Group, Pattern, Rule};
use crate::robots::{Dialect, File, Key, Reading, Shape, render};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

/// A file of ours back as the document it was rendered from.
fn document_of(file: &File) -> Document {
    let mut document = Document::default();
    let mut comments: Vec<String> = Vec::new();
    let mut open = false;
    for line in file.lines() {
        if let (None, Some(comment)) = (&line.record, &line.comment) {
            let text = file.text(comment);
            comments.push(text.strip_prefix(' ').unwrap_or(&text).to_owned());
        }
        if line.text.is_empty() {
            // What stands apart from the first group is about the file.
            document.comments.append(&mut comments);
        }
        let Some(record) = &line.record else { continue };
        let value = file.text(&record.value).into_owned();
        let group = document.groups.last_mut();
        match (record.key, group) {
            (Key::UserAgent, Some(group)) if open => group.agents.push(value),
            (Key::UserAgent, _) => {
                let comments = std::mem::take(&mut comments);
                document.groups.push(Group {
                    comments,
                    agents: vec![value],
                    ..Group::default()
                });
                open = true;
            }
            (Key::Allow | Key::Disallow, Some(group)) => {
                group.rules.push(Rule {
                    allow: record.key == Key::Allow,
                    pattern: Pattern::new(&value),
                });
                open = false;
            }
            (Key::CrawlDelay, Some(group)) => group.crawl_delay = Some(seconds(&value)),
            (Key::Sitemap, _) => document.sitemaps.push(value),
            (key, _) => panic!("{key:?} on line {}", line.number),
        }
    }
    document.comments.append(&mut comments);
    document
}

fn seconds(text: &str) -> Duration {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    Duration::new(
        whole.parse().expect("seconds"),
        format!("{part:0<9}").parse().expect("nanoseconds"),
    )
}

/// Text in which nothing has to be replaced.
fn tame() -> impl Strategy<Value = String> {
    "([!-~é]( ?[!-~é#]){0,8})?"
}

fn any_pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![".{0,20}".boxed(), "[/a*$%12 é#.]{0,12}".boxed()]
        .prop_map(|written| Pattern::new(&written))
}

fn rule() -> impl Strategy<Value = Rule> {
    (any::<bool>(), any_pattern()).prop_map(|(allow, pattern)| Rule { allow, pattern })
}

fn delay() -> impl Strategy<Value = Option<Duration>> {
    prop::option::of(
        (0u64..100_000, 0u32..1_000_000_000)
            .prop_map(|(seconds, nanos)| Duration::new(seconds, nanos)),
    )
}

fn group(
    comment: BoxedStrategy<String>,
    agent: BoxedStrategy<String>,
    fewest: usize,
) -> impl Strategy<Value = Group> {
    (
        vec(comment, 0..3),
        vec(agent, fewest..4),
        vec(rule(), fewest..6),
        delay(),
    )
        .prop_map(|(comments, agents, rules, crawl_delay)| Group {
            comments,
            agents,
            rules,
            crawl_delay,
            extensions: Vec::new(),
        })
}

fn a_document(
    comment: BoxedStrategy<String>,
    agent: BoxedStrategy<String>,
    sitemap: BoxedStrategy<String>,
    fewest: usize,
) -> impl Strategy<Value = Document> {
    (
        vec(comment.clone(), 0..3),
        vec(group(comment, agent, fewest), 0..5),
        vec(sitemap, 0..3),
    )
        .prop_map(|(comments, groups, sitemaps)| Document {
            comments,
            groups,
            extensions: Vec::new(),
            sitemaps,
        })
}

fn wild() -> BoxedStrategy<String> {
    prop_oneof![
        ".{0,20}".boxed(),
        "[ \t\r\n\0#:*a\u{b}\u{85}\u{2028}\u{feff}\u{a0}é/]{0,10}".boxed()
    ]
    .boxed()
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn what_is_rendered_is_read_back(
        document in a_document(tame().boxed(), "[A-Za-z0-9_-]{1,8}|\\*|Sogou web spider".boxed(), "https://[a-z./?é]{0,9}".boxed(), 1),
    ) {
        let text = render(&document);
        let file = File::parse(text.as_bytes());
        prop_assert_eq!(file.shape(), Shape::Text);
        prop_assert!(file.lines().iter().all(|line| line.oddities.is_empty()), "{}", text);
        prop_assert_eq!(document_of(&file), document, "{}", text);
    }

    #[test]
    fn rendering_what_was_read_back_changes_nothing(document in a_document(wild(), wild(), wild(), 0)) {
        let text = render(&document);
        let again = render(&document_of(&File::parse(text.as_bytes())));
        prop_assert_eq!(again, text);
    }

    #[test]
    fn both_dialects_read_our_rendering_in_the_same_groups(
        document in a_document(wild(), "[A-Za-z_-]{1,8}|\\*".boxed(), wild(), 0),
    ) {
        let file = File::parse(render(&document).into_bytes());
        let groups = |dialect| {
            let reading = Reading::new(&file, dialect, &[]);
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
