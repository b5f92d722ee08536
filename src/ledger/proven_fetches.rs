//! [`ProvenFetches`]: the clients that were certainly served the robots.txt that is now in force. A
//! fetch by a verified crawler counts for that crawler at every address. Any other fetch counts for
//! its own address only, because another client may have used the crawler's name. In an upgrade the
//! next process takes the fetches over; a restart forgets them, and other instances do not learn of
//! them. crawlgate judges a client without a proven fetch more mildly.

use super::observations::{Key, key};
use super::traps::network;
use crate::bounded::{Bounded, Ends, Seed};
use crate::policy::Version;
use crate::time::Timestamp;
use crate::verdict::Identity;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// What was fetched, and for which crawler.
#[derive(Clone, Copy, Debug)]
pub struct ProvenFetch<'a> {
    /// The site's name and the host, as the ledger has them.
    pub key: &'a [u8],
    /// The name of the crawler's cache.
    pub crawler: &'a str,
    /// The version.
    pub version: Version,
}

/// A key of the site and the host, with a zero byte between them. The usual ports are one host
/// here, but may belong to different sites. `None` for a host that is no valid name.
pub fn place(site: &str, host: &[u8]) -> Option<Key> {
    let host = key(host)?;
    let mut place = Key::from_slice(site.as_bytes());
    place.push(0);
    place.extend_from_slice(&host);
    Some(place)
}

/// When a version was served last. A fetch has no end: the claimant decides how far back it counts.
/// The oldest is forgotten first.
impl Ends for Timestamp {
    type Moment = Timestamp;

    fn ends(&self) -> Timestamp {
        *self
    }
}

/// The fetches that one process remembers, for the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedFetches {
    seed: Seed,
    /// Hash, and when the version was served last.
    fetches: Vec<(u64, i64)>,
}

/// The fetches that are remembered. Where there are too many the oldest go: the client that made
/// them is held to less.
#[derive(Default)]
pub struct ProvenFetches {
    table: Bounded<Timestamp>,
}

impl ProvenFetches {
    /// Continues the fetches of another process.
    pub fn passed(passed: PassedFetches) -> ProvenFetches {
        let table = Bounded::seeded(passed.seed);
        for (hash, at) in passed.fetches {
            // A fetch never ends: by this `now` none is over, and a full table drops the oldest.
            table.insert(hash, Timestamp(at), Timestamp(i64::MIN));
        }
        ProvenFetches { table }
    }

    /// All of them, for the next process.
    pub fn pass(&self) -> PassedFetches {
        let fetches = self
            .table
            .collect_hashed(|hash, served| Some((hash, served.0)));
        PassedFetches {
            seed: self.table.seed(),
            fetches,
        }
    }

    /// Records that a version was served whole. The fetch of a verified crawler counts at every
    /// address, any other at its own address alone (of IPv6 the /64). The later moment counts. Does
    /// nothing for a client that is not verified and whose address is not known.
    pub fn add(
        &self,
        fetch: ProvenFetch<'_>,
        identity: Identity,
        address: Option<IpAddr>,
        now: Timestamp,
    ) {
        let proven = match (identity, address) {
            (Identity::Verified, _) => None,
            (_, Some(address)) => Some(network(address)),
            (_, None) => return,
        };
        let hash = self.hash(fetch, proven);
        let _ = self.table.change(hash, Timestamp(i64::MIN), |known| {
            Ok::<_, ()>(now.max(known.copied().unwrap_or(now)))
        });
    }

    /// Whether this version was last served within a span of time, to a client at this address or
    /// to the verified crawler anywhere.
    pub fn within(
        &self,
        fetch: ProvenFetch<'_>,
        address: Option<IpAddr>,
        span: RangeInclusive<Timestamp>,
    ) -> bool {
        let proven = [None, address.map(network)];
        proven.into_iter().any(|proven| {
            self.table
                .look(self.hash(fetch, proven), |served| {
                    span.contains(served).then_some(())
                })
                .is_some()
        })
    }

    /// How many are remembered.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// The hash of a fetch and of the network that it is proven for; `None`: every address.
    fn hash(&self, fetch: ProvenFetch<'_>, proven: Option<IpAddr>) -> u64 {
        self.table
            .hash((fetch.key, fetch.crawler, fetch.version.0, proven))
    }
}
