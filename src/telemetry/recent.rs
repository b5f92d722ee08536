//! Counts of the last five minutes, for the status. [`Recent`] counts one kind of request.
//! [`RecentByName`] counts by names from outside, such as hosts, and keeps a bounded number of
//! them. [`Throttle`] admits one log line a second. A request never waits for any of them. They
//! read no clock: the elapsed time is an argument.

use crate::locks::lock;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Seconds that one slot counts.
const SLOT: u64 = 30;
/// Ten slots for five minutes, and the slot of now.
const SLOTS: usize = 11;
/// Names that are counted one by one; requests under other names count only for all names.
const NAMES: usize = 64;

/// A count of the last five minutes. Each slot holds the number of its 30 seconds in the upper half
/// and the count in the lower half.
#[derive(Debug, Default)]
pub struct Recent([AtomicU64; SLOTS]);

impl Recent {
    /// Counts one at `lived`, the time since the start. A time so old that its slot counts a later
    /// period by now is not counted.
    pub fn add(&self, lived: Duration) {
        let period = lived.as_secs() / SLOT;
        let slot = &self.0[period as usize % SLOTS];
        let current = slot.load(Relaxed);
        // A request that took minutes is not counted where a later period has the slot.
        if current >> 32 < period {
            let begun = period << 32 | 1;
            if slot
                .compare_exchange(current, begun, Relaxed, Relaxed)
                .is_ok()
            {
                return;
            }
        } else if current >> 32 > period {
            return;
        }
        slot.fetch_add(1, Relaxed);
    }

    /// The count of the last five minutes before `lived` (the time since the start): of ten whole
    /// periods of 30 seconds and the present one.
    pub fn sum(&self, lived: Duration) -> u64 {
        let now = lived.as_secs() / SLOT;
        let recent = now.saturating_sub(SLOTS as u64 - 1)..=now;
        let slots = self.0.iter().map(|slot| slot.load(Relaxed));
        slots
            .filter(|slot| recent.contains(&(slot >> 32)))
            .map(|slot| slot & u64::from(u32::MAX))
            .sum()
    }
}

/// Counts of the last five minutes by name.
#[derive(Debug)]
pub struct RecentByName<K> {
    all: Recent,
    named: Mutex<HashMap<K, Recent>>,
}

impl<K> Default for RecentByName<K> {
    fn default() -> RecentByName<K> {
        RecentByName {
            all: Recent::default(),
            named: Mutex::default(),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> RecentByName<K> {
    /// Counts one at `lived`, the time since the start. Only the count of all names grows if
    /// another thread holds the names just then, or if the name is new and 64 others have recent
    /// counts.
    pub fn add(&self, name: K, lived: Duration) {
        self.all.add(lived);
        let Ok(mut named) = self.named.try_lock() else {
            return;
        };
        if !named.contains_key(&name) && named.len() >= NAMES {
            named.retain(|_, count| count.sum(lived) > 0);
            if named.len() >= NAMES {
                return;
            }
        }
        named.entry(name).or_default().add(lived);
    }

    /// The count of all names.
    pub fn sum(&self, lived: Duration) -> u64 {
        self.all.sum(lived)
    }

    /// The names with the largest counts of the last five minutes, at most `count` of them, the
    /// largest first and equal ones by name. Names with none are left out.
    pub fn top(&self, count: usize, lived: Duration) -> Vec<(K, u64)> {
        let named = lock(&self.named);
        let counted = named
            .iter()
            .map(|(name, count)| (name.clone(), count.sum(lived)));
        let mut top: Vec<(K, u64)> = counted.filter(|(_, count)| *count > 0).collect();
        drop(named);
        top.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        top.truncate(count);
        top
    }
}

/// Admits at most one line a second.
#[derive(Debug, Default)]
pub struct Throttle {
    /// When the next line is admitted, in milliseconds.
    next: AtomicU64,
    left_out: AtomicU64,
}

impl Throttle {
    /// Returns how many lines were left out before this one if it may be logged at `lived` (the
    /// time since the start). Else counts it as left out and returns `None`.
    pub fn admit(&self, lived: Duration) -> Option<u64> {
        self.admit_every(Duration::from_secs(1), lived)
    }

    /// As [`Throttle::admit`], with another time from one line to the next.
    pub fn admit_every(&self, pause: Duration, lived: Duration) -> Option<u64> {
        let now = lived.as_millis() as u64;
        let next = now.saturating_add(pause.as_millis() as u64);
        let admitted = self
            .next
            .fetch_update(Relaxed, Relaxed, |due| (now >= due).then_some(next));
        if admitted.is_ok() {
            return Some(self.left_out.swap(0, Relaxed));
        }
        self.left_out.fetch_add(1, Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn counts_of_more_than_five_minutes_ago_are_forgotten() {
        let recent = Recent::default();
        for second in [0, 29, 30, 299] {
            recent.add(at(second));
        }
        assert_eq!(
            [299, 329, 330, 360, 900].map(|second| recent.sum(at(second))),
            [4, 4, 2, 1, 0]
        );
        recent.add(at(331));
        assert_eq!(
            recent.sum(at(331)),
            3,
            "the slot of the first 30 seconds begins anew"
        );
        recent.add(at(1));
        assert_eq!(recent.sum(at(331)), 3, "the slot is not taken back");
    }

    #[test]
    fn names_beyond_the_bound_count_for_all_names_only() {
        let hosts = RecentByName::default();
        for number in 0..1_000 {
            hosts.add(format!("{number:03}"), at(1));
        }
        hosts.add("000".to_owned(), at(1));
        assert_eq!(
            (hosts.sum(at(1)), hosts.top(1_000, at(1)).len()),
            (1_001, NAMES)
        );
        assert_eq!(
            hosts.top(2, at(1)),
            [("000".to_owned(), 2), ("001".to_owned(), 1)]
        );
        hosts.add("new".to_owned(), at(900));
        assert_eq!(
            hosts.top(9, at(900)),
            [("new".to_owned(), 1)],
            "names without a recent request make room"
        );
    }

    #[test]
    fn one_line_a_second_is_admitted_and_says_how_many_were_not() {
        let throttle = Throttle::default();
        let admitted =
            [0, 1, 999, 1_000, 1_001, 5_000].map(|now| throttle.admit(Duration::from_millis(now)));
        assert_eq!(admitted, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
