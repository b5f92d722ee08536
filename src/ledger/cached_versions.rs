//! [`cached_versions`] computes which superseded versions a crawler may have cached, from what the
//! host published when, and from what the crawler was served there. [`RobotsCache`] names the cache
//! of a crawler.

use super::host::{ANYONE, Host, LastServed};
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
#[derive(Clone, Copy, Debug)]
pub struct RobotsCache<'a> {
    /// Its name.
    pub name: &'a str,
    /// For how long it is documented to keep a copy.
    kept: Duration,
}

impl<'a> RobotsCache<'a> {
    /// The cache of a claimed crawler.
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

/// What a crawler may have cached.
pub fn cached_versions<'a>(
    claimant: Claimant<'a>,
    cache: RobotsCache<'_>,
    host: &Host,
    now: Timestamp,
    Known {
        set_by,
        has_heard_all,
    }: Known,
) -> CachedVersions<'a> {
    let Claimant { entry, history, .. } = claimant;
    let set_forward = Duration::from_secs(
        set_by
            .and_then(|by| u64::try_from(by).ok())
            .unwrap_or_default(),
    );
    // A cache in front of crawlgate may have handed out a copy later.
    let window = entry.site.grace.max(cache.kept) + entry.site.behind_cache.unwrap_or_default();
    let cached_since = history.cached_since(window.saturating_add(set_forward), now);
    let may_be_cached = |moment: Timestamp| moment >= cached_since;
    let is_unbroken = set_by.is_none() && host.is_unbroken(entry, now);
    // A copy from the second before the observation began may be used for as long as any.
    let unseen_until = if is_unbroken {
        host.observed_since(history)
    } else {
        now
    };
    let is_observed = !may_be_cached(unseen_until);
    // Where the operator says what was served before crawlgate, all versions are known that the
    // crawler may have.
    let basis = match is_unbroken && history.is_declared {
        _ if is_observed => HistoryBasis::Observed,
        true => HistoryBasis::Declared,
        false => HistoryBasis::Unknown,
    };
    let is_behind_cache = entry.site.behind_cache.is_some();
    let (mut cached, mut may_be_unknown, mut was_served) = (0, false, is_behind_cache);
    // The last moment at which the crawler may have been served anything but the version in force.
    let mut last = (basis == HistoryBasis::Unknown).then_some(unseen_until);
    // Where a cache answers crawlers, crawlgate cannot know what it served to which of them.
    if !is_observed || is_behind_cache {
        cached = superseded_since(claimant, cached_since);
        may_be_unknown = history.unknown_until.is_some_and(may_be_cached);
        let superseded = chosen(&history.superseded, cached).map(|held| held.superseded_at);
        last = superseded.chain(history.unknown_until).max().max(last);
    }
    // A crawler that was told apart otherwise may have been served in the name of another.
    let name = if may_be_cached(history.identity_epoch) {
        ANYONE
    } else {
        cache.name
    };
    for served in [host.crawler(name), Some(&host.everyone)]
        .into_iter()
        .flatten()
    {
        for visit in served
            .versions
            .iter()
            .filter(|visit| may_be_cached(visit.at))
        {
            was_served = true;
            if visit.version != entry.site.robots_txt.version {
                last = last.max(Some(visit.at));
                match history
                    .superseded
                    .iter()
                    .take(64)
                    .position(|held| held.parsed.version == visit.version)
                {
                    Some(place) => cached |= 1 << place,
                    None => may_be_unknown = true,
                }
            }
        }
        may_be_unknown |= served.lost.is_some_and(may_be_cached);
        last = last.max(served.lost);
    }
    let Elsewhere {
        in_force,
        unreported,
        unknown_until,
    } = &history.elsewhere;
    may_be_unknown |= unknown_until.is_some_and(may_be_cached);
    // What another instance has in force it may have served a moment ago, and not told yet.
    if !has_heard_all && *in_force != 0 {
        cached |= *in_force;
        last = Some(now);
    }
    last = unreported
        .iter()
        .map(|(_, until)| *until)
        .chain(*unknown_until)
        .max()
        .max(last);
    for (place, _) in unreported.iter().filter(|(_, until)| may_be_cached(*until)) {
        was_served = true;
        cached |= place.map_or(0, |place| 1 << place);
    }
    CachedVersions {
        versions: &history.superseded,
        cached,
        may_be_unknown,
        was_served,
        has_version_in_force: has_version_in_force(claimant, cache, host),
        basis,
        older_until: last
            .map(|last| history.cached_until(window, last, now))
            .filter(|until| *until >= now),
    }
}

/// Whether the crawler itself was served the version in force, as crawlers are told apart now.
fn has_version_in_force(claimant: Claimant<'_>, cache: RobotsCache<'_>, host: &Host) -> bool {
    let Claimant { entry, history, .. } = claimant;
    // Bots and programs that no list knows share a name, and behind a cache it is the cache that is
    // served.
    let is_alone = cache.name != OTHER && cache.name != TOOL && entry.site.behind_cache.is_none();
    let current = entry.site.robots_txt.version;
    let is_current =
        |visit: &LastServed| visit.version == current && visit.at >= history.identity_epoch;
    let own = host.crawler(cache.name).filter(|_| is_alone);
    own.is_some_and(|served| served.versions.iter().any(is_current))
}
