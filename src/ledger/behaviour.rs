//! What is remembered, asked for one request.

use super::holdings::Claimant as Cache;
use super::proven_fetches::{ProvenFetches, Showing};
use super::visits::{Key, key};
use super::watch::TOLERANCE;
use super::{CrawlRate, RateKey, Traps};
use crate::clock::Moment;
use crate::crawlers::{Claim, Registry, calls_itself};
use crate::policy::compiled::Site;
use crate::policy::{SiteEntry, Snapshot};
use crate::verdict::{Behaviour, Claimant, Decision, Facts, Holdings, Identity, behaviour_counts, claim_label, pace};
use std::time::Duration;

/// The memory of how crawlers behaviour themselves.
#[derive(Default)]
pub struct Behaviours {
    /// Their pace.
    pub pace: CrawlRate,
    /// Who stepped into a trap.
    pub traps: Traps,
    shown: ProvenFetches,
}

/// Whom to look up, where there is anything to look up.
struct Subject<'a> {
    entry: &'a SiteEntry,
    site: &'a Site,
    claim: Claim,
    /// Its name; none of a bot that no list knows and that does not say what it is called.
    crawler: Option<&'a str>,
}

fn subject<'a>(
    snapshot: &'a Snapshot,
    registry: &'a Registry,
    facts: &Facts<'a>,
    claimant: Claimant,
) -> Option<Subject<'a>> {
    let entry = snapshot.sites().get(claimant.site?)?;
    let site = &*entry.site;
    let standing = site.crawler_rules(claimant.claim);
    if !behaviour_counts(site, &standing, facts.target) {
        return None;
    }
    Some(Subject { entry, site, claim: claimant.claim, crawler: name(claimant.claim, registry, site, facts) })
}

/// Bots that no list knows are told apart by what they call themselves: one that comes from the same address as another
/// answers for itself.
fn name<'a>(claim: Claim, registry: &'a Registry, site: &'a Site, facts: &Facts<'a>) -> Option<&'a str> {
    match claim {
        Claim::Other => calls_itself(facts.user_agent),
        _ => claim_label(claim, registry, Some(site)),
    }
}

/// What is asked of [`ProvenFetches`], where anything depends on it: a delay. Bots that no list knows share a name, and
/// behind a cache it is the cache that is served.
fn of_the_one_in_force<T>(
    registry: &Registry,
    entry: &SiteEntry,
    claim: Claim,
    host: &[u8],
    ask: impl FnOnce(Showing<'_>) -> T,
) -> Option<T> {
    let site = &*entry.site;
    let told_apart = matches!(claim, Claim::Known(_) | Claim::Token(_)) && site.behind_cache.is_none();
    if !told_apart || site.crawler_rules(claim).pace.is_none() {
        return None;
    }
    let key = key(&site.name, host)?;
    let crawler = Cache::of(claim, registry, entry).name;
    Some(ask(Showing { key: &key, crawler, version: site.robots_txt.version }))
}

impl Subject<'_> {
    fn party(&self, facts: &Facts<'_>) -> RateKey<'_> {
        let crawler = self.crawler.unwrap_or("other");
        // What is no name of a host is one with all the others that are none.
        let place = key(&self.site.name, facts.host).unwrap_or_else(|| Key::from_slice(self.site.name.as_bytes()));
        RateKey { place, crawler, identity: facts.identity, address: facts.client }
    }
}

impl Behaviours {
    /// With the marks that are remembered.
    pub fn with(traps: Traps) -> Behaviours {
        Behaviours { traps, ..Behaviours::default() }
    }

    /// How the claimant has conducted itself, this request included. `lived` is what the clock has lived through, by which
    /// a pace and the time of a mark are measured: a clock that is set, if only by seconds, makes nobody too fast.
    /// Takes a lock for as long as a look into a table takes, and that only where the policy has a crawl delay for this
    /// crawler, or traps.
    pub fn take_in(
        &self,
        snapshot: &Snapshot,
        registry: &Registry,
        facts: &Facts<'_>,
        claimant: Claimant,
        holdings: &Holdings<'_>,
        lived: Duration,
    ) -> Behaviour {
        let too_fast = |party: RateKey<'_>, delay| self.pace.ask(party, delay, lived);
        self.settle(subject(snapshot, registry, facts, claimant), registry, facts, holdings, lived, too_fast)
    }

    /// The same of a request that is only asked about.
    pub fn look(
        &self,
        snapshot: &Snapshot,
        registry: &Registry,
        facts: &Facts<'_>,
        claimant: Claimant,
        holdings: &Holdings<'_>,
        lived: Duration,
    ) -> Behaviour {
        let too_fast = |party: RateKey<'_>, delay| self.pace.look(party, delay, lived);
        self.settle(subject(snapshot, registry, facts, claimant), registry, facts, holdings, lived, too_fast)
    }

    fn settle(
        &self,
        subject: Option<Subject<'_>>,
        registry: &Registry,
        facts: &Facts<'_>,
        holdings: &Holdings<'_>,
        lived: Duration,
        too_fast: impl FnOnce(RateKey<'_>, Duration) -> Option<Duration>,
    ) -> Behaviour {
        let Some(subject) = subject else { return Behaviour::default() };
        let trapped = self.trapped(&subject, facts, lived);
        let shown = !holdings.watched && self.was_shown(&subject, registry, facts);
        let paced = if trapped { None } else { pace(registry, facts, subject.claim, subject.site, holdings, shown) };
        Behaviour { too_fast: paced.and_then(|delay| too_fast(subject.party(facts), delay)), trapped, shown }
    }

    /// The version in force was served whole to who says that it is this crawler. `facts` are those of the fetch.
    pub fn served(&self, registry: &Registry, entry: &SiteEntry, claim: Claim, facts: &Facts<'_>) {
        let showing = |showing: Showing<'_>| self.shown.add(showing, facts.identity, facts.client, facts.now);
        of_the_one_in_force(registry, entry, claim, facts.host, showing);
    }

    fn was_shown(&self, subject: &Subject<'_>, registry: &Registry, facts: &Facts<'_>) -> bool {
        // What was served before under this name may have been served to another one, who was told apart otherwise.
        // What was served in the time to come was served by a clock that was ahead, nobody knows when.
        let span = subject.entry.identity_epoch..=facts.now.plus(Duration::from_secs(TOLERANCE.unsigned_abs()));
        let showing = |showing: Showing<'_>| self.shown.within(showing, facts.client, span);
        of_the_one_in_force(registry, subject.entry, subject.claim, facts.host, showing).unwrap_or_default()
    }

    fn trapped(&self, subject: &Subject<'_>, facts: &Facts<'_>, lived: Duration) -> bool {
        if subject.site.policy.enforcement.traps.is_empty() || facts.identity == Identity::Verified {
            return false;
        }
        let Some((address, crawler)) = facts.client.zip(subject.crawler) else { return false };
        self.traps.is_marked(&subject.site.name, crawler, address, lived)
    }

    /// Marks whoever sprang a trap; verified crawlers are reported only.
    pub fn remember(
        &self,
        decision: &Decision,
        snapshot: &Snapshot,
        registry: &Registry,
        facts: &Facts<'_>,
        lived: Duration,
    ) {
        let Some(address) = facts.client.filter(|_| decision.trap_hit && facts.identity != Identity::Verified) else {
            return;
        };
        let Some(site) = decision.site.and_then(|index| snapshot.sites().get(index)).map(|entry| &*entry.site) else {
            return;
        };
        let Some(crawler) = name(decision.claim, registry, site, facts) else { return };
        let standing = site.crawler_rules(decision.claim);
        let moment = Moment { now: facts.now, lived };
        self.traps.mark(&site.name, crawler, address, moment, standing.trapped_for);
    }
}
