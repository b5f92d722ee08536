//! [`Snapshot`]: all compiled sites at a moment, found by host. A request is judged by one snapshot
//! from start to end; a change of any policy replaces the whole snapshot.

use super::{HostIndex, SiteEntry};
use crate::policy::host_history::{HostHistories, HostHistory};
use crate::policy::model::HostPattern;
use crate::time::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;

/// Everything that the request path needs, replaced whole on every change.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    sites: Vec<SiteEntry>,
    hosts: HostIndex,
    histories: HostHistories,
    /// The site of the hosts of each pattern of `histories`; empty where some site has a pattern
    /// that is not among them.
    site_of_pattern: Vec<Option<usize>>,
    /// The moment that it was made for.
    made_at: Timestamp,
    /// The number of replacements so far.
    pub generation: u64,
}

impl Snapshot {
    /// Indexes sites by host. Of two sites that claim one host the first wins; loading refuses such
    /// policies earlier.
    pub fn new(sites: Vec<SiteEntry>, generation: u64) -> Snapshot {
        let hosts = HostIndex::new(
            sites
                .iter()
                .map(|entry| entry.site.policy.hosts.iter().map(|host| &host.value)),
        );
        Snapshot {
            sites,
            hosts,
            generation,
            ..Snapshot::default()
        }
    }

    /// The snapshot with the histories of hosts up to a moment. Where each pattern of the sites and
    /// every other host has a history, the site of each pattern is looked up now and not with each
    /// request.
    pub fn with_histories(self, histories: HostHistories, made_at: Timestamp) -> Snapshot {
        let known: HashSet<Option<&HostPattern>> =
            histories.each().map(|(pattern, _)| pattern).collect();
        let mut claimed = self.sites.iter().flat_map(|entry| &entry.site.policy.hosts);
        let is_whole =
            claimed.all(|host| known.contains(&Some(&host.value))) && known.contains(&None);
        let mut site_of_pattern = Vec::new();
        if is_whole {
            for (pattern, _) in histories.each() {
                let name = pattern.map(ToString::to_string).unwrap_or_default();
                site_of_pattern.push(self.hosts.find(name.as_bytes()));
            }
        }
        Snapshot {
            histories,
            site_of_pattern,
            made_at,
            ..self
        }
    }

    /// The next moment at which time changes it: the bytes of a site change, its robots.txt begins
    /// or ceases to be answered 503, or a pause ends. At the end of a pause that recurs its next
    /// spans are computed.
    pub fn next_switch(&self) -> Option<Timestamp> {
        let of_sites = self.sites.iter().filter_map(|entry| entry.site.next_switch);
        let ends = self
            .sites
            .iter()
            .flat_map(|entry| &entry.pauses)
            .map(|pause| pause.until)
            .filter(|end| *end > self.made_at);
        of_sites
            .chain(self.next_switch_of_robots_txt())
            .chain(ends)
            .min()
    }

    /// The next moment at which robots.txt of a site begins or ceases to be answered 503.
    pub fn next_switch_of_robots_txt(&self) -> Option<Timestamp> {
        let moments = self.sites.iter().flat_map(SiteEntry::robots_txt_switches);
        moments.filter(|moment| *moment > self.made_at).min()
    }

    /// A snapshot of the site with this index alone, with the history of one host. Every host has
    /// that history; by host no site is found. Without such a site it is empty.
    pub fn of_one(&self, site: usize, host: &[u8]) -> Snapshot {
        let history = Arc::new(self.history(host).clone());
        Snapshot {
            sites: self.sites.get(site).cloned().into_iter().collect(),
            histories: HostHistories::new(vec![(None, history)]),
            made_at: self.made_at,
            generation: self.generation,
            ..Snapshot::default()
        }
    }

    /// The history of the host of a `Host` field value. Does not allocate.
    pub fn history(&self, host: &[u8]) -> &HostHistory {
        self.histories.of(host)
    }

    /// The site and the history for a `Host` field value, with one look-up. `None` where no site
    /// has the host; a host without a history has `HostHistory::none`. Does not allocate.
    pub fn site_and_history(&self, host: &[u8]) -> Option<(usize, &HostHistory)> {
        let Some((pattern, history)) = self.histories.find(host) else {
            return Some((self.site_for_host(host)?, HostHistory::none()));
        };
        // The closest pattern of a host is as close as that of its site, so all its hosts have one
        // site.
        match self.site_of_pattern.get(pattern) {
            Some(site) => Some(((*site)?, history)),
            None => Some((self.site_for_host(host)?, history)),
        }
    }

    /// The history of each pattern of hosts; `None` stands for every other host.
    pub fn histories(&self) -> impl Iterator<Item = (Option<&HostPattern>, &Arc<HostHistory>)> {
        self.histories.each()
    }

    /// All sites.
    pub fn sites(&self) -> &[SiteEntry] {
        &self.sites
    }

    /// The index of the site for a `Host` field value (name with optional port, any case). Does not
    /// allocate.
    pub fn site_for_host(&self, host: &[u8]) -> Option<usize> {
        self.hosts.find(host)
    }

    /// The index of the site of this name.
    pub fn site_named(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|entry| entry.site.name == name)
    }

    /// The site of this name.
    pub fn entry_named(&self, name: &str) -> Option<&SiteEntry> {
        self.sites.iter().find(|entry| entry.site.name == name)
    }
}
