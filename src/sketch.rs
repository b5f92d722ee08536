//! [`TopKSketch`] counts the most frequent keys of a stream in bounded memory, by the Space-Saving
//! algorithm (Metwally, Agrawal, El Abbadi 2005). A count is never too low. [`CountedKey::error`]
//! says by how much a count may be too high.

use crate::time::{Timestamp, rfc3339};
use ahash::AHashMap;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::sync::Arc;

/// Counts of the most frequent keys.
pub struct TopKSketch {
    /// The most keys.
    capacity: usize,
    positions: AHashMap<Arc<[u8]>, usize>,
    /// Aligned with `keys`: the search for the lowest count reads these alone.
    counts: Vec<u64>,
    errors: Vec<u64>,
    keys: Vec<Arc<[u8]>>,
    /// What the requests under a key took, where that was added.
    pub usages: AHashMap<Arc<[u8]>, KeyUsage>,
    /// The lowest count when it was last searched. No count is lower.
    lowest: u64,
    /// All counts before this place are higher than `lowest`.
    searched: usize,
}

/// What the requests under a key took, since the sketch has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyUsage {
    /// The bytes that were sent.
    pub bytes: u64,
    /// When the last one came.
    #[serde(serialize_with = "rfc3339")]
    pub last: Option<Timestamp>,
    /// The requests whose duration is known.
    pub timed: u64,
    /// How long these took together, in milliseconds.
    pub milliseconds: u64,
    /// Those that took a second or longer.
    pub slow: u64,
}

impl KeyUsage {
    /// Adds what other requests took.
    pub fn add(&mut self, other: KeyUsage) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.last = self.last.max(other.last);
        self.timed += other.timed;
        self.milliseconds += other.milliseconds;
        self.slow += other.slow;
    }
}

/// A key with its count.
#[derive(Debug, PartialEq, Eq)]
pub struct CountedKey {
    /// The key.
    pub key: Box<[u8]>,
    /// How often it was seen, or more.
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
}

/// An empty sketch without a most of keys: it is exact as long as it may grow.
impl Default for TopKSketch {
    fn default() -> TopKSketch {
        TopKSketch::new(usize::MAX)
    }
}

impl TopKSketch {
    /// An empty sketch of at most `capacity` keys.
    pub fn new(capacity: usize) -> TopKSketch {
        TopKSketch {
            capacity,
            positions: AHashMap::new(),
            counts: Vec::new(),
            errors: Vec::new(),
            keys: Vec::new(),
            usages: AHashMap::new(),
            lowest: 0,
            searched: 0,
        }
    }

    /// A sketch that goes on from the keys of another one ([`TopKSketch::iter`]).
    pub fn from_keys(capacity: usize, keys: Vec<CountedKey>) -> TopKSketch {
        // A key with an error has replaced another one, so that sketch was full.
        let was_full = keys.iter().any(|counted| counted.error > 0);
        let capacity = if was_full {
            capacity.min(keys.len())
        } else {
            capacity
        };
        let mut sketch = TopKSketch::new(capacity);
        for counted in keys.into_iter().take(capacity) {
            if !sketch.positions.contains_key(&*counted.key) {
                sketch.insert(counted.key.into(), counted.count, counted.error);
            }
        }
        sketch
    }

    /// The number of its keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Every key with its count, in no order.
    pub fn iter(&self) -> impl Iterator<Item = CountedKey> {
        (0..self.len()).map(|place| self.counted_key(place))
    }

    fn counted_key(&self, place: usize) -> CountedKey {
        CountedKey {
            key: Box::from(&*self.keys[place]),
            count: self.counts[place],
            error: self.errors[place],
        }
    }

    /// Counts a key once. When the sketch is full, a new key replaces the one with the lowest count
    /// and continues from that count, which becomes its error. A sketch that may not grow is full
    /// from then on: a key that it counts later may be one that it has replaced.
    pub fn add(&mut self, key: &[u8], may_grow: bool) {
        if let Some(&place) = self.positions.get(key) {
            self.counts[place] += 1;
            return;
        }
        if self.keys.len() < self.capacity {
            if may_grow {
                return self.insert(key.into(), 1, 0);
            }
            self.capacity = self.keys.len();
        }
        if let Some(place) = self.find_lowest() {
            let key: Arc<[u8]> = key.into();
            self.positions.remove(&self.keys[place]);
            self.usages.remove(&self.keys[place]);
            self.positions.insert(key.clone(), place);
            self.keys[place] = key;
            self.errors[place] = self.counts[place];
            self.counts[place] += 1;
        }
    }

    /// Adds to what the requests under a key took, if the sketch has the key.
    pub fn add_usage(&mut self, key: &[u8], usage: KeyUsage) {
        if let Some(&place) = self.positions.get(key) {
            let known = self.usages.entry(self.keys[place].clone());
            known.or_default().add(usage);
        }
    }

    /// The place of a key with the lowest count. Counts only grow, so the search goes on where the
    /// last one ended: many new keys together cost one pass over all counts.
    fn find_lowest(&mut self) -> Option<usize> {
        let lowest = self.lowest;
        let mut rest = self.counts[self.searched..].iter();
        self.searched = match rest.position(|count| *count == lowest) {
            Some(offset) => self.searched + offset,
            None => {
                self.lowest = self.counts.iter().min().copied()?;
                self.counts.iter().position(|count| *count == self.lowest)?
            }
        };
        Some(self.searched)
    }

    fn insert(&mut self, key: Arc<[u8]>, count: u64, error: u64) {
        self.positions.insert(key.clone(), self.keys.len());
        self.keys.push(key);
        self.counts.push(count);
        self.errors.push(error);
    }

    /// How often an absent key may have been seen: the lowest count, or 0 while the sketch is not
    /// full.
    fn min_count(&self) -> u64 {
        if self.keys.len() < self.capacity {
            0
        } else {
            self.counts.iter().min().copied().unwrap_or(0)
        }
    }

    /// Adds the counts of another stream, and keeps the keys of both. Each sketch may have seen a
    /// key that it lacks as often as its lowest count, which is added to count and error.
    pub fn merge(&mut self, other: &TopKSketch) {
        let own_min = self.min_count();
        let their_min = other.min_count();
        let was_full = [&*self, other].iter().any(|one| one.len() >= one.capacity);
        for (place, key) in self.keys.iter().enumerate() {
            if !other.positions.contains_key(key) {
                self.counts[place] += their_min;
                self.errors[place] += their_min;
            }
        }
        for (place, key) in other.keys.iter().enumerate() {
            let count = other.counts[place];
            let error = other.errors[place];
            if let Some(&own) = self.positions.get(key) {
                self.counts[own] += count;
                self.errors[own] += error;
            } else {
                self.insert(key.clone(), count + own_min, error + own_min);
            }
        }
        for (key, usage) in &other.usages {
            self.add_usage(key, *usage);
        }
        if was_full {
            self.capacity = self.len();
        }
    }

    /// At most `limit` of the most frequent keys, the most frequent first, equally frequent ones by
    /// name. A key whose error is at least half of its count is left out: it may not be among the
    /// most frequent.
    pub fn top(&self, limit: usize) -> Vec<CountedKey> {
        let places = 0..self.len();
        let certain = places.filter(|&place| self.errors[place] * 2 < self.counts[place]);
        let mut top: Vec<usize> = certain.collect();
        top.sort_unstable_by_key(|&place| (Reverse(self.counts[place]), &self.keys[place]));
        top.truncate(limit);
        top.into_iter()
            .map(|place| self.counted_key(place))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{KeyUsage, TopKSketch};
    use crate::time::Timestamp;

    #[test]
    fn frequent_keys_are_found_among_many_rare_ones() {
        let mut halves = [TopKSketch::new(512), TopKSketch::new(512)];
        for number in 0..100_000_u32 {
            let half = &mut halves[number as usize % 2];
            half.add(&number.to_le_bytes(), true);
            if number % 20 < 2 {
                half.add(b"often", true);
            }
        }
        let [mut one, other] = halves;
        one.merge(&other);
        assert!(one.len() <= 1_024 && one.positions.len() == one.len());
        let top = one.top(10);
        assert_eq!(&*top[0].key, b"often");
        assert!(
            top[0].count >= 10_000 && top[0].count - top[0].error <= 10_000,
            "{top:?}"
        );
    }

    #[test]
    fn counts_are_exact_where_all_keys_fit() {
        let (mut one, mut other) = (TopKSketch::default(), TopKSketch::default());
        for key in [b"a", b"b", b"a"] {
            one.add(key, true);
            other.add(key, true);
        }
        other.add(b"c", true);
        one.merge(&other);
        let counts: Vec<_> = one
            .top(9)
            .into_iter()
            .map(|counted| (counted.key, counted.count, counted.error))
            .collect();
        assert_eq!(
            counts,
            [
                (b"a".as_slice().into(), 4, 0),
                (b"b".as_slice().into(), 2, 0),
                (b"c".as_slice().into(), 1, 0)
            ]
        );
    }

    #[test]
    fn usage_of_merged_sketches_is_summed() {
        let usage = |bytes, last| KeyUsage {
            bytes,
            last: Some(Timestamp(last)),
            ..KeyUsage::default()
        };
        let mut one = TopKSketch::default();
        let mut other = TopKSketch::default();
        for sketch in [&mut one, &mut other] {
            sketch.add(b"a", true);
        }
        one.add_usage(b"a", usage(5, 9));
        one.add_usage(b"unknown", usage(1, 1));
        other.add_usage(b"a", usage(7, 3));
        one.merge(&other);
        assert_eq!(one.usages.get(&b"a"[..]), Some(&usage(12, 9)));
        assert_eq!(one.usages.len(), 1);
    }

    #[test]
    fn sketch_that_may_not_grow_never_counts_too_low() {
        let mut sketch = TopKSketch::new(9);
        for key in [b"a", b"a", b"b", b"b", b"b"] {
            sketch.add(key, true);
        }
        sketch.add(b"c", false);
        sketch.add(b"a", true);
        let count = |sketch: &TopKSketch, key: &[u8]| {
            let found = sketch.iter().find(|counted| *counted.key == *key);
            found.map(|counted| (counted.count, counted.error))
        };
        // `c` took the place of `a`, which comes back with what `b` had.
        assert_eq!(count(&sketch, b"c"), None);
        assert_eq!(count(&sketch, b"a"), Some((4, 3)));
        let mut restored = TopKSketch::from_keys(9, sketch.iter().collect());
        restored.add(b"d", true);
        assert_eq!((sketch.len(), restored.len()), (2, 2));
        assert_eq!(count(&restored, b"d").map(|(count, _)| count), Some(4));
    }

    #[test]
    fn sketch_goes_on_from_stored_keys() {
        let mut sketch = TopKSketch::new(2);
        sketch.add(b"a", true);
        let mut restored = TopKSketch::from_keys(2, sketch.iter().collect());
        for key in [b"a", b"b", b"a"] {
            restored.add(key, true);
            sketch.add(key, true);
        }
        assert_eq!(restored.top(9), sketch.top(9));
    }
}
