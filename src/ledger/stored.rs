//! Hosts as facts of the state store, and back. The main items are [`facts_of`], [`visit_facts`] and [`hosts_from`]. This
//! file must not know when facts are stored.

use super::host::{Added, Host, Owner, Served as ServedVersions};
use crate::policy::Version;
use crate::state::{AsWritten, Fact, Facts, Observation, Served, ServedAs};
use crate::time::Timestamp;
use std::collections::HashMap;
use std::time::Duration;

/// What every crawler may have been served stands under no name.
const EVERYONE: &str = "";

/// That a host is observed.
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

fn served(name: &str, crawler: &str, received: ServedAs) -> Served {
    Served { host: name.to_owned(), crawler: crawler.to_owned(), received }
}

/// Everything that is known of a host. `at` is the moment of the facts that have none of their own.
pub fn facts_of(name: &str, host: &Host, at: Timestamp) -> Vec<Fact> {
    let mut facts = vec![Fact::set(at, observation(name, host))];
    each_record(name, host, |at, record| facts.push(Fact::set(at, record)));
    facts
}

/// That nothing is known of a host any more.
pub fn removal_of(name: &str, host: &Host, at: Timestamp) -> Vec<Fact> {
    let mut facts = vec![Fact::removed(at, observation(name, host))];
    each_record(name, host, |_, record| facts.push(Fact::removed(at, record)));
    facts
}

fn each_record(name: &str, host: &Host, mut record: impl FnMut(Timestamp, Served)) {
    for (crawler, versions) in host.crawlers().chain([(EVERYONE, &host.everyone)]) {
        for visit in &versions.versions {
            record(visit.at, served(name, crawler, ServedAs::Version(visit.version.to_string())));
        }
        if let Some(lost) = versions.lost {
            record(lost, served(name, crawler, ServedAs::Forgotten));
        }
    }
}

/// What one more visit of a crawler changed.
pub fn visit_facts(name: &str, crawler: &str, version: Version, added: Added, after: &ServedVersions) -> Vec<Fact> {
    let at = after.versions.iter().find(|visit| visit.version == version).map(|visit| visit.at);
    let received = |version: Version| served(name, crawler, ServedAs::Version(version.to_string()));
    let news = at.filter(|_| added.is_news).map(|at| Fact::set(at, received(version)));
    let dropped = added.dropped.zip(after.lost).into_iter().flat_map(|(dropped, lost)| {
        let at = at.unwrap_or(lost);
        [Fact::removed(at, received(dropped)), Fact::set(lost, served(name, crawler, ServedAs::Forgotten))]
    });
    news.into_iter().chain(dropped).collect()
}

/// The hosts that the state store remembers, by name. A host of which only visits are known begins its observation now.
pub fn hosts_from(facts: &Facts, now: Timestamp) -> HashMap<&str, Host> {
    let mut hosts: HashMap<&str, Host> = HashMap::new();
    for (_, known) in &facts.observations {
        let owner = Owner { sites: known.site.clone(), cache: known.behind_cache.map(Duration::from_secs) };
        hosts.insert(&known.host, Host::new(&owner, known.since.0, known.seen, known.named));
    }
    for (at, Served { host, crawler, received }) in &facts.served {
        let unobserved = || Host::new(&Owner::default(), now, *at, false);
        let host = hosts.entry(host).or_insert_with(unobserved);
        let served = match crawler.as_str() {
            EVERYONE => &mut host.everyone,
            name => host.crawler_mut(name),
        };
        match received {
            ServedAs::Version(id) => match Version::parse(id) {
                Some(version) => {
                    served.add(version, *at);
                }
                None => served.lost = served.lost.max(Some(*at)),
            },
            // No copy. The history of the host knows when robots.txt answered 503.
            ServedAs::Unavailable => {}
            ServedAs::Forgotten | ServedAs::ForgottenUnavailable => served.lost = served.lost.max(Some(*at)),
        }
    }
    for host in hosts.values() {
        host.set_stored();
    }
    hosts
}
