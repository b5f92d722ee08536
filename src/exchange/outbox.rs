//! [`Outbox`]: what happened at this instance and is not yet written to the shared store, from
//! which other instances read it. Of each event it keeps the latest time. Requests and commands of
//! operators add to it, and the thread of the exchange empties it.
//!
//! It has room for a fixed number of entries, and drops what does not fit. If it drops that a
//! crawler was served a robots.txt, it sets `has_lost`: other instances could otherwise blame the
//! crawler wrongly.

use super::Event;
use crate::locks::lock;
use crate::state::Observation;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Facts that wait at most.
const MOST: usize = 65_536;
/// Of these, marks: clients can make as many as they have addresses. More than a turn can tell would
/// hold up the confirmation of violations.
const MOST_OF_CLIENTS: usize = 1_000;

/// What waits.
#[derive(Debug, Default)]
pub struct Outbox(Mutex<Waiting>);

/// What is taken out of an [`Outbox`].
#[derive(Debug, Default)]
pub struct Waiting {
    /// What happened, with the last time.
    pub events: BTreeMap<Event, Timestamp>,
    /// Hosts that are observed, by name.
    pub observed: BTreeMap<String, Observation>,
    /// Whether there was no room for a version that was served. Of all else others know less, and
    /// are milder for it.
    pub has_lost: bool,
    /// How many of the events are marks.
    of_clients: usize,
}

impl Waiting {
    fn len(&self) -> usize {
        self.events.len() + self.observed.len()
    }
}

impl Outbox {
    /// Adds something that happened; of a known event the latest time counts. Never waits for the
    /// store. An event for which there is no room is dropped; of a served version that is recorded
    /// as lost.
    pub fn happened(&self, event: Event, at: Timestamp) {
        let mut waiting = lock(&self.0);
        if !waiting.events.contains_key(&event) {
            let is_of_clients = matches!(event, Event::Marked(_));
            if waiting.len() >= MOST || is_of_clients && waiting.of_clients >= MOST_OF_CLIENTS {
                waiting.has_lost |= matches!(event, Event::Served(_));
                return;
            }
            waiting.of_clients += usize::from(is_of_clients);
        }
        let last = waiting.events.entry(event).or_insert(at);
        *last = at.max(*last);
    }

    /// Adds that a host is observed, in place of what waits of the host. Dropped if there is no
    /// room: then others observe the host from later on.
    pub fn observed(&self, observed: &Observation) {
        let mut waiting = lock(&self.0);
        if waiting.len() < MOST || waiting.observed.contains_key(&observed.host) {
            waiting
                .observed
                .insert(observed.host.clone(), observed.clone());
        }
    }

    /// Takes everything out.
    pub fn take(&self) -> Waiting {
        std::mem::take(&mut *lock(&self.0))
    }

    /// How many facts wait.
    pub fn len(&self) -> usize {
        lock(&self.0).len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{MarkedClient, ServedVersion};
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn clients_cannot_hold_up_what_was_served() {
        let outbox = Outbox::default();
        for number in 0..5_000u32 {
            let address = IpAddr::from(number.to_be_bytes());
            let marked = MarkedClient {
                site: "shop".into(),
                crawler: "other".into(),
                address,
                seconds: 60,
            };
            outbox.happened(Event::Marked(marked), Timestamp(1));
        }
        let served = ServedVersion {
            host: "shop.example".into(),
            crawler: "other".into(),
            version: [1; 8],
        };
        outbox.happened(Event::Served(served.clone()), Timestamp(2));
        let waiting = outbox.take();
        assert_eq!(
            (waiting.events.len(), waiting.has_lost),
            (MOST_OF_CLIENTS + 1, false)
        );
        assert_eq!(
            waiting.events.get(&Event::Served(served)),
            Some(&Timestamp(2))
        );
        assert!(outbox.is_empty());
    }
}
