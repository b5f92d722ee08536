//! [`PeerConfirmation`] delays the record of a violation until the peers (other instances of
//! crawlgate in front of the same sites) have reported which versions of robots.txt they served.
//! Then the request is judged again, because a peer may have served a version that allows the
//! request. If the reports take too long, or too many violations wait, the violation is recorded as
//! `unproven`.

use crate::locks::lock;
use crate::peers::{CONFIRM_TIMEOUT, ExchangeProgress};
use crate::record::RequestRecord;
use crate::time::Timestamp;
use std::collections::VecDeque;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most records that wait. Further ones are `unproven`.
const MAX_WAITING: usize = 4_096;

/// A record of a violation that the peers have not confirmed yet.
struct UnconfirmedRecord {
    /// The entry of the exchange log that every peer must have read.
    log_position: u64,
    /// When it has waited for too long, by the monotonic time.
    deadline: Duration,
    record: RequestRecord,
}

/// The numbers of records that waited, by outcome.
#[derive(Default)]
pub struct ConfirmationCounts {
    /// Violations that the peers confirmed.
    pub confirmed: u64,
    /// A version that a peer served allowed the request, or may have.
    pub refuted: u64,
    /// Not confirmed in time.
    pub unconfirmed: u64,
}

/// The state of the peers for the requests of this instance.
#[derive(Default)]
pub struct PeerConfirmation {
    /// What the exchange knows of the other instances.
    pub progress: Arc<ExchangeProgress>,
    waiting: Mutex<VecDeque<UnconfirmedRecord>>,
    /// Whether further records do not wait. Written while the records are locked.
    is_closed: AtomicBool,
}

impl PeerConfirmation {
    /// Whether this instance must not serve robots.txt: the peers have not heard of it for so long
    /// that they may have published another version without it.
    pub fn withholds_robots_txt(&self, now: Timestamp) -> bool {
        self.progress.robots_txt_until.load(Relaxed) <= now.0
    }

    /// Sets whether no peer confirms records any more. Then no further record waits; those that
    /// wait already stay.
    pub fn set_confirmation_ended(&self, is_closed: bool) {
        let _waiting = lock(&self.waiting);
        self.is_closed.store(is_closed, Relaxed);
    }

    /// The number of records that wait.
    pub fn waiting_count(&self) -> usize {
        lock(&self.waiting).len()
    }

    /// Adds a record that waits until the peers confirm it, at most `CONFIRM_TIMEOUT` from the
    /// arrival of the request. Returns false, and adds nothing, if too many wait or no peer
    /// confirms any more.
    pub(super) fn enqueue(&self, record: &RequestRecord) -> bool {
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_WAITING || self.is_closed.load(Relaxed) {
            return false;
        }
        waiting.push_back(UnconfirmedRecord {
            log_position: self.progress.next_entry.load(SeqCst),
            deadline: record.request.arrival.monotonic + CONFIRM_TIMEOUT,
            record: record.clone(),
        });
        true
    }

    /// Takes out the records that all other instances have confirmed, and those that waited for too
    /// long. Each is returned with whether it is confirmed. `confirmed` is the last entry of the
    /// log that all of them have read (`None`: no entry), `monotonic` the monotonic time.
    pub(super) fn take_resolved(
        &self,
        confirmed: Option<u64>,
        monotonic: Duration,
    ) -> Vec<(bool, RequestRecord)> {
        let mut waiting = lock(&self.waiting);
        let mut resolved = Vec::new();
        for record in std::mem::take(&mut *waiting) {
            let is_confirmed = confirmed.is_some_and(|confirmed| record.log_position <= confirmed);
            if is_confirmed || monotonic >= record.deadline {
                resolved.push((is_confirmed, record.record));
            } else {
                waiting.push_back(record);
            }
        }
        resolved
    }
}
