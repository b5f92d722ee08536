//! [`Claimant`]: the crawler that a request claims to come from, on the site that its host belongs to. [`Case`]: the
//! claimant with all that is known about the request. Both borrow; neither allocates.

use super::{CachedVersions, Facts};
use crate::crawlers::{Claim, Registry};
use crate::policy::{HostHistory, Site, SiteEntry, Snapshot};

/// The site that a request is for, and the crawler that its user agent claims to be.
#[derive(Clone, Copy, Debug)]
pub struct Claimant<'a> {
    /// Index of the site in the snapshot.
    pub site: usize,
    /// The site itself.
    pub entry: &'a SiteEntry,
    /// The earlier publications of the host.
    pub history: &'a HostHistory,
    /// The claimed crawler.
    pub claim: Claim,
}

impl<'a> Claimant<'a> {
    /// The claimant by the host and the user agent of a request. `None` where no site claims the host.
    pub fn of(snapshot: &'a Snapshot, registry: &Registry, facts: &Facts<'_>) -> Option<Claimant<'a>> {
        Claimant::identified(snapshot, facts, |_, site| registry.identify_with(facts.user_agent, &site.tokens))
    }

    /// [`of`](Claimant::of), where the caller identifies the user agent for the site.
    pub fn identified(
        snapshot: &'a Snapshot,
        facts: &Facts<'_>,
        identify: impl FnOnce(usize, &Site) -> Claim,
    ) -> Option<Claimant<'a>> {
        let (site, history) = snapshot.site_and_history(facts.host)?;
        let entry = snapshot.sites().get(site)?;
        Some(Claimant { site, entry, history, claim: identify(site, &entry.site) })
    }

    /// [`of`](Claimant::of), where `user_agent` may also be the bare token, id or name of a crawler, as people write
    /// it.
    pub fn named(snapshot: &'a Snapshot, registry: &Registry, facts: &Facts<'_>) -> Option<Claimant<'a>> {
        let agent = String::from_utf8_lossy(facts.user_agent);
        Claimant::identified(snapshot, facts, |_, site| site.claim_of(&agent, registry))
    }

    /// Whether Last-Modified tells the version in force from every other that was published on the host. Where the host
    /// came to the site later than the version, an earlier version of the host may have had the same date.
    pub fn is_told_by_its_date(&self) -> bool {
        self.history.is_told_by_its_date && self.history.since == self.entry.since
    }
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
    pub cached_versions: CachedVersions<'a>,
}
