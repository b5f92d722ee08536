//! How each claim is treated, settled once per policy.

use crate::crawlers::Claim;
use crate::policy::compiled::Standing;

/// One standing per claim.
#[derive(Clone, Debug, Default)]
pub struct Standings {}

impl Standings {
    /// The standing of a claim.
    pub fn get(&self, claim: Claim) -> Standing {
        let _ = claim;
        todo!()
    }
}
