//! The table of what was served: per site and host, per crawler, each version with the last time. Bounded; the hosts
//! that nobody asked for the longest are forgotten first, and what is forgotten was never watched.

use super::bounded::{Prehashed, SHARDS};
use crate::policy::Version;
use crate::time::Timestamp;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// Versions remembered for one crawler on one host; a site has no more.
pub const MAX_VERSIONS: usize = 64;
/// A name has at most 253 characters (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 255;
/// The moment of the last request is not noted at each of them.
const COARSE: i64 = 60;
/// Nobody is forsaken sooner.
const SILENCE: Duration = Duration::from_secs(3_600);

const NO_CACHE: i64 = -1;

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

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

    /// Nothing was served in the time to come.
    fn bound(&mut self, now: Timestamp) {
        let moments = self.versions.iter_mut().map(|visit| &mut visit.at);
        for moment in moments.chain(&mut self.lost) {
            *moment = now.min(*moment);
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
    /// Under which names it leads to its site, as far as anybody looked. See [`Host::leads_as_before`].
    ways: AtomicU8,
    /// For how long a cache before us kept what we served here, in seconds; [`NO_CACHE`] without one.
    cached: AtomicI64,
    /// What any crawler may have been served without our knowing: around a crash.
    pub everyone: Served,
    /// By the hash of the name; the names are ours and the policy's, and one that met another's would share with it.
    crawlers: HashMap<u64, (Box<str>, Served), Prehashed>,
}

/// FNV-1a, and a turn: tables take the upper bits as well as the lower.
fn hash_of(name: &str) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, fold).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Host {
    pub fn new(since: Timestamp, seen: Timestamp, named: bool, cached: Option<Duration>) -> Host {
        let cached = cached.map_or(NO_CACHE, seconds).into();
        Host { since: since.0.into(), seen: seen.0.into(), named, cached, ..Host::default() }
    }

    /// For how long a cache before us keeps what we serve here.
    pub fn cached(&self) -> Option<Duration> {
        u64::try_from(self.cached.load(Ordering::Relaxed)).ok().map(Duration::from_secs)
    }

    /// Notes what is before us now. Where that was a cache, or one that kept things for longer, nobody knows what it
    /// handed out and to whom: the watch begins when it is over. Says whether something is to be written down.
    pub fn is_behind(&self, cache: Option<Duration>, now: Timestamp) -> bool {
        let cache = cache.map_or(NO_CACHE, seconds);
        let before = self.cached.swap(cache, Ordering::Relaxed);
        if before > cache {
            self.since.fetch_max(now.0.saturating_add(before), Ordering::Relaxed);
        }
        before != cache
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

    /// What was served to a crawler.
    pub fn crawler(&self, name: &str) -> Option<&Served> {
        self.crawlers.get(&hash_of(name)).map(|(_, served)| served)
    }

    /// The same, to be changed; nothing when it is new.
    pub fn crawler_mut(&mut self, name: &str) -> &mut Served {
        &mut self.crawlers.entry(hash_of(name)).or_insert_with(|| (name.into(), Served::default())).1
    }

    /// All of them by name, to be changed.
    pub fn crawlers_mut(&mut self) -> impl Iterator<Item = (&str, &mut Served)> {
        self.crawlers.values_mut().map(|(name, served)| (&**name, served))
    }

    /// All of them, by name.
    pub fn crawlers(&self) -> impl Iterator<Item = (&str, &Served)> {
        self.crawlers.values().map(|(name, served)| (&**name, served))
    }

    /// Whether nobody came for so long that it may have been somebody else's meanwhile: a host that is announced to
    /// crawlgate before the world knows is seen once and then not for days.
    pub fn is_forsaken(&self, silence: Duration, now: Timestamp) -> bool {
        now.since(self.seen()) > silence.max(SILENCE)
    }

    /// Whether it leads to its site under the same names as when this was first asked, by a bit for each. Without any
    /// it leads elsewhere.
    pub fn leads_as_before(&self, ways: u8) -> bool {
        let before = self.ways.compare_exchange(0, ways, Ordering::Relaxed, Ordering::Relaxed);
        ways != 0 && before.map_or_else(|before| before == ways, |_| true)
    }

    /// Somebody asked for it. Says whether that is worth writing down.
    fn touch(&self, silence: Duration, now: Timestamp) -> bool {
        if self.is_forsaken(silence, now) {
            self.since.fetch_max(now.0, Ordering::Relaxed);
        } else if (now.0.saturating_sub(self.seen().0)).abs() < COARSE {
            return false;
        }
        self.seen.store(now.0, Ordering::Relaxed);
        true
    }
}

#[derive(Debug, Default)]
struct Shard {
    /// By the keyed hash of the key, which nobody outside can foresee.
    hosts: HashMap<u64, (Box<[u8]>, Host), Prehashed>,
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
    /// Whether there are hosts that were not there before.
    grown: AtomicBool,
}

impl Visits {
    pub fn new(bounds: Bounds) -> Visits {
        let shards = (0..SHARDS).map(|_| RwLock::default()).collect();
        let bounds = Bounds { hosts: bounds.hosts.div_ceil(SHARDS), crawlers: bounds.crawlers.div_ceil(SHARDS) };
        Visits {
            shards,
            hasher: RandomState::new(),
            bounds,
            changed: AtomicBool::new(false),
            grown: AtomicBool::new(false),
        }
    }

    /// Looks at a host. The lock is held for that long: `look` must not wait for anything.
    pub fn look<T>(&self, key: &[u8], look: impl FnOnce(Option<&Host>) -> T) -> T {
        let hash = self.hasher.hash_one(key);
        let shard = read(self.shard(hash));
        look(shard.hosts.get(&hash).filter(|(known, _)| **known == *key).map(|(_, host)| host))
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
        let hash = self.hasher.hash_one(key);
        let mut shard = write(self.shard(hash));
        if shard.hosts.get(&hash).is_none_or(|(known, _)| **known != *key) {
            shard.make_room(self.bounds);
            let host = new();
            shard.crawlers += host.crawlers.len();
            if let Some((_, other)) = shard.hosts.insert(hash, (key.into(), host)) {
                shard.crawlers -= other.crawlers.len();
            }
            self.grown.store(true, Ordering::Release);
        }
        let Some((_, host)) = shard.hosts.get_mut(&hash) else { return };
        let before = host.crawlers.len();
        change(host);
        let more = host.crawlers.len() - before;
        shard.crawlers += more;
        self.changed.store(true, Ordering::Release);
    }

    /// All watches begin now. One that is yet to begin, when a cache before us is over, begins as much later as the
    /// clock was set by.
    pub fn watch_anew(&self, now: Timestamp, set_by: i64) {
        let later = |since: i64| since.saturating_add(set_by).max(now.0);
        self.each(|_, host| host.since.store(later(host.since().0), Ordering::Relaxed));
    }

    /// When somebody last asked for any host.
    pub fn last_seen(&self) -> Option<Timestamp> {
        let mut last = None;
        self.each(|_, host| last = last.max(Some(host.seen())));
        last
    }

    /// Moments to come are those of a clock that was ahead, and set back since: what was served then is taken for
    /// served now, or it would count as held until that clock's time has come.
    pub fn bound(&self, now: Timestamp) {
        for shard in &self.shards {
            for (_, host) in write(shard).hosts.values_mut() {
                host.seen.fetch_min(now.0, Ordering::Relaxed);
                host.everyone.bound(now);
                host.crawlers_mut().for_each(|(_, served)| served.bound(now));
            }
        }
        self.set_changed();
    }

    /// Forgets the hosts, given with their sites, that are not to be kept. Says whether there were any.
    pub fn keep(&self, keep: impl Fn(&[u8], &[u8], &Host) -> bool) -> bool {
        let gone = |key: &[u8], of: &Host| !split(key).is_some_and(|(site, host)| keep(site, host, of));
        let mut any = false;
        for shard in &self.shards {
            // All of them are looked at: that is when it is noted what they are compared with the next time.
            if read(shard).hosts.values().filter(|(key, host)| gone(key, host)).count() == 0 {
                continue;
            }
            let mut shard = write(shard);
            shard.hosts.retain(|_, (key, host)| !gone(key, host));
            shard.crawlers = shard.hosts.values().map(|(_, host)| host.crawlers.len()).sum();
            self.changed.store(true, Ordering::Release);
            any = true;
        }
        any
    }

    /// Every host with its key; one part of the table after the other is locked against changes.
    pub fn each(&self, mut look: impl FnMut(&[u8], &Host)) {
        for shard in &self.shards {
            read(shard).hosts.values().for_each(|(key, host)| look(key, host));
        }
    }

    /// Whether something changed since this was last asked.
    pub fn take_changed(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Whether there are more hosts than when this was last asked.
    pub fn take_grown(&self) -> bool {
        self.grown.swap(false, Ordering::AcqRel)
    }

    /// It is to be asked again.
    pub fn set_changed(&self) {
        self.changed.store(true, Ordering::Release);
    }

    /// By bits that the table inside does not begin with.
    fn shard(&self, hash: u64) -> &RwLock<Shard> {
        &self.shards[(hash >> 32) as usize % SHARDS]
    }
}

impl Shard {
    /// Forgets an eighth of the hosts when there is no room for another: those that nobody asked for the longest, hosts
    /// that no policy names before the others.
    fn make_room(&mut self, bounds: Bounds) {
        if self.hosts.len() < bounds.hosts && self.crawlers < bounds.crawlers {
            return;
        }
        let mut order: Vec<(bool, Timestamp, u64)> =
            self.hosts.iter().map(|(hash, (_, host))| (host.named, host.seen(), *hash)).collect();
        order.sort_unstable();
        for (.., hash) in order.iter().take(self.hosts.len().div_ceil(8)) {
            if let Some((_, host)) = self.hosts.remove(hash) {
                self.crawlers -= host.crawlers.len();
            }
        }
    }
}

/// The key of a host; none for what is no name of a host.
pub fn key(site: &str, host: &[u8]) -> Option<Key> {
    let (name, port) = crate::policy::site::name_and_port(host);
    if name.len() > MAX_HOST || !name.iter().all(u8::is_ascii_graphic) {
        return None;
    }
    let mut key = Key::from_slice(site.as_bytes());
    key.push(0);
    let start = key.len();
    // An IPv6 address keeps its brackets, or its end would be read as a port when it comes back from the disk.
    let [open, close] = if name.contains(&b':') { ["[", "]"] } else { [""; 2] };
    for part in [open.as_bytes(), name, close.as_bytes()] {
        key.extend_from_slice(part);
    }
    key[start..].make_ascii_lowercase();
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
