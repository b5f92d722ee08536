//! [`match_sites`] finds the sites that `crawlgate diff` compares: it pairs each old site with the
//! new site of the same host. If a host was added or removed, its pair has only one site. If the
//! user compares two single files, they are always a pair, even if their hosts differ.

use super::ComparedRules;
use crate::policy::SiteEntry;
use std::collections::BTreeSet;

/// An old and a new site of the same hosts; one of them may be missing.
pub struct SitePair {
    /// The hosts, as policies write them.
    pub hosts: Vec<String>,
    /// The indexes of the old and the new site in their snapshots.
    pub sites: [Option<usize>; 2],
}

const EVERY_OTHER_HOST: &str = "all hosts that no other policy names";

/// All pairs, sorted by host. Hosts with the same two sites are in one pair. Two single files with
/// one site each are one pair, with the hosts of the new one if it names any, else of the old one. A
/// single file that names no hosts is compared on the hosts of the other side, if that has any.
pub fn match_sites(sides: [&ComparedRules; 2]) -> Vec<SitePair> {
    if let [([old], true), ([new], true)] =
        sides.map(|side| (side.snapshot.sites(), side.is_one_file))
    {
        let hosts = hosts_of_site(if new.site.policy.hosts.is_empty() {
            old
        } else {
            new
        });
        return vec![SitePair {
            hosts,
            sites: [Some(0); 2],
        }];
    }
    let mut hosts: BTreeSet<String> = sides
        .iter()
        .flat_map(|side| side.snapshot.sites())
        .flat_map(hosts_of_site)
        .collect();
    if hosts.len() > 1
        && sides
            .iter()
            .all(|side| side.is_one_file || side.snapshot.site_for_host(b"").is_none())
    {
        hosts.remove(EVERY_OTHER_HOST);
    }
    let mut pairs: Vec<SitePair> = Vec::new();
    for host in hosts {
        // A host that the pattern matches.
        let example = match host.strip_prefix("*.") {
            Some(name) => format!("www.{name}"),
            None if host == EVERY_OTHER_HOST => String::new(),
            None => host.clone(),
        };
        let sites = sides.map(|side| side.snapshot.site_for_host(example.as_bytes()));
        match pairs.iter_mut().find(|known| known.sites == sites) {
            Some(known) => known.hosts.push(host),
            None => pairs.push(SitePair {
                hosts: vec![host],
                sites,
            }),
        }
    }
    pairs
}

fn hosts_of_site(entry: &SiteEntry) -> Vec<String> {
    let hosts = &entry.site.policy.hosts;
    if hosts.is_empty() {
        return vec![EVERY_OTHER_HOST.to_owned()];
    }
    hosts.iter().map(|host| host.to_string()).collect()
}
