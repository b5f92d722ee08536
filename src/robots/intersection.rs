//! The URLs that two patterns have in common, written as patterns: what a rule has to say that is to hold where two
//! others meet.

use super::Pattern;
use super::overlap::{Step, steps};

/// What writing it down may cost.
#[derive(Clone, Copy, Debug)]
pub struct IntersectionLimits {
    /// Ways to lay the two patterns over each other that are tried.
    pub ways: usize,
    /// Octets of a single pattern.
    pub octets: usize,
}

impl Pattern {
    /// Whether every target that `other` matches is matched by this one. May say no where it is so, never yes where it
    /// is not: a wildcard of the other has to meet one of this.
    pub fn covers(&self, other: &Pattern) -> bool {
        !other.is_empty() && self.matches(&other.as_target())
    }

    /// This pattern as a target: what matches it [covers](Pattern::covers) the pattern.
    pub fn as_target(&self) -> Vec<u8> {
        // No literal of a pattern has a `*`, so nothing but a wildcard matches the other's.
        let mut target = self.literal().to_vec();
        if !self.is_anchored() {
            target.push(b'*');
        }
        target
    }

    /// Patterns that together match what both match and nothing else. `None` where that would pass the limits, or where
    /// a pattern of it cannot be written: the caller has to do without. Takes from `budget` as
    /// [`overlaps`](Pattern::overlaps) does.
    ///
    /// ```
    /// use crawlgate::robots::{IntersectionLimits, Pattern};
    /// let limits = IntersectionLimits { ways: 16, octets: 500 };
    /// let both = Pattern::new("/shop/").intersection(&Pattern::new("/*?session="), limits, &mut 10_000);
    /// assert_eq!(both, Some(vec![Pattern::new("/shop/*?session=")]));
    /// ```
    pub fn intersection(
        &self,
        other: &Pattern,
        limits: IntersectionLimits,
        budget: &mut usize,
    ) -> Option<Vec<Pattern>> {
        if self.is_empty() || other.is_empty() {
            return Some(Vec::new());
        }
        let (one, two) = (steps(self), steps(other));
        let cost = (one.len() + 1).checked_mul(two.len() + 1)?;
        *budget = budget.checked_sub(cost)?;
        let mut ways =
            Ways { leads_on: leads_on(&one, &two), one, two, limits, written: Vec::new(), found: Vec::new(), ends: 0 };
        if ways.leads_on[0] && !ways.walk(0, 0) {
            return None;
        }
        let mut patterns: Vec<Pattern> = Vec::new();
        // The shorter cover the longer, so they come first.
        ways.found.sort_by_key(Vec::len);
        for written in ways.found {
            let pattern = Pattern::from_bytes(&written);
            // Two parts next to each other may make an escape that neither has: that would be another URL.
            if pattern.as_str().as_bytes() != written {
                return None;
            }
            if !patterns.iter().any(|wider| wider.covers(&pattern)) {
                patterns.push(pattern);
            }
        }
        Some(patterns)
    }

    /// The same pattern with a priority of this at least: wildcards are repeated, which RFC 9309 and Google count as
    /// any octet. `None` where there is none to repeat.
    pub fn with_priority(&self, priority: usize) -> Option<Pattern> {
        let missing = priority.saturating_sub(self.priority());
        if missing == 0 {
            return Some(self.clone());
        }
        let place = match self.as_str().find('*') {
            Some(place) => place,
            None if !self.is_anchored() => self.as_str().len(),
            None => return None,
        };
        let (before, after) = self.as_str().split_at(place);
        Some(Pattern::new(&format!("{before}{}{after}", "*".repeat(missing))))
    }
}

/// From which pairs of places both ends can be reached: `i * (two.len() + 1) + j`.
fn leads_on(one: &[Step], two: &[Step]) -> Vec<bool> {
    let width = two.len() + 1;
    let mut leads_on = vec![false; (one.len() + 1) * width];
    for i in (0..=one.len()).rev() {
        for j in (0..=two.len()).rev() {
            let reaches = |i: usize, j: usize| leads_on[i * width + j];
            let (a, b) = (one.get(i).copied(), two.get(j).copied());
            let on = match (a, b) {
                (None, None) => true,
                (Some(Step::Octet(a)), Some(Step::Octet(b))) => a == b && reaches(i + 1, j + 1),
                // A run ends here, or goes on over an octet of the other.
                (Some(Step::Any), _) => reaches(i + 1, j) || b.is_some() && reaches(i, j + 1),
                (_, Some(Step::Any)) => reaches(i, j + 1) || a.is_some() && reaches(i + 1, j),
                _ => false,
            };
            leads_on[i * width + j] = on;
        }
    }
    leads_on
}

/// All ways to lay one over the other, each written down.
struct Ways {
    one: Vec<Step>,
    two: Vec<Step>,
    leads_on: Vec<bool>,
    limits: IntersectionLimits,
    /// On the way to the current pair of places.
    written: Vec<u8>,
    found: Vec<Vec<u8>>,
    /// How often both ends were reached: the same pattern may come about in several ways.
    ends: usize,
}

impl Ways {
    /// Says whether the limits hold. Goes only where both ends can be reached, so that nothing is tried in vain; as
    /// deep as the two are long, which is bounded by the octets that are written and the wildcards between them.
    fn walk(&mut self, i: usize, j: usize) -> bool {
        if self.written.len() > self.limits.octets {
            return false;
        }
        let (one, two) = (self.one.get(i).copied(), self.two.get(j).copied());
        let length = self.written.len();
        let held = match (one, two) {
            (None, None) => {
                let pattern = self.pattern();
                if !self.found.contains(&pattern) {
                    self.found.push(pattern);
                }
                self.ends += 1;
                self.ends <= self.limits.ways
            }
            (Some(Step::Octet(octet)), Some(Step::Octet(_))) => {
                self.written.push(octet);
                self.walk(i + 1, j + 1)
            }
            (Some(Step::Any), Some(Step::Any)) => {
                if self.written.last() != Some(&b'*') {
                    self.written.push(b'*');
                }
                self.go(i + 1, j) && self.go(i, j + 1)
            }
            (Some(Step::Any), Some(Step::Octet(octet))) => self.go(i + 1, j) && self.over(octet, i, j + 1),
            (Some(Step::Octet(octet)), Some(Step::Any)) => self.go(i, j + 1) && self.over(octet, i + 1, j),
            (Some(Step::Any), None) => self.go(i + 1, j),
            (None, Some(Step::Any)) => self.go(i, j + 1),
            _ => true,
        };
        self.written.truncate(length);
        held
    }

    fn go(&mut self, i: usize, j: usize) -> bool {
        !self.leads_on[i * (self.two.len() + 1) + j] || self.walk(i, j)
    }

    fn over(&mut self, octet: u8, i: usize, j: usize) -> bool {
        self.written.push(octet);
        let held = self.go(i, j);
        self.written.pop();
        held
    }

    /// What is written, as a rule spells it: open at the end without a `*`, else with a `$`.
    fn pattern(&self) -> Vec<u8> {
        match self.written.split_last() {
            Some((b'*', open)) if !open.is_empty() => open.to_vec(),
            Some((b'*', _)) => self.written.clone(),
            _ => [&self.written[..], b"$"].concat(),
        }
    }
}
