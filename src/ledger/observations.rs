//! [`Observations`]: the table of the hosts that crawlgate observes. It is bounded: the hosts that
//! crawlers have not requested for the longest time are removed first, and a removed host counts as
//! never observed. A change is handed to the state store under the lock of the host, so that a
//! commit has every change from before its time.
//!
//! A new host is at first kept in the table alone, because clients can make up any number of hosts.
//! It is stored when a crawler requests it again after a minute, or when crawlgate stops.

use super::host::{Host, Owner, facts_of, observation, removal_of, served_facts};
use super::proxies::KnownPaths;
use crate::bounded::{Prehashed, SHARDS};
use crate::facts::{AnyFact, Fact, Subscribers};
use crate::locks::{read, write};
use crate::policy::Version;
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

/// A name has at most 253 characters (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 255;
/// A host without a site is forgotten after this time. No history reaches further back.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(31 * 86_400);

/// How much the table holds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub hosts: usize,
    /// Crawlers on all hosts together.
    pub crawlers: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            hosts: 8_192,
            crawlers: 524_288,
        }
    }
}

#[derive(Default)]
struct Shard {
    /// By the keyed hash of the key, which no client can foresee.
    hosts: HashMap<u64, (Box<[u8]>, Host), Prehashed>,
    crawlers: usize,
}

/// A host as it is compared: name, and port where it is not a usual one.
pub type Key = SmallVec<[u8; 128]>;

/// The whole table.
pub struct Observations {
    shards: Box<[RwLock<Shard>]>,
    hasher: RandomState,
    bounds: Bounds,
    /// Whether there are hosts that were not there before.
    has_grown: AtomicBool,
    store: StateStore,
    /// The latest moment of any fact: see [`Observations::fact_time`].
    latest: AtomicI64,
    /// Who learns of what is served and observed here.
    pub subscribers: Subscribers,
}

impl Observations {
    /// An empty table, whose bounds are divided among its shards. Without a store nothing outlasts
    /// the process.
    pub fn new(bounds: Bounds, store: StateStore) -> Observations {
        Observations {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            hasher: RandomState::new(),
            bounds: Bounds {
                hosts: bounds.hosts.div_ceil(SHARDS),
                crawlers: bounds.crawlers.div_ceil(SHARDS),
            },
            has_grown: false.into(),
            subscribers: store.subscribers.clone(),
            store,
            latest: i64::MIN.into(),
        }
    }

    /// Looks at a host. The lock is held for that long: `look` must not wait for anything.
    pub fn look<T>(&self, key: &[u8], look: impl FnOnce(Option<&Host>) -> T) -> T {
        let hash = self.hasher.hash_one(key);
        let shard = read(self.shard(hash));
        look(
            shard
                .hosts
                .get(&hash)
                .filter(|(known, _)| **known == *key)
                .map(|(_, host)| host),
        )
    }

    /// Records a request to the host, if the table has it and that is due (`Host::touch`). A host
    /// that the state store does not know yet is stored with it.
    pub fn touch(&self, key: &[u8], silence: Duration, now: Timestamp) {
        self.look(key, |host| {
            if let Some(host) = host.filter(|host| host.touch(silence, now)) {
                if host.set_stored() {
                    self.put_observation(key, host, now);
                } else {
                    self.put_all(key, host, now);
                }
            }
        });
    }

    /// Records that a version was served under each of these names. `new` makes the host if the
    /// table does not have it; a new host is not stored yet.
    pub fn serve(
        &self,
        key: &[u8],
        names: [&str; 2],
        version: Version,
        now: Timestamp,
        new: impl FnOnce() -> Host,
    ) {
        self.change(key, now, new, |host| {
            for name in names {
                let added = host.crawler_mut(name).add(version, now);
                if host.is_stored() && (added.is_news || added.dropped.is_some()) {
                    let served = host.crawler_mut(name);
                    self.put(served_facts(&text(key), name, version, added, served));
                }
            }
        });
    }

    /// Changes what is known of the paths to a host, if the table has it. `record` returns whether
    /// it showed that a path has no cache. Then the host no longer counts as perhaps cached, and is
    /// stored if the state store knows it.
    pub fn serve_through(
        &self,
        key: &[u8],
        now: Timestamp,
        record: impl FnOnce(&mut KnownPaths) -> bool,
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
                self.put_all(key, host, now);
            }
        }
    }

    /// Puts a host into the table if it is not there.
    pub fn add(&self, key: &[u8], now: Timestamp, new: impl FnOnce() -> Host) {
        self.change(key, now, new, |_| {});
    }

    /// Calls `change` with a host, which `new` makes if the table does not have it. In a full table
    /// other hosts make room, and their records are removed from the state store.
    fn change(
        &self,
        key: &[u8],
        now: Timestamp,
        new: impl FnOnce() -> Host,
        change: impl FnOnce(&mut Host),
    ) {
        let hash = self.hasher.hash_one(key);
        let mut shard = write(self.shard(hash));
        if shard
            .hosts
            .get(&hash)
            .is_none_or(|(known, _)| **known != *key)
        {
            let host = new();
            let gone = shard.make_room(self.bounds);
            shard.crawlers += host.count();
            let other = shard.hosts.insert(hash, (key.into(), host));
            shard.crawlers -= other.as_ref().map_or(0, |(_, other)| other.count());
            self.remove(gone.into_iter().chain(other), now);
            self.has_grown.store(true, Release);
        }
        let Some((_, host)) = shard.hosts.get_mut(&hash) else {
            return;
        };
        let before = host.count();
        change(host);
        shard.crawlers += host.count() - before;
    }

    /// Removes the records of hosts that left the table from the state store, if it knows them.
    fn remove(&self, hosts: impl IntoIterator<Item = (Box<[u8]>, Host)>, now: Timestamp) {
        for (key, host) in hosts.into_iter().filter(|(_, host)| host.is_stored()) {
            self.put(removal_of(&text(&key), &host, self.fact_time(now)));
        }
    }

    /// Begins every observation anew; see [`Host::begin_anew`].
    pub fn begin_anew(&self, now: Timestamp, set_by: i64) {
        for shard in &self.shards {
            for (key, host) in write(shard).hosts.values_mut() {
                host.begin_anew(now, set_by);
                if host.is_stored() {
                    self.put_all(key, host, now);
                }
            }
        }
    }

    /// Gives each host its owner, which may begin its observation anew (`Host::settle`). Removes
    /// hosts that have no owner and that no crawler has requested for 31 days.
    pub fn settle(&self, owner_of: impl Fn(&[u8]) -> Owner, now: Timestamp) {
        for shard in &self.shards {
            // Requests wait for changes alone, and those are rare.
            let mut changes = Vec::new();
            for (hash, (key, host)) in &read(shard).hosts {
                let owner = owner_of(key);
                if !host.is_settled(&owner) || is_over(host, &owner, now) {
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
                let has_changed = host.settle(&owner, now);
                if is_over(host, &owner, now) {
                    let gone = shard.hosts.remove(&hash);
                    shard.crawlers -= gone.as_ref().map_or(0, |(_, gone)| gone.count());
                    self.remove(gone, now);
                } else if has_changed && host.is_stored() {
                    self.put_observation(key, host, now);
                }
            }
        }
    }

    /// Records, now, the versions that every crawler may have been served on each host. Only in the
    /// table: the state store is not told.
    pub fn serve_everyone(&self, versions_of: impl Fn(&[u8]) -> Vec<Version>, now: Timestamp) {
        for shard in &self.shards {
            for (key, host) in write(shard).hosts.values_mut() {
                for version in versions_of(key) {
                    host.everyone.add(version, now);
                }
            }
        }
    }

    /// Every host with its key. One part of the table after the other is locked against changes.
    pub fn each(&self, mut look: impl FnMut(&[u8], &Host)) {
        for shard in &self.shards {
            for (key, host) in read(shard).hosts.values() {
                look(key, host);
            }
        }
    }

    /// Everything that the state store must know. From now on it knows every host.
    pub fn facts(&self, now: Timestamp) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.each(|key, host| {
            host.set_stored();
            facts.extend(facts_of(&text(key), host, self.fact_time(now)));
        });
        facts
    }

    /// Tells the state store of the hosts that it does not know yet.
    pub fn close(&self, now: Timestamp) {
        self.each(|key, host| {
            if !host.set_stored() {
                self.put_all(key, host, now);
            }
        });
    }

    /// Whether hosts were added since this was last called.
    pub fn take_grown(&self) -> bool {
        self.has_grown.swap(false, AcqRel)
    }

    /// Hands everything that is known of a host to the store.
    fn put_all(&self, key: &[u8], host: &Host, now: Timestamp) {
        self.put(facts_of(&text(key), host, self.fact_time(now)));
    }

    /// Hands the record that a host is observed to the store.
    fn put_observation(&self, key: &[u8], host: &Host, now: Timestamp) {
        let observed = observation(&text(key), host);
        self.put(vec![Fact::set(self.fact_time(now), observed)]);
    }

    /// Hands facts to the state store, and notifies subscribers of the observations among them.
    fn put(&self, facts: Vec<Fact>) {
        for fact in &facts {
            if matches!(fact.fact, AnyFact::Observation(_)) && !fact.is_removal {
                self.subscribers.notify(|| fact.clone());
            }
        }
        self.store.put(facts);
    }

    /// The moment for a fact that is to replace what is stored: `now`, or the latest moment so far
    /// if the clock was set back since. The store would keep a record that seems later.
    fn fact_time(&self, now: Timestamp) -> Timestamp {
        Timestamp(self.latest.fetch_max(now.0, Relaxed).max(now.0))
    }

    /// The shard of a hash, by bits that the table in the shard does not begin with.
    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

impl Shard {
    /// In a shard that has no room for another host (or another crawler), removes an eighth of the
    /// hosts, and returns them: hosts that no policy names first, and among these the ones that no
    /// crawler has requested for the longest time.
    fn make_room(&mut self, bounds: Bounds) -> Vec<(Box<[u8]>, Host)> {
        if self.hosts.len() < bounds.hosts && self.crawlers < bounds.crawlers {
            return Vec::new();
        }
        let mut order: Vec<(bool, Timestamp, u64)> = self
            .hosts
            .iter()
            .map(|(hash, (_, host))| (host.named, host.seen(), *hash))
            .collect();
        order.sort_unstable();
        let oldest = order.iter().take(self.hosts.len().div_ceil(8));
        let gone: Vec<_> = oldest
            .filter_map(|(.., hash)| self.hosts.remove(hash))
            .collect();
        self.crawlers -= gone.iter().map(|(_, host)| host.count()).sum::<usize>();
        gone
    }
}

/// Whether a host is to be forgotten.
fn is_over(host: &Host, owner: &Owner, now: Timestamp) -> bool {
    owner.is_none() && now.since(host.seen()) > FORGOTTEN_AFTER
}

/// The key of a host: its name in lower case, and its port unless that is 80 or 443. `None` for
/// what cannot be the name of a host.
pub fn key(host: &[u8]) -> Option<Key> {
    let (name, port) = crate::policy::site::name_and_port(host);
    if name.len() > MAX_HOST || !name.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let mut key = Key::new();
    // An IPv6 address keeps its brackets, or its end would be read as a port when it comes back
    // from the store.
    let is_address = name.contains(&b':');
    if is_address {
        key.push(b'[');
    }
    key.extend_from_slice(name);
    if is_address {
        key.push(b']');
    }
    key.make_ascii_lowercase();
    // robots.txt is for a scheme, a host and a port (RFC 9309 section 2.3); the usual ports are one
    // host.
    if let Some(port) = port.filter(|port| ![80, 443].contains(port)) {
        key.push(b':');
        key.extend_from_slice(port.to_string().as_bytes());
    }
    Some(key)
}

pub fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}
