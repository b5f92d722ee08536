//! [`AllowFilter`] decides which Allow rules of the origin's robots.txt may stay when that file is
//! merged with the policy. An Allow that could defeat a Disallow of the policy is left out.
//!
//! Of all rules that match a URL, the longest decides. If an Allow and a Disallow have the same
//! length, the Allow decides (RFC 9309 section 2.2.2). So for a URL that both match, an Allow
//! defeats a Disallow of the same length or a shorter one.

use super::budget::{MergeBudget, try_spend};
use super::draft::{GroupDraft, MAX_LISTED, ORIGIN_FILE, SourcedRule};
use crate::policy::site::{DroppedRule, RuleSource};
use crate::robots::{PathPattern, Rule};

/// The rules of one group of the policy, prepared for comparing.
pub struct AllowFilter<'a> {
    /// The Disallow rules that no Allow may defeat.
    disallows: Vec<&'a SourcedRule>,
    /// The Allow rules of the policy.
    allows: Vec<&'a Rule>,
    /// The shortest Disallow. Most Allows of a long file are shorter still, and need no comparing.
    shortest: Option<&'a SourcedRule>,
    /// The number of rules left out.
    dropped: usize,
}

impl<'a> AllowFilter<'a> {
    /// Takes the Disallow rules of `disallows` and the Allow rules of `of_policy`. The two lists
    /// may be the same.
    pub fn new(disallows: &'a [SourcedRule], of_policy: &'a [SourcedRule]) -> AllowFilter<'a> {
        let disallows: Vec<_> = disallows
            .iter()
            .filter(|(rule, _)| !rule.allow && !rule.pattern.is_empty())
            .collect();
        AllowFilter {
            shortest: disallows
                .iter()
                .copied()
                .min_by_key(|(rule, _)| rule.pattern.priority()),
            disallows,
            allows: of_policy
                .iter()
                .map(|(rule, _)| rule)
                .filter(|rule| rule.allow)
                .collect(),
            dropped: 0,
        }
    }

    /// Whether an Allow of the origin may join. If not, adds a comment to `draft`, and unless the
    /// Disallow covers all of it, a [`DroppedRule`].
    pub fn admit(
        &mut self,
        rule: &Rule,
        source: &RuleSource,
        budget: &mut MergeBudget,
        draft: &mut GroupDraft,
    ) -> bool {
        let Some(((ours, by), is_covered)) = self.find_conflict(&rule.pattern, budget) else {
            return true;
        };
        self.dropped += 1;
        if self.dropped <= MAX_LISTED {
            draft.notes.push(format!(
                "Left out of {ORIGIN_FILE}: \"{rule}\", which could override \"{ours}\"."
            ));
        }
        if !is_covered {
            draft.dropped_rules.extend(dropped_rule(rule, source, by));
        }
        false
    }

    /// A Disallow that covers all URLs of an Allow, if the Allow could defeat it.
    pub fn find_covering(&self, rule: &Rule, budget: &mut MergeBudget) -> Option<&'a Rule> {
        if !rule.allow {
            return None;
        }
        let ((closing, _), _) = self.find_conflict(&rule.pattern, budget)?;
        closing.pattern.covers(&rule.pattern).then_some(closing)
    }

    /// Adds a comment with the number of rules beyond [`MAX_LISTED`].
    pub fn note_unlisted(&self, notes: &mut Vec<String>) {
        if let more @ 1.. = self.dropped.saturating_sub(MAX_LISTED) {
            notes.push(format!(
                "Left out of {ORIGIN_FILE}, for the same reason: {more} more Allow lines."
            ));
        }
    }

    /// A Disallow for which an Allow of the origin with this pattern must be left out, and whether it
    /// covers all URLs of the Allow. Such a one comes first. Where the budget is spent, any that the
    /// Allow may defeat.
    fn find_conflict(
        &self,
        allow: &PathPattern,
        budget: &mut MergeBudget,
    ) -> Option<(&'a SourcedRule, bool)> {
        let shortest = self
            .shortest
            .filter(|(ours, _)| ours.pattern.priority() <= allow.priority())?;
        let cost =
            (self.disallows.len() + self.allows.len()).saturating_mul(4 + allow.priority() / 8);
        if !try_spend(&mut budget.comparisons, cost) {
            return Some((shortest, false));
        }
        // If an Allow of the policy covers all of it, shorter Disallow rules decide nothing there.
        let allowed = self
            .allows
            .iter()
            .filter(|ours| ours.pattern.covers(allow))
            .map(|ours| ours.pattern.priority())
            .max()
            .unwrap_or(0);
        let mut defeated = self.disallows.iter().copied().filter(|(ours, _)| {
            (allowed + 1..=allow.priority()).contains(&ours.pattern.priority())
                && allow.overlaps(&ours.pattern, &mut budget.comparisons)
        });
        let first = defeated.next()?;
        let covering = std::iter::once(first)
            .chain(defeated)
            .find(|(ours, _)| ours.pattern.covers(allow));
        Some((covering.unwrap_or(first), covering.is_some()))
    }
}

/// A rule of the origin that was left out because of the one at `by`, which is in the policy.
pub fn dropped_rule(rule: &Rule, source: &RuleSource, by: &RuleSource) -> Option<DroppedRule> {
    match (source, by) {
        (RuleSource::Origin(line), RuleSource::Policy(span) | RuleSource::Purpose(span)) => {
            Some(DroppedRule {
                rule: rule.clone(),
                line: *line,
                by: *span,
            })
        }
        _ => None,
    }
}
