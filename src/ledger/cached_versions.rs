//! [`cached_versions`] computes which superseded versions a crawler may have cached, from what the
//! host published when, and from what the crawler was served there. [`RobotsCache`] names the cache
//! of a crawler.

use super::host::{ANYONE, Host, Served};
use crate::crawlers::{Claim, Registry};
use crate::policy::SiteEntry;
use crate::policy::host_history::Elsewhere;
use crate::time::Timestamp;
use crate::verdict::{CachedVersions, Claimant, HistoryBasis, chosen, superseded_since};
use std::time::Duration;

/// Bots that no list knows.
const OTHER: &str = "other";
/// Programs that no list knows.
const TOOL: &str = "tool";

/// The cache in which a crawler keeps robots.txt. Crawlers that share one share what they were
/// served.
pub struct RobotsCache<'a> {
    /// Its name.
    pub name: &'a str,
    /// For how long it is documented to keep a copy.
    kept: Duration,
}

impl<'a> RobotsCache<'a> {
    /// The cache of a claimed crawler: by the registry, by the token of the policy, or the one that
    /// all unlisted bots, all tools, or all other clients share. Only the registry documents how
    /// long a copy is kept; elsewhere that is zero.
    pub fn of(claim: Claim, registry: &'a Registry, entry: &'a SiteEntry) -> RobotsCache<'a> {
        let name = match claim {
            Claim::Known(index) => {
                let (name, kept) = registry.robots_cache(index);
                return RobotsCache { name, kept };
            }
            Claim::Token(index) => entry
                .site
                .tokens
                .tokens()
                .get(usize::from(index))
                .map_or(OTHER, String::as_str),
            Claim::Other => OTHER,
            Claim::Tool => TOOL,
            Claim::Nobody => ANYONE,
        };
        RobotsCache {
            name,
            kept: Duration::ZERO,
        }
    }
}

/// What limits the knowledge of what was served.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    /// By how many seconds the clock was set, where the history does not know of that yet.
    pub set_by: Option<i64>,
    /// Whether every other instance has told what it served until the request.
    pub has_heard_all: bool,
}

/// What a crawler may have cached now, of what the host published within the time of `grace` and of
/// caches. If the host is observed for that long, these are the versions that the crawler was
/// served. Otherwise, and behind a cache, they are all versions that were in force in that time.
/// Versions that other instances may have served without a report are added.
pub fn cached_versions<'a>(
    claimant: Claimant<'a>,
    cache: RobotsCache<'_>,
    host: &Host,
    now: Timestamp,
    known: Known,
) -> CachedVersions<'a> {
    let Claimant { entry, history, .. } = claimant;
    let set_forward = known.set_by.and_then(|by| u64::try_from(by).ok());
    let set_forward = Duration::from_secs(set_forward.unwrap_or_default());
    // A cache in front of crawlgate may have handed out a copy later.
    let window = entry.site.grace.max(cache.kept) + entry.site.behind_cache.unwrap_or_default();
    let cached_since = history.cached_since(window.saturating_add(set_forward), now);
    let is_unbroken = known.set_by.is_none() && host.is_unbroken(entry, now);
    // A copy from the second before the observation began may be used for as long as any.
    let unseen_until = if is_unbroken {
        host.observed_since(history)
    } else {
        now
    };
    let is_observed = unseen_until < cached_since;
    // Where the operator says what was served before crawlgate, all versions are known that the
    // crawler may have.
    let basis = if is_observed {
        HistoryBasis::Observed
    } else if is_unbroken && history.is_declared {
        HistoryBasis::Declared
    } else {
        HistoryBasis::Unknown
    };
    let is_behind_cache = entry.site.behind_cache.is_some();
    let mut found = Found {
        cached_since,
        cached: 0,
        may_be_unknown: false,
        was_served: is_behind_cache,
        last: (basis == HistoryBasis::Unknown).then_some(unseen_until),
    };
    // Where a cache answers crawlers, crawlgate cannot know what it served to which of them.
    if !is_observed || is_behind_cache {
        found.add_superseded(claimant);
    }
    // A crawler that was told apart otherwise may have been served in the name of another.
    let name = if history.identity_epoch >= cached_since {
        ANYONE
    } else {
        cache.name
    };
    for served in host.crawler(name).into_iter().chain([&host.everyone]) {
        found.add_served(claimant, served);
    }
    // What another instance has in force it may have served a moment ago, and not told yet.
    let elsewhere = &history.elsewhere;
    if !known.has_heard_all && elsewhere.in_force != 0 {
        found.cached |= elsewhere.in_force;
        found.last = Some(now);
    }
    found.add_unreported(elsewhere);
    CachedVersions {
        versions: &history.superseded,
        cached: found.cached,
        may_be_unknown: found.may_be_unknown,
        was_served: found.was_served,
        has_version_in_force: has_version_in_force(claimant, cache, host),
        basis,
        older_until: found
            .last
            .map(|last| history.cached_until(window, last, now))
            .filter(|until| *until >= now),
    }
}

/// What was found about the copies of a crawler.
struct Found {
    /// What was served before this moment is in no cache any more.
    cached_since: Timestamp,
    /// The superseded versions that may be cached, as bits.
    cached: u64,
    may_be_unknown: bool,
    was_served: bool,
    /// The last moment at which the crawler may have been served anything but the version in force.
    last: Option<Timestamp>,
}

impl Found {
    fn may_be_cached(&self, served_at: Option<Timestamp>) -> bool {
        served_at >= Some(self.cached_since)
    }

    /// Adds all versions that were in force lately.
    fn add_superseded(&mut self, claimant: Claimant<'_>) {
        let history = claimant.history;
        self.cached = superseded_since(claimant, self.cached_since);
        self.may_be_unknown = self.may_be_cached(history.unknown_until);
        let superseded = chosen(&history.superseded, self.cached).map(|held| held.superseded_at);
        let last = superseded.chain(history.unknown_until).max();
        self.last = self.last.max(last);
    }

    /// Adds what the ledger says was served.
    fn add_served(&mut self, claimant: Claimant<'_>, served: &Served) {
        for visit in &served.versions {
            if !self.may_be_cached(Some(visit.at)) {
                continue;
            }
            self.was_served = true;
            if visit.version == claimant.entry.site.robots_txt.version {
                continue;
            }
            self.last = self.last.max(Some(visit.at));
            let mut superseded = claimant.history.superseded.iter().take(64);
            match superseded.position(|held| held.parsed.version == visit.version) {
                Some(place) => self.cached |= 1 << place,
                None => self.may_be_unknown = true,
            }
        }
        self.may_be_unknown |= self.may_be_cached(served.lost);
        self.last = self.last.max(served.lost);
    }

    /// Adds what other instances may have served and did not report.
    fn add_unreported(&mut self, elsewhere: &Elsewhere) {
        self.may_be_unknown |= self.may_be_cached(elsewhere.unknown_until);
        self.last = self.last.max(elsewhere.unknown_until);
        for (place, until) in &elsewhere.unreported {
            self.last = self.last.max(Some(*until));
            if self.may_be_cached(Some(*until)) {
                self.was_served = true;
                self.cached |= place.map_or(0, |place| 1 << place);
            }
        }
    }
}

/// Whether the crawler itself was served the version in force, since crawlers are told apart as
/// now. False behind a cache, and for unlisted bots and tools, which share a name.
fn has_version_in_force(claimant: Claimant<'_>, cache: RobotsCache<'_>, host: &Host) -> bool {
    let Claimant { entry, history, .. } = claimant;
    // Bots and programs that no list knows share a name, and behind a cache it is the cache that is
    // served.
    let is_alone = cache.name != OTHER && cache.name != TOOL && entry.site.behind_cache.is_none();
    let current = entry.site.robots_txt.version;
    let own = host.crawler(cache.name).filter(|_| is_alone);
    own.is_some_and(|served| {
        served
            .versions
            .iter()
            .any(|visit| visit.version == current && visit.at >= history.identity_epoch)
    })
}
