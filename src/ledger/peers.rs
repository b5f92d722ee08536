//! The part of [`Ledger`] that adds reports of other crawlgate processes to the record of which
//! robots.txt each crawler was served. Peers (other instances in front of the same sites) report
//! what they served and observed. In an upgrade, the next process takes over while the previous one
//! still serves some requests, and the previous process reports what it serves. While a report may
//! be missing, no crawler is accused.

use super::host::{HostOwner, HostRecord, served_version, to_observation};
use super::host_table::{host_key, key_text};
use super::owners::{find_site, versions_since};
use super::{Ledger, NO_OVERLAP};
use crate::facts::{Fact, FactSubscriber, HostObservation, ServedVersion};
use crate::locks;
use crate::policy::{RobotsVersionId, Snapshot};
use crate::publications::PublishedRobots;
use crate::time::Timestamp;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

impl Ledger {
    /// Another process has the state directory from now on, and is notified of what happens here.
    /// When this returns, the state store has what was served before. No crawler is accused until
    /// [`Ledger::reclaim`].
    pub fn hand_over(&self, successor: Arc<dyn FactSubscriber>) {
        let mut known = locks::write(&self.successor);
        self.subscribers().add(successor.clone());
        *known = Some(successor);
    }

    /// Undoes [`Ledger::hand_over`].
    pub fn reclaim(&self) {
        if let Some(successor) = locks::write(&self.successor).take() {
            self.subscribers().remove(&successor);
        }
    }

    /// Records the end of the previous process. Unless it reported everything that it served
    /// (`reported_all`), all versions published since the hand-over count as served to every
    /// crawler.
    pub fn record_predecessor_end(&self, snapshot: &Snapshot, reported_all: bool, now: Timestamp) {
        let since = Timestamp(self.overlap_since.load(Acquire));
        if !reported_all && since.0 != NO_OVERLAP {
            self.hosts
                .record_served_to_all(|host| versions_since(snapshot, host, since), now);
        }
        self.overlap_since.store(NO_OVERLAP, Release);
    }

    /// Records what the previous process served while it handed over, and notifies peers. Ignores a
    /// host without a site.
    pub fn record_predecessor_served(
        &self,
        snapshot: &Snapshot,
        served: &ServedVersion,
        at: Timestamp,
    ) {
        let host = served.host.as_bytes();
        let (Some(key), Some(entry), Some(version)) = (
            host_key(host),
            find_site(snapshot, host),
            served.received.version(),
        ) else {
            return;
        };
        self.hosts
            .record_served(&key, &served.crawler, version, at, || {
                self.new_host(entry, host, at)
            });
        self.subscribers().notify(|| Fact::set(at, served.clone()));
    }

    /// Sets whether peers may have served versions that are unknown here. While they may, no
    /// crawler is accused.
    pub fn set_peers_unknown(&self, peers_unknown: bool) {
        self.peers_unknown.store(peers_unknown, Relaxed);
    }

    /// Records that a peer served a version. A new host has no site, and is observed only once it
    /// gets one.
    pub fn record_peer_served(&self, served: &ServedVersion, at: Timestamp, now: Timestamp) {
        let (Some(key), Some(version)) =
            (host_key(served.host.as_bytes()), served.received.version())
        else {
            return;
        };
        self.hosts
            .record_served(&key, &served.crawler, version, at, || {
                HostRecord::new(&HostOwner::default(), now, now, false)
            });
    }

    /// Records that a peer observes a host. If the host has the same owner here, it counts as
    /// observed since the earlier of both beginnings, but not since before the clock was last set.
    /// A new host is added.
    pub fn record_peer_observation(&self, observed: &HostObservation, now: Timestamp) {
        let Some(key) = host_key(observed.host.as_bytes()) else {
            return;
        };
        let owner = HostOwner::from_observation(observed);
        self.hosts.insert_if_absent(&key, now, || {
            HostRecord::new(&owner, now, now, observed.named)
        });
        let ignore_peers_before = Timestamp(self.ignore_peers_before.load(Relaxed));
        self.hosts.get_with(&key, |host| {
            if let Some(host) = host.filter(|host| *host.owner == *owner.sites) {
                host.merge_observation(
                    observed.since.max(ignore_peers_before),
                    observed.seen.min(now),
                );
            }
        });
    }

    /// All observed hosts, and then all served versions, for an instance that knows nothing yet.
    pub fn all_facts(&self, now: Timestamp) -> Vec<Fact> {
        let mut facts = Vec::new();
        self.hosts.for_each(|key, host| {
            facts.push(Fact::set(now, to_observation(&key_text(key), host)));
            for (crawler, known) in host.serve_histories() {
                let versions = known.versions.iter();
                facts.extend(versions.map(|last| served_fact(key, crawler, last.version, last.at)));
            }
        });
        facts
    }

    /// Records all versions published since a moment as served to every crawler.
    #[cfg(test)]
    pub fn record_served_to_all_since(
        &self,
        snapshot: &Snapshot,
        since: Timestamp,
        now: Timestamp,
    ) {
        self.hosts
            .record_served_to_all(|host| versions_since(snapshot, host, since), now);
    }
}

/// The fact that a crawler was served a version on the host with this key.
pub fn served_fact(key: &[u8], crawler: &str, version: RobotsVersionId, at: Timestamp) -> Fact {
    let received = PublishedRobots::Version(version);
    Fact::set(at, served_version(&key_text(key), crawler, received))
}
