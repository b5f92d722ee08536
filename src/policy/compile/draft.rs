//! [`Draft`]: a group of robots.txt while the file is being made, with its rules, the source of
//! each rule, and its comments. `synthesis.rs` and `merge.rs` build drafts. [`first_alike`] finds
//! drafts with the same content, and [`octets_of`] gives the size of a draft.

use crate::crawlers::Purpose;
use crate::policy::site::{LeftOut, RuleSource};
use crate::robots::{Extension, Rule};
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// The name of the origin's file in comments: robots.txt is public, the address of an origin is
/// not.
pub const ORIGIN: &str = "the origin's robots.txt";

/// The reason why a group is there: its first comment.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Heading {
    /// The policy has the group.
    Groups,
    /// The site's signals need a group for `*`, and the policy has none.
    EverybodyElse,
    /// A token that the origin names has the policy's signals for everybody.
    Policy,
    /// The policy has a stance towards a purpose.
    Purpose { purpose: Purpose, allowed: bool },
    /// Traps need a group for `*`.
    Traps,
    /// What is retired needs a group for `*`.
    Retire,
    /// The site is a staging site.
    Staging { crawlable: bool },
    /// The origin has the group.
    Origin,
}

impl fmt::Display for Heading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Heading::Groups => f.write_str("From robots.groups."),
            Heading::EverybodyElse => f.write_str("For every crawler that no group names."),
            Heading::Policy => f.write_str("From the site's policy."),
            Heading::Purpose { purpose, allowed } => {
                write!(
                    f,
                    "From purposes: {} {}.",
                    purpose.name(),
                    if *allowed { "allow" } else { "disallow" }
                )
            }
            Heading::Traps => f.write_str("From enforcement.traps."),
            Heading::Retire => f.write_str("From retire."),
            Heading::Staging { crawlable: true } => {
                f.write_str("A staging site: crawlable, so that its noindex is seen.")
            }
            Heading::Staging { crawlable: false } => f.write_str("A staging site."),
            Heading::Origin => write!(f, "From {ORIGIN}."),
        }
    }
}

/// A group before shared groups are formed.
#[derive(Clone)]
pub struct Draft {
    pub agents: Vec<String>,
    /// For each agent its place among all tokens and the source that names it. Empty where there is
    /// one agent only, whose place is that of the group.
    pub places: Vec<(usize, RuleSource)>,
    pub rules: Vec<(Rule, RuleSource)>,
    pub crawl_delay: Option<Duration>,
    pub extensions: Vec<Extension>,
    /// Keys of signals that the policy has for this group, here or as headers.
    pub signal_keys: Vec<&'static str>,
    pub heading: Heading,
    /// Whether rules of the origin joined a group of the policy.
    pub has_origin_rules: bool,
    /// Comments after the heading: the parts of the origin's group that are not here, and why.
    pub notes: Vec<String>,
    pub source: RuleSource,
    /// Allow lines of the origin that could not be kept.
    pub left_out: Vec<LeftOut>,
}

impl Draft {
    /// A group without agents and without rules.
    pub fn new(heading: Heading, source: RuleSource) -> Draft {
        Draft {
            agents: Vec::new(),
            places: Vec::new(),
            rules: Vec::new(),
            crawl_delay: None,
            extensions: Vec::new(),
            signal_keys: Vec::new(),
            heading,
            has_origin_rules: false,
            notes: Vec::new(),
            source,
            left_out: Vec::new(),
        }
    }

    /// The comments above the group.
    pub fn comments(&self) -> Vec<String> {
        let origin = if self.has_origin_rules {
            format!(" And from {ORIGIN}.")
        } else {
            String::new()
        };
        std::iter::once(format!("{}{origin}", self.heading))
            .chain(self.notes.iter().cloned())
            .collect()
    }
}

/// For each group the index of the first group with the same content (heading, notes, rules with
/// their sources, Crawl-delay and other lines), whatever its agents are; its own index if there is
/// none before it. A group for `*` is like none for other agents: parsers that know one agent per
/// group must find it.
pub fn first_alike(drafts: &[Draft]) -> Vec<usize> {
    let mut known = HashMap::new();
    let first = drafts.iter().enumerate().map(|(index, draft)| {
        let is_star = draft.agents.iter().any(|agent| agent == "*");
        let heading = (draft.heading, draft.has_origin_rules, &draft.notes);
        let said = (
            &draft.rules,
            draft.crawl_delay,
            &draft.extensions,
            &draft.signal_keys,
        );
        *known.entry((is_star, heading, said)).or_insert(index)
    });
    first.collect()
}

/// Octets of a rule's line.
pub fn octets_of_rule(rule: &Rule) -> usize {
    let key = if rule.allow {
        "Allow: \n"
    } else {
        "Disallow: \n"
    };
    key.len() + rule.pattern.priority()
}

/// Octets of other lines.
pub fn octets_of_lines(lines: &[Extension]) -> usize {
    lines
        .iter()
        .map(|line| line.key.len() + line.value.len() + ": \n".len())
        .sum()
}

/// Octets of the rules and the other lines of a group, without its tokens.
pub fn octets_of(draft: &Draft) -> usize {
    let rules: usize = draft
        .rules
        .iter()
        .map(|(rule, _)| octets_of_rule(rule))
        .sum();
    rules + octets_of_lines(&draft.extensions)
}
