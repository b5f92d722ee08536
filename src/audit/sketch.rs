//! [`TopKSketch`] counts the most frequent keys of a stream in bounded memory, by the Space-Saving
//! algorithm (Metwally, Agrawal, El Abbadi 2005). Audits use it for lists such as the most fetched
//! URLs. A count is never too low, and at most [`CountedKey::error`] too high.

use ahash::{AHashMap, AHashSet};

/// More keys make top lists exact for longer, and slow [`TopKSketch::add`] down.
const MAX_KEYS: usize = 512;

/// Counts of the most frequent keys.
#[derive(Debug, Default)]
pub struct TopKSketch {
    positions: AHashMap<Box<[u8]>, usize>,
    /// Aligned with `keys`: the search for the lowest count reads these alone.
    counts: Vec<u64>,
    errors: Vec<u64>,
    keys: Vec<Box<[u8]>>,
}

/// A key with its count.
#[derive(Debug)]
pub struct CountedKey {
    /// The key.
    pub key: Box<[u8]>,
    /// At least how often it was seen.
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
}

impl TopKSketch {
    /// Counts a key once. When the sketch is full, a new key replaces the one with the lowest count
    /// and continues from that count, which becomes its error.
    pub fn add(&mut self, key: &[u8]) {
        if let Some(&place) = self.positions.get(key) {
            self.counts[place] += 1;
        } else if self.keys.len() < MAX_KEYS {
            self.insert(key.into(), 1, 0);
        } else if let Some((place, &lowest)) = self
            .counts
            .iter()
            .enumerate()
            .min_by_key(|(_, count)| **count)
        {
            let key: Box<[u8]> = key.into();
            self.positions.remove(&self.keys[place]);
            self.positions.insert(key.clone(), place);
            (self.keys[place], self.counts[place], self.errors[place]) = (key, lowest + 1, lowest);
        }
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
        if self.keys.len() < MAX_KEYS {
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
    pub fn merge(&mut self, other: TopKSketch) {
        let own = std::mem::take(self);
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
        for counted in sort_by_count(sums).into_iter().take(MAX_KEYS) {
            self.insert(counted.key, counted.count, counted.error);
        }
    }

    /// At most `limit` of the most frequent keys, the most frequent first. A key whose error is at
    /// least half of its count is left out: it may not be among the most frequent.
    pub fn top(self, limit: usize) -> Vec<CountedKey> {
        let counts = self.counts.into_iter().zip(self.errors);
        let all = self
            .keys
            .into_iter()
            .zip(counts)
            .map(|(key, (count, error))| CountedKey { key, count, error });
        let mut top = sort_by_count(all.filter(|counted| counted.error * 2 < counted.count));
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
    use super::{MAX_KEYS, TopKSketch};

    #[test]
    fn frequent_keys_are_found_among_many_rare_ones() {
        let mut halves = [TopKSketch::default(), TopKSketch::default()];
        for number in 0..100_000_u32 {
            let half = &mut halves[number as usize % 2];
            half.add(&number.to_le_bytes());
            if number % 20 < 2 {
                half.add(b"often");
            }
        }
        let [mut one, other] = halves;
        one.merge(other);
        assert!(one.keys.len() <= MAX_KEYS && one.positions.len() == one.keys.len());
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
            one.add(key);
            other.add(key);
        }
        other.add(b"c");
        one.merge(other);
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
}
