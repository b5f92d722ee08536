//! [`Behaviours`]: what clients did recently. Three tables hold their crawl rates, the clients that
//! requested a trap, and the clients that were certainly served the version in force.
//! [`Behaviours::look`] asks the tables for one request.

use super::cached_versions::RobotsCache;
use super::clock_steps::TOLERANCE;
use super::crawl_rate::PassedRates;
use super::observations::Key;
use super::proven_fetches::{PassedFetches, ProvenFetch, ProvenFetches, place};
use super::{CrawlRate, RateKey, Traps};
use crate::clock::Moment;
use crate::crawlers::{Claim, Registry, calls_itself};
use crate::policy::site::Site;
use crate::verdict::{
    Behaviour, Case, Claimant, Facts, Identity, behaviour_counts, claim_label, crawl_delay,
};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The memory of what clients did.
#[derive(Default)]
pub struct Behaviours {
    /// Their crawl rate.
    pub crawl_rates: CrawlRate,
    /// Marked clients.
    pub traps: Traps,
    proven_fetches: ProvenFetches,
}

/// The behaviours that the state store does not have, for the next process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedBehaviours {
    rates: PassedRates,
    fetches: PassedFetches,
}

/// Whether a request counts against the crawl rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateStep {
    /// It counts.
    Counts,
    /// It does not count: the rate is only looked at.
    Looks,
}

/// A case whose behaviour counts, with the name under which the claimant is remembered. A bot that
/// no list knows and that does not say its name has none.
struct Subject<'a> {
    case: &'a Case<'a>,
    site: &'a Site,
    crawler: Option<&'a str>,
}

impl<'a> Subject<'a> {
    /// The subject of a case; `None` if behaviour does not count for this crawler, site and target.
    fn of(case: &'a Case<'a>) -> Option<Subject<'a>> {
        let site = &*case.claimant.entry.site;
        let rules = site.crawler_rules(case.claimant.claim);
        let counts = behaviour_counts(site, &rules, case.facts.target);
        counts.then(|| Subject {
            case,
            site,
            crawler: name(case),
        })
    }

    /// The key of the claimant's crawl rate. `None` for a client that is not verified and whose
    /// address is not known: several such clients would share one rate. A bot without a name is
    /// `other`.
    fn rate_key(&self) -> Option<RateKey<'a>> {
        let facts = &self.case.facts;
        if facts.client.is_none() && facts.identity != Identity::Verified {
            return None;
        }
        // A host that is no valid name counts as one with all others that are none.
        let place = place(&self.site.name, facts.host)
            .unwrap_or_else(|| Key::from_slice(self.site.name.as_bytes()));
        Some(RateKey {
            place,
            crawler: self.crawler.unwrap_or("other"),
            identity: facts.identity,
            address: facts.client,
        })
    }
}

/// The name under which a claimant is remembered. Unlisted bots and tools have the one that they
/// give themselves, so that each answers for itself, also at the same address; `None` if they give
/// none.
fn name<'a>(case: &Case<'a>) -> Option<&'a str> {
    match case.claimant.claim {
        Claim::Other | Claim::Tool => calls_itself(case.facts.user_agent),
        claim => claim_label(claim, case.registry, Some(&case.claimant.entry.site)),
    }
}

/// Calls `ask` with the fetch of the version in force. Returns `None`, without the call, if no
/// crawl delay depends on it; for unlisted bots and tools, which share a name; behind a cache,
/// because the cache is served; and for a host that is no valid name.
fn for_current_version<T>(
    registry: &Registry,
    claimant: Claimant<'_>,
    host: &[u8],
    ask: impl FnOnce(ProvenFetch<'_>) -> T,
) -> Option<T> {
    let Claimant { entry, claim, .. } = claimant;
    let site = &*entry.site;
    let told_apart =
        matches!(claim, Claim::Known(_) | Claim::Token(_)) && site.behind_cache.is_none();
    if !told_apart || site.crawler_rules(claim).crawl_delay.is_none() {
        return None;
    }
    let key = place(&site.name, host)?;
    let crawler = RobotsCache::of(claim, registry, entry).name;
    Some(ask(ProvenFetch {
        key: &key,
        crawler,
        version: site.robots_txt.version,
    }))
}

impl Behaviours {
    /// Behaviours with the remembered marks, and with what the process before passed, if there was
    /// one. `lived` is on the clock of that process.
    pub fn with(traps: Traps, passed: Option<PassedBehaviours>, lived: Duration) -> Behaviours {
        let Some(PassedBehaviours { rates, fetches }) = passed else {
            return Behaviours {
                traps,
                ..Behaviours::default()
            };
        };
        Behaviours {
            crawl_rates: CrawlRate::passed(rates, lived),
            traps,
            proven_fetches: ProvenFetches::passed(fetches),
        }
    }

    /// The behaviours that the next process cannot read from the state store.
    pub fn pass(&self, lived: Duration) -> PassedBehaviours {
        PassedBehaviours {
            rates: self.crawl_rates.pass(lived),
            fetches: self.proven_fetches.pass(),
        }
    }

    /// The client's behaviour, this request included. `lived` is the elapsed time, which measures
    /// crawl rates and marks, so a clock that is set makes no client too fast. The request of a
    /// marked client does not count against its crawl rate. Where behaviour does not count the
    /// result is the default.
    ///
    /// Takes a lock for one look into a table, and only where the policy has a crawl delay for this
    /// crawler, or traps. The crawl rate is looked at and counted in one step: of two requests at
    /// once one must not pass.
    pub fn look(&self, case: &Case<'_>, lived: Duration, rate: RateStep) -> Behaviour {
        let Some(subject) = Subject::of(case) else {
            return Behaviour::default();
        };
        let trapped = self.is_trapped(&subject, lived);
        let was_served_current = self.was_served_current(case);
        let delay = if trapped {
            None
        } else {
            crawl_delay(case, was_served_current)
        };
        let too_fast = delay.and_then(|delay| match rate {
            RateStep::Counts => self.crawl_rates.ask(subject.rate_key()?, delay, lived),
            RateStep::Looks => self.crawl_rates.look(subject.rate_key()?, delay, lived),
        });
        Behaviour {
            too_fast,
            trapped,
            was_served_current,
        }
    }

    /// Undoes that a request counted against the crawl rate, and returns the delay that it counted
    /// for. `None` if it did not count: behaviour does not count here, the client is marked, or
    /// there is no delay or no known address.
    pub fn take_back(&self, case: &Case<'_>, lived: Duration) -> Option<Duration> {
        let subject = Subject::of(case)?;
        if self.is_trapped(&subject, lived) {
            return None;
        }
        let delay = crawl_delay(case, self.was_served_current(case))?;
        self.crawl_rates
            .take_back(subject.rate_key()?, delay, lived);
        Some(delay)
    }

    /// Remembers that the version in force was served whole to a client that claims to be this
    /// crawler. `facts` are those of the fetch.
    pub fn served(&self, registry: &Registry, claimant: Claimant<'_>, facts: &Facts<'_>) {
        for_current_version(registry, claimant, facts.host, |fetch| {
            self.proven_fetches
                .add(fetch, facts.identity, facts.client, facts.now);
        });
    }

    /// Whether the version in force was certainly served to the client, since crawlers are told
    /// apart as now. False without a look where the cached versions are known for certain.
    fn was_served_current(&self, case: &Case<'_>) -> bool {
        if case.cached_versions.is_whole() {
            return false;
        }
        let facts = &case.facts;
        let claimant = case.claimant;
        // A fetch before the identity epoch may have been that of another crawler under this name.
        // A fetch in the future was served by a clock that was ahead, at an unknown time.
        let span = claimant.history.identity_epoch
            ..=facts
                .now
                .plus(Duration::from_secs(TOLERANCE.unsigned_abs()));
        for_current_version(case.registry, claimant, facts.host, |fetch| {
            self.proven_fetches.within(fetch, facts.client, span)
        })
        .unwrap_or_default()
    }

    /// Whether the client is marked on this site under its name. False where the site has no traps,
    /// for a verified crawler, and for a client without an address or a name.
    fn is_trapped(&self, subject: &Subject<'_>, lived: Duration) -> bool {
        let facts = &subject.case.facts;
        if subject.site.policy.enforcement.traps.is_empty() || facts.identity == Identity::Verified
        {
            return false;
        }
        let Some((address, crawler)) = facts.client.zip(subject.crawler) else {
            return false;
        };
        self.traps
            .is_marked(&subject.site.name, crawler, address, lived)
    }

    /// Marks the client of a request that hit a trap, for the time that the policy sets. Does
    /// nothing to a verified crawler, which is only reported, and to a client without an address or
    /// a name.
    pub fn mark(&self, case: &Case<'_>, lived: Duration) {
        let facts = &case.facts;
        let address = facts
            .client
            .filter(|_| facts.identity != Identity::Verified);
        let Some((address, crawler)) = address.zip(name(case)) else {
            return;
        };
        let site = &*case.claimant.entry.site;
        let moment = Moment {
            now: facts.now,
            lived,
        };
        let time = site.crawler_rules(case.claimant.claim).trapped_for;
        self.traps.mark(&site.name, crawler, address, moment, time);
    }
}
