//! Who was shown the version in force, as far as that is proven: the crawler itself where the fetch was verified, else
//! whoever comes from the address of the fetch. A name alone proves nothing: somebody else may have fetched under it.
//!
//! Knows hashes and moments. Not remembered through a restart: who was shown nothing is held to less.

use super::traps::network;
use crate::policy::Version;
use crate::time::Timestamp;
use crate::verdict::Identity;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 16;
/// Fetches that are remembered at a time, in all shards: some MiB.
const MAX_SHOWN: usize = 65_536;

/// Which file it was, and under which name it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Showing<'a> {
    /// The site's name and the host, as the ledger has them.
    pub key: &'a [u8],
    /// The name of the crawler's cache.
    pub crawler: &'a str,
    /// The version.
    pub version: Version,
}

/// The fetches that are remembered.
#[derive(Default)]
pub struct Shown {
    hasher: RandomState,
    shards: [Mutex<HashMap<u64, Timestamp>>; SHARDS],
}

impl Shown {
    /// Notes that a version was served whole.
    pub fn add(&self, showing: Showing<'_>, identity: Identity, address: Option<IpAddr>, now: Timestamp) {
        let proven = match (identity, address) {
            (Identity::Verified, _) => None,
            (_, Some(address)) => Some(network(address)),
            (_, None) => return,
        };
        let key = self.key(showing, proven);
        let mut shard = self.shard(key);
        if shard.len() >= MAX_SHOWN / SHARDS && !shard.contains_key(&key) {
            make_room(&mut shard);
        }
        shard.insert(key, now);
    }

    /// Whether it was served, since a moment, to who asks from this address.
    pub fn since(&self, showing: Showing<'_>, address: Option<IpAddr>, since: Timestamp) -> bool {
        let proven = [None, address.map(network)];
        proven.into_iter().any(|proven| {
            let key = self.key(showing, proven);
            self.shard(key).get(&key).is_some_and(|at| *at >= since)
        })
    }

    /// How many are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }

    fn key(&self, showing: Showing<'_>, proven: Option<IpAddr>) -> u64 {
        self.hasher.hash_one((showing.key, showing.crawler, showing.version.0, proven))
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, HashMap<u64, Timestamp>> {
        self.shards[key as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The older half goes: it is held to less from then on.
fn make_room(shard: &mut HashMap<u64, Timestamp>) {
    let mut moments: Vec<Timestamp> = shard.values().copied().collect();
    let middle = moments.len() / 2;
    let median = *moments.select_nth_unstable(middle).1;
    shard.retain(|_, at| *at > median);
}
