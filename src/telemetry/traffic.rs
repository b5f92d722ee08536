//! [`Traffic`] counts the requests of the last five minutes, and those that point at a mistake in
//! the setup: requests for hosts that no policy claims, and requests from a proxy that the settings
//! do not trust. [`TrafficStatus`] is its summary for operators. Bots that no list knows are
//! counted by name, for the dashboard.

use super::recent::{Recent, RecentByName};
use crate::heads::ForwardingFields;
use crate::locks::lock;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

/// Octets of a host that are kept: a name has at most 253.
const HOST: usize = 256;
/// Hosts, proxies and fields that the status names.
const NAMED: usize = 5;
/// Names of unlisted bots that wait for the history.
const MAX_UNLISTED: usize = 1_000;
/// Fewer requests say little about a setup.
const ENOUGH: u64 = 10;

/// Counts of the last five minutes.
#[derive(Debug, Default)]
pub struct Traffic {
    /// All requests.
    pub requests: Recent,
    unclaimed: RecentByName<String>,
    /// Requests with forwarding fields, by the peer that is not trusted.
    undeclared_proxies: RecentByName<IpAddr>,
    /// The fields among these that no origin gets.
    dropped_fields: RecentByName<&'static str>,
    /// Fields of trusted proxies with the address of a client, while the field of the settings has
    /// none.
    unread_fields: RecentByName<&'static str>,
    /// Requests of unlisted bots by the names that they give themselves, until the history takes
    /// them.
    unlisted: Mutex<HashMap<String, u64>>,
}

/// Requests of the last five minutes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficStatus {
    /// All requests.
    pub requests: u64,
    /// Requests for hosts that no policy claims.
    pub unclaimed: u64,
    /// The hosts among these that were asked for most, each with its requests.
    pub unclaimed_hosts: Vec<(String, u64)>,
    /// Requests with forwarding fields from a peer that is not trusted.
    pub from_undeclared_proxies: u64,
    /// The peers among these with most requests.
    pub undeclared_proxies: Vec<(IpAddr, u64)>,
    /// The fields of these that crawlgate dropped, each with its requests.
    #[serde(default)]
    pub dropped_fields: Vec<(String, u64)>,
    /// Fields in which trusted proxies named a client that is unknown, because `client_address` is
    /// another field.
    #[serde(default)]
    pub unread_fields: Vec<(String, u64)>,
}

impl Traffic {
    /// Counts a request for a host that no policy claims, under the host in lower case, of at most
    /// 256 octets. `lived` is the time since the start.
    pub fn unclaimed(&self, host: &[u8], lived: Duration) {
        let host = String::from_utf8_lossy(&host[..host.len().min(HOST)]).to_ascii_lowercase();
        self.unclaimed.add(host, lived);
    }

    /// Counts a request with forwarding fields that are not believed. With a `client`, that one is
    /// no trusted proxy: counts it as an undeclared proxy, with the fields that no origin gets from
    /// it. Without, a trusted proxy sent `fields` and the client is unknown: counts the fields as
    /// unread.
    pub fn unread(&self, client: Option<IpAddr>, fields: ForwardingFields, lived: Duration) {
        let counts = if let Some(client) = client {
            self.undeclared_proxies.add(client, lived);
            &self.dropped_fields
        } else {
            &self.unread_fields
        };
        for name in fields.dropped().names() {
            counts.add(name, lived);
        }
    }

    /// Counts a request of an unlisted bot under the name that it gives itself. It is not counted
    /// while another thread holds the counts, or under a new name where `MAX_UNLISTED` wait for the
    /// history.
    pub fn unlisted(&self, name: &str) {
        let Ok(mut unlisted) = self.unlisted.try_lock() else {
            return;
        };
        if let Some(count) = unlisted.get_mut(name) {
            *count += 1;
        } else if unlisted.len() < MAX_UNLISTED {
            unlisted.insert(name.to_owned(), 1);
        }
    }

    /// Takes the names of unlisted bots counted since the last call, with their requests, for the
    /// history.
    pub fn take_unlisted(&self) -> HashMap<String, u64> {
        std::mem::take(&mut lock(&self.unlisted))
    }

    /// The counts of the last five minutes.
    pub fn status(&self, lived: Duration) -> TrafficStatus {
        TrafficStatus {
            requests: self.requests.sum(lived),
            unclaimed: self.unclaimed.sum(lived),
            unclaimed_hosts: self.unclaimed.top(NAMED, lived),
            from_undeclared_proxies: self.undeclared_proxies.sum(lived),
            undeclared_proxies: self.undeclared_proxies.top(NAMED, lived),
            dropped_fields: owned(self.dropped_fields.top(NAMED, lived)),
            unread_fields: owned(self.unread_fields.top(NAMED, lived)),
        }
    }
}

fn owned(counts: Vec<(&'static str, u64)>) -> Vec<(String, u64)> {
    counts
        .into_iter()
        .map(|(name, requests)| (name.to_owned(), requests))
        .collect()
}

impl TrafficStatus {
    /// Whether most requests are for hosts that no policy claims.
    pub fn is_mostly_unclaimed(&self) -> bool {
        self.is_most(self.unclaimed)
    }

    /// Whether most requests come from proxies that the settings do not trust. Single clients with
    /// such fields are no sign of a proxy: any client may send them.
    pub fn is_mostly_from_undeclared_proxies(&self) -> bool {
        self.is_most(self.from_undeclared_proxies)
    }

    /// Whether these are more than half of all requests, and at least `ENOUGH`.
    fn is_most(&self, count: u64) -> bool {
        count >= ENOUGH && count * 2 > self.requests
    }
}
