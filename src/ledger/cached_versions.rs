//! [`estimate_cached_versions`] computes which earlier versions of robots.txt a crawler may still
//! have cached. It uses the versions that the host published, and those that the crawler was served
//! there. [`CrawlerCacheProfile`] is the cache in which a crawler keeps robots.txt. Several
//! crawlers may share one cache.

use super::host::{ALL_CLIENTS, HostRecord, ServedVersions};
use crate::crawlers::{Claim, Registry};
use crate::policy::SiteEntry;
use crate::policy::publication_history::PeerPublications;
use crate::time::Timestamp;
use crate::verdict::{
    CachedVersions, CachedVersionsBasis, SiteClaim, select_versions, superseded_bits_since,
};
use std::time::Duration;

/// The cache name of unknown bots.
const OTHER_BOTS: &str = "other";
/// The cache name of tools.
const TOOLS: &str = "tool";

/// The cache in which a crawler keeps robots.txt. Crawlers that share one share their served
/// versions.
pub struct CrawlerCacheProfile<'a> {
    /// Its name.
    pub name: &'a str,
    /// The documented lifetime of a copy.
    max_age: Duration,
}

impl<'a> CrawlerCacheProfile<'a> {
    /// The cache of a claimed crawler: its own by the registry or by the token of the policy, or
    /// the one that all unknown bots, all tools, or all other clients share. Only the registry
    /// documents a lifetime of copies; otherwise it is zero.
    pub fn for_claim(
        claim: Claim,
        registry: &'a Registry,
        entry: &'a SiteEntry,
    ) -> CrawlerCacheProfile<'a> {
        use Claim::*;
        let name = match claim {
            Known(index) => {
                let (name, max_age) = registry.robots_cache(index);
                return CrawlerCacheProfile { name, max_age };
            }
            PolicyToken(index) => entry
                .site
                .tokens
                .tokens()
                .get(usize::from(index))
                .map_or(OTHER_BOTS, String::as_str),
            UnknownBot => OTHER_BOTS,
            Tool => TOOLS,
            Visitor => ALL_CLIENTS,
        };
        CrawlerCacheProfile {
            name,
            max_age: Duration::ZERO,
        }
    }
}

/// What limits the knowledge of served versions at a request.
pub struct ObservationCaveats {
    /// Seconds by which the clock was set, if the history does not include that yet.
    pub clock_set_by: Option<i64>,
    /// Whether every peer has reported the versions that it served up to the request.
    pub peers_confirmed: bool,
}

/// Computes which versions a crawler may have cached, of those that the host published within the
/// time of `grace` and of caches. If the host is observed for that long, these are the versions
/// that the crawler was served. Otherwise, and behind a cache, they are all versions that were in
/// force in that time. Versions that peers may have served without a report are added.
pub fn estimate_cached_versions<'a>(
    claimant: SiteClaim<'a>,
    cache: CrawlerCacheProfile<'_>,
    host: &HostRecord,
    now: Timestamp,
    known: ObservationCaveats,
) -> CachedVersions<'a> {
    use CachedVersionsBasis::*;
    let SiteClaim { entry, history, .. } = claimant;
    let set_forward = known.clock_set_by.and_then(|by| u64::try_from(by).ok());
    let set_forward = Duration::from_secs(set_forward.unwrap_or_default());
    // A cache in front of crawlgate may have served a copy later.
    let window = entry.site.grace.max(cache.max_age) + entry.site.behind_cache.unwrap_or_default();
    let cached_since = history.cached_since(window.saturating_add(set_forward), now);
    let is_observed_for = known.clock_set_by.is_none() && host.is_observed_for(entry, now);
    // A copy from just before the observation began may be used for the whole window.
    let unseen_until = if is_observed_for {
        host.observed_since(history)
    } else {
        now
    };
    let is_observed = unseen_until < cached_since;
    // If the operator declared what was served before crawlgate, all possible copies are known.
    let basis = if is_observed {
        Observed
    } else if is_observed_for && history.is_declared {
        Declared
    } else {
        Unknown
    };
    let is_behind_cache = entry.site.behind_cache.is_some();
    let mut found = CacheEstimate {
        cached_since,
        cached: 0,
        may_be_unknown: false,
        was_served: is_behind_cache,
        last_other_served: (basis == Unknown).then_some(unseen_until),
    };
    // Behind a cache it is unknown which crawler was served which version.
    if !is_observed || is_behind_cache {
        found.add_superseded(claimant);
    }
    // Before the identity epoch a crawler may have been served under the name of another.
    let name = if history.identity_epoch >= cached_since {
        ALL_CLIENTS
    } else {
        cache.name
    };
    for served in host
        .crawlers
        .get(name)
        .into_iter()
        .chain([&host.every_crawler])
    {
        found.add_served(claimant, served);
    }
    // A peer may have served its version in force a moment ago without a report yet.
    let peers = &history.peers;
    if !known.peers_confirmed && peers.in_force != 0 {
        found.cached |= peers.in_force;
        found.last_other_served = Some(now);
    }
    found.add_unreported(peers);
    CachedVersions {
        versions: &history.superseded,
        cached: found.cached,
        may_be_unknown: found.may_be_unknown,
        was_served: found.was_served,
        has_version_in_force: has_version_in_force(claimant, cache, host),
        basis,
        older_until: found
            .last_other_served
            .map(|last| history.cached_until(window, last, now))
            .filter(|until| *until >= now),
    }
}

/// The copies that a crawler may have cached, collected from several sources.
struct CacheEstimate {
    /// Versions served before this moment are no longer cached.
    cached_since: Timestamp,
    /// The superseded versions that may be cached, as a bit set over `superseded` of the history.
    cached: u64,
    may_be_unknown: bool,
    was_served: bool,
    /// The last time at which the crawler may have been served another version than the one in
    /// force.
    last_other_served: Option<Timestamp>,
}

impl CacheEstimate {
    fn may_be_cached(&self, served_at: Option<Timestamp>) -> bool {
        served_at >= Some(self.cached_since)
    }

    /// Adds all versions that were in force since `cached_since`.
    fn add_superseded(&mut self, claimant: SiteClaim<'_>) {
        let history = claimant.history;
        self.cached = superseded_bits_since(claimant, self.cached_since);
        self.may_be_unknown = self.may_be_cached(history.unknown_until);
        let superseded =
            select_versions(&history.superseded, self.cached).map(|version| version.superseded_at);
        let last = superseded.chain(history.unknown_until).max();
        self.last_other_served = self.last_other_served.max(last);
    }

    /// Adds versions that the ledger recorded as served.
    fn add_served(&mut self, claimant: SiteClaim<'_>, served: &ServedVersions) {
        for visit in &served.versions {
            if !self.may_be_cached(Some(visit.at)) {
                continue;
            }
            self.was_served = true;
            if visit.version == claimant.entry.site.robots_txt.version {
                continue;
            }
            self.last_other_served = self.last_other_served.max(Some(visit.at));
            let mut superseded = claimant.history.superseded.iter().take(64);
            match superseded.position(|version| version.parsed.version == visit.version) {
                Some(place) => self.cached |= 1 << place,
                None => self.may_be_unknown = true,
            }
        }
        self.may_be_unknown |= self.may_be_cached(served.lost);
        self.last_other_served = self.last_other_served.max(served.lost);
    }

    /// Adds what other instances may have served and did not report.
    fn add_unreported(&mut self, peers: &PeerPublications) {
        self.may_be_unknown |= self.may_be_cached(peers.unknown_until);
        self.last_other_served = self.last_other_served.max(peers.unknown_until);
        for (place, until) in &peers.unreported {
            self.last_other_served = self.last_other_served.max(Some(*until));
            if self.may_be_cached(Some(*until)) {
                self.was_served = true;
                self.cached |= place.map_or(0, |place| 1 << place);
            }
        }
    }
}

/// Whether the crawler itself was served the version in force, since the identity epoch. False
/// behind a cache, and for unknown bots and tools, which share a name.
fn has_version_in_force(
    claimant: SiteClaim<'_>,
    cache: CrawlerCacheProfile<'_>,
    host: &HostRecord,
) -> bool {
    let SiteClaim { entry, history, .. } = claimant;
    let is_alone =
        cache.name != OTHER_BOTS && cache.name != TOOLS && entry.site.behind_cache.is_none();
    let current = entry.site.robots_txt.version;
    let own = host.crawlers.get(cache.name).filter(|_| is_alone);
    own.is_some_and(|served| {
        served
            .versions
            .iter()
            .any(|visit| visit.version == current && visit.at >= history.identity_epoch)
    })
}
