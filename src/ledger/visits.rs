//! The table of what was served: per site and host, per crawler, each version with the last time. Bounded; the hosts that
//! nobody asked for the longest are forgotten first, and what is forgotten was never watched.

use crate::policy::Version;
use crate::time::Timestamp;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Versions remembered for one crawler on one host; a site has no more.
pub const MAX_VERSIONS: usize = 64;
/// A name has at most 253 characters (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 255;
/// Parts of the table with a lock each.
const SHARDS: usize = 16;
/// The moment of the last request is not noted at each of them.
const COARSE: i64 = 60;
/// Nobody is forsaken sooner.
const SILENCE: Duration = Duration::from_secs(3_600);

/// What everybody together was served: the name of no crawler.
pub const ANYONE: &str = "*";

/// How much the table holds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub hosts: usize,
    /// Crawlers on all hosts together.
    pub crawlers: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { hosts: 8_192, crawlers: 65_536 }
    }
}

/// One version that was served, and when last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Which bytes.
    pub version: Version,
    /// When the whole of it, or a 304 for it, was last written.
    pub at: Timestamp,
}

/// What was served to one crawler on one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Each version once.
    pub versions: SmallVec<[Visit; 2]>,
    /// When the last of those was served that there was no room for.
    pub lost: Option<Timestamp>,
}

impl Served {
    pub fn add(&mut self, version: Version, at: Timestamp) {
        match self.versions.iter_mut().find(|visit| visit.version == version) {
            // Whatever the clock says now: being served again never makes anybody hold it for less long.
            Some(visit) => visit.at = visit.at.max(at),
            None => self.versions.push(Visit { version, at }),
        }
        if self.versions.len() > MAX_VERSIONS
            && let Some((oldest, visit)) = self.versions.iter().copied().enumerate().min_by_key(|(_, visit)| visit.at)
        {
            self.versions.swap_remove(oldest);
            self.lost = self.lost.max(Some(visit.at));
        }
    }

    /// What it may still go by, it may go by anew: robots.txt cannot be had (RFC 9309 section 2.4).
    fn prolong(&mut self, window: Duration, at: Timestamp) {
        for visit in self.versions.iter_mut().filter(|visit| at.since(visit.at) <= window) {
            visit.at = visit.at.max(at);
        }
        if self.lost.is_some_and(|lost| at.since(lost) <= window) {
            self.lost = self.lost.max(Some(at));
        }
    }
}

/// One host of one site.
#[derive(Debug, Default)]
pub struct Host {
    since: AtomicI64,
    seen: AtomicI64,
    /// Whether the policy names it: such hosts are few, and forgotten last.
    named: bool,
    /// What any crawler may have been served without our knowing: around a crash.
    pub everyone: Served,
    pub crawlers: HashMap<Box<str>, Served>,
}

impl Host {
    pub fn new(since: Timestamp, seen: Timestamp, named: bool) -> Host {
        Host { since: since.0.into(), seen: seen.0.into(), named, ..Host::default() }
    }

    /// Since when it is watched.
    pub fn since(&self) -> Timestamp {
        Timestamp(self.since.load(Ordering::Relaxed))
    }

    /// When somebody last asked for it; at most a minute later in truth.
    pub fn seen(&self) -> Timestamp {
        Timestamp(self.seen.load(Ordering::Relaxed))
    }

    pub fn named(&self) -> bool {
        self.named
    }

    /// Whether nobody came for so long that it may have been somebody else's meanwhile: a host that is announced to
    /// crawlgate before the world knows is seen once and then not for days.
    pub fn is_forsaken(&self, silence: Duration, now: Timestamp) -> bool {
        now.since(self.seen()) > silence.max(SILENCE)
    }

    /// Somebody asked for it. Says whether that is worth writing down.
    fn touch(&self, silence: Duration, now: Timestamp) -> bool {
        if self.is_forsaken(silence, now) {
            self.since.store(now.0, Ordering::Relaxed);
        } else if (now.0.saturating_sub(self.seen().0)).abs() < COARSE {
            return false;
        }
        self.seen.store(now.0, Ordering::Relaxed);
        true
    }
}

#[derive(Debug, Default)]
struct Shard {
    hosts: HashMap<Box<[u8]>, Host>,
    crawlers: usize,
}

/// The key of a host: the site's name, and the host as it is compared.
pub type Key = SmallVec<[u8; 128]>;

/// The whole table.
#[derive(Debug)]
pub struct Visits {
    shards: Box<[RwLock<Shard>]>,
    hasher: RandomState,
    bounds: Bounds,
    changed: AtomicBool,
}

impl Visits {
    pub fn new(bounds: Bounds) -> Visits {
        let shards = (0..SHARDS).map(|_| RwLock::default()).collect();
        let bounds = Bounds { hosts: bounds.hosts.div_ceil(SHARDS), crawlers: bounds.crawlers.div_ceil(SHARDS) };
        Visits { shards, hasher: RandomState::new(), bounds, changed: AtomicBool::new(false) }
    }

    /// Looks at a host. The lock is held for that long: `look` must not wait for anything.
    pub fn look<T>(&self, key: &[u8], look: impl FnOnce(Option<&Host>) -> T) -> T {
        look(read(self.shard(key)).hosts.get(key))
    }

    /// The same, for somebody who asks for the host.
    pub fn touch<T>(&self, key: &[u8], silence: Duration, now: Timestamp, look: impl FnOnce(Option<&Host>) -> T) -> T {
        self.look(key, |host| {
            let looked = look(host);
            if host.is_some_and(|host| host.touch(silence, now)) {
                self.changed.store(true, Ordering::Release);
            }
            looked
        })
    }

    /// Changes a host, putting it into the table if need be.
    pub fn change(&self, key: &[u8], new: impl FnOnce() -> Host, change: impl FnOnce(&mut Host)) {
        let mut shard = write(self.shard(key));
        if !shard.hosts.contains_key(key) {
            shard.make_room(self.bounds);
            let host = new();
            shard.crawlers += host.crawlers.len();
            shard.hosts.insert(key.into(), host);
        }
        let Some(host) = shard.hosts.get_mut(key) else { return };
        let before = host.crawlers.len();
        change(host);
        let more = host.crawlers.len() - before;
        shard.crawlers += more;
        self.changed.store(true, Ordering::Release);
    }

    /// A version was served, on a host that is in the table.
    pub fn serve(host: &mut Host, crawler: &str, version: Version, at: Timestamp) {
        match host.crawlers.get_mut(crawler) {
            Some(served) => served.add(version, at),
            None => host.crawlers.entry(crawler.into()).or_default().add(version, at),
        }
    }

    /// See [`Served::prolong`].
    pub fn prolong(host: &mut Host, crawler: &str, window: Duration, at: Timestamp) {
        if let Some(served) = host.crawlers.get_mut(crawler) {
            served.prolong(window, at);
        }
    }

    /// All watches begin now.
    pub fn watch_anew(&self, now: Timestamp) {
        self.each(|_, host| host.since.store(now.0, Ordering::Relaxed));
    }

    /// Forgets the hosts of other sites.
    pub fn keep_sites(&self, keep: impl Fn(&[u8]) -> bool) {
        let gone = |key: &[u8]| !split(key).is_some_and(|(site, _)| keep(site));
        for shard in &self.shards {
            if !read(shard).hosts.keys().any(|key| gone(key)) {
                continue;
            }
            let mut shard = write(shard);
            shard.hosts.retain(|key, _| !gone(key));
            shard.crawlers = shard.hosts.values().map(|host| host.crawlers.len()).sum();
            self.changed.store(true, Ordering::Release);
        }
    }

    /// Every host with its key; one part of the table after the other is locked against changes.
    pub fn each(&self, mut look: impl FnMut(&[u8], &Host)) {
        for shard in &self.shards {
            read(shard).hosts.iter().for_each(|(key, host)| look(key, host));
        }
    }

    /// Whether something changed since this was last asked.
    pub fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// It is to be asked again.
    pub fn set_changed(&self) {
        self.changed.store(true, Ordering::Release);
    }

    fn shard(&self, key: &[u8]) -> &RwLock<Shard> {
        let hash = self.hasher.hash_one(key);
        // The remainder is below the number of shards.
        &self.shards[usize::try_from(hash % SHARDS as u64).unwrap_or(0)]
    }
}

impl Shard {
    /// Forgets an eighth of the hosts when there is no room for another: those that nobody asked for the longest, hosts
    /// that no policy names before the others.
    fn make_room(&mut self, bounds: Bounds) {
        if self.hosts.len() < bounds.hosts && self.crawlers < bounds.crawlers {
            return;
        }
        let mut order: Vec<(bool, Timestamp, Box<[u8]>)> =
            self.hosts.iter().map(|(key, host)| (host.named, host.seen(), key.clone())).collect();
        order.sort_unstable();
        for (.., key) in order.iter().take(self.hosts.len().div_ceil(8)) {
            if let Some(host) = self.hosts.remove(key) {
                self.crawlers -= host.crawlers.len();
            }
        }
    }
}

/// The key of a host; none for what is no name of a host.
pub fn key(site: &str, host: &[u8]) -> Option<Key> {
    let (name, port) = crate::policy::compiled::name_and_port(host);
    if name.len() > MAX_HOST || !name.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let mut key = Key::from_slice(site.as_bytes());
    key.push(0);
    key.extend(name.iter().map(u8::to_ascii_lowercase));
    // robots.txt is for a scheme, a host and a port (RFC 9309 section 2.3); the usual ports are one host.
    if let Some(port) = port.filter(|port| ![80, 443].contains(port)) {
        key.push(b':');
        key.extend_from_slice(port.to_string().as_bytes());
    }
    Some(key)
}

/// A key as site and host.
pub fn split(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let place = key.iter().position(|byte| *byte == 0)?;
    Some((&key[..place], &key[place + 1..]))
}

// What a panic could leave behind is a visit more or less: better a table than none.
fn read(shard: &RwLock<Shard>) -> RwLockReadGuard<'_, Shard> {
    shard.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(shard: &RwLock<Shard>) -> RwLockWriteGuard<'_, Shard> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}
