//! [`PeerConfirmation`]: records of violations that wait for other instances of crawlgate in front
//! of the same sites. A record waits until all instances have told which versions of robots.txt
//! they served; then the request is judged once more, and the record is written. A record that
//! waits too long, or for which there is no room, is written as `unproven`.

use crate::locks::lock;
use crate::peers::{CONFIRM_WITHIN, Gauge};
use crate::record::RequestRecord;
use crate::time::Timestamp;
use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Records that wait at most. One more is `unproven`.
const MAX_WAITING: usize = 4_096;

/// A record that waits.
struct Waiting {
    /// The entry of the log that every other instance must have read.
    ticket: u64,
    /// When it has waited for too long, by the time lived through.
    deadline: Duration,
    record: RequestRecord,
}

/// What became of records that waited.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Violations, as confirmed.
    pub confirmed: u64,
    /// What another instance served allowed the request, or may have.
    pub refuted: u64,
    /// Not confirmed in time.
    pub unconfirmed: u64,
}

/// Other instances, as requests know them.
#[derive(Default)]
pub struct PeerConfirmation {
    /// What the exchange knows of the other instances.
    pub gauge: Arc<Gauge>,
    waiting: Mutex<VecDeque<Waiting>>,
    /// Whether nothing waits any more. Written under the lock of the records.
    is_closed: AtomicBool,
}

impl PeerConfirmation {
    /// Whether this instance may not answer requests for robots.txt: the others may have published
    /// something else since they last heard of it, and would not know what it served.
    pub fn is_silent(&self, now: Timestamp) -> bool {
        self.gauge.speaks_until.load(Relaxed) <= now.0
    }

    /// Sets whether no instance confirms records any more. Then no further record waits; those that
    /// wait already stay.
    pub fn set_closed(&self, is_closed: bool) {
        let _waiting = lock(&self.waiting);
        self.is_closed.store(is_closed, Relaxed);
    }

    /// How many records wait.
    pub fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// Keeps a record until the other instances confirm it, at most `CONFIRM_WITHIN` from the
    /// arrival of the request. Returns false, and keeps nothing, if too many wait or no instance
    /// confirms any more.
    pub(super) fn wait(&self, record: &RequestRecord) -> bool {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_WAITING || self.is_closed.load(Relaxed) {
            return false;
        }
        waiting.push_back(Waiting {
            ticket: self.gauge.next_entry.load(SeqCst),
            deadline: record.request.arrival.lived + CONFIRM_WITHIN,
            record: record.clone(),
        });
        true
    }

    /// Takes out the records that all other instances have confirmed, and those that waited for too
    /// long. Each is returned with whether it is confirmed. `confirmed` is the last entry of the
    /// log that all of them have read (`None`: no entry), `lived` the elapsed time.
    pub(super) fn take(
        &self,
        confirmed: Option<u64>,
        lived: Duration,
    ) -> Vec<(bool, RequestRecord)> {
        let mut waiting = lock(&self.waiting);
        let mut over = Vec::new();
        for one in std::mem::take(&mut *waiting) {
            let is_confirmed = confirmed.is_some_and(|confirmed| one.ticket <= confirmed);
            if is_confirmed || lived >= one.deadline {
                over.push((is_confirmed, one.record));
            } else {
                waiting.push_back(one);
            }
        }
        over
    }
}
