//! [`pairs`] decides which old site is compared with which new site: the two that serve the same
//! host. Where only one side has a site for a host, the pair lacks the other site. Two single files
//! are always a pair, whatever their hosts are.

use super::Side;
use crate::policy::SiteEntry;
use std::collections::BTreeSet;

/// Two sites that have hosts in common; one of them may be missing.
pub struct Pair {
    /// The hosts, as policies write them.
    pub hosts: Vec<String>,
    /// The places of the old and of the new site in their snapshots.
    pub sites: [Option<usize>; 2],
}

/// The name for every host that no policy names.
const EVERY_OTHER: &str = "every other host";

/// All pairs, in the order of their hosts. Hosts with the same two sites are in one pair. Two sides
/// that are a single file with one site each are one pair, with the hosts of the new one if it
/// names any, else of the old one.
pub fn pairs(sides: [&Side; 2]) -> Vec<Pair> {
    if let [([old], true), ([new], true)] =
        sides.map(|side| (side.snapshot.sites(), side.is_one_file))
    {
        let hosts = hosts_of(if new.site.policy.hosts.is_empty() {
            old
        } else {
            new
        });
        return vec![Pair {
            hosts,
            sites: [Some(0); 2],
        }];
    }
    let hosts: BTreeSet<String> = sides
        .iter()
        .flat_map(|side| side.snapshot.sites())
        .flat_map(hosts_of)
        .collect();
    let mut pairs: Vec<Pair> = Vec::new();
    for host in hosts {
        let asked = asked_by(&host);
        let sites = sides.map(|side| side.snapshot.site_for_host(asked.as_bytes()));
        match pairs.iter_mut().find(|known| known.sites == sites) {
            Some(known) => known.hosts.push(host),
            None => pairs.push(Pair {
                hosts: vec![host],
                sites,
            }),
        }
    }
    pairs
}

fn hosts_of(entry: &SiteEntry) -> Vec<String> {
    let hosts = &entry.site.policy.hosts;
    if hosts.is_empty() {
        return vec![EVERY_OTHER.to_owned()];
    }
    hosts.iter().map(|host| host.to_string()).collect()
}

/// A host that a pattern stands for: `www.` and the name for `*.name`, empty for `every other
/// host`, else the pattern itself.
fn asked_by(pattern: &str) -> String {
    match pattern.strip_prefix("*.") {
        Some(name) => format!("www.{name}"),
        None if pattern == EVERY_OTHER => String::new(),
        None => pattern.to_owned(),
    }
}
