//! [`FactOutbox`]: a queue of facts (such as which crawler fetched which robots.txt) that this
//! crawlgate instance has not yet written to the store that several instances share. Requests and
//! operators' commands add facts, and the exchange thread takes them out. If a fact changes while
//! it waits, the queue keeps only the latest change.
//!
//! The queue is bounded, and drops what does not fit. If it drops the fact that a crawler was
//! served a robots.txt, it sets `has_lost`. Then the other instances do not know of that
//! robots.txt, and must not accuse the crawler of breaking rules.

use crate::facts::{AnyFact, Fact, FactKey, FactSubscriber};
use crate::locks::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The most facts that wait.
const MAX_WAITING: usize = 65_536;
/// The most marks that wait. Clients can cause as many as they have addresses, and more than a turn
/// can write would delay the confirmation of violations.
const MAX_OF_CLIENTS: usize = 1_000;

/// The queue.
#[derive(Default)]
pub struct FactOutbox(Mutex<OutboxContent>);

/// The content of a [`FactOutbox`].
#[derive(Default)]
pub struct OutboxContent {
    /// The latest change of each fact.
    pub facts: BTreeMap<FactKey, Fact>,
    /// Whether a served version was dropped. Dropping other facts only makes peers more lenient.
    pub has_lost: bool,
    /// How many of the facts are marks.
    of_clients: usize,
}

impl FactSubscriber for FactOutbox {
    /// Adds a fact, replacing an earlier change of it. Never blocks. If the queue is full the fact
    /// is dropped, and a dropped served version sets `has_lost`.
    fn notify(&self, fact: &Fact) {
        let mut waiting = lock(&self.0);
        let key = fact.key();
        match waiting.facts.get_mut(&key) {
            Some(known) if known.at <= fact.at => *known = fact.clone(),
            Some(_) => {}
            None => {
                let is_of_clients = matches!(fact.fact, AnyFact::ClientMark(_));
                let is_full = waiting.facts.len() >= MAX_WAITING
                    || is_of_clients && waiting.of_clients >= MAX_OF_CLIENTS;
                if is_full {
                    waiting.has_lost |= matches!(fact.fact, AnyFact::ServedVersion(_));
                    return;
                }
                waiting.of_clients += usize::from(is_of_clients);
                waiting.facts.insert(key, fact.clone());
            }
        }
    }
}

impl FactOutbox {
    /// Removes and returns everything.
    pub fn drain(&self) -> OutboxContent {
        std::mem::take(&mut *lock(&self.0))
    }

    /// How many facts wait.
    pub fn count(&self) -> usize {
        lock(&self.0).facts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{ClientMark, ServedVersion};
    use crate::policy::RobotsVersionId;
    use crate::publications::PublishedRobots;
    use crate::time::Timestamp;
    use std::net::IpAddr;

    #[test]
    fn marks_of_clients_displace_no_served_version() {
        let outbox = FactOutbox::default();
        for number in 0..5_000u32 {
            let mark = ClientMark {
                site: "shop".into(),
                crawler: "other".into(),
                address: IpAddr::from(number.to_be_bytes()),
                since: Timestamp(1),
                until: Timestamp(61),
            };
            outbox.notify(&Fact::set(Timestamp(1), mark));
        }
        let served = ServedVersion {
            host: "shop.example".into(),
            crawler: "other".into(),
            received: PublishedRobots::Version(RobotsVersionId([1; 8])),
        };
        let served = Fact::set(Timestamp(2), served);
        outbox.notify(&served);
        let waiting = outbox.drain();
        assert_eq!(
            (waiting.facts.len(), waiting.has_lost),
            (MAX_OF_CLIENTS + 1, false)
        );
        assert_eq!(waiting.facts.get(&served.key()), Some(&served));
        assert_eq!(outbox.count(), 0);
    }
}
