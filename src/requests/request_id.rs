//! [`request_id`] makes the id of a request that comes without one: 128 bits as hexadecimal digits,
//! different for each request of every crawlgate. It takes no lock and allocates no memory.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// The step of SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
/// 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// The two digits of each octet.
const WRITTEN: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut written = [[0; 2]; 256];
    let mut octet = 0;
    while octet < 256 {
        written[octet] = [digits[octet >> 4], digits[octet & 15]];
        octet += 1;
    }
    written
};

thread_local! {
    /// The state that the thread's next id is made of. It begins at random: two threads have the
    /// same ids only if 128 bits are equal.
    static STATE: Cell<[u64; 2]> = Cell::new([random(), random()]);
}

/// An id in hexadecimal digits.
pub type RequestId = [u8; 32];

/// Makes the next id of this thread.
pub fn request_id() -> RequestId {
    let state = STATE.get().map(|part| part.wrapping_add(STEP));
    STATE.set(state);
    let mut written = [0; 32];
    let octets = state.into_iter().flat_map(|part| mixed(part).to_be_bytes());
    for (pair, octet) in written.chunks_exact_mut(2).zip(octets) {
        pair.copy_from_slice(&WRITTEN[usize::from(octet)]);
    }
    written
}

/// The system's randomness, of which each hasher of the standard library has some.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The output of SplitMix64: one for each state, without an order that an observer could count.
fn mixed(state: u64) -> u64 {
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
                std::thread::spawn(|| (0..1_000).map(|_| request_id()).collect::<Vec<RequestId>>())
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
