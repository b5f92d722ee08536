//! What is remembered of a crawler beside the versions it holds, as facts for one decision: its pace, and whether it
//! stepped into a trap. Remembering is another room's work; here is only what is asked of it.

use super::{Facts, Identity};
use crate::crawlers::{Claim, Registry};
use crate::policy::Snapshot;
use crate::policy::compiled::{Site, Standing};
use crate::policy::model::Mode;
use std::time::Duration;

/// How a crawler has conducted itself so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    /// This request comes too soon after the last by so much.
    pub too_fast: Option<Duration>,
    /// Its address stepped into a trap under the same name, and the time for that is not over.
    pub trapped: bool,
}

/// Whom a request is for, and from: what must be known before anything can be looked up for the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The site; `None` when no site claims the host.
    pub site: Option<usize>,
    /// Whom the user agent claims to be.
    pub claim: Claim,
}

impl Asker {
    /// From host and user agent. Does not allocate.
    pub fn of(snapshot: &Snapshot, registry: &Registry, facts: &Facts<'_>) -> Asker {
        let site = snapshot.site_for_host(facts.host);
        let claim = match site {
            Some(index) => registry.identify_with(facts.user_agent, &snapshot.sites()[index].site.tokens),
            None => registry.identify(facts.user_agent),
        };
        Asker { site, claim }
    }
}

/// What the policy's own lists of addresses prove of a claim. `may_accuse` says whether the address is surely the client's
/// own: an address behind a proxy that nobody declared, or one of a private network, proves nothing against anybody.
pub fn identity_by_policy(site: &Site, facts: &Facts<'_>, claim: Claim, may_accuse: bool) -> Identity {
    let address = facts.client;
    match address.and_then(|address| site.holds_address(claim, address)) {
        Some(true) => Identity::Verified,
        Some(false) if may_accuse => Identity::Impostor,
        Some(false) | None => Identity::Unverified,
    }
}

/// Whether a request of this standing is looked at beyond its rules. robots.txt is free for everybody.
pub fn conduct_counts(standing: &Standing, target: &[u8]) -> bool {
    let path = target.split(|octet| *octet == b'?').next().unwrap_or_default();
    standing.judged && !standing.exempt && standing.mode != Mode::Off && path != b"/robots.txt"
}
