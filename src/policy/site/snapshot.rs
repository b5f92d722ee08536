//! [`Snapshot`]: all compiled sites at one moment, found by host. Every change of a policy makes a
//! new snapshot. A request is judged by one snapshot from start to end.

use super::{HostIndex, SiteEntry};
use crate::policy::model::HostPattern;
use crate::policy::publication_history::{PublicationHistories, PublicationHistory};
use crate::time::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;

/// All sites at one moment, with the histories of their hosts.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    sites: Vec<SiteEntry>,
    hosts: HostIndex,
    histories: PublicationHistories,
    /// The site of each pattern of `histories`; empty if some pattern of a site has no history.
    site_of_pattern: Vec<Option<usize>>,
    /// When it was made.
    made_at: Timestamp,
    /// How many snapshots came before it.
    pub generation: u64,
}

impl Snapshot {
    /// Indexes sites by host. Of two sites with the same host the first wins; loading rejects such
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

    /// Sets the histories of hosts. If they cover all patterns of the sites and every other host,
    /// the site of each pattern is looked up now and not with each request.
    pub fn with_histories(self, histories: PublicationHistories, made_at: Timestamp) -> Snapshot {
        let known: HashSet<Option<&HostPattern>> =
            histories.iter().map(|(pattern, _)| pattern).collect();
        let mut claimed = self.sites.iter().flat_map(|entry| &entry.site.policy.hosts);
        let is_whole =
            claimed.all(|host| known.contains(&Some(&host.value))) && known.contains(&None);
        let mut site_of_pattern = Vec::new();
        if is_whole {
            for (pattern, _) in histories.iter() {
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

    /// When time next changes the snapshot: a retirement moves on, robots.txt begins or ceases to
    /// answer 503, or a pause ends (a recurring pause needs its next times then).
    pub fn next_switch(&self) -> Option<Timestamp> {
        let retirements = self.sites.iter().filter_map(|entry| entry.site.next_switch);
        let ends = self
            .sites
            .iter()
            .flat_map(|entry| &entry.pauses)
            .map(|pause| pause.until)
            .filter(|end| *end > self.made_at);
        retirements
            .chain(self.next_robots_txt_switch())
            .chain(ends)
            .min()
    }

    /// When robots.txt of a site next begins or ceases to answer 503.
    pub fn next_robots_txt_switch(&self) -> Option<Timestamp> {
        self.sites
            .iter()
            .flat_map(SiteEntry::robots_txt_switch_times)
            .filter(|moment| *moment > self.made_at)
            .min()
    }

    /// A snapshot of only the site with this index. Every host has the history of `host`; sites are
    /// not found by host.
    pub fn single_site(&self, site: usize, host: &[u8]) -> Snapshot {
        let history = Arc::new(self.history(host).clone());
        Snapshot {
            sites: self.sites.get(site).cloned().into_iter().collect(),
            histories: PublicationHistories::new(vec![(None, history)]),
            made_at: self.made_at,
            generation: self.generation,
            ..Snapshot::default()
        }
    }

    /// The history for a `Host` field value. Does not allocate.
    pub fn history(&self, host: &[u8]) -> &PublicationHistory {
        self.histories.get(host)
    }

    /// The index of the site and the history for a `Host` field value; `None` where no site has the
    /// host. Does not allocate.
    pub fn site_and_history(&self, host: &[u8]) -> Option<(usize, &PublicationHistory)> {
        let Some((pattern, history)) = self.histories.find(host) else {
            return Some((self.site_for_host(host)?, PublicationHistory::empty()));
        };
        // The closest pattern of a host is as close as that of its site, so all its hosts have one
        // site.
        match self.site_of_pattern.get(pattern) {
            Some(site) => Some(((*site)?, history)),
            None => Some((self.site_for_host(host)?, history)),
        }
    }

    /// Each host pattern with its history; `None` stands for every other host.
    pub fn histories(
        &self,
    ) -> impl Iterator<Item = (Option<&HostPattern>, &Arc<PublicationHistory>)> {
        self.histories.iter()
    }

    /// All sites.
    pub fn sites(&self) -> &[SiteEntry] {
        &self.sites
    }

    /// The index of the site for a `Host` field value. Does not allocate.
    pub fn site_for_host(&self, host: &[u8]) -> Option<usize> {
        self.hosts.find(host)
    }

    /// The index of the site with this name.
    pub fn site_index(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|entry| entry.site.name == name)
    }

    /// The site with this name.
    pub fn entry_by_name(&self, name: &str) -> Option<&SiteEntry> {
        self.sites.get(self.site_index(name)?)
    }
}
