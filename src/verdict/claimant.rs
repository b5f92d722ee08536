//! [`Claimant`]: the crawler that a request claims to come from, on the site that its host belongs to. [`Case`]: the
//! claimant with all that is known about the request. Both borrow; neither allocates.

use super::labels::claim_of;
use super::{Facts, Holdings};
use crate::crawlers::{Claim, Registry};
use crate::policy::{SiteEntry, Snapshot};

/// The site that a request is for, and the crawler that its user agent claims to be.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<'a> {
    /// Index of the site in the snapshot.
    pub site: usize,
    /// The site itself.
    pub entry: &'a SiteEntry,
    /// The claimed crawler.
    pub claim: Claim,
}

impl<'a> Claimant<'a> {
    /// From the host and the user agent. `None` where no site claims the host.
    pub fn of(snapshot: &'a Snapshot, registry: &Registry, facts: &Facts<'_>) -> Option<Claimant<'a>> {
        let (site, entry) = site_of(snapshot, facts.host)?;
        Some(Claimant { site, entry, claim: registry.identify_with(facts.user_agent, &entry.site.tokens) })
    }

    /// The same where `user_agent` may also be the bare token, id or name of a crawler, as people write it.
    pub fn named(snapshot: &'a Snapshot, registry: &Registry, facts: &Facts<'_>) -> Option<Claimant<'a>> {
        let (site, entry) = site_of(snapshot, facts.host)?;
        let agent = String::from_utf8_lossy(facts.user_agent);
        Some(Claimant { site, entry, claim: claim_of(&agent, registry, Some(&entry.site)) })
    }
}

fn site_of<'a>(snapshot: &'a Snapshot, host: &[u8]) -> Option<(usize, &'a SiteEntry)> {
    let index = snapshot.site_for_host(host)?;
    Some((index, snapshot.sites().get(index)?))
}

/// One request to a site, with everything that its judgement rests on, but for the claimant's behaviour.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// Known crawlers.
    pub registry: &'a Registry,
    /// The request.
    pub facts: Facts<'a>,
    /// The site and the claimed crawler.
    pub claimant: Claimant<'a>,
    /// The versions of robots.txt that the claimant may have cached.
    pub holdings: Holdings<'a>,
}
