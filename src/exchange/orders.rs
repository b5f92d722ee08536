//! [`Orders`]: what operators did at any instance: pauses of sites, and releases of clients that
//! were marked for requesting a trap. The latest change of a site's pauses counts (of two in one
//! second the greater one), and the latest release of a network's marks. So merging is commutative,
//! associative and idempotent.

use super::SharedFact;
use super::codec::{read_event, write_event};
use crate::facts::{AnyFact, Fact, Key};
use crate::time::Timestamp;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Orders at most. Operators give fewer.
const MAX_ORDERS: usize = 8_192;
/// Clocks are converted in whole seconds: an order that was given after another one may seem to be
/// so much older.
const ROUNDING: i64 = 2;

/// What operators did: the latest order for each site and network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders(BTreeMap<Key, Order>);

/// An order: its time, and its key in the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    at: i64,
    key: String,
    /// The network of a release: each mark of another instance is compared with it.
    released: Option<IpNet>,
}

impl Orders {
    /// Adds an order, if it is later than the one known of its site or network (of the same time:
    /// greater). Returns whether it was added; other facts are not. Beyond 8,192 orders the oldest
    /// goes, which may be this one.
    pub fn add(&mut self, fact: &Fact, shared: &SharedFact) -> bool {
        let released = match &fact.fact {
            AnyFact::Release(release) => Some(release.network),
            AnyFact::Pause(_) => None,
            _ => return false,
        };
        let new = Order {
            at: shared.at,
            key: shared.key.clone(),
            released,
        };
        if self.0.get(&fact.key()) >= Some(&new) {
            return false;
        }
        self.0.insert(fact.key(), new);
        if self.0.len() > MAX_ORDERS {
            let oldest = self.0.iter().min_by_key(|(_, order)| order.at);
            if let Some(key) = oldest.map(|(key, _)| (key.0, key.1.clone())) {
                self.0.remove(&key);
            }
        }
        true
    }

    /// The time at which others are told of what happened here at `at`. If a known pause of the
    /// site says something else and is up to 2 seconds later, it is a second after that one, so that
    /// the new order counts. A release counts 2 seconds later, for marks that seem to be a moment
    /// later.
    pub fn time_of(&self, fact: &Fact, at: i64) -> i64 {
        if matches!(fact.fact, AnyFact::Release(_)) {
            return at.saturating_add(ROUNDING);
        }
        match self.0.get(&fact.key()) {
            Some(last)
                if (last.at - ROUNDING..=last.at).contains(&at)
                    && write_event(fact, at).is_some_and(|new| new.key != last.key) =>
            {
                last.at + 1
            }
            _ => at,
        }
    }

    /// The latest order for a site or network, with its time by the store's clock, in which the
    /// order stands at `at` by the own clock.
    pub fn latest(&self, key: &Key, to_own: impl Fn(i64) -> Timestamp) -> Option<Fact> {
        let order = self.0.get(key)?;
        read_event(&order.key, to_own(order.at))
    }

    /// Whether the mark that a client of this address got at a moment was released then or later.
    pub fn are_released(&self, address: IpAddr, at: i64) -> bool {
        self.0
            .values()
            .filter(|order| order.at >= at)
            .filter_map(|order| order.released)
            .any(|network| network.contains(&address))
    }

    /// All orders as facts, for a store that starts over.
    pub fn facts(&self) -> impl Iterator<Item = SharedFact> {
        self.0.values().map(|order| SharedFact {
            key: order.key.clone(),
            at: order.at,
            value: String::new(),
        })
    }

    /// Forgets the orders from before a moment.
    pub fn prune(&mut self, before: i64) {
        self.0.retain(|_, order| order.at >= before);
    }
}
