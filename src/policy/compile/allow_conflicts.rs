//! [`PolicyRules::conflict`] tells whether an Allow of the origin's robots.txt could defeat a
//! Disallow of the policy. Such an Allow is left out when the two are merged (`merge.rs`).
//!
//! Of all rules that match a URL the longest decides; of two with the same length the Allow does
//! (RFC 9309 section 2.2.2). So an Allow can defeat a Disallow that is not longer than the Allow,
//! for the URLs that both match.

use super::budget::{Bounds, take};
use crate::policy::site::RuleSource;
use crate::robots::{Pattern, Rule};

/// The reason why an Allow is left out.
pub enum Conflict<'a> {
    /// This Disallow covers all URLs of the Allow: nothing is left of it.
    Covered(&'a (Rule, RuleSource)),
    /// It would defeat this Disallow; or may, as far as lengths tell, where the budget for comparing
    /// is spent.
    Defeats(&'a (Rule, RuleSource)),
}

/// The rules of one group of the policy, parted for comparing.
pub struct PolicyRules<'a> {
    /// The Disallow rules that no Allow may defeat.
    disallows: Vec<&'a (Rule, RuleSource)>,
    /// The Allow rules of the policy.
    allows: Vec<&'a Rule>,
    /// The shortest Disallow, which most Allows could defeat.
    shortest: Option<&'a (Rule, RuleSource)>,
}

impl<'a> PolicyRules<'a> {
    /// Takes the Disallow rules of `disallows` (without those with an empty pattern) and the Allow
    /// rules of `of_policy`. The two lists may be the same.
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

    /// The reason why an Allow of the origin with this pattern cannot stand beside these rules;
    /// `None` where it defeats none. A Disallow that covers all of it comes first. Where an Allow
    /// of the policy covers it, only longer Disallow rules than that count. With
    /// `bounds.comparisons` spent, any Disallow that is not longer than it gives `NotCompared`.
    pub fn conflict(&self, allow: &Pattern, bounds: &mut Bounds) -> Option<Conflict<'a>> {
        // Most Allows of a long file are shorter than every Disallow.
        let shortest = self
            .shortest
            .filter(|(ours, _)| ours.pattern.priority() <= allow.priority())?;
        let cost =
            (self.disallows.len() + self.allows.len()).saturating_mul(4 + allow.priority() / 8);
        if !take(&mut bounds.comparisons, cost) {
            return Some(Conflict::Defeats(shortest));
        }
        // Where the policy itself allows all of it, the policy's shorter Disallow rules decide
        // nothing there.
        let allowing = self.allows.iter().filter(|ours| ours.pattern.covers(allow));
        let allowed = allowing
            .map(|ours| ours.pattern.priority())
            .max()
            .unwrap_or(0);
        let mut defeated = self.disallows.iter().copied().filter(|(ours, _)| {
            (allowed + 1..=allow.priority()).contains(&ours.pattern.priority())
                && allow.overlaps(&ours.pattern, &mut bounds.comparisons)
        });
        let first = defeated.next()?;
        let covering = std::iter::once(first)
            .chain(defeated)
            .find(|(ours, _)| ours.pattern.covers(allow));
        Some(covering.map_or(Conflict::Defeats(first), Conflict::Covered))
    }
}
