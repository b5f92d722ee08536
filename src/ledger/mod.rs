//! The ledger: which versions of robots.txt each crawler was served on each host, and the recent
//! behaviour of clients (crawl rate and traps).
//!
//! - [`Ledger`] is the interface for other modules. For a request it returns which versions the
//!   crawler may have cached, and it records each robots.txt that is served. `host_table` has the
//!   observed hosts, `host` the record of one host, and `cached_versions` computes the versions.
//! - `peers` adds the robots.txt files that other processes served. Other processes are peers
//!   (other instances of crawlgate in front of the same sites), and the other process in an
//!   upgrade.
//! - `network_list_health` decides which lists of networks may prove an impostor.
//! - [`BehaviourTables`] combines `crawl_rate`, `marked_clients` (traps) and `proven_fetches`
//!   (which clients certainly have the present robots.txt).
//!
//! Requests read tables under locks that are held briefly, and never wait for a file. Every table
//! is bounded. Changes go to the state store, which writes them about once a second.

mod behaviour;
mod cached_versions;
mod clock_steps;
mod crawl_rate;
mod host;
mod host_table;
mod marked_clients;
mod network_list_health;
mod owners;
mod peers;
mod proven_fetches;
mod proxy_paths;

pub use behaviour::{BehaviourTables, RateCheckMode};
#[cfg(feature = "internals")]
pub use crawl_rate::gcra;
pub use crawl_rate::{CrawlRates, RateKey};
pub use marked_clients::{MarkedClients, client_network};
pub use network_list_health::{EVERY_SITE, ListHealth, list_key};

#[cfg(test)]
mod behaviour_tests;
#[cfg(test)]
mod tests;

use crate::clock::Moment;
use crate::crawlers::{Claim, Registry};
use crate::facts::{Fact, FactSubscriber, FactSubscribers};
use crate::locks;
use crate::policy::site::split_host_port;
use crate::policy::{SiteEntry, Snapshot};
use crate::record::ProxyPath;
use crate::state::{RestoredState, StateStore};
use crate::time::Timestamp;
use crate::verdict::{
    CachedVersions, CachedVersionsBasis, NonCountingHost, SiteClaim, superseded_bits_since,
};
use HostUpdate::*;
use cached_versions::{CrawlerCacheProfile, ObservationCaveats, estimate_cached_versions};
use clock_steps::ClockStepDetector;
use host::{HostOwner, HostRecord, restore_hosts};
use host_table::{HostTable, host_key, key_text};
use network_list_health::NetworkListHealthTable;
use owners::{find_owner, find_site, versions_since};
use peers::served_fact;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Arc, RwLock};

/// What each crawler was served, and since when each host is observed.
pub struct Ledger {
    hosts: HostTable,
    /// Detects that the clock was set. From then until the next tick no crawler is accused.
    pub clock: ClockStepDetector,
    /// Hosts that no crawler can have requested before crawlgate existed, like those of the demo.
    /// They are observed from the beginning of time.
    new_hosts: Vec<String>,
    /// Which lists of networks may prove an impostor.
    pub list_health: NetworkListHealthTable,
    /// The generation of the snapshot that was last applied.
    generation: AtomicU64,
    /// The next process, while it has the state directory.
    successor: RwLock<Option<Arc<dyn FactSubscriber>>>,
    /// Since when the previous process may have served versions that are unknown here, or
    /// [`NO_OVERLAP`].
    overlap_since: AtomicI64,
    /// Whether peers may have served versions that are unknown here. Then no crawler is accused.
    peers_unknown: AtomicBool,
    /// When the clock was last set. Earlier observations of peers do not count.
    ignore_peers_before: AtomicI64,
}

/// The value of `overlap_since` when no previous process serves.
const NO_OVERLAP: i64 = i64::MAX;

/// A fetch of robots.txt through trusted proxies.
pub struct ProxiedFetch {
    /// The claimed crawler.
    pub claim: Claim,
    /// The proxies.
    pub path: ProxyPath,
}

/// How a request changes the record of its host.
#[derive(PartialEq, Eq)]
pub enum HostUpdate {
    /// Not at all.
    Unchanged,
    /// The host is known, and its last recorded request is a minute old or more.
    Touch,
    /// The host is new.
    Insert,
}

/// The versions that one crawler was served on one host, for tests.
#[cfg(test)]
#[derive(Debug, PartialEq, Eq)]
pub struct CrawlerCopies {
    /// The host, with an unusual port.
    pub host: String,
    /// Since when the host is observed without a gap.
    pub observed_since: Timestamp,
    /// The name of the crawler's robots.txt cache.
    pub crawler: String,
    /// Each version with the last time, the latest last.
    pub versions: Vec<host::VersionLastServed>,
}

impl Ledger {
    /// A ledger that forgets everything when the process ends.
    #[cfg(any(test, feature = "internals"))]
    pub fn in_memory(new_hosts: Vec<String>, snapshot: &Snapshot, moment: Moment) -> Ledger {
        let (store, _) = StateStore::in_memory_only();
        let list_health = NetworkListHealthTable::restore(&[], store.clone());
        let hosts = HostTable::new(store);
        Ledger::from_parts(hosts, list_health, new_hosts, snapshot, moment)
    }

    /// Restores a ledger from the state store. Also returns the facts that [`StateStore::begin`]
    /// must commit: all that the ledger then knows. After a gap all observations begin now. After a
    /// crash every crawler may have been served what was published since the last commit.
    ///
    /// If the previous process still answers requests, versions that it may serve count as cached
    /// until [`Ledger::record_predecessor_end`].
    pub fn open(
        store: StateStore,
        remembered: &RestoredState,
        new_hosts: Vec<String>,
        snapshot: &Snapshot,
        moment: Moment,
    ) -> (Ledger, Vec<Fact>) {
        let now = moment.now;
        let previous = remembered.previous_run;
        let list_health =
            NetworkListHealthTable::restore(&remembered.facts.list_proofs, store.clone());
        let hosts = HostTable::new(store);
        for (name, host) in restore_hosts(&remembered.facts, now) {
            if let Some(key) = host_key(name.as_bytes()) {
                hosts.insert_if_absent(&key, now, || host);
            }
        }
        if !remembered.is_continued {
            // An observation that begins in the future, after the time of a removed cache, moves
            // with a clock that was set back.
            let set_by = previous
                .end()
                .map_or(0, |end| now.0.saturating_sub(end.0).min(0));
            hosts.restart_observations(now, set_by);
        }
        if let Some(since) = previous.unknown_since() {
            hosts.record_served_to_all(|host| versions_since(snapshot, host, since), now);
        }
        let ledger = Ledger::from_parts(hosts, list_health, new_hosts, snapshot, moment);
        if let Some(end) = previous.end().filter(|_| remembered.is_handed_over) {
            ledger.overlap_since.store(end.0, Release);
        }
        let facts = ledger.hosts.take_all_facts(now);
        (ledger, facts)
    }

    /// Builds a ledger whose hosts belong to the sites of the snapshot, while no other process
    /// serves.
    fn from_parts(
        hosts: HostTable,
        list_health: NetworkListHealthTable,
        new_hosts: Vec<String>,
        snapshot: &Snapshot,
        moment: Moment,
    ) -> Ledger {
        let ledger = Ledger {
            hosts,
            clock: ClockStepDetector::new(moment),
            new_hosts,
            list_health,
            generation: snapshot.generation.into(),
            successor: RwLock::default(),
            overlap_since: NO_OVERLAP.into(),
            peers_unknown: false.into(),
            ignore_peers_before: i64::MIN.into(),
        };
        ledger.apply_snapshot(snapshot, moment.now);
        ledger
    }

    /// Returns which versions the claimant may have cached, and how its request changes the record
    /// of its host. Changes nothing and never blocks: [`Ledger::record_request`] applies the
    /// change. `peers_confirmed` says that every peer has reported the versions that it served up
    /// to this request.
    ///
    /// A client that claims no crawler has cached no versions. For an invalid host name the result
    /// is all versions that were recently in force. No crawler is accused while the next process
    /// serves, while it is unknown what peers served, or after the clock was set.
    pub fn cached_versions<'a>(
        &self,
        registry: &Registry,
        claimant: SiteClaim<'a>,
        host_name: &[u8],
        moment: Moment,
        peers_confirmed: bool,
    ) -> (CachedVersions<'a>, HostUpdate) {
        let entry = claimant.entry;
        if claimant.claim == Claim::Visitor {
            return (CachedVersions::default(), Unchanged);
        }
        let Some(key) = host_key(host_name) else {
            return (
                CachedVersions::for_any_crawler(claimant, moment.now),
                Unchanged,
            );
        };
        let cache = CrawlerCacheProfile::for_claim(claimant.claim, registry, entry);
        // This process does not know what the next one has served.
        let peers_unknown =
            locks::read(&self.successor).is_some() || self.peers_unknown.load(Relaxed);
        let known = ObservationCaveats {
            clock_set_by: self
                .clock
                .detect_step(moment)
                .or(peers_unknown.then_some(0)),
            peers_confirmed,
        };
        let since = self.overlap_since.load(Acquire);
        self.hosts.get_with(&key, |host| {
            let new;
            let (host, update) = match host {
                Some(host) if host.is_touch_due(entry.site.grace, moment.now) => (host, Touch),
                Some(host) => (host, Unchanged),
                None => {
                    new = self.new_host(entry, host_name, moment.now);
                    (&new, Insert)
                }
            };
            let mut cached = estimate_cached_versions(claimant, cache, host, moment.now, known);
            // The previous process reports a moment later what it serves now.
            if since != NO_OVERLAP {
                cached.cached |= superseded_bits_since(claimant, Timestamp(since));
            }
            (cached, update)
        })
    }

    /// Records a request to the host, as `update` of [`Ledger::cached_versions`] says. Does nothing
    /// between a change of the clock and the next tick, which would shift the recorded time.
    pub fn record_request(
        &self,
        entry: &SiteEntry,
        host_name: &[u8],
        update: HostUpdate,
        now: Timestamp,
    ) {
        if update == Unchanged || !self.clock.is_settled() {
            return;
        }
        let Some(key) = host_key(host_name) else {
            return;
        };
        match update {
            Insert => self
                .hosts
                .insert_if_absent(&key, now, || self.new_host(entry, host_name, now)),
            Touch | Unchanged => self.hosts.touch(&key, entry.site.grace, now),
        }
    }

    /// Records that the version in force on the host was served, whole or by a 304, to this crawler
    /// and to all clients together. A new host is observed from now on. Ignores an invalid host
    /// name.
    pub fn record_served(
        &self,
        registry: &Registry,
        entry: &SiteEntry,
        host: &[u8],
        claim: Claim,
        now: Timestamp,
    ) {
        let Some(key) = host_key(host) else { return };
        let crawler = CrawlerCacheProfile::for_claim(claim, registry, entry).name;
        let version = entry.site.robots_txt.version;
        // Held to the end, so that a hand-over waits for this record and stores it.
        let _successor = locks::read(&self.successor);
        self.subscribers()
            .notify(|| served_fact(&key, crawler, version, now));
        self.hosts.record_served(&key, crawler, version, now, || {
            self.new_host(entry, host, now)
        });
        if self.clock.is_settled() {
            self.hosts.touch(&key, entry.site.grace, now);
        }
    }

    /// Records the proxies through which a crawler was served the version in force. Two crawlers
    /// can show that no cache is on the path. Only for crawlers of the registry or the policy, on a
    /// site that may be behind a cache, and on an observed host.
    pub fn record_fetch_path(
        &self,
        registry: &Registry,
        entry: &SiteEntry,
        host: &[u8],
        fetch: ProxiedFetch,
        now: Timestamp,
    ) {
        // Unknown bots and tools share a name, and the health check of a proxy may be one of them.
        if !matches!(fetch.claim, Claim::Known(_) | Claim::PolicyToken(_))
            || !entry.site.perhaps_behind_cache
        {
            return;
        }
        let Some(key) = host_key(host) else { return };
        let crawler = CrawlerCacheProfile::for_claim(fetch.claim, registry, entry).name;
        let version = entry.site.robots_txt.version;
        let max_age = entry.site.policy.robots.max_age.value;
        self.hosts.record_fetch_path(&key, now, |paths| {
            paths.record_fetch(fetch.path, crawler, version, max_age, now)
        });
    }

    /// Whether it is known that no cache is on this path to a host.
    pub fn is_path_uncached(&self, host: &[u8], path: ProxyPath) -> bool {
        self.with_host(host, |host| host.paths.is_uncached(path))
    }

    /// What `read` says of a host. The default if the host is not observed.
    fn with_host<T: Default>(&self, host: &[u8], read: impl FnOnce(&HostRecord) -> T) -> T {
        host_key(host)
            .and_then(|key| self.hosts.get_with(&key, |host| host.map(read)))
            .unwrap_or_default()
    }

    /// Records that a request of a crawler came through proxies of which one may be a cache.
    /// Ignores a host that is not observed.
    pub fn record_perhaps_cached(&self, host: &[u8], now: Timestamp) {
        self.with_host(host, |host| host.record_perhaps_cached(now));
    }

    /// Whether, in the last hour, a request of a crawler came to the host through proxies of which
    /// one may be a cache.
    pub fn is_perhaps_cached(&self, host: &[u8], now: Timestamp) -> bool {
        self.with_host(host, |host| host.is_perhaps_cached(now))
    }

    /// The hosts on which no violation counts at present, by site and sorted by name, with the
    /// reason: requests come through a possible cache (no end), or the host has not been observed
    /// for long enough (with the time until when).
    pub fn unproven_hosts(
        &self,
        snapshot: &Snapshot,
        now: Timestamp,
    ) -> BTreeMap<String, Vec<NonCountingHost>> {
        let mut hosts: BTreeMap<String, Vec<NonCountingHost>> = BTreeMap::new();
        self.hosts.for_each(|key, host| {
            let Some(entry) = find_site(snapshot, key) else {
                return;
            };
            let history = snapshot.history(key);
            let until = history.cached_until(
                entry.site.copy_lifetime(),
                host.observed_since(history),
                now,
            );
            let (history, until) = if host.is_perhaps_cached(now) && entry.site.perhaps_behind_cache
            {
                (CachedVersionsBasis::PerhapsCached, None)
            } else if host.is_observed_for(entry, now) && !history.is_declared && until >= now {
                (CachedVersionsBasis::Unknown, Some(until))
            } else {
                return;
            };
            let of_site = hosts.entry(entry.site.name.clone()).or_default();
            of_site.push(NonCountingHost {
                host: key_text(key),
                history,
                until,
            });
        });
        for hosts in hosts.values_mut() {
            hosts.sort_by_cached_key(|known| known.host.clone());
        }
        hosts
    }

    /// The hosts of a site that crawlers requested.
    pub fn hosts_of_site(&self, site: &str) -> BTreeSet<String> {
        let mut hosts = BTreeSet::new();
        self.hosts.for_each(|key, host| {
            if *host.owner == *site {
                hosts.insert(key_text(key));
            }
        });
        hosts
    }

    /// The observers of what is served and observed here.
    pub fn subscribers(&self) -> &FactSubscribers {
        &self.hosts.subscribers
    }

    /// Restarts every observation now, because it is unknown what was served recently.
    pub fn restart_observations(&self, now: Timestamp) {
        self.hosts.restart_observations(now, 0);
    }

    /// Call this once a second. If the clock was set, logs that and restarts every observation. If
    /// hosts are new or the policies changed, assigns hosts to sites ([`Ledger::apply_snapshot`]).
    /// Logs and stores what the lists of networks proved.
    pub fn tick(&self, snapshot: &Snapshot, moment: Moment) {
        if let Some(set_by) = self.clock.accept_step(moment) {
            tracing::warn!(
                set_by,
                "the clock was set, or the machine slept; crawlgate counts no violations until it has watched each \
                 host for the time of \"grace\". To see until when, run \"crawlgate status\""
            );
            self.ignore_peers_before.store(moment.now.0, Relaxed);
            self.hosts.restart_observations(moment.now, set_by);
        }
        self.clock.mark_settled();
        let other = self.generation.load(Relaxed) != snapshot.generation;
        // A request under the previous policies may have added a host that moved meanwhile.
        if self.hosts.take_hosts_added() || other {
            self.apply_snapshot(snapshot, moment.now);
        }
        self.list_health.log_and_store(moment.now);
    }

    /// Applies changed policies. Call it after each change and before the next. The observation of
    /// a host that moved to another site, or to none, restarts. Does nothing if later policies are
    /// applied already.
    pub fn apply_snapshot(&self, snapshot: &Snapshot, now: Timestamp) {
        // Two threads call this, and the one with the older policies may be later.
        if self.generation.fetch_max(snapshot.generation, Relaxed) > snapshot.generation {
            return;
        }
        self.list_health
            .apply_policies(snapshot, Registry::builtin(), now);
        self.hosts
            .update_owners(|host| find_owner(snapshot, host), now);
    }

    /// Call this before a clean end or a hand-over: a last [`Ledger::tick`], because the next
    /// process cannot see that the clock was set before its start. Also writes the hosts that the
    /// state store does not know yet.
    pub fn flush(&self, snapshot: &Snapshot, moment: Moment) {
        self.tick(snapshot, moment);
        self.hosts.store_new_hosts(moment.now);
    }

    /// What was served to crawlers on the hosts of a site, by host and name.
    #[cfg(test)]
    pub fn crawler_copies(&self, site: &str) -> Vec<CrawlerCopies> {
        let mut all = Vec::new();
        self.hosts.for_each(|key, host| {
            for (crawler, served) in host
                .serve_histories()
                .filter(|(crawler, _)| *crawler != host::ALL_CLIENTS && host.belongs_to(site))
            {
                let mut versions = served.versions.to_vec();
                versions.sort_by_key(|visit| (visit.at, visit.version.0));
                all.push(CrawlerCopies {
                    host: key_text(key),
                    observed_since: host.observation_start(),
                    crawler: crawler.to_owned(),
                    versions,
                });
            }
        });
        all.sort_by(|one, other| (&one.host, &one.crawler).cmp(&(&other.host, &other.crawler)));
        all
    }

    /// A host of a site that is observed from now on, or from the beginning of time if it is one of
    /// `new_hosts`. `host` may have a port. It counts as named if the policy has its exact name,
    /// not only a wildcard.
    fn new_host(&self, entry: &SiteEntry, host: &[u8], now: Timestamp) -> HostRecord {
        let (name, _) = split_host_port(host);
        let named = entry.site.policy.has_name(name);
        let is_new = self
            .new_hosts
            .iter()
            .any(|new| new.as_bytes().eq_ignore_ascii_case(name));
        let since = if is_new {
            HostRecord::SINCE_BEGINNING
        } else {
            now
        };
        let owner = HostOwner {
            sites: entry.site.name.clone(),
            cache: entry.site.behind_cache,
        };
        HostRecord::new(&owner, since, now, named)
    }
}
