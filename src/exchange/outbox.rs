//! [`Outbox`]: what happened at this instance and is not yet written to the shared store, from
//! which other instances read it. Of each event it keeps the latest time. Requests and commands of
//! operators add to it, and the thread of the exchange empties it.
//!
//! It has room for a fixed number of entries, and drops what does not fit. If it drops that a
//! crawler was served a robots.txt, it sets `has_lost`: other instances could otherwise blame the
//! crawler wrongly.

use crate::facts::{AnyFact, Fact, Key, Subscriber};
use crate::locks::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Facts that wait at most.
const MAX_WAITING: usize = 65_536;
/// Of these, marks: clients can make as many as they have addresses. More than a turn can tell would
/// hold up the confirmation of violations.
const MAX_OF_CLIENTS: usize = 1_000;

/// What waits.
#[derive(Debug, Default)]
pub struct Outbox(Mutex<Waiting>);

/// What is taken out of an [`Outbox`].
#[derive(Debug, Default)]
pub struct Waiting {
    /// The latest change of each fact.
    pub facts: BTreeMap<Key, Fact>,
    /// Whether there was no room for a version that was served. Of all else others know less, and
    /// are milder for it.
    pub has_lost: bool,
    /// How many of the facts are marks.
    of_clients: usize,
}

impl Subscriber for Outbox {
    /// Adds a fact, in place of an earlier change of it. Never waits for the store. A fact for which
    /// there is no room is dropped; of a served version that is recorded as lost.
    fn notify(&self, fact: &Fact) {
        let mut waiting = lock(&self.0);
        let key = fact.key();
        match waiting.facts.get_mut(&key) {
            Some(known) if known.at <= fact.at => *known = fact.clone(),
            Some(_) => {}
            None => {
                let is_of_clients = matches!(fact.fact, AnyFact::Mark(_));
                let is_full = waiting.facts.len() >= MAX_WAITING
                    || is_of_clients && waiting.of_clients >= MAX_OF_CLIENTS;
                if is_full {
                    waiting.has_lost |= matches!(fact.fact, AnyFact::Served(_));
                    return;
                }
                waiting.of_clients += usize::from(is_of_clients);
                waiting.facts.insert(key, fact.clone());
            }
        }
    }
}

impl Outbox {
    /// Takes everything out.
    pub fn take(&self) -> Waiting {
        std::mem::take(&mut *lock(&self.0))
    }

    /// How many facts wait.
    pub fn len(&self) -> usize {
        lock(&self.0).facts.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Mark, Served};
    use crate::policy::Version;
    use crate::publications::Published;
    use crate::time::Timestamp;
    use std::net::IpAddr;

    #[test]
    fn clients_cannot_hold_up_what_was_served() {
        let outbox = Outbox::default();
        for number in 0..5_000u32 {
            let mark = Mark {
                site: "shop".into(),
                crawler: "other".into(),
                address: IpAddr::from(number.to_be_bytes()),
                since: Timestamp(1),
                until: Timestamp(61),
            };
            outbox.notify(&Fact::set(Timestamp(1), mark));
        }
        let served = Served {
            host: "shop.example".into(),
            crawler: "other".into(),
            received: Published::Version(Version([1; 8])),
        };
        let served = Fact::set(Timestamp(2), served);
        outbox.notify(&served);
        let waiting = outbox.take();
        assert_eq!(
            (waiting.facts.len(), waiting.has_lost),
            (MAX_OF_CLIENTS + 1, false)
        );
        assert_eq!(waiting.facts.get(&served.key()), Some(&served));
        assert!(outbox.is_empty());
    }
}
