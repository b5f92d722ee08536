//! [`PausableWaker`]: a task waker for the crate `h2` that can be paused. The task of an HTTP/2
//! connection advances its requests, and then writes the output. `h2` wakes the task whenever there
//! is output. That would poll the task once more, with nothing left to do, so the task pauses the
//! waker while it works. A paused waker only remembers that it was woken, and
//! [`PausableWaker::resume`] tells the task.

use futures_util::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::AcqRel};
use std::task::{Wake, Waker};

/// A wake wakes the task.
const RUNNING: u8 = 0;
/// A wake is only recorded. There was none.
const PAUSED: u8 = 1;
/// There was a wake since the last pause or resume.
const WOKEN: u8 = 2;

/// A waker of one task that can be paused.
#[derive(Default)]
pub struct PausableWaker {
    task: AtomicWaker,
    state: AtomicU8,
}

impl PausableWaker {
    /// From now on, wakes are only recorded. Sets the task for later wakes.
    pub fn pause(&self, task: &Waker) {
        self.task.register(task);
        self.state.swap(PAUSED, AcqRel);
    }

    /// From now on, a wake wakes the task. Returns whether one came during the pause; it is not
    /// repeated.
    pub fn resume(&self) -> bool {
        self.state.swap(RUNNING, AcqRel) == WOKEN
    }
}

impl Wake for PausableWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Wakes the task at most once between two calls of [`pause`](PausableWaker::pause) or
    /// [`resume`](PausableWaker::resume).
    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, AcqRel) == RUNNING {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn wake_reaches_the_task_unless_paused() {
        let task = Arc::new(Task::default());
        let waker = Waker::from(task.clone());
        let woken = || task.0.load(SeqCst);
        let pausable = Arc::new(PausableWaker::default());
        let connection = Waker::from(pausable.clone());
        pausable.pause(&waker);
        assert!(!pausable.resume());
        connection.wake_by_ref();
        connection.wake_by_ref();
        assert_eq!(woken(), 1, "one turn is enough for both");
        pausable.pause(&waker);
        connection.wake_by_ref();
        assert!(pausable.resume() && !pausable.resume());
        assert_eq!(woken(), 1);
        connection.wake_by_ref();
        assert_eq!(woken(), 2);
    }
}
