//! Which clients were served the version in force, as far as that is proven: [`ProvenFetches`]. A verified fetch counts
//! for the crawler at every address, any other for its address alone: another client may have fetched under the name.
//! Knows hashes and moments. An upgrade passes them to the next process. Forgotten at a restart: a client without a
//! proven fetch is held to less.

use super::traps::network;
use crate::bounded::{Bounded, Ends, Seed};
use crate::policy::Version;
use crate::time::Timestamp;
use crate::verdict::Identity;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// Which file it was, and under which name it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct ProvenFetch<'a> {
    /// The site's name and the host, as the ledger has them.
    pub key: &'a [u8],
    /// The name of the crawler's cache.
    pub crawler: &'a str,
    /// The version.
    pub version: Version,
}

/// When a version was served last.
#[derive(Clone, Copy, Debug)]
struct ServedAt(Timestamp);

impl Ends for ServedAt {
    type Moment = Timestamp;

    /// It is never over: how far back it counts is the claimant's.
    fn ends(&self) -> Timestamp {
        self.0
    }
}

/// The fetches that one process remembers, for the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedFetches {
    seed: Seed,
    /// Hash, and when the version was served last.
    fetches: Vec<(u64, i64)>,
}

/// The fetches that are remembered. Where there are too many the oldest go: the client that made them is held to less.
#[derive(Debug, Default)]
pub struct ProvenFetches(Bounded<ServedAt>);

impl ProvenFetches {
    /// Goes on where another process was.
    pub fn passed(passed: PassedFetches) -> ProvenFetches {
        let table = Bounded::seeded(passed.seed);
        for (hash, at) in passed.fetches {
            table.insert(hash, ServedAt(Timestamp(at)), Timestamp(i64::MIN));
        }
        ProvenFetches(table)
    }

    /// All of them, for the next process.
    pub fn pass(&self) -> PassedFetches {
        let fetches = self.0.collect_hashed(|hash, served| Some((hash, served.0.0)));
        PassedFetches { seed: self.0.seed(), fetches }
    }

    /// Notes that a version was served whole.
    pub fn add(&self, fetch: ProvenFetch<'_>, identity: Identity, address: Option<IpAddr>, now: Timestamp) {
        let proven = match (identity, address) {
            (Identity::Verified, _) => None,
            (_, Some(address)) => Some(network(address)),
            (_, None) => return,
        };
        self.0.insert(self.hash(fetch, proven), ServedAt(now), Timestamp(i64::MIN));
    }

    /// Whether it was served, within a span of time, to a client at this address.
    pub fn within(&self, fetch: ProvenFetch<'_>, address: Option<IpAddr>, span: RangeInclusive<Timestamp>) -> bool {
        let proven = [None, address.map(network)];
        proven.into_iter().any(|proven| {
            let at = self.0.look(self.hash(fetch, proven), |served| Some(served.0));
            at.is_some_and(|at| span.contains(&at))
        })
    }

    /// How many are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn hash(&self, fetch: ProvenFetch<'_>, proven: Option<IpAddr>) -> u64 {
        self.0.hash((fetch.key, fetch.crawler, fetch.version.0, proven))
    }
}
