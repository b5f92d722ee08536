//! The most frequent keys of a stream, in bounded memory: [`Sketch`] is the Space-Saving algorithm
//! (Metwally, Agrawal, El Abbadi 2005). A count is never too low, and [`Counted`] says by how much
//! it may be too high.

use ahash::{AHashMap, AHashSet};

/// Keys that are kept.
const KEPT: usize = 512;

/// Counts of the most frequent keys.
#[derive(Debug, Default)]
pub struct Sketch {
    places: AHashMap<Box<[u8]>, usize>,
    /// Aligned with `keys`: looking for the lowest reads these alone.
    counts: Vec<u64>,
    errors: Vec<u64>,
    keys: Vec<Box<[u8]>>,
}

/// A key with its count.
#[derive(Debug)]
pub struct Counted {
    /// The key.
    pub key: Box<[u8]>,
    /// At least as many times as it was seen.
    pub count: u64,
    /// By how much the count may be too high.
    pub error: u64,
}

impl Sketch {
    /// Counts a key once. A new key, when `KEPT` are kept, takes the place of the one with the
    /// lowest count and goes on from that count, which is its error.
    pub fn add(&mut self, key: &[u8]) {
        if let Some(&place) = self.places.get(key) {
            self.counts[place] += 1;
        } else if self.keys.len() < KEPT {
            self.insert(key.into(), 1, 0);
        } else if let Some((place, &lowest)) = self
            .counts
            .iter()
            .enumerate()
            .min_by_key(|(_, count)| **count)
        {
            let key: Box<[u8]> = key.into();
            self.places.remove(&self.keys[place]);
            self.places.insert(key.clone(), place);
            (self.keys[place], self.counts[place], self.errors[place]) = (key, lowest + 1, lowest);
        }
    }

    fn insert(&mut self, key: Box<[u8]>, count: u64, error: u64) {
        self.places.insert(key.clone(), self.keys.len());
        self.keys.push(key);
        self.counts.push(count);
        self.errors.push(error);
    }

    /// How often a key that is not kept may have been seen: at most the lowest count, or never
    /// while there is a free place.
    fn floor(&self) -> u64 {
        if self.keys.len() < KEPT {
            0
        } else {
            self.counts.iter().min().copied().unwrap_or(0)
        }
    }

    /// The count and the error of a key. For a key that is not kept both are `floor`, the value of
    /// [`Sketch::floor`].
    fn get(&self, key: &[u8], floor: u64) -> (u64, u64) {
        self.places.get(key).map_or((floor, floor), |&place| {
            (self.counts[place], self.errors[place])
        })
    }

    /// Adds the counts of another stream, and keeps the `KEPT` most frequent keys of both. A key
    /// that only one of them kept may have been seen by the other as often as its lowest count,
    /// which is added to count and error.
    pub fn merge(&mut self, other: Sketch) {
        let own = std::mem::take(self);
        let own_floor = own.floor();
        let their_floor = other.floor();
        let keys: AHashSet<&[u8]> = own
            .keys
            .iter()
            .chain(&other.keys)
            .map(|key| &**key)
            .collect();
        let sums = keys.into_iter().map(|key| {
            let (own, own_error) = own.get(key, own_floor);
            let (their, their_error) = other.get(key, their_floor);
            Counted {
                key: key.into(),
                count: own + their,
                error: own_error + their_error,
            }
        });
        for counted in sorted(sums).into_iter().take(KEPT) {
            self.insert(counted.key, counted.count, counted.error);
        }
    }

    /// The most frequent keys, at most `number`, the most frequent first. A key whose error is half
    /// of its count or more is left out: it may not be among the most frequent.
    pub fn top(self, number: usize) -> Vec<Counted> {
        let counts = self.counts.into_iter().zip(self.errors);
        let all = self
            .keys
            .into_iter()
            .zip(counts)
            .map(|(key, (count, error))| Counted { key, count, error });
        let mut top = sorted(all.filter(|counted| counted.error * 2 < counted.count));
        top.truncate(number);
        top
    }
}

fn sorted(all: impl Iterator<Item = Counted>) -> Vec<Counted> {
    let mut all: Vec<Counted> = all.collect();
    all.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.key.cmp(&b.key)));
    all
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Sketch};

    #[test]
    fn frequent_keys_are_found_among_many_rare_ones() {
        let mut halves = [Sketch::default(), Sketch::default()];
        for number in 0..100_000_u32 {
            let half = &mut halves[number as usize % 2];
            half.add(&number.to_le_bytes());
            if number % 20 < 2 {
                half.add(b"often");
            }
        }
        let [mut one, other] = halves;
        one.merge(other);
        assert!(one.keys.len() <= KEPT && one.places.len() == one.keys.len());
        let top = one.top(10);
        assert_eq!(&*top[0].key, b"often");
        assert!(
            top[0].count >= 10_000 && top[0].count - top[0].error <= 10_000,
            "{top:?}"
        );
    }

    #[test]
    fn counts_are_exact_where_all_keys_fit() {
        let (mut one, mut other) = (Sketch::default(), Sketch::default());
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
