//! [`MergeBudget`] limits the work of merging the origin's robots.txt with a policy. The origin's
//! file may be huge or hostile, and a reload of the policies waits until every site is compiled.
//! Once the merge has made too many comparisons, every Allow that might defeat a Disallow is left
//! out without a comparison. Once the merge has made too many rules or bytes, compilation fails.

use crate::robots::MAX_ROBOTS_BYTES;

/// What is left for one compilation.
pub struct MergeBudget {
    /// Comparisons of bytes.
    pub comparisons: usize,
    /// Bytes of merged groups.
    pub size: usize,
    /// Rules of the origin that are merged into groups.
    pub rules: usize,
}

impl MergeBudget {
    /// A new budget. `policy_size` are the bytes of the policy's own groups, which count extra.
    pub fn new(policy_size: usize) -> MergeBudget {
        MergeBudget {
            comparisons: 12_000_000,
            // The exact limit, MAX_ROBOTS_BYTES, is checked when the file is rendered.
            size: (2 * MAX_ROBOTS_BYTES).saturating_add(policy_size),
            rules: 100_000,
        }
    }
}

/// Subtracts a cost, and returns whether enough was left. If not, nothing is left afterwards.
pub fn try_spend(left: &mut usize, cost: usize) -> bool {
    let rest = left.checked_sub(cost);
    *left = rest.unwrap_or(0);
    rest.is_some()
}
