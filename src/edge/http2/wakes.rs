//! [`Wakes`]: a waker for the crate h2 that can hold back the wakes of a connection's task. The
//! task advances its requests and writes their output in one turn. h2 wakes the task for that
//! output all the same, and each such wake would cause another turn with nothing to do.
//!
//! While wakes are held back, [`Wakes`] only notes that there was one. [`Wakes::pass_on`] ends
//! this, and returns whether there was a wake meanwhile.

use futures_util::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::AcqRel};
use std::task::{Wake, Waker};

/// Wakes are passed on.
const PASS_ON: u8 = 0;
/// Wakes are noted, and there was none.
const NOTE: u8 = 1;
/// There was a wake.
const WOKEN: u8 = 2;

#[derive(Default)]
pub struct Wakes {
    task: AtomicWaker,
    state: AtomicU8,
}

impl Wakes {
    /// Holds back wakes of this task from now on: they are only noted.
    pub fn note(&self, task: &Waker) {
        self.task.register(task);
        self.state.swap(NOTE, AcqRel);
    }

    /// Passes wakes on again. Returns whether one came while they were held back; it is not
    /// repeated.
    pub fn pass_on(&self) -> bool {
        self.state.swap(PASS_ON, AcqRel) == WOKEN
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// Wakes the task, or notes the wake if wakes are held back. A task that was woken is not woken
    /// again before the next [`note`](Wakes::note) or [`pass_on`](Wakes::pass_on).
    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, AcqRel) == PASS_ON {
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
    fn wakes_reach_the_task_unless_they_are_noted() {
        let task = Arc::new(Task::default());
        let (waker, woken) = (Waker::from(task.clone()), || task.0.load(SeqCst));
        let wakes = Arc::new(Wakes::default());
        let connection = Waker::from(wakes.clone());
        wakes.note(&waker);
        assert!(!wakes.pass_on());
        connection.wake_by_ref();
        connection.wake_by_ref();
        assert_eq!(woken(), 1, "one turn is enough for both");
        wakes.note(&waker);
        connection.wake_by_ref();
        assert!(wakes.pass_on() && !wakes.pass_on());
        assert_eq!(woken(), 1);
        connection.wake_by_ref();
        assert_eq!(woken(), 2);
    }
}
