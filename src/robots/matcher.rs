//! [`Matcher`]: a [`Document`] ready for verdicts. It finds the group that applies to a product
//! token. The [`RuleSet`] of that group finds the rule that decides.

use super::{Document, RuleSet};
use std::cmp::Ordering;

/// Groups by token. Indexes of groups and rules are those of the document it was made from.
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    groups: Vec<RuleSet>,
    /// Sorted without regard to case, each token once: searched without folding the token that is
    /// asked for.
    tokens: Vec<(Box<str>, usize)>,
    star: Option<usize>,
}

impl Matcher {
    /// Prepares a document in which each token stands in at most one group (the first wins
    /// otherwise).
    pub fn new(document: &Document) -> Matcher {
        let mut tokens: Vec<(Box<str>, usize)> = Vec::new();
        let mut star = None;
        for (index, group) in document.groups.iter().enumerate() {
            for agent in &group.agents {
                if agent == "*" {
                    star = star.or(Some(index));
                } else {
                    tokens.push((agent.as_str().into(), index));
                }
            }
        }
        // Stable: of equal tokens the first group stays in front.
        tokens.sort_by(|(a, _), (b, _)| compare_ignoring_case(a, b));
        tokens.dedup_by(|(later, _), (earlier, _)| later.eq_ignore_ascii_case(earlier));
        let groups = document
            .groups
            .iter()
            .map(|group| RuleSet::new(group.rules.clone()))
            .collect();
        Matcher {
            groups,
            tokens,
            star,
        }
    }

    /// The group that names `token`, without regard to case; `*` is not a token. Does not allocate.
    pub fn named(&self, token: &str) -> Option<usize> {
        let place = self
            .tokens
            .binary_search_by(|(known, _)| compare_ignoring_case(known, token))
            .ok()?;
        Some(self.tokens[place].1)
    }

    /// The `*` group.
    pub fn star(&self) -> Option<usize> {
        self.star
    }

    /// The rules of a group.
    ///
    /// # Panics
    /// If `group` is not an index of a group of the document.
    pub fn rules(&self, group: usize) -> &RuleSet {
        &self.groups[group]
    }
}

fn compare_ignoring_case(a: &str, b: &str) -> Ordering {
    a.bytes()
        .map(|octet| octet.to_ascii_lowercase())
        .cmp(b.bytes().map(|octet| octet.to_ascii_lowercase()))
}
