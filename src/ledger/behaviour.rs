//! [`BehaviourTables`]: what clients did recently. There are three tables: crawl rates, clients
//! that requested a trap (a path that no obedient crawler requests), and clients that were
//! certainly served the present robots.txt. [`BehaviourTables::evaluate`] looks up one request in
//! all three.

use super::cached_versions::CrawlerCacheProfile;
use super::clock_steps::MAX_CLOCK_DRIFT;
use super::host_table::HostKey;
use super::proven_fetches::{ProvenFetch, ProvenFetches, site_host_key};
use super::{CrawlRates, MarkedClients, RateKey};
use crate::clock::Moment;
use crate::crawlers::{Claim, Registry, self_given_name};
use crate::policy::site::Site;
use crate::verdict::{
    Identity, RecentBehaviour, RequestFacts, RequestToJudge, SiteClaim, behaviour_counts,
    claim_label, crawl_delay,
};
use Claim::*;
use std::time::Duration;

/// The tables of what clients did recently.
pub struct BehaviourTables {
    /// Crawl rates of crawlers.
    pub crawl_rates: CrawlRates,
    /// Clients that requested a trap.
    pub marked_clients: MarkedClients,
    proven_fetches: ProvenFetches,
}

/// Whether a request counts against the crawl rate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum RateCheckMode {
    /// It counts.
    Count,
    /// It does not count; the rate is only checked.
    Check,
}

/// A request for which behaviour counts, with the name under which the claimant is remembered. An
/// unknown bot that does not name itself has none.
struct BehaviourSubject<'a> {
    case: &'a RequestToJudge<'a>,
    site: &'a Site,
    crawler: Option<&'a str>,
}

impl<'a> BehaviourSubject<'a> {
    /// `None` if behaviour does not count for this crawler, site and target.
    fn from_case(case: &'a RequestToJudge<'a>) -> Option<BehaviourSubject<'a>> {
        let site = &*case.claimant.entry.site;
        let rules = site.crawler_rules(case.claimant.claim);
        let counts = behaviour_counts(site, &rules, case.facts.target);
        counts.then(|| BehaviourSubject {
            case,
            site,
            crawler: remembered_name(case),
        })
    }

    /// The key of the claimant's crawl rate. `None` for an unverified client without an address,
    /// because several such clients would share one rate. A bot without a name is `other`.
    fn rate_key(&self) -> Option<RateKey<'a>> {
        let facts = &self.case.facts;
        if facts.client.is_none() && facts.identity != Identity::Verified {
            return None;
        }
        // All invalid host names count as one host.
        let place = site_host_key(&self.site.name, facts.host)
            .unwrap_or_else(|| HostKey::from_slice(self.site.name.as_bytes()));
        Some(RateKey {
            place,
            crawler: self.crawler.unwrap_or("other"),
            identity: facts.identity,
            address: facts.client,
        })
    }
}

/// The name under which a claimant is remembered. Unknown bots and tools have the name that they
/// give themselves, so that each is counted by itself, also at the same address. `None` if they
/// give none.
fn remembered_name<'a>(case: &RequestToJudge<'a>) -> Option<&'a str> {
    match case.claimant.claim {
        UnknownBot | Tool => self_given_name(case.facts.user_agent),
        claim => claim_label(claim, case.registry, Some(&case.claimant.entry.site)),
    }
}

/// Calls `ask` with a fetch of the version in force by the claimant. Returns `None`, without the
/// call, if no crawl delay depends on it; for unknown bots and tools, which share a name; behind a
/// cache, because only the cache fetches; and for an invalid host name.
fn with_current_fetch<T>(
    registry: &Registry,
    claimant: SiteClaim<'_>,
    host: &[u8],
    ask: impl FnOnce(ProvenFetch<'_>) -> T,
) -> Option<T> {
    let SiteClaim { entry, claim, .. } = claimant;
    let site = &*entry.site;
    let is_distinct = matches!(claim, Known(_) | PolicyToken(_)) && site.behind_cache.is_none();
    if !is_distinct || site.crawler_rules(claim).crawl_delay.is_none() {
        return None;
    }
    let key = site_host_key(&site.name, host)?;
    let crawler = CrawlerCacheProfile::for_claim(claim, registry, entry).name;
    Some(ask(ProvenFetch {
        key: &key,
        crawler,
        version: site.robots_txt.version,
    }))
}

impl BehaviourTables {
    /// Builds the tables from the stored marks. Crawl rates and fetches begin anew.
    pub fn new(marked_clients: MarkedClients) -> BehaviourTables {
        BehaviourTables {
            crawl_rates: CrawlRates::default(),
            marked_clients,
            proven_fetches: ProvenFetches::default(),
        }
    }

    /// The client's behaviour, this request included. `monotonic` is the monotonic time of the
    /// clock, which measures crawl rates and marks, so a clock that is set makes no client too
    /// fast. The request of a marked client does not count against its crawl rate. Where behaviour
    /// does not count the result is the default.
    ///
    /// Locks a table only if the policy has traps or a crawl delay for this crawler. The crawl rate
    /// is checked and counted in one step, so that of two simultaneous requests only one passes.
    pub fn evaluate(
        &self,
        case: &RequestToJudge<'_>,
        monotonic: Duration,
        rate: RateCheckMode,
    ) -> RecentBehaviour {
        let Some(subject) = BehaviourSubject::from_case(case) else {
            return RecentBehaviour::default();
        };
        let trapped = self.is_marked(&subject, monotonic);
        let was_served_current = self.was_served_current(case);
        let delay = if trapped {
            None
        } else {
            crawl_delay(case, was_served_current)
        };
        let too_fast = delay.and_then(|delay| match rate {
            RateCheckMode::Count => {
                self.crawl_rates
                    .count_request(subject.rate_key()?, delay, monotonic)
            }
            RateCheckMode::Check => {
                self.crawl_rates
                    .check_request(subject.rate_key()?, delay, monotonic)
            }
        });
        RecentBehaviour {
            too_fast,
            trapped,
            was_served_current,
        }
    }

    /// Undoes that a request counted against the crawl rate, and returns the delay that it counted
    /// for. `None` if it did not count: behaviour does not count here, the client is marked, or
    /// there is no delay or no address.
    pub fn undo_rate_count(
        &self,
        case: &RequestToJudge<'_>,
        monotonic: Duration,
    ) -> Option<Duration> {
        let subject = BehaviourSubject::from_case(case)?;
        if self.is_marked(&subject, monotonic) {
            return None;
        }
        let delay = crawl_delay(case, self.was_served_current(case))?;
        self.crawl_rates
            .undo_request(subject.rate_key()?, delay, monotonic);
        Some(delay)
    }

    /// Records that the version in force was served completely to a claimant. `facts` are those of
    /// the fetch.
    pub fn record_served(
        &self,
        registry: &Registry,
        claimant: SiteClaim<'_>,
        facts: &RequestFacts<'_>,
    ) {
        with_current_fetch(registry, claimant, facts.host, |fetch| {
            self.proven_fetches
                .record(fetch, facts.identity, facts.client, facts.now);
        });
    }

    /// Whether the version in force was certainly served to the client since the identity epoch.
    /// False where all cached versions are known, and this does not matter.
    fn was_served_current(&self, case: &RequestToJudge<'_>) -> bool {
        if case.cached_versions.is_complete() {
            return false;
        }
        let facts = &case.facts;
        let claimant = case.claimant;
        // Before the identity epoch another crawler may have fetched under this name. A fetch in
        // the future was recorded by a clock that was ahead, at an unknown time.
        let span =
            claimant.history.identity_epoch..=facts.now.plus(Duration::from_secs(MAX_CLOCK_DRIFT));
        with_current_fetch(case.registry, claimant, facts.host, |fetch| {
            self.proven_fetches
                .was_served_within(fetch, facts.client, span)
        })
        .unwrap_or_default()
    }

    /// Whether the client is marked on this site under its name. False if the site has no traps,
    /// for a verified crawler, and for a client without an address or a name.
    fn is_marked(&self, subject: &BehaviourSubject<'_>, monotonic: Duration) -> bool {
        let facts = &subject.case.facts;
        if subject.site.policy.enforcement.traps.is_empty() || facts.identity == Identity::Verified
        {
            return false;
        }
        let Some((address, crawler)) = facts.client.zip(subject.crawler) else {
            return false;
        };
        self.marked_clients
            .is_marked(&subject.site.name, crawler, address, monotonic)
    }

    /// Marks the client of a request that hit a trap, for the time in the policy. Does nothing for
    /// a verified crawler, which is only reported, and for a client without an address or a name.
    pub fn mark_client(&self, case: &RequestToJudge<'_>, monotonic: Duration) {
        let facts = &case.facts;
        let address = facts
            .client
            .filter(|_| facts.identity != Identity::Verified);
        let Some((address, crawler)) = address.zip(remembered_name(case)) else {
            return;
        };
        let site = &*case.claimant.entry.site;
        let moment = Moment {
            now: facts.now,
            monotonic,
        };
        let time = site.crawler_rules(case.claimant.claim).trapped_for;
        self.marked_clients
            .mark_client(&site.name, crawler, address, moment, time);
    }
}
