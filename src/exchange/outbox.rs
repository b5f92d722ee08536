//! [`Outbox`]: what waits to be told, gathered by key. Requests for robots.txt put into it, and the thread of the exchange
//! takes out. It holds so much at most; what it had no room for is known to be missing.

use super::records::ServedVersion;
use crate::state::Observation;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Facts that wait at most.
const MOST: usize = 65_536;

/// What waits.
#[derive(Debug, Default)]
pub struct Outbox(Mutex<Waiting>);

/// What is taken out of an [`Outbox`].
#[derive(Debug, Default)]
pub struct Waiting {
    /// Versions with the last time at which they were served.
    pub served: BTreeMap<ServedVersion, Timestamp>,
    /// Hosts that are observed, by name.
    pub observed: BTreeMap<String, Observation>,
    /// Whether there was no room for something that was served.
    pub has_lost: bool,
}

impl Waiting {
    fn len(&self) -> usize {
        self.served.len() + self.observed.len()
    }
}

impl Outbox {
    /// A version was served. Never waits for the store.
    pub fn served(&self, served: ServedVersion, at: Timestamp) {
        let mut waiting = self.lock();
        if waiting.len() >= MOST && !waiting.served.contains_key(&served) {
            waiting.has_lost = true;
            return;
        }
        let last = waiting.served.entry(served).or_insert(at);
        *last = at.max(*last);
    }

    /// A host is observed. Where there is no room, others observe it from later on.
    pub fn observed(&self, observed: &Observation) {
        let mut waiting = self.lock();
        if waiting.len() < MOST || waiting.observed.contains_key(&observed.host) {
            waiting.observed.insert(observed.host.clone(), observed.clone());
        }
    }

    /// Takes everything out.
    pub fn take(&self) -> Waiting {
        std::mem::take(&mut *self.lock())
    }

    /// How many facts wait.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
