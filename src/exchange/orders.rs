//! [`Orders`]: what operators did at any instance: pauses of sites, and releases of clients that
//! were marked for requesting a trap. The latest change of a site's pauses counts (of two in one
//! second the greater one), and the latest release of a network's marks. So merging is commutative,
//! associative and idempotent.

use super::event::PausedSite;
use super::{Event, SharedFact};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Sites, and networks, at most. Operators speak of fewer.
const MOST: usize = 4_096;
/// Clocks are converted in whole seconds: what was said after another word may seem to be so much
/// older.
const ROUNDING: i64 = 2;

/// What operators did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    pauses: BTreeMap<String, (i64, String)>,
    releases: BTreeMap<String, (i64, IpNet)>,
}

impl Orders {
    /// Adds a pause or a release, if it is later than the one known of its site or network (of the
    /// same time: greater). Returns whether it was added; other events are not. Beyond 4,096 sites
    /// or networks the oldest goes.
    pub fn add(&mut self, event: &Event, at: i64) -> bool {
        match event {
            Event::Paused(paused) => {
                latest(&mut self.pauses, paused.site.clone(), (at, paused.said()))
            }
            Event::Released(network) => {
                latest(&mut self.releases, network.to_string(), (at, *network))
            }
            Event::Served(_) | Event::Marked(_) => false,
        }
    }

    /// The time at which others are told of an order that was given here at `at`. If a known pause
    /// of the site says something else and is up to 2 seconds later, it is a second after that one,
    /// so that the new order counts. A release counts 2 seconds later, for marks that seem to be a
    /// moment later.
    pub fn said_at(&self, event: &Event, at: i64) -> i64 {
        let paused = match event {
            Event::Paused(paused) => paused,
            Event::Released(_) => return at.saturating_add(ROUNDING),
            Event::Served(_) | Event::Marked(_) => return at,
        };
        match self.pauses.get(&paused.site) {
            Some((last, said))
                if (*last - ROUNDING..=*last).contains(&at) && *said != paused.said() =>
            {
                last + 1
            }
            _ => at,
        }
    }

    /// The latest change of a site's pauses, with its time by the store's clock. `None` if none is
    /// known.
    pub fn of(&self, site: &str) -> Option<(i64, PausedSite)> {
        let (at, said) = self.pauses.get(site)?;
        Some((*at, PausedSite::of(site, said)?))
    }

    /// Whether the mark that a client of this address got at a moment was released then or later.
    pub fn are_released(&self, address: IpAddr, at: i64) -> bool {
        self.releases
            .values()
            .any(|(released, network)| *released >= at && network.contains(&address))
    }

    /// All orders as facts, for a store that starts over.
    pub fn facts(&self) -> impl Iterator<Item = SharedFact> {
        let pauses = self
            .pauses
            .iter()
            .filter_map(|(site, (at, said))| Event::Paused(PausedSite::of(site, said)?).fact(*at));
        pauses.chain(
            self.releases
                .values()
                .filter_map(|(at, network)| Event::Released(*network).fact(*at)),
        )
    }

    /// Forgets what was said before a moment.
    pub fn prune(&mut self, before: i64) {
        self.pauses.retain(|_, (at, _)| *at >= before);
        self.releases.retain(|_, (at, _)| *at >= before);
    }
}

/// Puts a value under a key, unless the one there is as late or later (of the same time: as great
/// or greater). Returns whether it did. If there are too many, the oldest goes, which may be this
/// one.
fn latest<T: Ord + Clone>(
    known: &mut BTreeMap<String, (i64, T)>,
    key: String,
    new: (i64, T),
) -> bool {
    if known.get(&key) >= Some(&new) {
        return false;
    }
    known.insert(key, new);
    if known.len() > MOST
        && let Some(oldest) = known
            .iter()
            .min_by_key(|(_, (at, _))| *at)
            .map(|(key, _)| key.clone())
    {
        known.remove(&oldest);
    }
    true
}
