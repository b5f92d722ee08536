//! A group of robots.txt while it is put together: its rules, where they came from, and how many octets it will take.
//! Knows neither side that it is put together from.

use crate::policy::site::{LeftOut, RuleSource};
use crate::robots::{Extension, Rule};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// A group before it is decided whether it shares its rules with others.
#[derive(Clone)]
pub struct Draft {
    pub agents: Vec<String>,
    /// Of each agent its place among all tokens and where it is named; nothing where there is one agent only, whose
    /// place is that of the group.
    pub places: Vec<(usize, RuleSource)>,
    pub rules: Vec<(Rule, RuleSource)>,
    pub crawl_delay: Option<Duration>,
    pub extensions: Vec<Extension>,
    /// Keys of signals that the policy says to this group, here or as headers.
    pub signal_keys: Vec<&'static str>,
    pub comments: Vec<String>,
    pub source: RuleSource,
    /// Follows from a purpose that is allowed.
    pub allowed_by_purpose: bool,
    /// Allow lines of the origin that could not be kept.
    pub left_out: Vec<LeftOut>,
}

impl Draft {
    /// A group that says nothing about anybody.
    pub fn nothing() -> Draft {
        Draft {
            agents: Vec::new(),
            places: Vec::new(),
            rules: Vec::new(),
            crawl_delay: None,
            extensions: Vec::new(),
            signal_keys: Vec::new(),
            comments: Vec::new(),
            source: RuleSource::Origin(0),
            allowed_by_purpose: false,
            left_out: Vec::new(),
        }
    }
}

/// Finds groups that say the same, whoever they are for.
#[derive(Default)]
pub struct Drafts(HashMap<u64, Vec<usize>>);

impl Drafts {
    /// The first of those that were asked for that says the same: this one, if there is no other.
    pub fn find<'d>(&mut self, index: usize, draft: impl Fn(usize) -> &'d Draft) -> usize {
        let this = draft(index);
        let mut hasher = DefaultHasher::new();
        (&this.rules.len(), this.crawl_delay, &this.comments, this.allowed_by_purpose).hash(&mut hasher);
        this.rules.iter().for_each(|rule| rule.hash(&mut hasher));
        this.extensions.hash(&mut hasher);
        let same = self.0.entry(hasher.finish()).or_default();
        let says_the_same = |other: &&usize| {
            let other = draft(**other);
            other.rules == this.rules
                && other.crawl_delay == this.crawl_delay
                && other.extensions == this.extensions
                && other.signal_keys == this.signal_keys
                && other.comments == this.comments
                && other.allowed_by_purpose == this.allowed_by_purpose
        };
        let found = same.iter().find(says_the_same).copied();
        found.unwrap_or_else(|| {
            same.push(index);
            index
        })
    }
}

/// Octets of a rule's line.
pub fn octets_of_rule(rule: &Rule) -> usize {
    if rule.allow {
        "Allow: \n".len() + rule.pattern.priority()
    } else {
        "Disallow: \n".len() + rule.pattern.priority()
    }
}

/// Octets of other lines.
pub fn octets_of_lines(lines: &[Extension]) -> usize {
    lines.iter().map(|line| line.key.len() + line.value.len() + ": \n".len()).sum()
}

/// Octets of the rules and the other lines of a group, without its tokens.
pub fn octets_of(draft: &Draft) -> usize {
    let rules: usize = draft.rules.iter().map(|(rule, _)| octets_of_rule(rule)).sum();
    rules + octets_of_lines(&draft.extensions)
}
