//! [`Shared`]: what the handle of the log and its thread share: the queue, the counts, and what is wrong. Must not know files.

use super::queue::{Batch, Queue};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the handle and the thread share.
#[derive(Default)]
pub struct Shared {
    queue: Mutex<Queue>,
    problem: Mutex<Option<String>>,
    stamp_problem: Mutex<Option<String>>,
    entries: AtomicU64,
    lost: AtomicU64,
}

impl Shared {
    /// The queue.
    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why evidence is being lost.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why checkpoints get no timestamps.
    pub fn stamp_problem(&self) -> Option<String> {
        self.stamp_problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says why checkpoints get no timestamps, or that they do.
    pub fn set_stamp_problem(&self, problem: Option<String>) {
        *self.stamp_problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Entries that were written.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Entries that were left out.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Counts entries that were left out.
    pub fn lose(&self, entries: u64) {
        self.lost.fetch_add(entries, Ordering::Relaxed);
    }

    /// Takes what waits.
    pub fn take(&self) -> Batch {
        let batch = self.queue().take();
        let left_out = batch.left_out.iter().map(|(_, number)| number).sum();
        self.lose(left_out);
        batch
    }

    /// Records were written.
    pub fn wrote(&self, entries: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if problem.take().is_some() {
            tracing::warn!("evidence is written again; the log says how many entries it lacks");
        }
    }

    /// Records could not be written.
    pub fn failed(&self, lost: u64, why: &str) {
        self.lose(lost);
        let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        if problem.is_none() {
            tracing::error!("evidence cannot be written: {why}");
        }
        *problem = Some(why.to_owned());
    }
}
