//! What the origin's file may cost when a site is compiled: that file is not checked, and a reload of all sites
//! waits for each of them.
//!
//! There is one budget for the whole compile. What is beyond it fails safe: an Allow is left out, and a file that would
//! take more octets than crawlers read is not taken at all.

use crate::robots::MAX_BYTES;

/// What one compile may still cost.
pub struct Bounds {
    /// Octets compared, and what takes as long as comparing some.
    pub comparisons: usize,
    /// Octets of groups that have something of the origin's in them. What is of the policy alone is not counted here.
    size: usize,
    /// Rules of the origin that are held against a group of the policy, whatever comes of it.
    rules: usize,
}

/// The origin's file is more than can be put together with the policy within the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// Lines with a rule.
    pub rules: usize,
    /// Tokens that they are for, `*` included.
    pub crawlers: usize,
}

impl Bounds {
    /// `policy` are the octets of the policy's own groups, which come along however many they are.
    pub fn new(policy: usize) -> Bounds {
        // Twice what crawlers read: whether the file passes that exactly is seen when it is written.
        Bounds { comparisons: 12_000_000, size: (2 * MAX_BYTES).saturating_add(policy), rules: 100_000 }
    }

    /// Takes the cost of comparisons; says whether there was enough left.
    pub fn compare(&mut self, cost: usize) -> bool {
        take(&mut self.comparisons, cost)
    }

    /// Takes the rules of a group of the origin that is put beside one of the policy.
    pub fn look_at(&mut self, rules: usize) -> bool {
        take(&mut self.rules, rules)
    }

    /// Takes the octets of a group, or of what is added to one.
    pub fn grow(&mut self, octets: usize) -> bool {
        take(&mut self.size, octets)
    }
}

/// What was not enough once is spent: what comes later must not depend on how little it asks for.
fn take(left: &mut usize, cost: usize) -> bool {
    let rest = left.checked_sub(cost);
    *left = rest.unwrap_or(0);
    rest.is_some()
}
