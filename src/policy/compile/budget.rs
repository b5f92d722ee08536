//! [`Bounds`] limits the work of merging the origin's robots.txt with a policy. That file may be
//! huge or hostile, and a reload of the policies waits until every site is compiled.
//!
//! All steps of one compilation take from the same [`Bounds`]. When the comparisons are spent, an
//! Allow that might defeat a Disallow is left out unexamined. When the rules or octets are spent,
//! compilation fails ([`TooMuch`]).

use crate::robots::MAX_BYTES;

/// The budget that is left of one compilation.
pub struct Bounds {
    /// Octets compared, and other work in the same unit.
    pub comparisons: usize,
    /// Octets of groups that have a part of the origin's. Groups of the policy alone are not
    /// counted.
    pub size: usize,
    /// Rules of the origin that are compared with a group of the policy, whatever the result is.
    pub rules: usize,
}

/// The error for a file of the origin that cannot be merged within the bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TooMuch {
    /// Lines with a rule.
    pub rules: usize,
    /// Tokens that they are for, `*` included.
    pub crawlers: usize,
}

impl Bounds {
    /// The whole budget. `policy` are the octets of the policy's own groups, which are copied
    /// however many they are.
    pub fn new(policy: usize) -> Bounds {
        // Twice the size that crawlers read: the exact limit is checked when the file is written.
        Bounds {
            comparisons: 12_000_000,
            size: (2 * MAX_BYTES).saturating_add(policy),
            rules: 100_000,
        }
    }
}

/// Takes a cost; returns whether enough was left. A budget that was not enough once is spent, so
/// that a later, smaller cost does not pass.
pub fn take(left: &mut usize, cost: usize) -> bool {
    let rest = left.checked_sub(cost);
    *left = rest.unwrap_or(0);
    rest.is_some()
}
