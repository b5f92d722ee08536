//! Conversion between hosts and facts of the state store. [`facts_of`], [`served_facts`] and [`removal_of`] make facts of
//! hosts, and [`hosts_from`] makes hosts of the facts that the store remembers.

use super::host::{Added, Host, Owner, Served as ServedVersions};
use crate::policy::Version;
use crate::publications::Published;
use crate::state::{AsWritten, Fact, Observation, Served, StoredFacts};
use crate::time::Timestamp;
use std::collections::HashMap;

/// What every crawler may have been served stands under no name.
const EVERYONE: &str = "";

/// The record that a host is observed.
pub fn observation(name: &str, host: &Host) -> Observation {
    Observation {
        host: name.to_owned(),
        site: host.owner().to_owned(),
        since: AsWritten(host.since()),
        seen: host.seen(),
        named: host.named(),
        behind_cache: host.cache().map(|cache| cache.as_secs()),
    }
}

fn served(name: &str, crawler: &str, received: Published) -> Served {
    Served { host: name.to_owned(), crawler: crawler.to_owned(), received }
}

/// Everything that is known of a host. `at` is the moment of the facts that have none of their own.
pub fn facts_of(name: &str, host: &Host, at: Timestamp) -> Vec<Fact> {
    let records = records(name, host).map(|(at, record)| Fact::set(at, record));
    [Fact::set(at, observation(name, host))].into_iter().chain(records).collect()
}

/// The facts that nothing is known of a host any more.
pub fn removal_of(name: &str, host: &Host, at: Timestamp) -> Vec<Fact> {
    let records = records(name, host).map(|(_, record)| Fact::removed(at, record));
    [Fact::removed(at, observation(name, host))].into_iter().chain(records).collect()
}

fn records(name: &str, host: &Host) -> impl Iterator<Item = (Timestamp, Served)> {
    host.crawlers().chain([(EVERYONE, &host.everyone)]).flat_map(move |(crawler, known)| {
        let versions = known.versions.iter().map(|visit| (visit.at, Published::Version(visit.version)));
        let lost = known.lost.map(|lost| (lost, Published::Unknown));
        versions.chain(lost).map(move |(at, received)| (at, served(name, crawler, received)))
    })
}

/// The facts that one more visit of a crawler changed.
pub fn served_facts(name: &str, crawler: &str, version: Version, added: Added, after: &ServedVersions) -> Vec<Fact> {
    let at = after.versions.iter().find(|visit| visit.version == version).map(|visit| visit.at);
    let received = |version: Version| served(name, crawler, Published::Version(version));
    let news = at.filter(|_| added.is_news).map(|at| Fact::set(at, received(version)));
    let dropped = added.dropped.zip(after.lost).into_iter().flat_map(|(dropped, lost)| {
        let at = at.unwrap_or(lost);
        [Fact::removed(at, received(dropped)), Fact::set(lost, served(name, crawler, Published::Unknown))]
    });
    news.into_iter().chain(dropped).collect()
}

/// The hosts that the state store remembers, by name. A host of which only visits are known begins its observation now.
pub fn hosts_from(facts: &StoredFacts, now: Timestamp) -> HashMap<&str, Host> {
    let mut hosts: HashMap<&str, Host> = HashMap::new();
    for (_, known) in &facts.observations {
        hosts.insert(&known.host, Host::new(&Owner::of(known), known.since.0, known.seen, known.named));
    }
    for (at, Served { host, crawler, received }) in &facts.served {
        let unobserved = || Host::new(&Owner::default(), now, *at, false);
        let host = hosts.entry(host).or_insert_with(unobserved);
        let served = match crawler.as_str() {
            EVERYONE => &mut host.everyone,
            name => host.crawler_mut(name),
        };
        match received {
            Published::Version(version) => drop(served.add(*version, *at)),
            // No copy. The history of the host knows when robots.txt answered 503.
            Published::Unavailable => {}
            Published::Unknown | Published::UnknownOrUnavailable => served.lost = served.lost.max(Some(*at)),
        }
    }
    for host in hosts.values() {
        host.set_stored();
    }
    hosts
}
