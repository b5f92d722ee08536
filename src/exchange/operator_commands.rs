//! [`OperatorCommands`] keeps the orders of operators, given at any of the crawlgate instances that
//! share a store. An order pauses a site, ends the pause of a site, or releases the marked clients
//! (those that broke the rules) in an IP network. Only the latest order for each site and for each
//! network counts. If two orders have the same time, every instance keeps the order with the
//! greater key in the store. So all instances agree, whichever order they receive first.

use super::SharedFact;
use super::codec::{decode_event, encode_event};
use crate::facts::{AnyFact, Fact, FactKey};
use crate::time::Timestamp;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The most orders that are kept.
const MAX_ORDERS: usize = 8_192;
/// Clocks are converted in whole seconds, so a later order may appear older by this many seconds.
const ROUNDING: i64 = 2;

/// The latest order for each site and network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperatorCommands(BTreeMap<FactKey, OperatorCommandRef>);

/// An order: its time, and its key in the store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct OperatorCommandRef {
    at: i64,
    key: String,
    /// The network of a release.
    released: Option<IpNet>,
}

impl OperatorCommands {
    /// Adds an order, if it is later than the known one of its site or network, or has the same
    /// time and is greater. Returns whether it was added. Ignores other facts. Beyond 8,192 orders
    /// the oldest is removed, which may be this one.
    pub fn add(&mut self, fact: &Fact, shared: &SharedFact) -> bool {
        let released = match &fact.fact {
            AnyFact::MarkRelease(release) => Some(release.network),
            AnyFact::PauseRecord(_) => None,
            _ => return false,
        };
        let new = OperatorCommandRef {
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
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                self.0.remove(&key);
            }
        }
        true
    }

    /// The time to report for an order that was given here at `at`. If the known order of the site
    /// differs and is up to 2 seconds later, it is a second after that one, so that the new order
    /// counts. A release is reported 2 seconds later, so that it covers marks of the same moment.
    pub fn order_time(&self, fact: &Fact, at: i64) -> i64 {
        if matches!(fact.fact, AnyFact::MarkRelease(_)) {
            return at.saturating_add(ROUNDING);
        }
        match self.0.get(&fact.key()) {
            Some(last)
                if (last.at - ROUNDING..=last.at).contains(&at)
                    && encode_event(fact, at).key != last.key =>
            {
                last.at + 1
            }
            _ => at,
        }
    }

    /// The latest order for a site or network. `to_own` converts its time to the own clock.
    pub fn latest_order(&self, key: &FactKey, to_own: impl Fn(i64) -> Timestamp) -> Option<Fact> {
        let order = self.0.get(key)?;
        decode_event(&order.key, to_own(order.at))
    }

    /// Whether a mark of this address, made at `at`, was released then or later.
    pub fn is_released(&self, address: IpAddr, at: i64) -> bool {
        self.0
            .values()
            .filter(|order| order.at >= at)
            .filter_map(|order| order.released)
            .any(|network| network.contains(&address))
    }

    /// All orders as facts, for a store that lost its facts.
    pub fn facts(&self) -> impl Iterator<Item = SharedFact> {
        self.0.values().map(|order| SharedFact {
            key: order.key.clone(),
            at: order.at,
            value: String::new(),
        })
    }

    /// Removes the orders from before a moment.
    pub fn prune(&mut self, before: i64) {
        self.0.retain(|_, order| order.at >= before);
    }
}
