//! [`WorkerHealth`] finds worker threads that are stuck, for the watchdog of the service manager
//! (such as systemd). [`WorkerHealth::send_check`] sends a check to each worker. The worker's async
//! runtime answers the check; if the thread is stuck, no answer comes.

use crate::locks::lock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::watch;

/// The number of the last check, and the number that each worker answered last.
#[derive(Default)]
pub struct WorkerHealth {
    last_check: watch::Sender<u64>,
    /// Weak: a worker that ended, or did not start, has dropped its answer.
    answers: Mutex<Vec<Weak<AtomicU64>>>,
}

impl WorkerHealth {
    /// Asks all workers for an answer.
    pub fn send_check(&self) {
        self.last_check.send_modify(|check| *check += 1);
    }

    /// Whether all running workers have answered the last check; true if none runs.
    pub fn has_all_answers(&self) -> bool {
        let check = *self.last_check.borrow();
        lock(&self.answers)
            .iter()
            .filter_map(Weak::upgrade)
            .all(|answer| answer.load(Relaxed) == check)
    }

    /// Registers a worker. Returns the task that answers for it, which its runtime has to run.
    pub fn answer_checks(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut check = self.last_check.subscribe();
        let answer = Arc::new(AtomicU64::new(*check.borrow()));
        lock(&self.answers).push(Arc::downgrade(&answer));
        async move {
            // An error means that the sender is gone.
            while check.changed().await.is_ok() {
                answer.store(*check.borrow_and_update(), Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stuck_worker_leaves_the_check_unanswered() {
        let health = WorkerHealth::default();
        let one = tokio::spawn(health.answer_checks());
        let stuck = health.answer_checks();
        assert!(health.has_all_answers(), "no check was sent");
        health.send_check();
        tokio::task::yield_now().await;
        assert!(!health.has_all_answers());
        let other = tokio::spawn(stuck);
        tokio::task::yield_now().await;
        assert!(health.has_all_answers());
        health.send_check();
        assert!(!health.has_all_answers());
        one.abort();
        other.abort();
    }
}
