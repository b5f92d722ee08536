//! Counts of the last five minutes, for the status that operators see. [`RecentCount`] counts
//! requests of one kind, and [`RecentCountByName`] counts by names such as hosts, for a bounded
//! number of names. [`LogThrottle`] admits one log line a second. No function here blocks or reads
//! a clock: the time since the start is an argument.

use crate::locks::lock;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The seconds of one slot.
const SLOT_SECONDS: u64 = 30;
/// Ten slots for five minutes, and the current slot.
const SLOTS: usize = 11;
/// The most names with a count of their own. Requests under other names count only in the sum.
const MAX_NAMES: usize = 64;

/// A count of the last five minutes. Each slot holds the number of its 30 seconds in the upper half
/// and the count in the lower half.
#[derive(Default)]
pub struct RecentCount([AtomicU64; SLOTS]);

impl RecentCount {
    /// Counts one at `monotonic`, the time since the start. A time so old that its slot counts a
    /// later period by now is not counted.
    pub fn add(&self, monotonic: Duration) {
        let period = monotonic.as_secs() / SLOT_SECONDS;
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

    /// The count of the last five minutes before `monotonic` (the time since the start): of ten
    /// whole periods of 30 seconds and the present one.
    pub fn sum(&self, monotonic: Duration) -> u64 {
        let now = monotonic.as_secs() / SLOT_SECONDS;
        let recent = now.saturating_sub(SLOTS as u64 - 1)..=now;
        self.0
            .iter()
            .map(|slot| slot.load(Relaxed))
            .filter(|slot| recent.contains(&(slot >> 32)))
            .map(|slot| slot & u64::from(u32::MAX))
            .sum()
    }
}

/// Counts of the last five minutes by name.
pub struct RecentCountByName<K> {
    all: RecentCount,
    named: Mutex<HashMap<K, RecentCount>>,
}

impl<K> Default for RecentCountByName<K> {
    fn default() -> RecentCountByName<K> {
        RecentCountByName {
            all: RecentCount::default(),
            named: Mutex::default(),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> RecentCountByName<K> {
    /// Counts one at `monotonic`, the time since the start. Counts it only in the sum if another
    /// thread locks the names, or if the name is new and 64 other names have recent counts.
    pub fn add(&self, name: K, monotonic: Duration) {
        self.all.add(monotonic);
        let Ok(mut named) = self.named.try_lock() else {
            return;
        };
        if !named.contains_key(&name) && named.len() >= MAX_NAMES {
            named.retain(|_, count| count.sum(monotonic) > 0);
            if named.len() >= MAX_NAMES {
                return;
            }
        }
        named.entry(name).or_default().add(monotonic);
    }

    /// The sum over all names.
    pub fn sum(&self, monotonic: Duration) -> u64 {
        self.all.sum(monotonic)
    }

    /// The names with the largest counts of the last five minutes, at most `count` of them, the
    /// largest first and equal ones by name. Names with none are left out.
    pub fn top(&self, count: usize, monotonic: Duration) -> Vec<(K, u64)> {
        let mut top: Vec<(K, u64)> = lock(&self.named)
            .iter()
            .map(|(name, count)| (name.clone(), count.sum(monotonic)))
            .filter(|(_, count)| *count > 0)
            .collect();
        top.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        top.truncate(count);
        top
    }
}

/// Admits at most one line a second.
#[derive(Default)]
pub struct LogThrottle {
    /// When the next line is admitted, in milliseconds.
    next: AtomicU64,
    left_out: AtomicU64,
}

impl LogThrottle {
    /// Returns how many lines were left out before this one if it may be logged at `monotonic` (the
    /// time since the start). Else counts it as left out and returns `None`.
    pub fn admit(&self, monotonic: Duration) -> Option<u64> {
        self.admit_after(Duration::from_secs(1), monotonic)
    }

    /// As [`LogThrottle::admit`], with another time from one line to the next.
    pub fn admit_after(&self, pause: Duration, monotonic: Duration) -> Option<u64> {
        let now = monotonic.as_millis() as u64;
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

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn counts_older_than_five_minutes_expire() {
        let recent = RecentCount::default();
        for second in [0, 29, 30, 299] {
            recent.add(seconds(second));
        }
        assert_eq!(
            [299, 329, 330, 360, 900].map(|second| recent.sum(seconds(second))),
            [4, 4, 2, 1, 0]
        );
        recent.add(seconds(331));
        assert_eq!(
            recent.sum(seconds(331)),
            3,
            "the slot of the first 30 seconds begins anew"
        );
        recent.add(seconds(1));
        assert_eq!(recent.sum(seconds(331)), 3, "the slot is not taken back");
    }

    #[test]
    fn names_beyond_the_bound_count_only_in_the_sum() {
        let hosts = RecentCountByName::default();
        for number in 0..1_000 {
            hosts.add(format!("{number:03}"), seconds(1));
        }
        hosts.add("000".to_owned(), seconds(1));
        assert_eq!(
            (hosts.sum(seconds(1)), hosts.top(1_000, seconds(1)).len()),
            (1_001, MAX_NAMES)
        );
        assert_eq!(
            hosts.top(2, seconds(1)),
            [("000".to_owned(), 2), ("001".to_owned(), 1)]
        );
        hosts.add("new".to_owned(), seconds(900));
        assert_eq!(
            hosts.top(9, seconds(900)),
            [("new".to_owned(), 1)],
            "names without a recent request make room"
        );
    }

    #[test]
    fn throttle_admits_one_line_a_second_and_counts_the_rest() {
        let throttle = LogThrottle::default();
        let admitted =
            [0, 1, 999, 1_000, 1_001, 5_000].map(|now| throttle.admit(Duration::from_millis(now)));
        assert_eq!(admitted, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
