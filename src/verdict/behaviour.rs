//! What is remembered of a crawler beside the versions it holds, as facts for one decision: its pace, and whether it
//! stepped into a trap. Remembering is another room's work; here is only what is asked of it.

use super::{Facts, Identity};
use crate::crawlers::{Claim, Registry};
use crate::policy::Snapshot;
use crate::policy::compiled::{CrawlerRules, Site};
use crate::policy::model::Mode;
use std::net::IpAddr;
use std::time::Duration;

/// How a crawler has conducted itself so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// This request comes too soon after the last by so much.
    pub too_fast: Option<Duration>,
    /// Its address stepped into a trap under the same name, and the time for that is not over.
    pub trapped: bool,
    /// It was shown the version in force on this host, as far as that is proven: the fetch was verified, or came from
    /// the same address. What may be held otherwise is not known on a host that was not watched for long enough, and a
    /// name can be anybody's: nobody is held to a delay there who was not shown it.
    pub shown: bool,
}

/// Whom a request is for, and from: what must be known before anything can be looked up for the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimant {
    /// The site; `None` when no site claims the host.
    pub site: Option<usize>,
    /// Whom the user agent claims to be.
    pub claim: Claim,
}

impl Claimant {
    /// From host and user agent. Does not allocate.
    pub fn of(snapshot: &Snapshot, registry: &Registry, facts: &Facts<'_>) -> Claimant {
        let site = snapshot.site_for_host(facts.host);
        let claim = match site {
            Some(index) => registry.identify_with(facts.user_agent, &snapshot.sites()[index].site.tokens),
            None => registry.identify(facts.user_agent),
        };
        Claimant { site, claim }
    }
}

/// What the policy's own lists of addresses prove of a claim. `may_accuse` is `false` where the address may be that of
/// a proxy that nobody declared: it proves nothing against anybody then. Nor does an address of a private network.
pub fn identity_by_policy(site: &Site, facts: &Facts<'_>, claim: Claim, may_accuse: bool) -> Identity {
    let address = facts.client;
    match address.and_then(|address| site.holds_address(claim, address)) {
        Some(true) => Identity::Verified,
        Some(false) if may_accuse && !address.is_none_or(is_private) => Identity::Impostor,
        Some(false) | None => Identity::Unverified,
    }
}

/// Loopback, private networks, link-local addresses, and those that carriers share out (RFC 1918, 3927, 4193, 4291,
/// 6598).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                || first == 100 && second & 0xc0 == 64
        }
        IpAddr::V6(address) => {
            let first = address.segments()[0];
            address.is_loopback() || address.is_unspecified() || first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80
        }
    }
}

/// Whether a request of this standing is looked at beyond its rules. What the gate itself hands out is free for
/// everybody.
pub fn behaviour_counts(site: &Site, standing: &CrawlerRules, target: &[u8]) -> bool {
    let path = target.split(|octet| *octet == b'?').next().unwrap_or_default();
    let free = path == b"/robots.txt" || site.signals.has_at(path);
    standing.judged && !standing.exempt && standing.mode != Mode::Off && !free
}

#[cfg(test)]
mod tests {
    use super::is_private;

    #[test]
    fn addresses_that_prove_nothing_against_anybody() {
        for address in
            ["127.0.0.1", "10.1.2.3", "192.168.0.1", "100.64.0.1", "169.254.1.1", "::1", "fd00::1", "fe80::1"]
        {
            assert!(is_private(address.parse().unwrap()), "{address}");
        }
        for address in ["203.0.113.9", "100.128.0.1", "2001:db8::1", "172.32.0.1"] {
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
    }
}
