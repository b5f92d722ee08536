//! Which site of one side is compared with which site of the other: those that have a host in common. [`pairs`] finds
//! them. Knows hosts only.

use super::Side;
use crate::policy::SiteEntry;
use std::collections::BTreeSet;

/// Two sites that have hosts in common; one of them may be missing.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The hosts, as policies write them.
    pub hosts: Vec<String>,
    /// The site of the old side.
    pub old: Option<&'a SiteEntry>,
    /// The site of the new side.
    pub new: Option<&'a SiteEntry>,
}

/// What stands for every host that no policy names.
const EVERY_OTHER: &str = "every other host";

/// All pairs, in the order of their hosts.
pub fn pairs<'a>(old: &'a Side, new: &'a Side) -> Vec<Pair<'a>> {
    if let ([one], [other], true) = (old.snapshot.sites(), new.snapshot.sites(), old.is_one_file && new.is_one_file) {
        let hosts = if new.snapshot.sites()[0].site.policy.hosts.is_empty() { hosts_of(one) } else { hosts_of(other) };
        return vec![Pair { hosts, old: Some(one), new: Some(other) }];
    }
    let sites = || old.snapshot.sites().iter().chain(new.snapshot.sites());
    let hosts: BTreeSet<String> = sites().flat_map(hosts_of).collect();
    let mut pairs: Vec<Pair<'a>> = Vec::new();
    for host in hosts {
        let asked = asked_by(&host);
        let (one, other) = (site_for(old, &asked), site_for(new, &asked));
        let is_same = |known: &&mut Pair<'a>| {
            let same = |a: Option<&SiteEntry>, b: Option<&SiteEntry>| match (a, b) {
                (Some(a), Some(b)) => std::ptr::eq(a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            same(known.old, one) && same(known.new, other)
        };
        match pairs.iter_mut().find(is_same) {
            Some(known) => known.hosts.push(host),
            None => pairs.push(Pair { hosts: vec![host], old: one, new: other }),
        }
    }
    pairs
}

fn hosts_of(entry: &SiteEntry) -> Vec<String> {
    let hosts = &entry.site.policy.hosts;
    if hosts.is_empty() {
        return vec![EVERY_OTHER.to_owned()];
    }
    hosts.iter().map(|host| host.value.to_string()).collect()
}

/// A host that a pattern stands for.
fn asked_by(pattern: &str) -> String {
    match pattern.strip_prefix("*.") {
        Some(name) => format!("www.{name}"),
        None if pattern == EVERY_OTHER => String::new(),
        None => pattern.to_owned(),
    }
}

fn site_for<'a>(side: &'a Side, host: &str) -> Option<&'a SiteEntry> {
    side.snapshot.sites().get(side.snapshot.site_for_host(host.as_bytes())?)
}
