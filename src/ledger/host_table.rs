//! [`HostTable`]: the bounded table of the hosts on which crawlgate observes which robots.txt each
//! crawler is served. When the table is full, it removes the hosts that had no requests for the
//! longest time. A removed host counts as never observed. A change is passed to the state store
//! while the host is still locked, so each commit to disk has all earlier changes.
//!
//! A new host is at first only in this table, because clients can invent any number of hosts. The
//! host is written to the state store when a crawler requests it again after a minute, or when
//! crawlgate stops.

use super::host::{
    ALL_CLIENTS, HostOwner, HostRecord, host_facts, removal_facts, serve_change_facts,
    to_observation,
};
use super::proxy_paths::ProxyPathStates;
use crate::bounded::{PrehashedKeys, SHARDS};
use crate::facts::{AnyFact, Fact, FactSubscribers};
use crate::locks::{read, write};
use crate::policy::RobotsVersionId;
use crate::state::StateStore;
use crate::time::Timestamp;
use ahash::RandomState;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::RwLock;
use std::sync::atomic::{
    AtomicBool, AtomicI64,
    Ordering::{AcqRel, Relaxed, Release},
};
use std::time::Duration;

/// The longest host name in bytes. Names have at most 253 (RFC 1035 section 2.3.4).
const MAX_HOST_LENGTH: usize = 255;
/// A host without a site is removed after this time. No history reaches further back.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(31 * 86_400);

/// The most hosts of a shard: 8,192 in all.
const MAX_HOSTS: usize = 8_192 / SHARDS;
/// The most crawlers on all hosts of a shard together: 524,288 in all.
const MAX_CRAWLERS: usize = 524_288 / SHARDS;

#[derive(Default)]
struct HostShard {
    /// By a keyed hash of the host key, which clients cannot predict.
    hosts: HashMap<u64, (Box<[u8]>, HostRecord), PrehashedKeys>,
    crawlers: usize,
}

/// The key of a host: its name in lower case, and an unusual port. See [`host_key`].
pub type HostKey = SmallVec<[u8; 128]>;

/// The table of observed hosts, in shards with a lock each.
pub struct HostTable {
    shards: Box<[RwLock<HostShard>]>,
    hasher: RandomState,
    /// Whether hosts were added since `take_hosts_added`.
    has_grown: AtomicBool,
    store: StateStore,
    /// The latest moment of any fact: see [`HostTable::fact_time`].
    latest_fact_time: AtomicI64,
    /// The observers of what is served and observed here.
    pub subscribers: FactSubscribers,
}

impl HostTable {
    /// An empty table.
    pub fn new(store: StateStore) -> HostTable {
        HostTable {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            hasher: RandomState::new(),
            has_grown: false.into(),
            subscribers: store.subscribers.clone(),
            store,
            latest_fact_time: i64::MIN.into(),
        }
    }

    /// Calls `visit` with the host. It must not block, because it runs under the lock of the shard.
    pub fn get_with<T>(&self, key: &[u8], visit: impl FnOnce(Option<&HostRecord>) -> T) -> T {
        let hash = self.hasher.hash_one(key);
        let shard = read(self.shard(hash));
        visit(
            shard
                .hosts
                .get(&hash)
                .filter(|(known, _)| **known == *key)
                .map(|(_, host)| host),
        )
    }

    /// Records a request to the host, if the table has it and that is due (`HostRecord::touch`).
    /// Stores a host that the state store does not know yet.
    pub fn touch(&self, key: &[u8], silence: Duration, now: Timestamp) {
        self.get_with(key, |host| {
            if let Some(host) = host.filter(|host| host.touch(silence, now)) {
                if host.mark_stored() {
                    self.put_observation(key, host, now);
                } else {
                    self.put_host(key, host, now);
                }
            }
        });
    }

    /// Records that a version was served to a crawler, and so to any client. `new` creates the host if
    /// the table does not have it. A new host is not stored yet.
    pub fn record_served(
        &self,
        key: &[u8],
        crawler: &str,
        version: RobotsVersionId,
        now: Timestamp,
        new: impl FnOnce() -> HostRecord,
    ) {
        self.update_or_insert(key, now, new, |host| {
            for name in [crawler, ALL_CLIENTS] {
                let added = host.serve_history_mut(name).add(version, now);
                if host.is_stored() && (added.is_new || added.dropped.is_some()) {
                    let served = host.serve_history_mut(name);
                    self.put_facts(serve_change_facts(
                        &key_text(key),
                        name,
                        version,
                        added,
                        served,
                    ));
                }
            }
        });
    }

    /// Calls `record` with the paths to a host, if the table has it. `record` returns whether it
    /// showed that a path has no cache. Then the host no longer counts as perhaps cached, and is
    /// stored if the state store knows it.
    pub fn record_fetch_path(
        &self,
        key: &[u8],
        now: Timestamp,
        record: impl FnOnce(&mut ProxyPathStates) -> bool,
    ) {
        let hash = self.hasher.hash_one(key);
        let mut shard = write(self.shard(hash));
        let Some((_, host)) = shard
            .hosts
            .get_mut(&hash)
            .filter(|(known, _)| **known == *key)
        else {
            return;
        };
        if record(&mut host.paths) {
            host.clear_perhaps_cached();
            if host.is_stored() {
                self.put_host(key, host, now);
            }
        }
    }

    /// Inserts a host if the table does not have it.
    pub fn insert_if_absent(&self, key: &[u8], now: Timestamp, new: impl FnOnce() -> HostRecord) {
        self.update_or_insert(key, now, new, |_| {});
    }

    /// Calls `change` with a host, which `new` creates if the table does not have it. A full table
    /// removes other hosts, also from the state store.
    fn update_or_insert(
        &self,
        key: &[u8],
        now: Timestamp,
        new: impl FnOnce() -> HostRecord,
        change: impl FnOnce(&mut HostRecord),
    ) {
        let hash = self.hasher.hash_one(key);
        let mut shard = write(self.shard(hash));
        if shard
            .hosts
            .get(&hash)
            .is_none_or(|(known, _)| **known != *key)
        {
            let host = new();
            let gone = shard.evict_hosts_if_full();
            shard.crawlers += host.crawlers.len();
            let other = shard.hosts.insert(hash, (key.into(), host));
            shard.crawlers -= other.as_ref().map_or(0, |(_, other)| other.crawlers.len());
            self.remove_stored(gone.into_iter().chain(other), now);
            self.has_grown.store(true, Release);
        }
        let Some((_, host)) = shard.hosts.get_mut(&hash) else {
            return;
        };
        let before = host.crawlers.len();
        change(host);
        shard.crawlers += host.crawlers.len() - before;
    }

    /// Removes hosts that left the table from the state store, if it knows them.
    fn remove_stored(
        &self,
        hosts: impl IntoIterator<Item = (Box<[u8]>, HostRecord)>,
        now: Timestamp,
    ) {
        for (key, host) in hosts.into_iter().filter(|(_, host)| host.is_stored()) {
            self.put_facts(removal_facts(&key_text(&key), &host, self.fact_time(now)));
        }
    }

    /// Begins every observation anew; see [`HostRecord::restart_observation`].
    pub fn restart_observations(&self, now: Timestamp, set_by: i64) {
        for shard in &self.shards {
            for (key, host) in write(shard).hosts.values_mut() {
                host.restart_observation(now, set_by);
                if host.is_stored() {
                    self.put_host(key, host, now);
                }
            }
        }
    }

    /// Sets the owner of each host, which may restart its observation (`HostRecord::set_owner`).
    /// Removes hosts without an owner that no crawler has requested for 31 days.
    pub fn update_owners(&self, owner_of: impl Fn(&[u8]) -> HostOwner, now: Timestamp) {
        for shard in &self.shards {
            // Collect changes under a read lock, because they are rare and requests wait for a
            // write lock.
            let mut changes = Vec::new();
            for (hash, (key, host)) in &read(shard).hosts {
                let owner = owner_of(key);
                if !host.has_owner(&owner) || is_expired(host, &owner, now) {
                    changes.push((*hash, owner));
                }
            }
            if changes.is_empty() {
                continue;
            }
            let mut shard = write(shard);
            for (hash, owner) in changes {
                let Some((key, host)) = shard.hosts.get_mut(&hash) else {
                    continue;
                };
                let has_changed = host.set_owner(&owner, now);
                if is_expired(host, &owner, now) {
                    let gone = shard.hosts.remove(&hash);
                    shard.crawlers -= gone.as_ref().map_or(0, |(_, gone)| gone.crawlers.len());
                    self.remove_stored(gone, now);
                } else if has_changed && host.is_stored() {
                    self.put_observation(key, host, now);
                }
            }
        }
    }

    /// Records the versions that every crawler may have been served on each host. They are not
    /// written to the state store.
    pub fn record_served_to_all(
        &self,
        versions_of: impl Fn(&[u8]) -> Vec<RobotsVersionId>,
        now: Timestamp,
    ) {
        for shard in &self.shards {
            for (key, host) in write(shard).hosts.values_mut() {
                for version in versions_of(key) {
                    host.every_crawler.add(version, now);
                }
            }
        }
    }

    /// Calls `visit` with every host and its key. Locks one shard after the other.
    pub fn for_each(&self, mut visit: impl FnMut(&[u8], &HostRecord)) {
        for shard in &self.shards {
            for (key, host) in read(shard).hosts.values() {
                visit(key, host);
            }
        }
    }

    /// Returns all facts for the state store, and marks every host as stored.
    pub fn take_all_facts(&self, now: Timestamp) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.for_each(|key, host| {
            host.mark_stored();
            facts.extend(host_facts(&key_text(key), host, self.fact_time(now)));
        });
        facts
    }

    /// Writes the hosts that the state store does not know yet.
    pub fn store_new_hosts(&self, now: Timestamp) {
        self.for_each(|key, host| {
            if !host.mark_stored() {
                self.put_host(key, host, now);
            }
        });
    }

    /// Whether hosts were added since this was last called.
    pub fn take_hosts_added(&self) -> bool {
        self.has_grown.swap(false, AcqRel)
    }

    /// Writes all facts of a host to the store.
    fn put_host(&self, key: &[u8], host: &HostRecord, now: Timestamp) {
        self.put_facts(host_facts(&key_text(key), host, self.fact_time(now)));
    }

    /// Writes the observation of a host to the store.
    fn put_observation(&self, key: &[u8], host: &HostRecord, now: Timestamp) {
        let observed = to_observation(&key_text(key), host);
        self.put_facts(vec![Fact::set(self.fact_time(now), observed)]);
    }

    /// Writes facts to the state store, and notifies subscribers of the observations among them.
    fn put_facts(&self, facts: Vec<Fact>) {
        for fact in &facts {
            if matches!(fact.fact, AnyFact::HostObservation(_)) && !fact.is_removal {
                self.subscribers.notify(|| fact.clone());
            }
        }
        self.store.put(facts);
    }

    /// The time for a fact that must replace the stored one: `now`, or the latest time so far if
    /// the clock was set back since, because the store keeps a later fact.
    fn fact_time(&self, now: Timestamp) -> Timestamp {
        Timestamp(self.latest_fact_time.fetch_max(now.0, Relaxed).max(now.0))
    }

    /// The shard of a hash, by other bits than those that the map in the shard uses first.
    fn shard(&self, hash: u64) -> &RwLock<HostShard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

impl HostShard {
    /// If the shard is full of hosts or crawlers, removes an eighth of the hosts and returns them:
    /// first hosts that no policy names, and among these the ones without requests for longest.
    fn evict_hosts_if_full(&mut self) -> Vec<(Box<[u8]>, HostRecord)> {
        if self.hosts.len() < MAX_HOSTS && self.crawlers < MAX_CRAWLERS {
            return Vec::new();
        }
        let mut order: Vec<(bool, Timestamp, u64)> = self
            .hosts
            .iter()
            .map(|(hash, (_, host))| (host.named, host.last_request(), *hash))
            .collect();
        order.sort_unstable();
        let oldest = order.iter().take(self.hosts.len().div_ceil(8));
        let gone: Vec<_> = oldest
            .filter_map(|(.., hash)| self.hosts.remove(hash))
            .collect();
        self.crawlers -= gone
            .iter()
            .map(|(_, host)| host.crawlers.len())
            .sum::<usize>();
        gone
    }
}

/// Whether a host without an owner has had no requests for so long that it is removed.
fn is_expired(host: &HostRecord, owner: &HostOwner, now: Timestamp) -> bool {
    owner.is_siteless() && now.since(host.last_request()) > FORGOTTEN_AFTER
}

/// Builds the key of a host: its name in lower case, and its port unless that is 80 or 443. `None`
/// for an invalid name.
pub fn host_key(host: &[u8]) -> Option<HostKey> {
    let (name, port) = crate::policy::site::split_host_port(host);
    if name.len() > MAX_HOST_LENGTH || !name.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let mut key = HostKey::new();
    // An IPv6 address keeps its brackets, or its end would be parsed as a port after a restart.
    let is_address = name.contains(&b':');
    if is_address {
        key.push(b'[');
    }
    key.extend_from_slice(name);
    if is_address {
        key.push(b']');
    }
    key.make_ascii_lowercase();
    // A robots.txt is for a scheme, a host and a port (RFC 9309 section 2.3). The usual ports count
    // as one host.
    if let Some(port) = port.filter(|port| ![80, 443].contains(port)) {
        key.push(b':');
        key.extend_from_slice(port.to_string().as_bytes());
    }
    Some(key)
}

pub fn key_text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{HostRecord, HostShard, MAX_CRAWLERS};

    #[test]
    fn shard_full_of_crawlers_loses_an_eighth_of_its_hosts() {
        let mut shard = HostShard::default();
        for hash in 0..16 {
            let host = (Box::default(), HostRecord::default());
            shard.hosts.insert(hash, host);
        }
        shard.crawlers = MAX_CRAWLERS - 1;
        assert!(shard.evict_hosts_if_full().is_empty());
        shard.crawlers = MAX_CRAWLERS;
        assert_eq!(shard.evict_hosts_if_full().len(), 2);
    }
}
