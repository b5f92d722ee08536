//! [`PublishedNetworks`]: the networks that operators publish, to look up the addresses of a log. An address inside verifies a
//! crawler; one outside raises a suspicion. It proves no impostor: reverse DNS is not asked, and the lists may be younger than
//! the log.

use crate::crawlers::CrawlerIndex;
use crate::identity::{KnownList, KnownMeans, ListsSay, Means, PublishedLists, is_directory};
use crate::time::{Timestamp, rfc3339};
use crate::verdict::{Doubt, is_public};
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;

/// The lists at hand.
pub struct PublishedNetworks {
    means: KnownMeans,
    lists: PublishedLists,
    now: Timestamp,
}

/// The lists that were used, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ListsUsed {
    /// How many.
    pub known: usize,
    /// Those that may raise a suspicion: their servers confirmed them within seven days.
    pub fresh: usize,
    /// When the latest was confirmed.
    #[serde(serialize_with = "rfc3339")]
    pub checked: Option<Timestamp>,
}

impl PublishedNetworks {
    /// The networks of these lists. `None` where none has networks.
    pub fn new(means: KnownMeans, lists: PublishedLists, now: Timestamp) -> Option<PublishedNetworks> {
        let networks = PublishedNetworks { means, lists, now };
        let has_some = networks.known().next().is_some();
        has_some.then_some(networks)
    }

    fn known(&self) -> impl Iterator<Item = Arc<KnownList>> {
        let lists = self.lists.all().filter(|(_, url)| !is_directory(url));
        lists.filter_map(|(list, _)| self.lists.get(list))
    }

    /// The lists in numbers.
    pub fn used(&self) -> ListsUsed {
        let (mut known, mut fresh, mut checked) = (0, 0, None);
        for list in self.known() {
            known += 1;
            fresh += usize::from(list.is_fresh(self.now));
            checked = checked.max(Some(list.copy.checked));
        }
        ListsUsed { known, fresh, checked }
    }

    /// The means of a crawler whose operator publishes networks.
    pub fn of(&self, crawler: CrawlerIndex) -> Option<&Means> {
        self.means.get(crawler).filter(|means| !means.lists.is_empty())
    }

    /// What the lists say of an address. Nothing where it is no public one.
    pub fn say(&self, means: &Means, address: Option<IpAddr>) -> ListsSay {
        match address {
            Some(address) if is_public(address) => self.lists.say(means, address, self.now),
            _ => ListsSay::Nothing(Doubt::PrivateAddress),
        }
    }
}

/// The address of a client as the log writes it, if that is one.
pub fn address_of(client: &[u8]) -> Option<IpAddr> {
    let address: IpAddr = std::str::from_utf8(client).ok()?.parse().ok()?;
    Some(address.to_canonical())
}
