//! [`new_request_id`] makes the id of a request that comes without one: 128 bits as hexadecimal
//! digits. No two requests get the same id, even if different instances of crawlgate make the ids.
//! Making an id takes no lock and allocates no memory.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// The step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014).
const SPLITMIX_STEP: u64 = 0x9e37_79b9_7f4a_7c15;
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

thread_local! {
    /// The state of the thread's generator. It begins at random: two threads make the same ids only
    /// if 128 bits are equal.
    static GENERATOR_STATE: Cell<[u64; 2]> = Cell::new([random_seed(), random_seed()]);
}

/// An id in hexadecimal digits.
pub type RequestId = [u8; 32];

/// Makes the next id of this thread.
pub fn new_request_id() -> RequestId {
    let state = GENERATOR_STATE
        .get()
        .map(|part| part.wrapping_add(SPLITMIX_STEP));
    GENERATOR_STATE.set(state);
    let mut digits = [0; 32];
    let bytes = state
        .into_iter()
        .flat_map(|part| splitmix_output(part).to_be_bytes());
    for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
        pair.copy_from_slice(&[byte >> 4, byte & 15].map(|half| HEX_DIGITS[usize::from(half)]));
    }
    digits
}

/// Randomness of the system, by way of a hasher of the standard library.
fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The output of SplitMix64: one for each state, without an order that an observer could count.
fn splitmix_output(state: u64) -> u64 {
    let first = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let second = (first ^ (first >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    second ^ (second >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heads::is_request_id;
    use std::collections::HashSet;

    #[test]
    fn ids_of_all_threads_differ() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    (0..1_000)
                        .map(|_| new_request_id())
                        .collect::<Vec<RequestId>>()
                })
            })
            .collect();
        let ids: Vec<RequestId> = threads
            .into_iter()
            .flat_map(|thread| thread.join().expect("it ends"))
            .collect();
        assert!(ids.iter().all(|id| is_request_id(id)));
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4_000);
    }
}
