//! [`BoundedTable`]: a hash table with a maximum number of entries, for what crawlgate remembers
//! about single crawlers and client addresses. The table is split into shards with a lock each.
//! When a shard is full, it removes expired entries first, and then the entries that expire
//! soonest.

use crate::locks::lock;
use ahash::RandomState;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// Shards of a table, with a lock each.
pub const SHARDS: usize = 16;
/// Entries of a table, in all shards together: some MiB.
pub const MAX_ENTRIES: usize = 65_536;

/// An entry that expires.
pub trait Expires {
    /// A time of the clock by which entries expire.
    type Time: Copy + Ord;

    /// When the entry expires.
    fn expires_at(&self) -> Self::Time;
}

/// The hasher of a `HashMap` whose keys are hashes already.
pub type PrehashedKeys = BuildHasherDefault<PrehashedHasher>;

/// Uses a `u64` key as its own hash.
#[derive(Default)]
pub struct PrehashedHasher(u64);

impl Hasher for PrehashedHasher {
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

type Shard<V> = HashMap<u64, V, PrehashedKeys>;

/// A table with at most `MAX_ENTRIES` entries. Keys with the same hash share an entry; where that
/// matters, compare the key in the entry.
pub struct BoundedTable<V> {
    /// Its key is random: no client can foresee which keys share a hash.
    hasher: RandomState,
    shards: [Mutex<Shard<V>>; SHARDS],
    /// Entries in all shards. A look-up in an empty table takes no lock.
    count: AtomicUsize,
}

impl<V> Default for BoundedTable<V> {
    fn default() -> BoundedTable<V> {
        BoundedTable {
            hasher: RandomState::new(),
            shards: Default::default(),
            count: AtomicUsize::new(0),
        }
    }
}

impl<V: Expires> BoundedTable<V> {
    /// The hash of a key.
    pub fn hash(&self, key: impl Hash) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Calls `get` with the entry of this hash and returns its result; `None` if there is no entry.
    /// The shard is locked meanwhile, so `get` must not wait.
    pub fn get_with<T>(&self, hash: u64, get: impl FnOnce(&V) -> Option<T>) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        self.shard(hash).get(&hash).and_then(get)
    }

    /// Inserts an entry, in place of an earlier one with this hash. In a full shard, other entries
    /// are removed for a new one.
    pub fn insert(&self, hash: u64, entry: V, now: V::Time) {
        let _: Result<(), ()> = self.try_update(hash, now, |_| Ok(entry));
    }

    /// Replaces an entry by the result of `update`, which gets `None` if there is no entry yet. In a
    /// full shard, other entries are removed for a new one: those that have expired at `now`, then
    /// those that expire soonest.
    ///
    /// # Errors
    /// The error of `update`. The entry stays as it was.
    pub fn try_update<E>(
        &self,
        hash: u64,
        now: V::Time,
        update: impl FnOnce(Option<&V>) -> Result<V, E>,
    ) -> Result<(), E> {
        let mut shard = self.shard(hash);
        let entry = update(shard.get(&hash))?;
        if !shard.contains_key(&hash) {
            self.count.fetch_sub(evict(&mut shard, now), Relaxed);
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

    /// Removes the entries for which `keep` returns false, and returns their number. One shard is
    /// locked at a time.
    pub fn retain(&self, mut keep: impl FnMut(&V) -> bool) -> usize {
        let mut removed = 0;
        for shard in &self.shards {
            let mut shard = lock(shard);
            let before = shard.len();
            shard.retain(|_, entry| keep(entry));
            removed += before - shard.len();
        }
        self.count.fetch_sub(removed, Relaxed);
        removed
    }

    /// The results of `pick` for all entries. One shard is locked at a time, so that a request
    /// waits for one at most.
    pub fn collect<T>(&self, pick: impl Fn(&V) -> Option<T>) -> Vec<T> {
        let mut picked = Vec::new();
        for shard in &self.shards {
            picked.extend(lock(shard).values().filter_map(&pick));
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

/// Makes space for one more entry in a full shard: removes the entries that have expired, then those
/// that expire soonest, at least an eighth in all, so that this is rare. Returns how many it
/// removed.
fn evict<V: Expires>(shard: &mut Shard<V>, now: V::Time) -> usize {
    let before = shard.len();
    if before < MAX_ENTRIES / SHARDS {
        return 0;
    }
    shard.retain(|_, entry| entry.expires_at() > now);
    let max_len = before - before.div_ceil(8);
    if shard.len() > max_len {
        let mut order: Vec<(V::Time, u64)> = shard
            .iter()
            .map(|(hash, entry)| (entry.expires_at(), *hash))
            .collect();
        let surplus = order.len() - max_len;
        order.select_nth_unstable(surplus - 1);
        for (_, hash) in &order[..surplus] {
            shard.remove(hash);
        }
    }
    before - shard.len()
}

#[cfg(test)]
mod tests {
    use super::{BoundedTable, Expires, MAX_ENTRIES};

    impl Expires for u32 {
        type Time = u32;

        fn expires_at(&self) -> u32 {
            *self
        }
    }

    #[test]
    fn full_table_removes_expired_entries_then_the_soonest() {
        let table = BoundedTable::<u32>::default();
        let put = |key: u32, expires_at: u32, now: u32| {
            table.insert(table.hash(key), expires_at, now);
        };
        let has = |key: u32| table.get_with(table.hash(key), |_| Some(())).is_some();
        let max = u32::try_from(MAX_ENTRIES).expect("a small number");
        (0..max / 2).for_each(|key| put(key, 10, 0));
        (max / 2..max * 2).for_each(|key| put(key, 1_000 + key, 20));
        assert!(
            (0..max / 2).filter(|key| has(*key)).count() < MAX_ENTRIES / 16,
            "expired"
        );
        assert!((max * 2 - max / 8..max * 2).all(has), "expire last");
        assert!(table.len() <= MAX_ENTRIES);
        let len = table.len();
        assert_eq!(table.collect(|entry| Some(*entry)).len(), len);
        assert_eq!((table.retain(|_| false), table.len()), (len, 0));
    }
}
