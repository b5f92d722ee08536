//! [`find_owner`] finds the site that a host belongs to at present. [`versions_since`] finds the
//! versions of robots.txt that the host published since a given time. The ledger needs both
//! functions. It records which robots.txt each crawler was served on each host.

use super::host::HostOwner;
use crate::policy::site::split_host_port;
use crate::policy::{RobotsVersionId, SiteEntry, Snapshot};
use crate::time::Timestamp;

/// Finds the site that has the host in this snapshot.
pub fn find_site<'s>(snapshot: &'s Snapshot, host: &[u8]) -> Option<&'s SiteEntry> {
    snapshot
        .site_for_host(host)
        .and_then(|index| snapshot.sites().get(index))
}

/// Finds the sites that a host belongs to. A name without a port also stands for its ports 80 and
/// 443. If these belong to different sites, the owner has all three names. The longest time of a
/// cache in front of them counts.
pub fn find_owner(snapshot: &Snapshot, host: &[u8]) -> HostOwner {
    let own = find_site(snapshot, host);
    let (_, port) = split_host_port(host);
    let usual = [b":80".as_slice(), b":443"].map(|usual| match port {
        None => find_site(snapshot, &[host, usual].concat()),
        Some(_) => own,
    });
    let all = [own, usual[0], usual[1]];
    let cache = all
        .iter()
        .flatten()
        .filter_map(|entry| entry.site.behind_cache)
        .max();
    let names = all.map(|entry| entry.map_or("", |entry| entry.site.name.as_str()));
    let sites = if names.iter().all(|name| *name == names[0]) {
        names[0].to_owned()
    } else {
        names.join("/")
    };
    HostOwner { sites, cache }
}

/// The versions that were in force on a host at `since` or later, the present one last.
pub fn versions_since(snapshot: &Snapshot, host: &[u8], since: Timestamp) -> Vec<RobotsVersionId> {
    let superseded = snapshot
        .history(host)
        .superseded
        .iter()
        .filter(|version| version.superseded_at >= since);
    let current = find_site(snapshot, host).map(|entry| entry.site.robots_txt.version);
    superseded
        .map(|version| version.parsed.version)
        .chain(current)
        .collect()
}
