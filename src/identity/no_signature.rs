//! Replaces `signature.rs` in a build without the feature `signatures`: no client is verified by
//! the signature of its request.

use super::signed::SignatureProblem;
use super::{IdentityClaim, IdentityEffects, IdentityVerifier, ProofMeans};
use crate::time::Timestamp;

impl IdentityVerifier {
    /// # Errors
    /// Always, without a problem.
    pub fn check_signature(
        &self,
        _claimed: &IdentityClaim<'_>,
        _means: &ProofMeans,
        _now: Timestamp,
        _effects: &mut IdentityEffects,
    ) -> Result<(), Option<SignatureProblem>> {
        Err(None)
    }
}
