//! [`Shared`]: the queue, the counts and the problems of the log, which its handle and its thread share.

use super::Batch;
use super::queue::Queue;
use crate::locks::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The queue, the counts and the problems of the log.
#[derive(Default)]
pub struct Shared {
    /// What waits to be written.
    pub queue: Mutex<Queue>,
    /// Why evidence is being lost.
    pub problem: Mutex<Option<String>>,
    /// Why checkpoints get no timestamps.
    pub stamp_problem: Mutex<Option<String>>,
    /// Entries that were written.
    pub entries: AtomicU64,
    /// Entries that were left out.
    pub lost: AtomicU64,
}

impl Shared {
    /// Counts entries that were left out.
    pub fn lose(&self, entries: u64) {
        self.lost.fetch_add(entries, Ordering::Relaxed);
    }

    /// Takes what waits.
    pub fn take(&self) -> Batch {
        let batch = lock(&self.queue).take();
        self.lose(batch.left_out());
        batch
    }

    /// Records were written.
    pub fn wrote(&self, entries: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        if lock(&self.problem).take().is_some() {
            tracing::warn!("evidence is written again; the log says how many entries it lacks");
        }
    }

    /// Records could not be written.
    pub fn failed(&self, lost: u64, why: &dyn std::fmt::Display) {
        self.lose(lost);
        if lock(&self.problem).replace(why.to_string()).is_none() {
            tracing::error!("evidence cannot be written: {why}");
        }
    }
}
