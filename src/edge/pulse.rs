//! [`Pulse`] finds worker threads that are stuck, for the watchdog of the service manager.
//! [`Pulse::ask`] sends a question to all workers. The runtime of each worker answers it, unless
//! its thread is stuck. Between questions nothing runs.

use crate::locks::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::watch;

/// The question, and the last answer of each worker.
#[derive(Default)]
pub struct Pulse {
    asked: watch::Sender<u64>,
    /// The answers of workers that did not start, or have ended, are gone.
    answers: Mutex<Vec<Weak<AtomicU64>>>,
}

impl Pulse {
    /// Asks all workers.
    pub fn ask(&self) {
        self.asked.send_modify(|asked| *asked += 1);
    }

    /// Whether all workers that run have answered the last question; true if none runs.
    pub fn is_answered(&self) -> bool {
        let asked = *self.asked.borrow();
        let answers = lock(&self.answers);
        answers
            .iter()
            .filter_map(Weak::upgrade)
            .all(|answer| answer.load(Ordering::Relaxed) == asked)
    }

    /// A task that answers for one more worker. The worker's runtime has to run it.
    pub(super) fn answer(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut asked = self.asked.subscribe();
        let answer = Arc::new(AtomicU64::new(*asked.borrow()));
        lock(&self.answers).push(Arc::downgrade(&answer));
        async move {
            // An error means that nobody asks any more.
            while asked.changed().await.is_ok() {
                answer.store(*asked.borrow_and_update(), Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stuck_worker_leaves_the_question_open() {
        let pulse = Pulse::default();
        let (one, stuck) = (tokio::spawn(pulse.answer()), pulse.answer());
        assert!(pulse.is_answered(), "nobody has asked");
        pulse.ask();
        tokio::task::yield_now().await;
        assert!(!pulse.is_answered());
        let other = tokio::spawn(stuck);
        tokio::task::yield_now().await;
        assert!(pulse.is_answered());
        pulse.ask();
        assert!(!pulse.is_answered());
        one.abort();
        other.abort();
    }
}
