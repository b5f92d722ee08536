//! The decision.

use super::{Decision, Facts, Holdings, Scratch};
use crate::crawlers::Registry;
use crate::policy::Snapshot;

/// Judges a request. Neither allocates, locks nor reads a clock.
pub fn decide(
    snapshot: &Snapshot,
    registry: &Registry,
    facts: &Facts<'_>,
    holdings: &Holdings<'_>,
    scratch: &mut Scratch,
) -> Decision {
    let _ = (snapshot, registry, facts, holdings, scratch);
    todo!()
}
