//! Hosts that lately went from one site to another, to none, or came to one: what crawlers were told there about pages
//! is another site's, and a 304 would let it stand. Knows no request but its Host.

use super::model::HostPattern;
pub(crate) use super::site::HostIndex;
use super::site::SiteEntry;
use crate::time::Timestamp;

/// When hosts came to the site that they are at, as far as that matters.
#[derive(Clone, Debug, Default)]
pub struct MovedHosts {
    hosts: HostIndex,
    /// By the index of the pattern.
    since: Vec<Option<Timestamp>>,
    /// The latest of them: mostly none, or long ago, and then no host is looked up.
    latest: Option<Timestamp>,
}

impl MovedHosts {
    /// From patterns; `None` stands for every other host. What has no moment has not moved, though a wider pattern may
    /// have.
    pub fn new(moved: Vec<(Option<HostPattern>, Option<Timestamp>)>) -> MovedHosts {
        MovedHosts {
            hosts: HostIndex::new(moved.iter().map(|(pattern, _)| pattern)),
            latest: moved.iter().filter_map(|(_, since)| *since).max(),
            since: moved.into_iter().map(|(_, since)| since).collect(),
        }
    }

    /// When the host of this `Host` field value moved last.
    pub fn since(&self, host: &[u8]) -> Option<Timestamp> {
        self.since.get(self.hosts.find(host)?).copied().flatten()
    }

    /// Whether it moved so lately that crawlers must see its pages whole. Does not allocate.
    pub fn lately(&self, host: &[u8], now: Timestamp) -> bool {
        let lately = |moment: Timestamp| now.since(moment) < SiteEntry::TAGS_NEW_FOR;
        self.latest.is_some_and(lately) && self.since(host).is_some_and(lately)
    }
}
