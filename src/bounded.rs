//! [`Bounded`]: a hash table with a maximum number of entries, for what is remembered of single crawlers and addresses. When
//! the table is full, entries whose time is over are removed first, then those whose time ends soonest.

use crate::locks::lock;
use ahash::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Parts of a table with a lock each.
pub const SHARDS: usize = 16;
/// Entries at a time, in all shards: some MiB.
pub const MAX_ENTRIES: usize = 65_536;

/// What is over some time.
pub trait Ends {
    /// By whichever clock.
    type Moment: Copy + Ord;

    /// From this moment on it is worth nothing.
    fn ends(&self) -> Self::Moment;
}

/// What the hashes of a table depend on. Another process that hashes by the same one finds the same entries.
pub type Seed = [u64; 4];

/// The keys are hashes already.
pub type Prehashed = BuildHasherDefault<TheHash>;

/// Takes the one number it is given for the hash.
#[derive(Debug, Default)]
pub struct TheHash(u64);

impl Hasher for TheHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type Shard<V> = HashMap<u64, V, Prehashed>;

/// The table. Two entries that share a hash are one: where that matters, the entry itself is compared.
#[derive(Debug)]
pub struct Bounded<V> {
    /// Keyed: no client can foresee which entries share a hash.
    hasher: RandomState,
    seed: Seed,
    shards: [Mutex<Shard<V>>; SHARDS],
    /// So that no lock is taken where there is nothing.
    count: AtomicUsize,
}

impl<V> Default for Bounded<V> {
    fn default() -> Bounded<V> {
        let random = std::hash::RandomState::new();
        Bounded::seeded([0, 1, 2, 3].map(|number| random.hash_one(number)))
    }
}

impl<V> Bounded<V> {
    /// An empty table that hashes as another one does.
    pub fn seeded(seed: Seed) -> Bounded<V> {
        let [first, second, third, fourth] = seed;
        let hasher = RandomState::with_seeds(first, second, third, fourth);
        Bounded { hasher, seed, shards: Default::default(), count: AtomicUsize::new(0) }
    }

    /// What its hashes depend on.
    pub fn seed(&self) -> Seed {
        self.seed
    }
}

impl<V: Ends> Bounded<V> {
    /// The hash of what an entry is of.
    pub fn hash(&self, of: impl Hash) -> u64 {
        self.hasher.hash_one(of)
    }

    /// Looks at an entry, if it is there. Its shard is locked for that long: `look` must not wait for anything.
    pub fn look<T>(&self, hash: u64, look: impl FnOnce(&V) -> Option<T>) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.shard(hash).get(&hash).and_then(look)
    }

    /// Puts an entry in the place of the one before.
    pub fn insert(&self, hash: u64, entry: V, now: V::Moment) {
        let _: Result<(), ()> = self.change(hash, now, |_| Ok(entry));
    }

    /// Puts the entry that `new` makes of the one before in its place.
    ///
    /// # Errors
    /// That of `new`; the entry stays as it was.
    pub fn change<E>(&self, hash: u64, now: V::Moment, new: impl FnOnce(Option<&V>) -> Result<V, E>) -> Result<(), E> {
        let mut shard = self.shard(hash);
        let entry = new(shard.get(&hash))?;
        if !shard.contains_key(&hash) {
            self.count.fetch_sub(make_room(&mut shard, now), Ordering::Relaxed);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        shard.insert(hash, entry);
        Ok(())
    }

    /// Forgets an entry.
    pub fn remove(&self, hash: u64) {
        if self.shard(hash).remove(&hash).is_some() {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Forgets what `keep` does not keep, and says how many entries that were. One shard is locked after the other.
    pub fn retain(&self, mut keep: impl FnMut(&V) -> bool) -> usize {
        let mut gone = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.len();
            shard.retain(|_, entry| keep(entry));
            gone += before - shard.len();
        }
        self.count.fetch_sub(gone, Ordering::Relaxed);
        gone
    }

    /// What `pick` makes of the entries. A shard at a time: a request waits for one at most.
    pub fn collect<T>(&self, pick: impl Fn(&V) -> Option<T>) -> Vec<T> {
        self.collect_hashed(|_, entry| pick(entry))
    }

    /// The same with the hashes.
    pub fn collect_hashed<T>(&self, pick: impl Fn(u64, &V) -> Option<T>) -> Vec<T> {
        let of = |shard: &Mutex<Shard<V>>| {
            lock(shard).iter().filter_map(|(hash, entry)| pick(*hash, entry)).collect::<Vec<_>>()
        };
        self.shards.iter().flat_map(of).collect()
    }

    /// How many entries there are, with those that are over but not cleared away yet.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// By bits that the table inside does not begin with.
    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<V>> {
        lock(&self.shards[(hash >> 32) as usize % SHARDS])
    }
}

/// Makes room for one more where there is none, and says how many went. An eighth at least, so that it is not done for
/// every new entry.
fn make_room<V: Ends>(shard: &mut Shard<V>, now: V::Moment) -> usize {
    let before = shard.len();
    if before < MAX_ENTRIES / SHARDS {
        return 0;
    }
    shard.retain(|_, entry| entry.ends() > now);
    let most = before - before.div_ceil(8);
    if shard.len() > most {
        let mut order: Vec<(V::Moment, u64)> = shard.iter().map(|(hash, entry)| (entry.ends(), *hash)).collect();
        let surplus = order.len() - most;
        order.select_nth_unstable(surplus - 1);
        for (_, hash) in &order[..surplus] {
            shard.remove(hash);
        }
    }
    before - shard.len()
}

#[cfg(test)]
mod tests {
    use super::{Bounded, Ends, MAX_ENTRIES};

    impl Ends for u32 {
        type Moment = u32;

        fn ends(&self) -> u32 {
            *self
        }
    }

    #[test]
    fn what_is_over_goes_first_and_then_what_is_over_the_soonest() {
        let table = Bounded::<u32>::default();
        let put = |name: u32, ends: u32, now: u32| table.insert(table.hash(name), ends, now);
        let has = |name: u32| table.look(table.hash(name), |ends| Some(*ends)).is_some();
        let most = u32::try_from(MAX_ENTRIES).expect("a small number");
        (0..most / 2).for_each(|name| put(name, 10, 0));
        (most / 2..most * 2).for_each(|name| put(name, 1_000 + name, 20));
        assert!((0..most / 2).filter(|name| has(*name)).count() < MAX_ENTRIES / 16, "over");
        assert!((most * 2 - most / 8..most * 2).all(has), "over the last");
        assert!(table.len() <= MAX_ENTRIES);
        let held = table.len();
        assert_eq!(table.collect(|ends| Some(*ends)).len(), held);
        assert_eq!((table.retain(|_| false), table.len()), (held, 0));
    }

    #[test]
    fn tables_of_one_seed_share_their_hashes() {
        let table = Bounded::<u32>::default();
        let same = Bounded::<u32>::seeded(table.seed());
        let of = ("shop.example", Some(7));
        assert_eq!(table.hash(of), same.hash(of));
        assert_ne!(table.hash(of), Bounded::<u32>::default().hash(of));
    }
}
