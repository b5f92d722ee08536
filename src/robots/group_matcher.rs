//! [`GroupMatcher`]: the groups of the robots.txt that crawlgate publishes ([`RobotsDocument`]),
//! prepared for judging requests. The matcher finds the group for a crawler's user-agent token. The
//! [`RuleSet`] of that group then finds the rule that decides about a URL.

use super::{RobotsDocument, RuleSet};
use std::cmp::Ordering;

/// Groups by token. Indexes of groups and rules are those of the document.
#[derive(Debug)]
pub struct GroupMatcher {
    groups: Vec<RuleSet>,
    /// Each token once, sorted without regard to case, with the index of its group.
    tokens: Vec<(Box<str>, usize)>,
    star: Option<usize>,
}

impl GroupMatcher {
    /// Prepares a document. Of several groups with one token, the first counts.
    pub fn new(document: &RobotsDocument) -> GroupMatcher {
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
        GroupMatcher {
            groups,
            tokens,
            star,
        }
    }

    /// The group that names `token`, without regard to case; `*` is not a token. Does not allocate.
    pub fn named_group(&self, token: &str) -> Option<usize> {
        let place = self
            .tokens
            .binary_search_by(|(known, _)| compare_ignoring_case(known, token))
            .ok()?;
        Some(self.tokens[place].1)
    }

    /// The `*` group.
    pub fn star_group(&self) -> Option<usize> {
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
        .map(|byte| byte.to_ascii_lowercase())
        .cmp(b.bytes().map(|byte| byte.to_ascii_lowercase()))
}
