//! [`ProvenFetches`]: which clients were certainly served the present robots.txt. A fetch by a
//! verified crawler counts for that crawler at every address. Any other fetch counts for its own
//! address only, because another client may have used the crawler's name. Fetches are not
//! kept in a restart or an upgrade, and other instances do not learn of them. That is safe: without
//! a fetch, crawlgate is only more lenient.

use super::host_table::{HostKey, host_key};
use super::marked_clients::client_network;
use crate::bounded::{BoundedTable, Expires};
use crate::policy::RobotsVersionId;
use crate::time::Timestamp;
use crate::verdict::Identity;
use std::net::IpAddr;
use std::ops::RangeInclusive;

/// A fetch of robots.txt: what was fetched, by which crawler.
#[derive(Clone, Copy)]
pub struct ProvenFetch<'a> {
    /// The site and the host (see [`site_host_key`]).
    pub key: &'a [u8],
    /// The name of the crawler's cache.
    pub crawler: &'a str,
    /// The version.
    pub version: RobotsVersionId,
}

/// Builds a key of the site and the host, with a zero byte between them. The site is a part,
/// because the usual ports count as one host, but may belong to different sites. `None` for an
/// invalid host name.
pub fn site_host_key(site: &str, host: &[u8]) -> Option<HostKey> {
    let host = host_key(host)?;
    let mut place = HostKey::from_slice(site.as_bytes());
    place.push(0);
    place.extend_from_slice(&host);
    Some(place)
}

/// When a version was served last. A fetch has no end: the claimant decides how far back it counts.
/// The oldest is forgotten first.
impl Expires for Timestamp {
    type Time = Timestamp;

    fn expires_at(&self) -> Timestamp {
        *self
    }
}

/// The table of fetches. When it is full the oldest are dropped, which is lenient to their clients.
#[derive(Default)]
pub struct ProvenFetches {
    table: BoundedTable<Timestamp>,
}

impl ProvenFetches {
    /// Records that a version was served completely. The fetch of a verified crawler counts at
    /// every address, any other at its own address (for IPv6 the /64). Does nothing for an
    /// unverified client without an address.
    pub fn record(
        &self,
        fetch: ProvenFetch<'_>,
        identity: Identity,
        address: Option<IpAddr>,
        now: Timestamp,
    ) {
        let proven = match (identity, address) {
            (Identity::Verified, _) => None,
            (_, Some(address)) => Some(client_network(address)),
            (_, None) => return,
        };
        let hash = self.hash_fetch(fetch, proven);
        let _ = self.table.try_update(hash, Timestamp(i64::MIN), |known| {
            Ok::<_, ()>(now.max(known.copied().unwrap_or(now)))
        });
    }

    /// Whether this version was last served within `span`, to a client at this address or to the
    /// verified crawler at any address.
    pub fn was_served_within(
        &self,
        fetch: ProvenFetch<'_>,
        address: Option<IpAddr>,
        span: RangeInclusive<Timestamp>,
    ) -> bool {
        let proven = [None, address.map(client_network)];
        proven.into_iter().any(|proven| {
            self.table
                .get_with(self.hash_fetch(fetch, proven), |served| {
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

    /// The hash of a fetch and the address that it counts for; `None` for every address.
    fn hash_fetch(&self, fetch: ProvenFetch<'_>, proven: Option<IpAddr>) -> u64 {
        self.table
            .hash((fetch.key, fetch.crawler, fetch.version.0, proven))
    }
}
