//! [`PolicyRules::find_conflict`] finds the Disallow of the policy that an Allow of the origin's
//! robots.txt could defeat. Such an Allow is left out of the merged file (`merge.rs`).
//!
//! Of all rules that match a URL the longest decides; of two with the same length the Allow does
//! (RFC 9309 section 2.2.2). So an Allow can defeat a Disallow that is not longer, for the URLs
//! that both match.

use super::budget::{MergeBudget, spend};
use crate::policy::site::RuleSource;
use crate::robots::{PathPattern, Rule};

/// Why an Allow of the origin is left out.
pub enum AllowConflict<'a> {
    /// This Disallow covers all URLs of the Allow.
    Covered(&'a (Rule, RuleSource)),
    /// The Allow would defeat this Disallow; or may do so, where the budget is spent.
    Defeats(&'a (Rule, RuleSource)),
}

/// The rules of one group of the policy, prepared for comparing.
pub struct PolicyRules<'a> {
    /// The Disallow rules that no Allow may defeat.
    disallows: Vec<&'a (Rule, RuleSource)>,
    /// The Allow rules of the policy.
    allows: Vec<&'a Rule>,
    /// The shortest Disallow. Most Allows of a long file are shorter still, and need no comparing.
    shortest: Option<&'a (Rule, RuleSource)>,
}

impl<'a> PolicyRules<'a> {
    /// Takes the Disallow rules of `disallows` and the Allow rules of `of_policy`. The two lists
    /// may be the same.
    pub fn new(
        disallows: &'a [(Rule, RuleSource)],
        of_policy: &'a [(Rule, RuleSource)],
    ) -> PolicyRules<'a> {
        let disallows: Vec<_> = disallows
            .iter()
            .filter(|(rule, _)| !rule.allow && !rule.pattern.is_empty())
            .collect();
        let shortest = disallows
            .iter()
            .copied()
            .min_by_key(|(rule, _)| rule.pattern.priority());
        let allows = of_policy
            .iter()
            .map(|(rule, _)| rule)
            .filter(|rule| rule.allow)
            .collect();
        PolicyRules {
            disallows,
            allows,
            shortest,
        }
    }

    /// Why an Allow of the origin with this pattern must be left out; `None` if it may stay. A
    /// Disallow that covers all of it comes first.
    pub fn find_conflict(
        &self,
        allow: &PathPattern,
        budget: &mut MergeBudget,
    ) -> Option<AllowConflict<'a>> {
        let shortest = self
            .shortest
            .filter(|(ours, _)| ours.pattern.priority() <= allow.priority())?;
        let cost =
            (self.disallows.len() + self.allows.len()).saturating_mul(4 + allow.priority() / 8);
        if !spend(&mut budget.comparisons, cost) {
            return Some(AllowConflict::Defeats(shortest));
        }
        // If an Allow of the policy covers all of it, shorter Disallow rules decide nothing there.
        let allowing = self.allows.iter().filter(|ours| ours.pattern.covers(allow));
        let allowed = allowing
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
        Some(covering.map_or(AllowConflict::Defeats(first), AllowConflict::Covered))
    }
}
