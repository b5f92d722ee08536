//! [`Ledger`]: what other modules call to learn and to note which versions of robots.txt crawlers
//! were served. For a request it says which versions the crawler may have cached. When a robots.txt
//! is served, it notes the version.
//!
//! Once a second, [`Ledger::tick`] checks whether the clock was set, and whether hosts moved to
//! another site. Their observation then begins anew. Changes go to the state store, which writes
//! them about once a second.

use super::cached_versions::{Known, RobotsCache, cached_versions};
use super::clock_steps::ClockSteps;
use super::host::{ANYONE, Host, Owner, hosts_from, observation, served};
use super::network_list_health::NetworkListHealth;
use super::observations::{Bounds, Observations, key, text};
use crate::clock::Moment;
use crate::crawlers::{Claim, Registry};
use crate::facts::{Fact, Observation, Served, Subscriber, Subscribers};
use crate::locks;
use crate::policy::site::name_and_port;
use crate::policy::{SiteEntry, Snapshot, Version};
use crate::publications::Published;
use crate::record::ProxyPath;
use crate::state::{Remembered, StateStore};
use crate::time::Timestamp;
use crate::verdict::{CachedVersions, Claimant, HistoryBasis, UnprovenHost, superseded_since};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, RwLock};

/// What was served to which crawler, and since when which host is observed.
pub struct Ledger {
    observations: Observations,
    /// Whether the clock was set since the last tick: until the next one the ledger accuses no
    /// crawler.
    pub clock: ClockSteps,
    /// Hosts that no crawler can have asked for before crawlgate was there, like those of the demo:
    /// observed from the beginning.
    new_hosts: Vec<String>,
    /// What the lists of networks are worth.
    pub list_health: NetworkListHealth,
    /// The generation of the snapshot whose hosts were last looked at.
    generation: AtomicU64,
    /// The next process, once it has the state directory.
    successor: RwLock<Option<Arc<dyn Subscriber>>>,
    /// Since when the process before may have served what this one does not know yet: [`NOBODY`]
    /// where none is left.
    predecessor_since: AtomicI64,
    /// Whether other instances may have served what is not known here: then no crawler is accused.
    peers_unknown: AtomicBool,
    /// Observations of other instances count from this moment on: the clock was set then.
    floor: AtomicI64,
}

/// No process before this one answers requests.
const NOBODY: i64 = i64::MAX;

/// Who was served a robots.txt through which proxies.
#[derive(Debug)]
pub struct ProxyFetch {
    /// The claimed crawler.
    pub claim: Claim,
    /// The proxies.
    pub path: ProxyPath,
}

/// What a request adds to the knowledge of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostNews {
    /// Nothing.
    Known,
    /// The host is known, and the last note of a request is a while ago.
    Due,
    /// The host is new.
    New,
}

/// What one crawler was served on one host: for tests.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
pub struct CrawlerCopies {
    /// The host, with its port where that is not a usual one.
    pub host: String,
    /// Since when the host is observed without a gap.
    pub observed_since: Timestamp,
    /// The crawler's id, the name of the cache that it shares, a token of the policy, or `other`.
    pub crawler: String,
    /// Each version with the last time, the latest last.
    pub versions: Vec<super::host::LastServed>,
}

impl Ledger {
    /// A ledger that forgets everything when the process ends.
    #[cfg(any(test, feature = "internals"))]
    pub fn in_memory(new_hosts: Vec<String>, snapshot: &Snapshot, moment: Moment) -> Ledger {
        let (store, _) = StateStore::in_memory_only();
        let observations = Observations::new(Bounds::default(), store);
        Ledger::with(
            observations,
            NetworkListHealth::default(),
            new_hosts,
            snapshot,
            moment,
        )
    }

    /// A ledger that goes on from what the state store remembers. Returns as well the facts that
    /// [`StateStore::begin`] is to commit: all that the ledger then knows, where
    /// - after a gap all observations begin now,
    /// - after a crash every crawler may have been served what was published then.
    ///
    /// If the previous process still answers requests, what it may serve counts as cached until
    /// `Ledger::predecessor_ended`.
    pub fn open(
        store: StateStore,
        remembered: &Remembered,
        new_hosts: Vec<String>,
        snapshot: &Snapshot,
        moment: Moment,
    ) -> (Ledger, Vec<Fact>) {
        let now = moment.now;
        let previous = remembered.previous_run;
        let list_health =
            NetworkListHealth::remembered(&remembered.facts.list_proofs, store.clone());
        let observations = Observations::new(Bounds::default(), store);
        for (name, host) in hosts_from(&remembered.facts, now) {
            if let Some(key) = key(name.as_bytes()) {
                observations.add(&key, now, || host);
            }
        }
        if !remembered.is_continued {
            // Time that passed shifts nothing. A clock that was set back shifts observations that
            // are yet to begin, when the time of a cache is over.
            let set_by = previous
                .end()
                .map_or(0, |end| now.0.saturating_sub(end.0).min(0));
            observations.begin_anew(now, set_by);
        }
        if let Some(since) = previous.unknown_since() {
            observations.serve_everyone(|host| published_since(snapshot, host, since), now);
        }
        let ledger = Ledger::with(observations, list_health, new_hosts, snapshot, moment);
        if let Some(end) = previous.end().filter(|_| remembered.is_handed_over) {
            ledger.predecessor_since.store(end.0, Release);
        }
        let facts = ledger.observations.facts(now);
        (ledger, facts)
    }

    /// A ledger of these parts, whose hosts belong to the sites of the snapshot. No other process
    /// serves.
    fn with(
        observations: Observations,
        list_health: NetworkListHealth,
        new_hosts: Vec<String>,
        snapshot: &Snapshot,
        moment: Moment,
    ) -> Ledger {
        let ledger = Ledger {
            observations,
            clock: ClockSteps::new(moment),
            new_hosts,
            list_health,
            generation: snapshot.generation.into(),
            successor: RwLock::default(),
            predecessor_since: NOBODY.into(),
            peers_unknown: false.into(),
            floor: i64::MIN.into(),
        };
        ledger.settle(snapshot, moment.now);
        ledger
    }

    /// Returns what the claimant may have cached, and what its request adds to the knowledge of its
    /// host. Changes nothing, and never waits for a file: [`Ledger::note_request`] takes note.
    /// `has_heard_all` says whether every other instance has told what it served until the request.
    ///
    /// A client that claims no crawler has cached no versions. For a host that is no valid name,
    /// they are all versions that were in force lately. No crawler is accused while the next
    /// process serves, while it is not known what other instances served, or after the clock was
    /// set.
    pub fn look<'a>(
        &self,
        registry: &Registry,
        claimant: Claimant<'a>,
        host_name: &[u8],
        moment: Moment,
        has_heard_all: bool,
    ) -> (CachedVersions<'a>, HostNews) {
        let entry = claimant.entry;
        if claimant.claim == Claim::Nobody {
            return (CachedVersions::default(), HostNews::Known);
        }
        let Some(key) = key(host_name) else {
            return (
                CachedVersions::of_anyone(claimant, moment.now),
                HostNews::Known,
            );
        };
        let cache = RobotsCache::of(claimant.claim, registry, entry);
        // What the next process has served, this one does not know: it accuses no crawler.
        let peers_unknown =
            locks::read(&self.successor).is_some() || self.peers_unknown.load(Relaxed);
        let known = Known {
            set_by: self.clock.set_by(moment).or(peers_unknown.then_some(0)),
            has_heard_all,
        };
        let since = self.predecessor_since.load(Acquire);
        self.observations.look(&key, |host| {
            let new;
            let (host, news) = match host {
                Some(host) if host.is_due(entry.site.grace, moment.now) => (host, HostNews::Due),
                Some(host) => (host, HostNews::Known),
                None => {
                    new = self.new_host(entry, host_name, moment.now);
                    (&new, HostNews::New)
                }
            };
            let mut cached = cached_versions(claimant, cache, host, moment.now, known);
            // What the process before serves at this moment is told a moment later.
            if since != NOBODY {
                cached.cached |= superseded_since(claimant, Timestamp(since));
            }
            (cached, news)
        })
    }

    /// Records a request to the host, where [`Ledger::look`] found this due: adds a new host, or
    /// notes that a known one was requested. `visit` is what it found. Does nothing between a
    /// change of the clock and the next tick: the tick would take the moment for one of the clock
    /// before, and shift it.
    pub fn note_request(
        &self,
        entry: &SiteEntry,
        host_name: &[u8],
        visit: HostNews,
        now: Timestamp,
    ) {
        if visit == HostNews::Known || !self.clock.is_settled() {
            return;
        }
        let Some(key) = key(host_name) else { return };
        match visit {
            HostNews::New => self
                .observations
                .add(&key, now, || self.new_host(entry, host_name, now)),
            HostNews::Due | HostNews::Known => self.observations.touch(&key, entry.site.grace, now),
        }
    }

    /// Records that the version in force on the host was served, whole or by a 304: to this
    /// crawler, and to all clients together. A host that is new is observed from now on. Does
    /// nothing for a host that is no valid name.
    pub fn served(
        &self,
        registry: &Registry,
        entry: &SiteEntry,
        host: &[u8],
        claim: Claim,
        now: Timestamp,
    ) {
        let Some(key) = key(host) else { return };
        let crawler = RobotsCache::of(claim, registry, entry).name;
        let version = entry.site.robots_txt.version;
        // Locked to the end: a hand-over waits for what is recorded without it, and stores it.
        let _successor = locks::read(&self.successor);
        self.subscribers()
            .notify(|| served_fact(&key, crawler, version, now));
        self.observations
            .serve(&key, [crawler, ANYONE], version, now, || {
                self.new_host(entry, host, now)
            });
        if self.clock.is_settled() {
            self.observations.touch(&key, entry.site.grace, now);
        }
    }

    /// Records through which proxies a crawler was served the version in force: that can show that
    /// no cache is on the way. Only for crawlers of the registry or of the policy, on a site that
    /// may be behind a cache, and on a host that is observed.
    pub fn served_through(
        &self,
        registry: &Registry,
        entry: &SiteEntry,
        host: &[u8],
        fetch: ProxyFetch,
        now: Timestamp,
    ) {
        // Tools and bots that no list knows share a name, and a proxy may check its own health as
        // one of them.
        if !matches!(fetch.claim, Claim::Known(_) | Claim::Token(_))
            || !entry.site.perhaps_behind_cache
        {
            return;
        }
        let Some(key) = key(host) else { return };
        let crawler = RobotsCache::of(fetch.claim, registry, entry).name;
        let version = entry.site.robots_txt.version;
        let max_age = entry.site.policy.robots.max_age.value;
        self.observations.serve_through(&key, now, |paths| {
            paths.record(fetch.path, crawler, version, max_age, now)
        });
    }

    /// Whether it is known that no cache is on this path to a host.
    pub fn is_uncached(&self, host: &[u8], path: ProxyPath) -> bool {
        let Some(key) = key(host) else { return false };
        self.observations.look(&key, |host| {
            host.is_some_and(|host| host.paths.is_uncached(path))
        })
    }

    /// Records that a crawler's request came through proxies of which one may be a cache. Does
    /// nothing for a host that is not observed.
    pub fn record_perhaps_cached(&self, host: &[u8], now: Timestamp) {
        let Some(key) = key(host) else { return };
        self.observations.look(&key, |host| {
            if let Some(host) = host {
                host.set_perhaps_cached(now);
            }
        });
    }

    /// Whether a crawler's request came to a host, in the last hour, through proxies of which one
    /// may be a cache.
    pub fn is_perhaps_cached(&self, host: &[u8], now: Timestamp) -> bool {
        let Some(key) = key(host) else { return false };
        self.observations.look(&key, |host| {
            host.is_some_and(|host| host.is_perhaps_cached(now))
        })
    }

    /// The hosts on which no violation counts at present, by site and in the order of their names,
    /// with the reason: requests come through what may be a cache (without an end), or the host has
    /// not been observed for long enough (with the moment until when).
    pub fn unproven_hosts(
        &self,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> BTreeMap<String, Vec<UnprovenHost>> {
        let mut hosts: BTreeMap<String, Vec<UnprovenHost>> = BTreeMap::new();
        self.observations.each(|key, host| {
            let Some(entry) = entry_of(snapshot, key) else {
                return;
            };
            let history = snapshot.history(key);
            let until =
                history.cached_until(entry.site.copy_time(), host.observed_since(history), now);
            let (history, until) = if host.is_perhaps_cached(now) && entry.site.perhaps_behind_cache
            {
                (HistoryBasis::PerhapsCached, None)
            } else if host.is_unbroken(entry, now) && !history.is_declared && until >= now {
                (HistoryBasis::Unknown, Some(until))
            } else {
                return;
            };
            let of_site = hosts.entry(entry.site.name.clone()).or_default();
            of_site.push(UnprovenHost {
                host: text(key),
                history,
                until,
            });
        });
        for hosts in hosts.values_mut() {
            hosts.sort_by_cached_key(|known| known.host.clone());
        }
        hosts
    }

    /// Who learns of what is served and observed here.
    pub fn subscribers(&self) -> &Subscribers {
        &self.observations.subscribers
    }

    /// From now on another process has the state directory, and learns of what happens here. When
    /// this returns, the state store has what was served before. No crawler is accused until
    /// `Ledger::take_back`.
    pub fn hand_over(&self, successor: Arc<dyn Subscriber>) {
        let mut known = locks::write(&self.successor);
        self.subscribers().add(successor.clone());
        *known = Some(successor);
    }

    /// Undoes [`Ledger::hand_over`].
    pub fn take_back(&self) {
        if let Some(successor) = locks::write(&self.successor).take() {
            self.subscribers().remove(&successor);
        }
    }

    /// Sets whether other instances may have served what is not known here. While they may, no
    /// crawler is accused.
    pub fn set_peers_unknown(&self, peers_unknown: bool) {
        self.peers_unknown.store(peers_unknown, Relaxed);
    }

    /// Records what another instance served. A host that is new here gets an entry without a site,
    /// which counts as observed only from the moment on at which it gets its site.
    pub fn served_elsewhere(&self, served: &Served, at: Timestamp, now: Timestamp) {
        let (Some(key), Some(version)) = (key(served.host.as_bytes()), served.received.version())
        else {
            return;
        };
        let names = [&*served.crawler, ANYONE];
        self.observations.serve(&key, names, version, at, || {
            Host::new(&Owner::default(), now, now, false)
        });
    }

    /// Records that another instance observes a host for its site. If the host has the same owner
    /// here, it counts as observed since the earlier of both beginnings, but not since before the
    /// clock was last set: all instances tell each other what they serve. A host that is new here
    /// is added.
    pub fn observed_elsewhere(&self, observed: &Observation, now: Timestamp) {
        let Some(key) = key(observed.host.as_bytes()) else {
            return;
        };
        let owner = Owner::of(observed);
        self.observations
            .add(&key, now, || Host::new(&owner, now, now, observed.named));
        let floor = Timestamp(self.floor.load(Relaxed));
        self.observations.look(&key, |host| {
            if let Some(host) = host.filter(|host| *host.owner == *owner.sites) {
                host.observed_elsewhere(observed.since.max(floor), observed.seen.min(now));
            }
        });
    }

    /// The hosts of a site that crawlers requested.
    pub fn hosts_of(&self, site: &str) -> BTreeSet<String> {
        let mut hosts = BTreeSet::new();
        self.observations.each(|key, host| {
            if *host.owner == *site {
                hosts.insert(text(key));
            }
        });
        hosts
    }

    /// Each host that is observed, and then all that was served there, for an instance that knows
    /// nothing yet.
    pub fn everything(&self, now: Timestamp) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.observations.each(|key, host| {
            facts.push(Fact::set(now, observation(&text(key), host)));
            for (crawler, known) in host.crawlers() {
                let versions = known.versions.iter();
                facts.extend(versions.map(|last| served_fact(key, crawler, last.version, last.at)));
            }
        });
        facts
    }

    /// Begins every observation now, because it is not known what was served lately.
    pub fn begin_anew(&self, now: Timestamp) {
        self.observations.begin_anew(now, 0);
    }

    /// Records what the previous process served while it handed over, and tells it to other
    /// instances. Ignores a host that no site has now.
    pub fn record_served(&self, snapshot: &Snapshot, served: &Served, at: Timestamp) {
        let host = served.host.as_bytes();
        let (Some(key), Some(entry)) = (key(host), entry_of(snapshot, host)) else {
            return;
        };
        let Some(version) = served.received.version() else {
            return;
        };
        let names = [&*served.crawler, ANYONE];
        self.observations
            .serve(&key, names, version, at, || self.new_host(entry, host, at));
        self.subscribers().notify(|| Fact::set(at, served.clone()));
    }

    /// Notes the end of the process before. Unless it told everything that it served, all that was
    /// published since it handed over counts as served to every crawler.
    pub fn predecessor_ended(&self, snapshot: &Snapshot, has_told_all: bool, now: Timestamp) {
        let since = Timestamp(self.predecessor_since.load(Acquire));
        if !has_told_all && since.0 != NOBODY {
            self.observations
                .serve_everyone(|host| published_since(snapshot, host, since), now);
        }
        self.predecessor_since.store(NOBODY, Release);
    }

    /// All of what was published since a moment counts as served to every crawler.
    #[cfg(test)]
    pub fn serve_everyone_since(&self, snapshot: &Snapshot, since: Timestamp, now: Timestamp) {
        self.observations
            .serve_everyone(|host| published_since(snapshot, host, since), now);
    }

    /// To be called once a second. If the clock was set, logs that and begins every observation
    /// anew. If hosts are new or the policies changed, gives each host its site (`Ledger::settle`).
    /// Logs and stores what the lists of networks proved.
    pub fn tick(&self, snapshot: &Snapshot, moment: Moment) {
        if let Some(set_by) = self.clock.settle(moment) {
            tracing::warn!(
                set_by,
                "the clock was set, or the machine slept; crawlgate calls no crawler a violator until it has observed \
                 each host for the time of `grace`: `crawlgate status` says until when"
            );
            self.floor.store(moment.now.0, Relaxed);
            self.observations.begin_anew(moment.now, set_by);
        }
        self.clock.note_settled();
        let other = self.generation.load(Relaxed) != snapshot.generation;
        // A request that began under the previous policies may have added a host that moved
        // meanwhile.
        if self.observations.take_grown() || other {
            self.settle(snapshot, moment.now);
        }
        self.list_health.tell(moment.now);
    }

    /// Goes by these policies from now on. To be called after each change of them and before the
    /// next. The observation of a host that moved to another site, or to none, begins anew. Does
    /// nothing if the ledger goes by later policies already.
    pub fn settle(&self, snapshot: &Snapshot, now: Timestamp) {
        // Two threads come here, and the one with the older policies may be the later.
        if self.generation.fetch_max(snapshot.generation, Relaxed) > snapshot.generation {
            return;
        }
        self.list_health.settle(snapshot, Registry::builtin(), now);
        self.observations
            .settle(|host| owner_of(snapshot, host), now);
    }

    /// Hands the rest to the state store, for an end in order: hosts that it does not know yet, and
    /// what lists of networks proved.
    pub fn close(&self, now: Timestamp) {
        self.observations.close(now);
        self.list_health.tell(now);
    }

    /// What was served to crawlers on the hosts of a site, by host and name.
    #[cfg(test)]
    pub fn copies(&self, site: &str) -> Vec<CrawlerCopies> {
        let mut all = Vec::new();
        self.observations.each(|key, host| {
            for (crawler, served) in host
                .crawlers()
                .filter(|(crawler, _)| *crawler != ANYONE && host.is_of(site))
            {
                let mut versions = served.versions.to_vec();
                versions.sort_by_key(|visit| (visit.at, visit.version.0));
                all.push(CrawlerCopies {
                    host: text(key),
                    observed_since: host.since(),
                    crawler: crawler.to_owned(),
                    versions,
                });
            }
        });
        all.sort_by(|one, other| (&one.host, &one.crawler).cmp(&(&other.host, &other.crawler)));
        all
    }

    /// A host of a site that is observed from now on; from the beginning of time if it is one of
    /// `new_hosts`, which no crawler can have requested before. `host` may have a port. It counts
    /// as named if the policy lists its exact name, not only a wildcard.
    fn new_host(&self, entry: &SiteEntry, host: &[u8], now: Timestamp) -> Host {
        let (name, _) = name_and_port(host);
        let named = entry.site.policy.has_name(name);
        let is_new = self
            .new_hosts
            .iter()
            .any(|new| new.as_bytes().eq_ignore_ascii_case(name));
        let since = if is_new { Host::BEGINNING } else { now };
        let owner = Owner {
            sites: entry.site.name.clone(),
            cache: entry.site.behind_cache,
        };
        Host::new(&owner, since, now, named)
    }
}

/// A version was served to a crawler on a host, by its key.
fn served_fact(key: &[u8], crawler: &str, version: Version, at: Timestamp) -> Fact {
    let received = Published::Version(version);
    Fact::set(at, served(&text(key), crawler, received))
}

/// The site that has the host in this snapshot.
fn entry_of<'s>(snapshot: &'s Snapshot, host: &[u8]) -> Option<&'s SiteEntry> {
    snapshot
        .site_for_host(host)
        .and_then(|index| snapshot.sites().get(index))
}

/// The sites that a host belongs to. Here a name without a port also stands for its ports 80 and
/// 443, and a policy may name one of them: if their sites differ, the owner names all three. The
/// longest time of a cache in front of them counts.
fn owner_of(snapshot: &Snapshot, host: &[u8]) -> Owner {
    let own = entry_of(snapshot, host);
    let (_, port) = name_and_port(host);
    let usual = [b":80".as_slice(), b":443"].map(|usual| match port {
        None => entry_of(snapshot, &[host, usual].concat()),
        Some(_) => own,
    });
    let all = [own, usual[0], usual[1]];
    let cache = all
        .iter()
        .flatten()
        .filter_map(|entry| entry.site.behind_cache)
        .max();
    let names = all.map(|entry| entry.map_or("", |entry| entry.site.name.as_str()));
    let sites = if names.iter().all(|name| *name == names[0]) {
        names[0].to_owned()
    } else {
        names.join("/")
    };
    Owner { sites, cache }
}

/// The versions that were in force on a host at `since` or later, the one in force now last.
fn published_since(snapshot: &Snapshot, host: &[u8], since: Timestamp) -> Vec<Version> {
    let superseded = snapshot
        .history(host)
        .superseded
        .iter()
        .filter(|held| held.superseded_at >= since);
    let current = entry_of(snapshot, host).map(|entry| entry.site.robots_txt.version);
    superseded
        .map(|held| held.parsed.version)
        .chain(current)
        .collect()
}
