//! All sites at a moment, found by host. The request path reads one; a change replaces the whole.

use super::{HostIndex, SiteEntry};
use crate::policy::model::{HostPattern, Policy};
use crate::policy::moved::MovedHosts;

/// Everything the request path needs, replaced whole on every change.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    sites: Vec<SiteEntry>,
    hosts: HostIndex,
    moved: MovedHosts,
    /// Counts replacements.
    pub generation: u64,
}

impl Snapshot {
    /// Indexes sites by host. Of two sites that claim one host the first wins; loading refuses such policies earlier.
    pub fn new(sites: Vec<SiteEntry>, generation: u64) -> Snapshot {
        let hosts = HostIndex::new(sites.iter().map(|entry| entry.site.policy.hosts.iter().map(|host| &host.value)));
        Snapshot { sites, hosts, moved: MovedHosts::default(), generation }
    }

    /// With what is known of hosts that went from one site to another.
    pub fn with_moved(self, moved: MovedHosts) -> Snapshot {
        Snapshot { moved, ..self }
    }

    /// Hosts that lately went from one site to another.
    pub fn moved(&self) -> &MovedHosts {
        &self.moved
    }

    /// All sites.
    pub fn sites(&self) -> &[SiteEntry] {
        &self.sites
    }

    /// The index of the site for a `Host` field value (name with optional port, any case). Does not allocate.
    pub fn site_for_host(&self, host: &[u8]) -> Option<usize> {
        self.hosts.find(host)
    }

    /// The site of this name.
    pub fn site_named(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|entry| entry.site.name == name)
    }
}

/// The first pattern that two policies share, for the error that names both.
pub fn shared_host<'a>(one: &'a Policy, other: &'a Policy) -> Option<&'a HostPattern> {
    one.hosts.iter().map(|host| &host.value).find(|host| other.hosts.iter().any(|theirs| theirs.value == **host))
}
