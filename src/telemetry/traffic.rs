//! [`RecentTraffic`] counts the requests of the last five minutes. It also counts requests that
//! show a mistake in the setup: requests for hosts that are in no policy, and requests from a proxy
//! that the settings do not trust. Unknown bots are counted by name, for the dashboard.
//! [`TrafficDiagnostics`] is the summary for operators.

use super::recent::{RecentCount, RecentCountByName};
use crate::heads::ForwardingFieldSet;
use crate::locks::lock;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

/// The most bytes of a host that are kept. A name has at most 253.
const MAX_HOST: usize = 256;
/// The most hosts, proxies and fields that the status names.
const MAX_NAMED: usize = 5;
/// The most names of unknown bots that wait for the history.
const MAX_UNLISTED: usize = 1_000;
/// The fewest requests that say something about the setup.
const MIN_REQUESTS: u64 = 10;
/// So many requests for one name say something, however many others there are: one a second.
const MANY_REQUESTS: u64 = 300;

/// Counts of the last five minutes.
#[derive(Default)]
pub struct RecentTraffic {
    /// All requests.
    pub requests: RecentCount,
    /// Failed attempts to accept a connection, because the process may open no more files.
    pub unaccepted: RecentCount,
    unclaimed: RecentCountByName<String>,
    /// Requests with forwarding fields, by the peer that is not trusted.
    undeclared_proxies: RecentCountByName<IpAddr>,
    /// Fields in which trusted proxies name the client, while the field of the settings is empty.
    unread_fields: RecentCountByName<String>,
    /// Requests of unknown bots by the names that they give themselves, until the history takes
    /// them.
    unlisted: Mutex<HashMap<String, u64>>,
    /// The last site for which a proxy sent its origin's own robots.txt, until it sends crawlgate's.
    bypassed_file: Mutex<Option<String>>,
}

/// Requests of the last five minutes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficDiagnostics {
    /// All requests.
    pub requests: u64,
    /// Failed attempts to accept a connection, because the process may open no more files.
    #[serde(default)]
    pub unaccepted: u64,
    /// Requests for hosts that no policy claims.
    pub unclaimed: u64,
    /// The hosts with the most of these requests, each with their number.
    pub unclaimed_hosts: Vec<(String, u64)>,
    /// Requests with forwarding fields from a peer that is not trusted.
    pub from_undeclared_proxies: u64,
    /// The peers with the most of these requests.
    pub undeclared_proxies: Vec<(IpAddr, u64)>,
    /// Fields in which trusted proxies named a client that is unknown, because `client_address` is
    /// another field.
    #[serde(default)]
    pub unread_fields: Vec<(String, u64)>,
    /// The last site for which a proxy sent its origin's own robots.txt instead of crawlgate's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypassed_file: Option<String>,
}

impl RecentTraffic {
    /// Counts a request for a host that no policy claims, under the host in lower case, of at most
    /// 256 bytes. `monotonic` is the time since the start.
    pub fn count_unclaimed(&self, host: &[u8], monotonic: Duration) {
        let host = String::from_utf8_lossy(&host[..host.len().min(MAX_HOST)]).to_ascii_lowercase();
        self.unclaimed.add(host, monotonic);
    }

    /// Counts a request with forwarding fields that are not believed. If the client is known, it is
    /// no trusted proxy: it counts as an undeclared proxy. If the client is not known, a trusted
    /// proxy sent the fields: they count as unread.
    pub fn count_unread_fields(
        &self,
        client: Option<IpAddr>,
        fields: ForwardingFieldSet,
        monotonic: Duration,
    ) {
        if let Some(client) = client {
            self.undeclared_proxies.add(client, monotonic);
            return;
        }
        for name in fields.without_via().names() {
            self.unread_fields.add(name.to_owned(), monotonic);
        }
    }

    /// Counts a request of an unknown bot under the name that it gives itself. It is not counted
    /// while another thread locks the counts, or under a new name if `MAX_UNLISTED` names wait.
    pub fn count_unlisted(&self, name: &str) {
        let Ok(mut unlisted) = self.unlisted.try_lock() else {
            return;
        };
        if let Some(count) = unlisted.get_mut(name) {
            *count += 1;
        } else if unlisted.len() < MAX_UNLISTED {
            unlisted.insert(name.to_owned(), 1);
        }
    }

    /// Records whether a proxy fetches the robots.txt of a site from crawlgate, or sends its
    /// origin's own.
    pub fn update_robots_txt_bypass(&self, site: &str, is_fetched: bool) {
        let mut bypassed = lock(&self.bypassed_file);
        if !is_fetched {
            *bypassed = Some(site.to_owned());
        } else if bypassed.as_deref() == Some(site) {
            *bypassed = None;
        }
    }

    /// Takes the names of unknown bots since the last call, with their requests, for the history.
    pub fn take_unlisted(&self) -> HashMap<String, u64> {
        std::mem::take(&mut lock(&self.unlisted))
    }

    /// The counts of the last five minutes.
    pub fn status(&self, monotonic: Duration) -> TrafficDiagnostics {
        TrafficDiagnostics {
            requests: self.requests.sum(monotonic),
            unaccepted: self.unaccepted.sum(monotonic),
            unclaimed: self.unclaimed.sum(monotonic),
            unclaimed_hosts: self.unclaimed.top(MAX_NAMED, monotonic),
            from_undeclared_proxies: self.undeclared_proxies.sum(monotonic),
            undeclared_proxies: self.undeclared_proxies.top(MAX_NAMED, monotonic),
            unread_fields: self.unread_fields.top(MAX_NAMED, monotonic),
            bypassed_file: lock(&self.bypassed_file).clone(),
        }
    }
}

impl TrafficDiagnostics {
    /// Whether so many requests are a mistake of the setup: at least `MIN_REQUESTS`, and more than
    /// half of all. Single clients may send forwarding fields without a proxy.
    pub fn is_majority(&self, count: u64) -> bool {
        count >= MIN_REQUESTS && count * 2 > self.requests
    }

    /// Whether most requests are for hosts that no policy claims, or `MANY_REQUESTS` for one name:
    /// the share alone would hide one site among many. Health checks of load balancers name an
    /// address, which does not end in a letter, nor does a port.
    pub fn has_unclaimed_site(&self) -> bool {
        self.is_majority(self.unclaimed)
            || self.unclaimed_hosts.iter().any(|(host, requests)| {
                *requests >= MANY_REQUESTS && host.ends_with(char::is_alphabetic)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_name_among_many_sites_is_notable() {
        let traffic = RecentTraffic::default();
        let now = Duration::from_secs(1);
        for _ in 0..20_000 {
            traffic.requests.add(now);
        }
        let peer = Some(IpAddr::from([192, 0, 2, 1]));
        for _ in 0..2 * MANY_REQUESTS {
            traffic.count_unread_fields(peer, ForwardingFieldSet::default(), now);
            for address in ["192.0.2.9", "192.0.2.9:8080", "[2001:db8::a]:8080"] {
                traffic.count_unclaimed(address.as_bytes(), now);
            }
        }
        for number in 1..=MANY_REQUESTS {
            traffic.count_unclaimed(b"forgotten.example", now);
            let status = traffic.status(now);
            assert_eq!(status.has_unclaimed_site(), number == MANY_REQUESTS);
            assert!(!status.is_majority(status.from_undeclared_proxies));
        }
    }
}
