//! An Allow of the origin beside the policy's Disallow rules: what it takes that none of them is defeated.
//!
//! The longest rule decides, and of equals Allow (RFC 9309 section 2.2.2), so an Allow defeats what is no longer than itself
//! where the two meet. There the Disallow is said again, longer than the Allow: the rest of what the Allow opens stays open.

use crate::policy::compiled::RuleSource;
use crate::robots::{IntersectionLimits, Rule};

/// Beyond these the Allow is left out.
const LIMITS: IntersectionLimits = IntersectionLimits { ways: 32, octets: 500 };

/// What one file may cost.
pub struct Bounds {
    /// Octets compared: some 100 ms.
    comparisons: usize,
    /// Octets of rules that are added: crawlers read 500 KiB, and the origin's file has to fit in as well.
    octets: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { comparisons: 50_000_000, octets: 32 * 1024 }
    }
}

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
}

/// What it takes that `allow` defeats none of `disallows` (of which the Allow rules are passed over). Where the policy
/// itself allows something against one of them, that must stay allowed.
pub fn beside<'a>(
    allow: &Rule,
    disallows: &'a [(Rule, RuleSource)],
    of_policy: &[(Rule, RuleSource)],
    bounds: &mut Bounds,
) -> Beside<'a> {
    let theirs = &allow.pattern;
    // Where the policy itself allows all of it, its Disallow decides nothing there.
    let allowed_by = |disallow: &Rule| {
        of_policy.iter().any(|(ours, _)| {
            ours.allow && ours.pattern.priority() >= disallow.pattern.priority() && ours.pattern.covers(theirs)
        })
    };
    let defeated = |(ours, _): &&(Rule, RuleSource)| {
        !ours.allow
            && ours.pattern.priority() <= theirs.priority()
            && !allowed_by(ours)
            && theirs.overlaps(&ours.pattern, &mut bounds.comparisons)
    };
    let defeated: Vec<&(Rule, RuleSource)> = disallows.iter().filter(defeated).collect();
    let Some(first) = defeated.first() else { return Beside::AsItIs };
    if bounds.comparisons == 0 {
        return Beside::LeftOut { by: first };
    }
    if let Some(by) = defeated.iter().find(|(ours, _)| ours.pattern.covers(theirs)) {
        // A part of it may be allowed by the policy, and be kept by the Allow from another Disallow of the origin.
        let opened = of_policy.iter().any(|(other, _)| {
            other.allow
                && (by.0.pattern.priority()..theirs.priority()).contains(&other.pattern.priority())
                && other.pattern.overlaps(theirs, &mut bounds.comparisons)
        });
        return if opened { Beside::LeftOut { by } } else { Beside::Covered { by } };
    }
    let mut held: Vec<(Rule, RuleSource)> = Vec::new();
    for by in &defeated {
        let (ours, source) = by;
        let both = theirs.intersection(&ours.pattern, LIMITS, &mut bounds.comparisons);
        let Some(both) = both else { return Beside::LeftOut { by } };
        for pattern in both {
            if held.iter().any(|(wider, _)| wider.pattern.covers(&pattern)) {
                continue;
            }
            let Some(pattern) = pattern.with_priority(theirs.priority() + 1) else { return Beside::LeftOut { by } };
            // What the policy says by a rule between the two would be undone.
            let undone = of_policy.iter().any(|(other, _)| {
                other.allow
                    && (ours.pattern.priority()..pattern.priority()).contains(&other.pattern.priority())
                    && other.pattern.overlaps(&pattern, &mut bounds.comparisons)
            });
            let line = "Disallow: \n".len() + pattern.priority();
            match bounds.octets.checked_sub(line).filter(|_| !undone) {
                Some(rest) => bounds.octets = rest,
                None => return Beside::LeftOut { by },
            }
            held.push((Rule { allow: false, pattern }, source.clone()));
        }
    }
    Beside::Cut { by: &first.0, held }
}
