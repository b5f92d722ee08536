//! [`HostRecord`]: which versions of robots.txt each crawler was served on one host
//! ([`ServedVersions`]), and since when the host is observed. Since that time the record has every
//! robots.txt that was served on the host. Observation restarts when the host moves to another
//! site, when no crawler requested the host for long, and when records may be missing.
//! [`host_facts`] converts a record into facts (rows) for the state database, and [`restore_hosts`]
//! converts facts back.

use super::proxy_paths::ProxyPathStates;
use crate::facts::{self, Fact, HostObservation, StoredFacts, UncachedPath};
use crate::policy::{PublicationHistory, RobotsVersionId, SiteEntry};
use crate::publications::PublishedRobots;
use crate::record::ProxyPath;
use crate::time::Timestamp;
use PublishedRobots::*;
use ahash::RandomState;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// The most versions for one crawler on one host, as many as the history of a host has.
const MAX_VERSIONS: usize = 64;
/// Seconds between two recorded requests to a host.
const TOUCH_INTERVAL: i64 = 60;
/// Any shorter time without requests does not end an observation.
const MIN_SILENCE: Duration = Duration::from_secs(3_600);
const NO_CACHE: i64 = -1;

/// The key of what was served to all clients together. No crawler has this name.
pub const ALL_CLIENTS: &str = "*";
/// The crawler name, in the state store, of versions that every crawler may have been served.
const EVERY_CRAWLER: &str = "";

/// A served version, with the last time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionLastServed {
    /// The version.
    pub version: RobotsVersionId,
    /// When it, or a 304 for it, was last sent completely.
    pub at: Timestamp,
}

/// The versions that were served to one crawler on one host.
#[derive(Default)]
pub struct ServedVersions {
    /// Each version once.
    pub versions: SmallVec<[VersionLastServed; 2]>,
    /// When the last dropped version was served, if more than `MAX_VERSIONS` were.
    pub lost: Option<Timestamp>,
}

/// The result of [`ServedVersions::add`].
pub struct AddVersionResult {
    /// Whether the version or its last time changed.
    pub is_new: bool,
    /// The version that was dropped.
    pub dropped: Option<RobotsVersionId>,
}

impl ServedVersions {
    /// Records that a version was served at `at`. An earlier time than the known one changes
    /// nothing. Beyond `MAX_VERSIONS` the version that was served longest ago is dropped, and its
    /// time is kept in `lost`.
    pub fn add(&mut self, version: RobotsVersionId, at: Timestamp) -> AddVersionResult {
        let mut added = AddVersionResult {
            is_new: true,
            dropped: None,
        };
        match self
            .versions
            .iter_mut()
            .find(|visit| visit.version == version)
        {
            // A clock that was set back must not make a copy older.
            Some(visit) => {
                added.is_new = at > visit.at;
                visit.at = visit.at.max(at);
            }
            None => self.versions.push(VersionLastServed { version, at }),
        }
        if self.versions.len() > MAX_VERSIONS
            && let Some((oldest, visit)) = self
                .versions
                .iter()
                .copied()
                .enumerate()
                .min_by_key(|(_, visit)| visit.at)
        {
            self.versions.swap_remove(oldest);
            self.lost = self.lost.max(Some(visit.at));
            added.dropped = Some(visit.version);
        }
        added
    }

    /// Clamps times in the future, which are from before the clock was set back.
    fn clamp_to(&mut self, now: Timestamp) {
        for visit in &mut self.versions {
            visit.at = visit.at.min(now);
        }
        self.lost = self.lost.map(|lost| lost.min(now));
    }
}

/// The sites that a host belongs to.
#[derive(Default)]
pub struct HostOwner {
    /// The name of the site. If the usual ports belong to different sites, the names for no port,
    /// 80 and 443, separated by `/`, which is in no name. Empty for a host without a site.
    pub sites: String,
    /// For how long a cache in front of crawlgate keeps answers.
    pub cache: Option<Duration>,
}

impl HostOwner {
    /// The owner in a stored observation.
    pub fn from_observation(observed: &HostObservation) -> HostOwner {
        HostOwner {
            sites: observed.site.clone(),
            cache: observed.behind_cache.map(Duration::from_secs),
        }
    }

    /// Whether no site has the host.
    pub fn is_siteless(&self) -> bool {
        self.sites.split('/').all(str::is_empty)
    }
}

/// What the ledger knows of one host.
#[derive(Default)]
pub struct HostRecord {
    /// The sites that the host belongs to: see [`HostOwner::sites`].
    pub owner: Box<str>,
    since: AtomicI64,
    seen: AtomicI64,
    /// Whether a policy has the exact name of the host. Such hosts are few, and removed last.
    pub named: bool,
    /// For how many seconds a cache in front of crawlgate keeps answers; [`NO_CACHE`] without one.
    cache: AtomicI64,
    /// Whether the state store knows the host.
    is_stored: AtomicBool,
    /// The proxies through which crawlers come.
    pub paths: ProxyPathStates,
    /// When a request of a crawler last came through proxies of which one may be a cache. Zero for
    /// never.
    perhaps_cached: AtomicI64,
    /// Versions that any crawler may have been served without a record, around a crash.
    pub every_crawler: ServedVersions,
    /// By the name of the robots.txt cache, from the registry and policies.
    pub crawlers: HashMap<Box<str>, ServedVersions, RandomState>,
}

/// Converts the time of a cache to seconds; `NO_CACHE` without a cache.
fn cache_seconds(time: Option<Duration>) -> i64 {
    time.map_or(NO_CACHE, |time| time.as_secs() as i64)
}

impl HostRecord {
    /// The start of the observation of a host that did not exist before crawlgate.
    pub const SINCE_BEGINNING: Timestamp = Timestamp(0);

    /// A host that is observed since `since`, and whose last request was at `seen`.
    pub fn new(owner: &HostOwner, since: Timestamp, seen: Timestamp, named: bool) -> HostRecord {
        HostRecord {
            owner: (*owner.sites).into(),
            since: since.0.into(),
            seen: seen.0.into(),
            named,
            cache: cache_seconds(owner.cache).into(),
            ..HostRecord::default()
        }
    }

    /// Whether the host belongs to the site, alone or on one of its ports.
    pub fn belongs_to(&self, site: &str) -> bool {
        *self.owner == *site
            || self.owner.contains('/') && self.owner.split('/').any(|owner| owner == site)
    }

    /// Sets the owner, and returns whether anything changed. With another owner the observation
    /// restarts now. If the time of the cache became shorter or the cache is gone, the observation
    /// restarts when its former time is over, because until then the cache may serve old copies. A
    /// host without a site keeps the time of its cache.
    pub fn set_owner(&mut self, owner: &HostOwner, now: Timestamp) -> bool {
        let is_other = *self.owner != *owner.sites;
        if is_other {
            self.owner = (*owner.sites).into();
            self.since.fetch_max(now.0, Relaxed);
        }
        let cache = if owner.is_siteless() {
            self.cache.load(Relaxed)
        } else {
            cache_seconds(owner.cache)
        };
        let before = self.cache.swap(cache, Relaxed);
        if before > cache {
            self.since.fetch_max(now.0.saturating_add(before), Relaxed);
        }
        is_other || before != cache
    }

    /// Whether [`HostRecord::set_owner`] would change nothing.
    pub fn has_owner(&self, owner: &HostOwner) -> bool {
        *self.owner == *owner.sites
            && (owner.is_siteless() || self.cache.load(Relaxed) == cache_seconds(owner.cache))
    }

    /// For how long a cache in front of crawlgate keeps answers.
    pub fn cache_time(&self) -> Option<Duration> {
        u64::try_from(self.cache.load(Relaxed))
            .ok()
            .map(Duration::from_secs)
    }

    /// Since when the host is observed.
    pub fn observation_start(&self) -> Timestamp {
        Timestamp(self.since.load(Relaxed))
    }

    /// Since when the host is observed at its present site: the later of its start and of its move
    /// to the site by the history, because a crash may have kept the move from the state store. A
    /// host that is observed since `SINCE_BEGINNING` was at no site before.
    pub fn observed_since(&self, history: &PublicationHistory) -> Timestamp {
        let since = self.observation_start();
        if since == HostRecord::SINCE_BEGINNING {
            since
        } else {
            since.max(history.on_site_since)
        }
    }

    /// Whether the host is observed for the site of `entry`: it belongs to it, and is not
    /// abandoned.
    pub fn is_observed_for(&self, entry: &SiteEntry, now: Timestamp) -> bool {
        !self.is_abandoned(entry.site.grace, now) && self.belongs_to(&entry.site.name)
    }

    /// When a crawler last requested the host; up to a minute too early.
    pub fn last_request(&self) -> Timestamp {
        Timestamp(self.seen.load(Relaxed))
    }

    /// Whether the state store knows the host.
    pub fn is_stored(&self) -> bool {
        self.is_stored.load(Relaxed)
    }

    /// Records that the state store knows the host. Returns whether it did before.
    pub fn mark_stored(&self) -> bool {
        self.is_stored.swap(true, Relaxed)
    }

    /// Records that a request of a crawler came through proxies of which one may be a cache.
    pub fn record_perhaps_cached(&self, now: Timestamp) {
        self.perhaps_cached.fetch_max(now.0, Relaxed);
    }

    /// Whether, in the last hour, a request of a crawler came through proxies of which one may be a
    /// cache.
    pub fn is_perhaps_cached(&self, now: Timestamp) -> bool {
        let last = self.perhaps_cached.load(Relaxed);
        last != 0 && now.since(Timestamp(last)) < MIN_SILENCE
    }

    /// Forgets that requests came through a possible cache, because one path was shown to have
    /// none. A request through another path sets it again.
    pub fn clear_perhaps_cached(&self) {
        self.perhaps_cached.store(0, Relaxed);
    }

    /// What was served to the crawlers of a robots.txt cache, created if it is missing.
    pub fn serve_history_mut(&mut self, name: &str) -> &mut ServedVersions {
        self.crawlers.entry(name.into()).or_default()
    }

    /// What was served to each crawler, by name.
    pub fn serve_histories(&self) -> impl Iterator<Item = (&str, &ServedVersions)> {
        self.crawlers
            .iter()
            .map(|(name, history)| (&**name, history))
    }

    /// Whether no crawler requested the host for longer than `silence` (at least an hour), so that
    /// its DNS may have pointed elsewhere meanwhile.
    pub fn is_abandoned(&self, silence: Duration, now: Timestamp) -> bool {
        now.since(self.last_request()) > silence.max(MIN_SILENCE)
    }

    /// Whether a request now must be recorded: the last recorded one is a minute away or more, in
    /// either direction of the clock, or the host is abandoned (see `is_abandoned` for `silence`).
    pub fn is_touch_due(&self, silence: Duration, now: Timestamp) -> bool {
        self.is_abandoned(silence, now)
            || now.0.saturating_sub(self.last_request().0).abs() >= TOUCH_INTERVAL
    }

    /// Records a request, if that is due, and returns whether it was. The observation of an
    /// abandoned host restarts with it.
    pub fn touch(&self, silence: Duration, now: Timestamp) -> bool {
        if !self.is_touch_due(silence, now) {
            return false;
        }
        if self.is_abandoned(silence, now) {
            self.since.fetch_max(now.0, Relaxed);
        }
        self.seen.store(now.0, Relaxed);
        true
    }

    /// Merges the observation of a peer: the earlier beginning and the later request count.
    pub fn merge_observation(&self, since: Timestamp, seen: Timestamp) {
        self.since.fetch_min(since.0, Relaxed);
        self.seen.fetch_max(seen.0, Relaxed);
    }

    /// Restarts the observation now. One that begins in the future, after the time of a removed
    /// cache, moves by `set_by`, the seconds by which the clock was set. Other times in the future
    /// become `now`.
    pub fn restart_observation(&mut self, now: Timestamp, set_by: i64) {
        let since = self.observation_start().0.saturating_add(set_by).max(now.0);
        self.since.store(since, Relaxed);
        self.seen.fetch_min(now.0, Relaxed);
        self.every_crawler.clamp_to(now);
        for served in self.crawlers.values_mut() {
            served.clamp_to(now);
        }
    }
}

/// Converts a host to the fact that it is observed.
pub fn to_observation(name: &str, host: &HostRecord) -> HostObservation {
    HostObservation {
        host: name.to_owned(),
        site: host.owner.to_string(),
        since: host.observation_start(),
        seen: host.last_request(),
        named: host.named,
        behind_cache: host.cache_time().map(|cache| cache.as_secs()),
    }
}

/// The fact that a crawler received this on a host.
pub fn served_version(
    name: &str,
    crawler: &str,
    received: PublishedRobots,
) -> facts::ServedVersion {
    facts::ServedVersion {
        host: name.to_owned(),
        crawler: crawler.to_owned(),
        received,
    }
}

/// All facts of a host: its observation, each served version with its own time, and its paths
/// without a cache. The others have the time `at`.
pub fn host_facts(name: &str, host: &HostRecord, at: Timestamp) -> Vec<Fact> {
    let mut facts = vec![Fact::set(at, to_observation(name, host))];
    for (crawler, known) in host
        .serve_histories()
        .chain([(EVERY_CRAWLER, &host.every_crawler)])
    {
        for visit in &known.versions {
            let received = Version(visit.version);
            facts.push(Fact::set(visit.at, served_version(name, crawler, received)));
        }
        if let Some(lost) = known.lost {
            facts.push(Fact::set(lost, served_version(name, crawler, Unknown)));
        }
    }
    for path in host.paths.uncached_paths() {
        let path = UncachedPath {
            host: name.to_owned(),
            proxies: path.to_string(),
        };
        facts.push(Fact::set(at, path));
    }
    facts
}

/// The facts that remove every record of a host at `at`.
pub fn removal_facts(name: &str, host: &HostRecord, at: Timestamp) -> Vec<Fact> {
    host_facts(name, host, at)
        .into_iter()
        .map(|fact| Fact::removed(at, fact.fact))
        .collect()
}

/// The facts of a change that [`ServedVersions::add`] returned: the version with its time, if that is
/// new. If another version was dropped, also its removal and the new value of `lost`. `after` is
/// the changed history.
pub fn serve_change_facts(
    name: &str,
    crawler: &str,
    version: RobotsVersionId,
    added: AddVersionResult,
    after: &ServedVersions,
) -> Vec<Fact> {
    let at = after
        .versions
        .iter()
        .find(|visit| visit.version == version)
        .map(|visit| visit.at);
    let mut facts = Vec::new();
    if let Some(at) = at
        && added.is_new
    {
        let received = Version(version);
        facts.push(Fact::set(at, served_version(name, crawler, received)));
    }
    if let Some((dropped, lost)) = added.dropped.zip(after.lost) {
        let gone = served_version(name, crawler, Version(dropped));
        facts.push(Fact::removed(at.unwrap_or(lost), gone));
        facts.push(Fact::set(lost, served_version(name, crawler, Unknown)));
    }
    facts
}

/// Restores the hosts from the state store, by name, all marked as stored. A host with served
/// versions but without an observation has no owner, and its observation begins now.
pub fn restore_hosts(facts: &StoredFacts, now: Timestamp) -> HashMap<&str, HostRecord> {
    let mut hosts: HashMap<&str, HostRecord> = HashMap::new();
    for (_, known) in &facts.observations {
        hosts.insert(
            &known.host,
            HostRecord::new(
                &HostOwner::from_observation(known),
                known.since,
                known.seen,
                known.named,
            ),
        );
    }
    for (at, known) in &facts.served {
        let host = hosts
            .entry(&known.host)
            .or_insert_with(|| HostRecord::new(&HostOwner::default(), now, *at, false));
        let served = match known.crawler.as_str() {
            EVERY_CRAWLER => &mut host.every_crawler,
            name => host.serve_history_mut(name),
        };
        match known.received {
            Version(version) => drop(served.add(version, *at)),
            // A 503 is no copy. The history of the host has it.
            Unavailable => {}
            Unknown | UnknownOrUnavailable => served.lost = served.lost.max(Some(*at)),
        }
    }
    for (_, UncachedPath { host, proxies }) in &facts.uncached_paths {
        if let (Some(host), Some(path)) = (hosts.get_mut(host.as_str()), ProxyPath::parse(proxies))
        {
            host.paths.set_uncached(path);
        }
    }
    for host in hosts.values() {
        host.mark_stored();
    }
    hosts
}
