//! [`TopKSketch`] counts the most frequent keys of a stream in bounded memory, by the Space-Saving
//! algorithm (Metwally, Agrawal, El Abbadi 2005). A count is never too low. [`CountedKey::error`]
//! says by how much a count may be too high.

use ahash::{AHashMap, AHashSet};

/// Keys of a sketch by default. More keys make top lists exact for longer, and slow
/// [`TopKSketch::add`] down.
const DEFAULT_CAPACITY: usize = 512;

/// Counts of the most frequent keys.
#[derive(Debug)]
pub struct TopKSketch {
    /// The most keys.
    capacity: usize,
    positions: AHashMap<Box<[u8]>, usize>,
    /// Aligned with `keys`: the search for the lowest count reads these alone.
    counts: Vec<u64>,
    errors: Vec<u64>,
    keys: Vec<Box<[u8]>>,
    /// The lowest count when it was last searched. No count is lower.
    lowest: u64,
    /// All counts before this place are higher than `lowest`.
    searched: usize,
}

/// A key with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedKey {
    /// The key.
    pub key: Box<[u8]>,
    /// How often it was seen, or more.
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
}

impl Default for TopKSketch {
    fn default() -> TopKSketch {
        TopKSketch::new(DEFAULT_CAPACITY)
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
            if !sketch.positions.contains_key(&counted.key) {
                sketch.insert(counted.key, counted.count, counted.error);
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
        let counts = self.counts.iter().zip(&self.errors);
        self.keys
            .iter()
            .zip(counts)
            .map(|(key, (count, error))| CountedKey {
                key: key.clone(),
                count: *count,
                error: *error,
            })
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
            let key: Box<[u8]> = key.into();
            self.positions.remove(&self.keys[place]);
            self.positions.insert(key.clone(), place);
            self.keys[place] = key;
            self.errors[place] = self.counts[place];
            self.counts[place] += 1;
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

    fn insert(&mut self, key: Box<[u8]>, count: u64, error: u64) {
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

    /// The count and the error of a key. For an absent key both are `min_count`, the value of
    /// [`TopKSketch::min_count`].
    fn count_and_error(&self, key: &[u8], min_count: u64) -> (u64, u64) {
        self.positions
            .get(key)
            .map_or((min_count, min_count), |&place| {
                (self.counts[place], self.errors[place])
            })
    }

    /// Adds the counts of another stream, and keeps the most frequent keys of both. The other
    /// sketch may have seen a key that it lacks as often as its lowest count, which is added to
    /// count and error.
    pub fn merge(&mut self, other: &TopKSketch) {
        let own = std::mem::replace(self, TopKSketch::new(self.capacity));
        let own_min = own.min_count();
        let their_min = other.min_count();
        let keys: AHashSet<&[u8]> = own
            .keys
            .iter()
            .chain(&other.keys)
            .map(|key| &**key)
            .collect();
        let sums = keys.into_iter().map(|key| {
            let (own, own_error) = own.count_and_error(key, own_min);
            let (their, their_error) = other.count_and_error(key, their_min);
            CountedKey {
                key: key.into(),
                count: own + their,
                error: own_error + their_error,
            }
        });
        for counted in sort_by_count(sums).into_iter().take(self.capacity) {
            self.insert(counted.key, counted.count, counted.error);
        }
    }

    /// At most `limit` of the most frequent keys, the most frequent first. A key whose error is at
    /// least half of its count is left out: it may not be among the most frequent.
    pub fn top(&self, limit: usize) -> Vec<CountedKey> {
        let certain = self
            .iter()
            .filter(|counted| counted.error * 2 < counted.count);
        let mut top = sort_by_count(certain);
        top.truncate(limit);
        top
    }
}

fn sort_by_count(all: impl Iterator<Item = CountedKey>) -> Vec<CountedKey> {
    let mut all: Vec<CountedKey> = all.collect();
    all.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
    all
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_CAPACITY, TopKSketch};

    #[test]
    fn frequent_keys_are_found_among_many_rare_ones() {
        let mut halves = [TopKSketch::default(), TopKSketch::default()];
        for number in 0..100_000_u32 {
            let half = &mut halves[number as usize % 2];
            half.add(&number.to_le_bytes(), true);
            if number % 20 < 2 {
                half.add(b"often", true);
            }
        }
        let [mut one, other] = halves;
        one.merge(&other);
        assert!(one.keys.len() <= DEFAULT_CAPACITY && one.positions.len() == one.keys.len());
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
