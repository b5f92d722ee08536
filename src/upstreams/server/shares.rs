//! [`Shares`] counts how many requests each client's address has open at an origin, in a table of
//! fixed size without locks. An address has a counter in each of two rows, and the smaller number
//! counts as its own. It is never too small, and too large only if the address shares both counters
//! with others, which is rare.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire},
};

/// Counters in a row.
const WIDTH: usize = 4096;

/// Places by the hash of an address: two rows of counters. Who has no address of its own (`None`)
/// has any number of places.
pub struct Shares([Box<[AtomicU32]>; 2]);

impl Shares {
    pub fn new() -> Shares {
        Shares(std::array::from_fn(|_| {
            (0..WIDTH).map(|_| AtomicU32::new(0)).collect()
        }))
    }

    /// The two counters of an address, by two halves of its hash; `None` for a client without one.
    fn counters(&self, share: Option<u64>) -> Option<[&AtomicU32; 2]> {
        let share = share?;
        let [one, other] = &self.0;
        Some([
            &one[share as usize % WIDTH],
            &other[(share >> 32) as usize % WIDTH],
        ])
    }

    /// The places of the address, perhaps too many (see the top of this file); 0 without an
    /// address.
    pub fn count(&self, share: Option<u64>) -> u32 {
        let Some([one, other]) = self.counters(share) else {
            return 0;
        };
        one.load(Acquire).min(other.load(Acquire))
    }

    /// Takes one more place, if the address has fewer than `most`. Returns whether it did; always
    /// true without an address.
    pub fn enter(&self, share: Option<u64>, most: u32) -> bool {
        let Some(counters) = self.counters(share) else {
            return true;
        };
        let [one, other] = counters.map(|counter| counter.fetch_add(1, AcqRel));
        let may = one.min(other) < most;
        if !may {
            self.leave(share);
        }
        may
    }

    /// Gives a place back.
    pub fn leave(&self, share: Option<u64>) {
        for counter in self.counters(share).into_iter().flatten() {
            counter.fetch_sub(1, AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_has_no_more_than_its_share() {
        let shares = Shares::new();
        let share = Some(7);
        assert!(shares.enter(share, 2) && shares.enter(share, 2) && !shares.enter(share, 2));
        shares.leave(share);
        assert!(shares.enter(share, 2) && !shares.enter(share, 2));
    }

    #[test]
    fn addresses_that_share_one_counter_do_not_disturb_each_other() {
        let (shares, one, other) = (Shares::new(), Some(7), Some(7 + (9 << 32)));
        assert!(shares.enter(one, 1) && shares.enter(other, 1));
        assert!(!shares.enter(one, 1) && !shares.enter(other, 1));
    }
}
