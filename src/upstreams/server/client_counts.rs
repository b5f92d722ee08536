//! [`ClientCounts`] counts the open requests of each client's address, in a table of fixed size
//! without locks. An address has a counter in each of two rows, and the smaller number counts (a
//! count-min sketch). This number is never too small. It is too large only if the address shares
//! both counters with other addresses, which is rare.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire},
};

/// Counters in a row.
const WIDTH: usize = 4096;

/// Two rows of counters, by the hash of an address. Requests without an address (`None`) are not
/// counted and have no limit.
pub struct ClientCounts([Box<[AtomicU32]>; 2]);

impl Default for ClientCounts {
    fn default() -> ClientCounts {
        ClientCounts(std::array::from_fn(|_| {
            (0..WIDTH).map(|_| AtomicU32::new(0)).collect()
        }))
    }
}

impl ClientCounts {
    /// The two counters of an address, by two halves of its hash; `None` for a client without one.
    fn counters(&self, client: Option<u64>) -> Option<[&AtomicU32; 2]> {
        let client = client?;
        let [one, other] = &self.0;
        Some([
            &one[client as usize % WIDTH],
            &other[(client >> 32) as usize % WIDTH],
        ])
    }

    /// The number of requests of an address, perhaps too many; 0 without an address.
    pub fn count(&self, client: Option<u64>) -> u32 {
        let Some([one, other]) = self.counters(client) else {
            return 0;
        };
        one.load(Acquire).min(other.load(Acquire))
    }

    /// Counts one more request if the address has fewer than `max`. Returns whether it did; always
    /// true without an address.
    pub fn try_add(&self, client: Option<u64>, max: u32) -> bool {
        let Some(counters) = self.counters(client) else {
            return true;
        };
        let [one, other] = counters.map(|counter| counter.fetch_add(1, AcqRel));
        let is_below = one.min(other) < max;
        if !is_below {
            self.remove(client);
        }
        is_below
    }

    /// Counts one request less.
    pub fn remove(&self, client: Option<u64>) {
        for counter in self.counters(client).into_iter().flatten() {
            counter.fetch_sub(1, AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_limited_to_its_maximum() {
        let counts = ClientCounts::default();
        let client = Some(7);
        assert!(
            counts.try_add(client, 2) && counts.try_add(client, 2) && !counts.try_add(client, 2)
        );
        counts.remove(client);
        assert!(counts.try_add(client, 2) && !counts.try_add(client, 2));
    }

    #[test]
    fn addresses_that_share_one_counter_count_apart() {
        let (counts, one, other) = (ClientCounts::default(), Some(7), Some(7 + (9 << 32)));
        assert!(counts.try_add(one, 1) && counts.try_add(other, 1));
        assert!(!counts.try_add(one, 1) && !counts.try_add(other, 1));
    }
}
