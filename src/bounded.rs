//! [`Bounded`]: a hash table with a maximum number of entries, for what crawlgate remembers about
//! single crawlers and addresses. When a shard of the table is full, expired entries are removed
//! first, then those that expire soonest.

use crate::locks::lock;
use ahash::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// Shards of a table, with a lock each.
pub const SHARDS: usize = 16;
/// Entries of a table, in all shards together: some MiB.
pub const MAX_ENTRIES: usize = 65_536;

/// An entry that expires.
pub trait Ends {
    /// A moment of the clock that the table is used with.
    type Moment: Copy + Ord;

    /// The moment from which on the entry may be removed.
    fn ends(&self) -> Self::Moment;
}

/// The key of a table's hash function. Tables with the same seed have the same hashes, also in
/// another process.
pub type Seed = [u64; 4];

/// For keys that are hashes already.
pub type Prehashed = BuildHasherDefault<IdentityHasher>;

/// A hasher whose hash is the number that it is given.
#[derive(Debug, Default)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    /// For completeness: the keys of these tables are `u64`, whose hashing calls `write_u64` alone.
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

/// See the top of this file. Keys with the same hash share an entry. Where that matters, the entry
/// itself has to be compared.
#[derive(Debug)]
pub struct Bounded<V> {
    /// Its key is random: no client can foresee which keys share a hash.
    hasher: RandomState,
    seed: Seed,
    shards: [Mutex<Shard<V>>; SHARDS],
    /// Entries in all shards. A look-up in an empty table takes no lock.
    count: AtomicUsize,
}

impl<V> Default for Bounded<V> {
    fn default() -> Bounded<V> {
        let random = std::hash::RandomState::new();
        Bounded::seeded([0, 1, 2, 3].map(|number| random.hash_one(number)))
    }
}

impl<V> Bounded<V> {
    /// An empty table with the hashes of another one.
    pub fn seeded(seed: Seed) -> Bounded<V> {
        let [first, second, third, fourth] = seed;
        let hasher = RandomState::with_seeds(first, second, third, fourth);
        Bounded {
            hasher,
            seed,
            shards: Default::default(),
            count: AtomicUsize::new(0),
        }
    }

    /// The seed of the table's hashes.
    pub fn seed(&self) -> Seed {
        self.seed
    }
}

impl<V: Ends> Bounded<V> {
    /// The hash of a key.
    pub fn hash(&self, of: impl Hash) -> u64 {
        self.hasher.hash_one(of)
    }

    /// Returns what `look` makes of the entry with this hash; `None` if there is no entry. The
    /// shard is locked meanwhile, so `look` must not wait.
    pub fn look<T>(&self, hash: u64, look: impl FnOnce(&V) -> Option<T>) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.shard(hash).get(&hash).and_then(look)
    }

    /// Inserts an entry, in place of an earlier one with this hash. In a full shard, other entries
    /// are removed for a new one.
    pub fn insert(&self, hash: u64, entry: V, now: V::Moment) {
        let _: Result<(), ()> = self.change(hash, now, |_| Ok(entry));
    }

    /// Replaces an entry by the one that `new` makes of it; `new` gets `None` if there is no entry
    /// yet. In a full shard, other entries are removed for a new one: those that have expired at
    /// `now`, then those that expire soonest.
    ///
    /// # Errors
    /// The error of `new`. The entry stays as it was.
    pub fn change<E>(
        &self,
        hash: u64,
        now: V::Moment,
        new: impl FnOnce(Option<&V>) -> Result<V, E>,
    ) -> Result<(), E> {
        let mut shard = self.shard(hash);
        let entry = new(shard.get(&hash))?;
        if !shard.contains_key(&hash) {
            self.count.fetch_sub(make_room(&mut shard, now), Relaxed);
            self.count.fetch_add(1, Relaxed);
        }
        shard.insert(hash, entry);
        Ok(())
    }

    /// Removes an entry.
    pub fn remove(&self, hash: u64) {
        if self.shard(hash).remove(&hash).is_some() {
            self.count.fetch_sub(1, Relaxed);
        }
    }

    /// Removes the entries that `keep` does not keep, and returns their number. One shard is locked
    /// at a time.
    pub fn retain(&self, mut keep: impl FnMut(&V) -> bool) -> usize {
        let mut gone = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.len();
            shard.retain(|_, entry| keep(entry));
            gone += before - shard.len();
        }
        self.count.fetch_sub(gone, Relaxed);
        gone
    }

    /// The results of `pick` for all entries. One shard is locked at a time, so that a request
    /// waits for one at most.
    pub fn collect<T>(&self, pick: impl Fn(&V) -> Option<T>) -> Vec<T> {
        self.collect_hashed(|_, entry| pick(entry))
    }

    /// [`Bounded::collect`] with the hash of each entry.
    pub fn collect_hashed<T>(&self, pick: impl Fn(u64, &V) -> Option<T>) -> Vec<T> {
        let mut picked = Vec::new();
        for shard in &self.shards {
            let shard = lock(shard);
            picked.extend(shard.iter().filter_map(|(hash, entry)| pick(*hash, entry)));
        }
        picked
    }

    /// The number of entries, with expired ones that are not removed yet.
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Whether the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The shard of a hash. Chosen by other bits than those by which the shard's `HashMap` places
    /// entries.
    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard<V>> {
        lock(&self.shards[(hash >> 32) as usize % SHARDS])
    }
}

/// Makes room for one more entry, if the shard is full: removes the entries that have expired, and
/// those that expire soonest until an eighth at least is removed, so that this is rare. Returns how
/// many it removed.
fn make_room<V: Ends>(shard: &mut Shard<V>, now: V::Moment) -> usize {
    let before = shard.len();
    if before < MAX_ENTRIES / SHARDS {
        return 0;
    }
    shard.retain(|_, entry| entry.ends() > now);
    let most = before - before.div_ceil(8);
    if shard.len() > most {
        let mut order: Vec<(V::Moment, u64)> = shard
            .iter()
            .map(|(hash, entry)| (entry.ends(), *hash))
            .collect();
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
        assert!(
            (0..most / 2).filter(|name| has(*name)).count() < MAX_ENTRIES / 16,
            "over"
        );
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
