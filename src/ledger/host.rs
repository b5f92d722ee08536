//! [`Host`]: what the ledger knows of one host: since when it is observed, and which versions each
//! crawler was served there ([`Served`], [`LastServed`]). Observation begins anew when the host
//! moves to another site, when no crawler came for long, and after a gap. [`facts_of`],
//! [`served_facts`] and [`removal_of`] convert hosts into records for the state store, and
//! [`hosts_from`] converts them back.

use super::proxies::KnownPaths;
use crate::facts::{self, Fact, Observation, StoredFacts, UncachedPath};
use crate::policy::{HostHistory, SiteEntry, Version};
use crate::publications::Published;
use crate::record::ProxyPath;
use crate::time::Timestamp;
use ahash::RandomState;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

/// Versions remembered for one crawler on one host. A host's history has no more.
const MAX_VERSIONS: usize = 64;
/// The moment of a request is noted at most once in so many seconds.
const COARSE: i64 = 60;
/// Observation lasts through any shorter silence.
const SILENCE: Duration = Duration::from_secs(3_600);
const NO_CACHE: i64 = -1;

/// The name under which stands what was served to all clients together: the name of no crawler.
pub const ANYONE: &str = "*";
/// What every crawler may have been served stands under no name in the state store.
const EVERYONE: &str = "";

/// One version that was served, and when last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastServed {
    /// The version.
    pub version: Version,
    /// When the whole of it, or a 304 for it, was last written.
    pub at: Timestamp,
}

/// What was served to one crawler on one host.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Each version once.
    pub versions: SmallVec<[LastServed; 2]>,
    /// When the last of those versions was served that there was no room for.
    pub lost: Option<Timestamp>,
}

/// What one more visit changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Added {
    /// Whether the version, or a later moment, is new.
    pub is_news: bool,
    /// The version that there was no more room for.
    pub dropped: Option<Version>,
}

impl Served {
    /// Records that a version was served at `at`; an earlier moment than the known one changes
    /// nothing. Beyond `MAX_VERSIONS` the version that was served longest ago is dropped, and the
    /// moment of that is kept in `lost`.
    pub fn add(&mut self, version: Version, at: Timestamp) -> Added {
        let mut added = Added {
            is_news: true,
            dropped: None,
        };
        match self
            .versions
            .iter_mut()
            .find(|visit| visit.version == version)
        {
            // A clock that was set back must not make a copy older.
            Some(visit) => {
                added.is_news = at > visit.at;
                visit.at = visit.at.max(at);
            }
            None => self.versions.push(LastServed { version, at }),
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

    /// Takes moments that lie ahead for now: they are those of a clock that was set back since.
    fn bound(&mut self, now: Timestamp) {
        for visit in &mut self.versions {
            visit.at = visit.at.min(now);
        }
        self.lost = self.lost.map(|lost| lost.min(now));
    }
}

/// The sites that a host belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The name of the site. Where the usual ports belong to different sites: the names for no
    /// port, 80 and 443, with `/` between them, which is in no name. Empty for a host without a
    /// site.
    pub sites: String,
    /// For how long a cache in front of crawlgate keeps answers.
    pub cache: Option<Duration>,
}

impl Owner {
    /// The owner of a host, as the state store has it.
    pub fn of(observed: &Observation) -> Owner {
        Owner {
            sites: observed.site.clone(),
            cache: observed.behind_cache.map(Duration::from_secs),
        }
    }

    /// Whether no site has the host.
    pub fn is_none(&self) -> bool {
        self.sites.split('/').all(str::is_empty)
    }
}

/// One host.
#[derive(Debug, Default)]
pub struct Host {
    /// The sites that the host belongs to: see [`Owner::sites`].
    pub owner: Box<str>,
    since: AtomicI64,
    seen: AtomicI64,
    /// Whether a policy names the host: such hosts are few, and forgotten last.
    pub named: bool,
    /// For how many seconds a cache in front of crawlgate keeps answers; [`NO_CACHE`] without one.
    cache: AtomicI64,
    /// Whether the state store knows the host.
    is_stored: AtomicBool,
    /// The proxies through which crawlers come.
    pub paths: KnownPaths,
    /// When a crawler's request last came through proxies of which one may be a cache; zero for
    /// never.
    perhaps_cached: AtomicI64,
    /// What any crawler may have been served without a record of it: around a crash.
    pub everyone: Served,
    /// By name. Names are those of the registry and of policies.
    crawlers: HashMap<Box<str>, Served, RandomState>,
}

/// The time of a cache in whole seconds; `NO_CACHE` without a cache.
fn seconds(time: Option<Duration>) -> i64 {
    time.map_or(NO_CACHE, |time| time.as_secs() as i64)
}

impl Host {
    /// Since when a host is observed that is new with crawlgate.
    pub const BEGINNING: Timestamp = Timestamp(0);

    /// A host that is observed since a moment.
    pub fn new(owner: &Owner, since: Timestamp, seen: Timestamp, named: bool) -> Host {
        Host {
            owner: (*owner.sites).into(),
            since: since.0.into(),
            seen: seen.0.into(),
            named,
            cache: seconds(owner.cache).into(),
            ..Host::default()
        }
    }

    /// Whether the host belongs to the site, alone or on one of its ports.
    pub fn is_of(&self, site: &str) -> bool {
        *self.owner == *site
            || self.owner.contains('/') && self.owner.split('/').any(|owner| owner == site)
    }

    /// Sets the owner, and returns whether anything changed. With another owner observation begins
    /// anew, now. If the time of the cache became shorter or the cache is gone, observation begins
    /// anew when its former time is over, because it may hand out until then what crawlgate served
    /// before. A host without a site keeps the time of its cache.
    pub fn settle(&mut self, owner: &Owner, now: Timestamp) -> bool {
        let is_other = *self.owner != *owner.sites;
        if is_other {
            self.owner = (*owner.sites).into();
            self.since.fetch_max(now.0, Relaxed);
        }
        let cache = if owner.is_none() {
            self.cache.load(Relaxed)
        } else {
            seconds(owner.cache)
        };
        let before = self.cache.swap(cache, Relaxed);
        if before > cache {
            self.since.fetch_max(now.0.saturating_add(before), Relaxed);
        }
        is_other || before != cache
    }

    /// Whether [`Host::settle`] would change nothing.
    pub fn is_settled(&self, owner: &Owner) -> bool {
        *self.owner == *owner.sites
            && (owner.is_none() || self.cache.load(Relaxed) == seconds(owner.cache))
    }

    /// For how long a cache in front of crawlgate keeps answers.
    pub fn cache(&self) -> Option<Duration> {
        u64::try_from(self.cache.load(Relaxed))
            .ok()
            .map(Duration::from_secs)
    }

    /// Since when the host is observed.
    pub fn since(&self) -> Timestamp {
        Timestamp(self.since.load(Relaxed))
    }

    /// Since when the host is observed at its present site: the later of its observation and of its
    /// move to the site by the history. (A crash may have kept the move from the state store.) A
    /// host that is observed since `Host::BEGINNING` was at no site before.
    pub fn observed_since(&self, history: &HostHistory) -> Timestamp {
        let since = self.since();
        if since == Host::BEGINNING {
            since
        } else {
            since.max(history.at_site_since)
        }
    }

    /// Whether the observation goes on: the host is not forsaken (`Host::is_forsaken`), and belongs
    /// to the site of the entry.
    pub fn is_unbroken(&self, entry: &SiteEntry, now: Timestamp) -> bool {
        !self.is_forsaken(entry.site.grace, now) && self.is_of(&entry.site.name)
    }

    /// When a crawler last asked for the host; up to a minute later in truth.
    pub fn seen(&self) -> Timestamp {
        Timestamp(self.seen.load(Relaxed))
    }

    /// Whether the state store knows the host.
    pub fn is_stored(&self) -> bool {
        self.is_stored.load(Relaxed)
    }

    /// Notes that the state store knows the host; says whether it did before.
    pub fn set_stored(&self) -> bool {
        self.is_stored.swap(true, Relaxed)
    }

    /// Records that a crawler's request came through proxies of which one may be a cache.
    pub fn set_perhaps_cached(&self, now: Timestamp) {
        self.perhaps_cached.fetch_max(now.0, Relaxed);
    }

    /// Whether, in the last hour, a crawler's request came through proxies of which one may be a
    /// cache.
    pub fn is_perhaps_cached(&self, now: Timestamp) -> bool {
        let last = self.perhaps_cached.load(Relaxed);
        last != 0 && now.since(Timestamp(last)) < SILENCE
    }

    /// Forgets that requests came through what may be a cache, because one path was shown to have
    /// none. A request through another path sets it again.
    pub fn clear_perhaps_cached(&self) {
        self.perhaps_cached.store(0, Relaxed);
    }

    /// What was served to a crawler, by the name of its cache; `None` if nothing is known.
    pub fn crawler(&self, name: &str) -> Option<&Served> {
        self.crawlers.get(name)
    }

    /// As [`Host::crawler`], to be changed; empty when the crawler is new.
    pub fn crawler_mut(&mut self, name: &str) -> &mut Served {
        self.crawlers.entry(name.into()).or_default()
    }

    /// What was served to each crawler, by name.
    pub fn crawlers(&self) -> impl Iterator<Item = (&str, &Served)> {
        self.crawlers.iter().map(|(name, served)| (&**name, served))
    }

    /// For how many crawlers something is remembered.
    pub fn count(&self) -> usize {
        self.crawlers.len()
    }

    /// Whether no crawler came for longer than `silence` (at least an hour), so that the host may
    /// have pointed elsewhere meanwhile. A host that is announced to crawlgate before its DNS
    /// record changes is seen once and then not for days.
    pub fn is_forsaken(&self, silence: Duration, now: Timestamp) -> bool {
        now.since(self.seen()) > silence.max(SILENCE)
    }

    /// Whether a request now is to be recorded: the last one was recorded a minute ago or more, in
    /// either direction of the clock, or the host is forsaken. `silence`: see `Host::is_forsaken`.
    pub fn is_due(&self, silence: Duration, now: Timestamp) -> bool {
        self.is_forsaken(silence, now) || now.0.saturating_sub(self.seen().0).abs() >= COARSE
    }

    /// Records a request, if that is due (`Host::is_due`), and returns whether it was. The
    /// observation of a forsaken host begins anew with it.
    pub fn touch(&self, silence: Duration, now: Timestamp) -> bool {
        if !self.is_due(silence, now) {
            return false;
        }
        if self.is_forsaken(silence, now) {
            self.since.fetch_max(now.0, Relaxed);
        }
        self.seen.store(now.0, Relaxed);
        true
    }

    /// Records that another instance observes the host since a moment, and when it last saw a
    /// crawler there. The earlier beginning and the later request count.
    pub fn observed_elsewhere(&self, since: Timestamp, seen: Timestamp) {
        self.since.fetch_min(since.0, Relaxed);
        self.seen.fetch_max(seen.0, Relaxed);
    }

    /// Begins the observation anew, now. One that is yet to begin, when the time of a cache is
    /// over, is moved by `set_by`, the seconds by which the clock was set; it begins now at the
    /// soonest. Moments that lie ahead become `now`.
    pub fn begin_anew(&mut self, now: Timestamp, set_by: i64) {
        let since = self.since().0.saturating_add(set_by).max(now.0);
        self.since.store(since, Relaxed);
        self.seen.fetch_min(now.0, Relaxed);
        self.everyone.bound(now);
        for served in self.crawlers.values_mut() {
            served.bound(now);
        }
    }
}

/// The record that a host is observed.
pub fn observation(name: &str, host: &Host) -> Observation {
    Observation {
        host: name.to_owned(),
        site: host.owner.to_string(),
        since: host.since(),
        seen: host.seen(),
        named: host.named,
        behind_cache: host.cache().map(|cache| cache.as_secs()),
    }
}

/// The record that a crawler received this on a host.
pub fn served(name: &str, crawler: &str, received: Published) -> facts::Served {
    facts::Served {
        host: name.to_owned(),
        crawler: crawler.to_owned(),
        received,
    }
}

/// Everything that is known of a host: its observation, each version that was served with its own
/// moment, and its paths without a cache. `at` is the moment of the facts that have none of their
/// own.
pub fn facts_of(name: &str, host: &Host, at: Timestamp) -> Vec<Fact> {
    let mut facts = vec![Fact::set(at, observation(name, host))];
    for (crawler, known) in host.crawlers().chain([(EVERYONE, &host.everyone)]) {
        for visit in &known.versions {
            let received = Published::Version(visit.version);
            facts.push(Fact::set(visit.at, served(name, crawler, received)));
        }
        if let Some(lost) = known.lost {
            facts.push(Fact::set(lost, served(name, crawler, Published::Unknown)));
        }
    }
    for path in host.paths.uncached() {
        let path = UncachedPath {
            host: name.to_owned(),
            proxies: path.to_string(),
        };
        facts.push(Fact::set(at, path));
    }
    facts
}

/// The facts that remove every record of a host, at the moment `at`.
pub fn removal_of(name: &str, host: &Host, at: Timestamp) -> Vec<Fact> {
    facts_of(name, host, at)
        .into_iter()
        .map(|fact| Fact::removed(at, fact.fact))
        .collect()
}

/// The facts that follow from `Served::add` for one crawler: the version with its moment, if that
/// is news, and if another version was dropped, its removal and when it was last served. `added` is
/// what the call returned, `after` what is known since.
pub fn served_facts(
    name: &str,
    crawler: &str,
    version: Version,
    added: Added,
    after: &Served,
) -> Vec<Fact> {
    let at = after
        .versions
        .iter()
        .find(|visit| visit.version == version)
        .map(|visit| visit.at);
    let mut facts = Vec::new();
    if let Some(at) = at
        && added.is_news
    {
        let received = Published::Version(version);
        facts.push(Fact::set(at, served(name, crawler, received)));
    }
    if let Some((dropped, lost)) = added.dropped.zip(after.lost) {
        let gone = served(name, crawler, Published::Version(dropped));
        facts.push(Fact::removed(at.unwrap_or(lost), gone));
        facts.push(Fact::set(lost, served(name, crawler, Published::Unknown)));
    }
    facts
}

/// The hosts that the state store remembers, by name, all marked as stored. A host of which only
/// visits are known has no owner, and its observation begins now.
pub fn hosts_from(facts: &StoredFacts, now: Timestamp) -> HashMap<&str, Host> {
    let mut hosts: HashMap<&str, Host> = HashMap::new();
    for (_, known) in &facts.observations {
        hosts.insert(
            &known.host,
            Host::new(&Owner::of(known), known.since, known.seen, known.named),
        );
    }
    for (at, known) in &facts.served {
        let host = hosts
            .entry(&known.host)
            .or_insert_with(|| Host::new(&Owner::default(), now, *at, false));
        let served = match known.crawler.as_str() {
            EVERYONE => &mut host.everyone,
            name => host.crawler_mut(name),
        };
        match known.received {
            Published::Version(version) => drop(served.add(version, *at)),
            // No copy. The history of the host knows when robots.txt answered 503.
            Published::Unavailable => {}
            Published::Unknown | Published::UnknownOrUnavailable => {
                served.lost = served.lost.max(Some(*at))
            }
        }
    }
    for (_, UncachedPath { host, proxies }) in &facts.uncached_paths {
        if let (Some(host), Some(path)) = (hosts.get_mut(host.as_str()), ProxyPath::parse(proxies))
        {
            host.paths.set_uncached(path);
        }
    }
    for host in hosts.values() {
        host.set_stored();
    }
    hosts
}
