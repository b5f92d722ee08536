//! A build without the feature `signatures` verifies none: networks and DNS alone prove crawlers.

use super::signed::SignatureProblem;
use super::{Claimed, Means, Proofs, ToDo};
use crate::time::Timestamp;

impl Proofs {
    /// Checks nothing.
    ///
    /// # Errors
    /// Always, without a problem: no signature was looked at.
    pub(super) fn check_signature(
        &self,
        _claimed: &Claimed<'_>,
        _means: &Means,
        _now: Timestamp,
        _to_do: &mut ToDo,
    ) -> Result<(), Option<SignatureProblem>> {
        Err(None)
    }
}
