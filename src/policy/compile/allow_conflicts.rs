//! An Allow of the origin beside the policy's Disallow rules: what it takes that none of them is defeated.
//!
//! The longest rule decides, and of equals Allow (RFC 9309 section 2.2.2), so an Allow defeats what is no longer than
//! itself where the two meet. There the Disallow is said again, longer than the Allow: the rest of what the Allow opens
//! stays open.

use super::budget::Bounds;
use crate::policy::site::RuleSource;
use crate::robots::{IntersectionLimits, Pattern, Rule};

/// Beyond these the Allow is left out.
const LIMITS: IntersectionLimits = IntersectionLimits { ways: 32, octets: 500 };

/// What becomes of an Allow.
pub enum Beside<'a> {
    /// It defeats nothing.
    AsItIs,
    /// It stays, and these rules with it.
    Cut {
        /// The first Disallow that it would defeat.
        by: &'a Rule,
        /// With the sources of the rules that they hold up.
        held: Vec<(Rule, RuleSource)>,
    },
    /// All that it opens is disallowed: it would mean nothing.
    Covered {
        /// By this one.
        by: &'a (Rule, RuleSource),
    },
    /// No rules within the limits keep both.
    LeftOut {
        /// What it would defeat.
        by: &'a (Rule, RuleSource),
    },
    /// What one file may cost is spent: nobody looked.
    NotCompared {
        /// What it could defeat, as far as lengths tell.
        by: &'a (Rule, RuleSource),
    },
}

/// The rules of one group of the policy, parted for comparing.
pub struct Ours<'a> {
    /// What no Allow is to defeat.
    disallows: Vec<&'a (Rule, RuleSource)>,
    /// What the policy itself allows, and must stay allowed.
    allows: Vec<&'a Rule>,
    /// The one that most Allows could defeat.
    shortest: Option<&'a (Rule, RuleSource)>,
}

impl<'a> Ours<'a> {
    /// Of `disallows` the Allow rules are passed over, of `of_policy` the Disallow rules.
    pub fn new(disallows: &'a [(Rule, RuleSource)], of_policy: &'a [(Rule, RuleSource)]) -> Ours<'a> {
        let disallows: Vec<_> = disallows.iter().filter(|(rule, _)| !rule.allow && !rule.pattern.is_empty()).collect();
        let shortest = disallows.iter().copied().min_by_key(|(rule, _)| rule.pattern.priority());
        Ours { disallows, allows: of_policy.iter().map(|(rule, _)| rule).filter(|rule| rule.allow).collect(), shortest }
    }

    /// What it takes that `allow` defeats none of the Disallow rules. Where the policy itself allows something against
    /// one of them, that must stay allowed.
    pub fn beside(&self, allow: &Rule, bounds: &mut Bounds) -> Beside<'a> {
        let theirs = &allow.pattern;
        // Of many rules most are shorter than all that they could defeat, or cannot be looked at any more.
        let shortest = self.shortest.filter(|(ours, _)| ours.pattern.priority() <= theirs.priority());
        let Some(shortest) = shortest else { return Beside::AsItIs };
        let each = |pattern: &Pattern| 4 + pattern.priority() / 8;
        if !bounds.compare(self.disallows.len() + self.allows.len() * each(theirs)) {
            return Beside::NotCompared { by: shortest };
        }
        // Where the policy itself allows all of it, its shorter Disallow rules decide nothing there.
        let allowing = self.allows.iter().filter(|ours| ours.pattern.covers(theirs));
        let allowed = allowing.map(|ours| ours.pattern.priority()).max().unwrap_or(0);
        let defeated = |(ours, _): &&&(Rule, RuleSource)| {
            (allowed + 1..=theirs.priority()).contains(&ours.pattern.priority())
                && theirs.overlaps(&ours.pattern, &mut bounds.comparisons)
        };
        let defeated: Vec<&(Rule, RuleSource)> = self.disallows.iter().filter(defeated).copied().collect();
        let Some(first) = defeated.first() else { return Beside::AsItIs };
        if !bounds.compare(defeated.len() * each(theirs)) {
            return Beside::NotCompared { by: first };
        }
        if let Some(by) = defeated.iter().find(|(ours, _)| ours.pattern.covers(theirs)) {
            // A part of it may be allowed by the policy, and be kept by the Allow from another Disallow of the origin.
            let opened = self.allows.iter().any(|other| {
                (by.0.pattern.priority()..theirs.priority()).contains(&other.pattern.priority())
                    && other.pattern.overlaps(theirs, &mut bounds.comparisons)
            });
            return if opened { Beside::LeftOut { by } } else { Beside::Covered { by } };
        }
        self.cut(theirs, &defeated, bounds)
    }

    /// The Disallow rules that an Allow defeats, said again where they meet it.
    fn cut(&self, theirs: &Pattern, defeated: &[&'a (Rule, RuleSource)], bounds: &mut Bounds) -> Beside<'a> {
        let mut held: Vec<(Rule, RuleSource)> = Vec::new();
        for &by in defeated {
            let (ours, source) = by;
            // Beside the octets that are compared, each of the ways is written down and held against the others.
            let cost = 200 + 8 * (theirs.priority() + ours.pattern.priority());
            if bounds.octets == 0 || !bounds.compare(cost) {
                return Beside::NotCompared { by };
            }
            let both = theirs.intersection(&ours.pattern, LIMITS, &mut bounds.comparisons);
            let Some(both) = both else { return Beside::LeftOut { by } };
            for pattern in both {
                if !bounds.compare((held.len() + self.allows.len()) * (4 + pattern.priority() / 8)) {
                    return Beside::NotCompared { by };
                }
                if held.iter().any(|(wider, _)| wider.pattern.covers(&pattern)) {
                    continue;
                }
                let Some(pattern) = pattern.with_priority(theirs.priority() + 1) else { return Beside::LeftOut { by } };
                // What the policy says by a rule between the two would be undone.
                let undone = self.allows.iter().any(|other| {
                    (ours.pattern.priority()..pattern.priority()).contains(&other.pattern.priority())
                        && other.pattern.overlaps(&pattern, &mut bounds.comparisons)
                });
                if undone {
                    return Beside::LeftOut { by };
                }
                if !bounds.write("Disallow: \n".len() + pattern.priority()) {
                    return Beside::NotCompared { by };
                }
                held.push((Rule { allow: false, pattern }, source.clone()));
            }
        }
        match defeated.first() {
            Some(first) => Beside::Cut { by: &first.0, held },
            None => Beside::AsItIs,
        }
    }
}
