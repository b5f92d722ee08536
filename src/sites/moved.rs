//! Hosts that go from one site to another, and the tags of their pages: since when a rule is in force a site knows by
//! its name, but what crawlers were told on a host was another's before. It is not remembered path by path: where there
//! was something to tell, everything is new there.
//!
//! Knows whose hosts were whose, through a restart; knows no request.

use super::reload::Sites;
use super::takeover::{hosts, hosts_of};
use crate::policy::compiled::TagAges;
use crate::policy::decode::parse_host;
use crate::policy::model::HostPattern;
use crate::policy::moved::{HostIndex, MovedHosts};
use crate::policy::{Site, SiteEntry};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Patterns that are remembered. Where there are more, all hosts have moved when the last of them did.
const MAX_MOVED: usize = 4_096;

/// Every other host, as it is written here.
const ALL_OTHERS: &str = "";

/// What is remembered of hosts and their tags.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Moved {
    /// The sites in force that say something about pages, or did lately; nothing where that was never written down.
    telling: Option<BTreeSet<String>>,
    /// By pattern, without its port: when its hosts came to the site that they are at. One without a moment is here
    /// because a wider one has one.
    hosts: BTreeMap<String, Option<Timestamp>>,
}

impl Moved {
    /// As requests are judged by it.
    pub(super) fn index(&self) -> MovedHosts {
        let pattern = |written: &str| match written {
            ALL_OTHERS => Some(None),
            written => parse_host(written).ok().map(Some),
        };
        MovedHosts::new(self.hosts.iter().filter_map(|(host, since)| Some((pattern(host)?, *since))).collect())
    }

    /// Forgets what no crawler is sent whole pages for any more, and hosts that nobody names.
    pub(super) fn forget_what_is_over(&mut self, named: &BTreeSet<String>, now: Timestamp) {
        for since in self.hosts.values_mut() {
            *since = since.filter(|moment| now.since(*moment) < SiteEntry::TAGS_NEW_FOR);
        }
        self.hosts.retain(|host, since| since.is_some() || named.contains(host));
        let latest = self.hosts.values().flatten().max().copied();
        if latest.is_none() {
            self.hosts.clear();
        } else if self.hosts.len() > MAX_MOVED {
            self.hosts = BTreeMap::from([(ALL_OTHERS.to_owned(), latest)]);
        }
    }
}

/// Whose hosts are whose.
struct Owners {
    index: HostIndex,
    names: Vec<String>,
}

impl Owners {
    fn new(sites: &BTreeMap<String, Vec<String>>) -> Owners {
        let patterns: Vec<Vec<HostPattern>> = sites.values().map(|written| hosts(written).collect()).collect();
        Owners { index: HostIndex::new(&patterns), names: sites.keys().cloned().collect() }
    }

    fn of(&self, host: &str) -> Option<&str> {
        self.index.find(host.as_bytes()).map(|site| self.names[site].as_str())
    }
}

impl Sites {
    /// What was remembered of hosts before a start.
    pub(super) fn recall_moved(&mut self, now: Timestamp) {
        if self.memory.moved.telling.is_none() {
            let known = self.memory.tag_rules.iter().filter(|(_, rules)| !rules.is_empty());
            self.memory.moved.telling = Some(known.map(|(site, _)| site.clone()).collect());
        }
        // What was said meanwhile, and where, nobody knows.
        if self.state.has_lost_track() || self.state.is_incomplete() && !self.memory.hosts.is_empty() {
            self.memory.moved.hosts = BTreeMap::from([(ALL_OTHERS.to_owned(), Some(now))]);
        }
    }

    /// Compares whose hosts are whose with whose they were. Called when a reload has put all files in their place,
    /// before it is forgotten whose they were.
    pub(super) fn settle_moved(&mut self, now: Timestamp) {
        let hosts_now: BTreeMap<String, Vec<String>> =
            self.entries().map(|entry| (entry.site.name.clone(), hosts_of(&entry.site))).collect();
        if hosts_now == self.memory.hosts && self.leaving.is_empty() {
            return;
        }
        let (before, after) = (Owners::new(&self.memory.hosts), Owners::new(&hosts_now));
        let (mut named, mut ports) = (BTreeSet::from([ALL_OTHERS.to_owned()]), BTreeSet::from([None]));
        for pattern in self.memory.hosts.values().chain(hosts_now.values()).flat_map(|written| hosts(written)) {
            ports.insert(pattern.port);
            named.insert(HostPattern { port: None, ..pattern }.to_string());
        }
        // Of all hosts for which a pattern is the closest of these, one tells where they were and are. A wildcard
        // stands for a name below it that nobody else names.
        let known = self.memory.moved.index();
        let mut moved = BTreeMap::new();
        for host in named.iter().chain(self.memory.moved.hosts.keys()) {
            let has_moved = ports.iter().any(|port| {
                let host = port.map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
                self.is_news(before.of(&host), after.of(&host), now)
            });
            let since = if has_moved { Some(now) } else { known.since(host.as_bytes()) };
            moved.insert(host.clone(), since);
        }
        self.memory.moved.hosts = moved;
        self.memory.moved.forget_what_is_over(&named, now);
    }

    /// Whether a host that was at one site, and is at another now, may have pages of which something else is said.
    fn is_news(&self, before: Option<&str>, after: Option<&str>, now: Timestamp) -> bool {
        // One with the same name may be another: that of a file, and that without a policy.
        if before == after && !before.is_some_and(|site| self.leaving.contains_key(site)) {
            return false;
        }
        let told = |site: &str| self.memory.moved.telling.as_ref().is_none_or(|telling| telling.contains(site));
        before.is_some_and(told) || after.and_then(|site| self.entry(site)).is_some_and(|entry| says_old(entry, now))
    }

    /// Writes into the memory which sites say something about pages.
    pub(super) fn remember_telling(&mut self, now: Timestamp) {
        let lately = |entry: &SiteEntry| {
            entry.tag_ages.everywhere.is_some_and(|moment| now.since(moment) < SiteEntry::TAGS_NEW_FOR)
        };
        let telling = self.entries().filter(|entry| {
            says_everywhere(&entry.site) || entry.site.tags.identities().next().is_some() || lately(entry)
        });
        let telling = telling.map(|entry| entry.site.name.clone()).collect();
        self.memory.moved.telling = Some(telling);
    }
}

/// Whether something is said on every page that a 304 would hide.
fn says_everywhere(site: &Site) -> bool {
    site.html.is_some() || site.tags.strips()
}

/// Whether a site says something that is not new: what is new is known by itself to be so, and for which paths.
fn says_old(entry: &SiteEntry, now: Timestamp) -> bool {
    let TagAges { since, everywhere } = &entry.tag_ages;
    since.iter().any(|moment| *moment < now)
        || says_everywhere(&entry.site) && everywhere.is_none_or(|moment| moment < now)
}
