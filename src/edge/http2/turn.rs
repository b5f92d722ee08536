//! [`Turn`]: which wakes of a connection's task ask for another turn of it. What its requests say while they are moved on
//! is written in the same turn, and what the client sends is handed to them in the same turn; but h2 wakes the task for
//! the one, and requests for the other, and each wake would be a turn of its own with nothing to do. Must not know what is
//! done in a turn.
//!
//! A turn is on or off. While it is off, a wake passes on to the task. While it is on, it is noted, and whoever takes the
//! turn sees to it.

use futures_util::task::AtomicWaker;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

/// The wakes of a task from one side.
#[derive(Default)]
struct Wakes {
    task: AtomicWaker,
    is_on: AtomicBool,
    has_come: AtomicBool,
}

impl Wakes {
    fn begin(&self, task: &Waker) {
        self.task.register(task);
        self.is_on.store(true, Ordering::SeqCst);
        // What came before is why there is a turn.
        self.has_come.store(false, Ordering::SeqCst);
    }

    /// Whether one came since this was asked last.
    fn take(&self) -> bool {
        self.has_come.load(Ordering::Relaxed) && self.has_come.swap(false, Ordering::SeqCst)
    }

    /// Says whether one came that nobody has seen to.
    fn end(&self) -> bool {
        self.is_on.store(false, Ordering::SeqCst);
        self.has_come.swap(false, Ordering::SeqCst)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_come.store(true, Ordering::SeqCst);
        if !self.is_on.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

/// The turns of a connection's task.
pub(super) struct Turn {
    by_requests: Arc<Wakes>,
    by_connection: Arc<Wakes>,
    /// By these they are woken.
    pub(super) requests: Waker,
    pub(super) connection: Waker,
    /// Whether a request wants to go on in another turn, so that other tasks have theirs.
    is_wanted_again: bool,
}

impl Turn {
    pub(super) fn new() -> Turn {
        let (by_requests, by_connection) = (Arc::<Wakes>::default(), Arc::<Wakes>::default());
        Turn {
            requests: by_requests.clone().into(),
            connection: by_connection.clone().into(),
            by_requests,
            by_connection,
            is_wanted_again: false,
        }
    }

    /// Begins a turn of this task.
    pub(super) fn begin(&self, task: &Waker) {
        self.by_requests.begin(task);
        self.by_connection.begin(task);
    }

    /// All requests were moved on, and the connection comes next: it takes what they said.
    pub(super) fn have_moved(&mut self) {
        self.is_wanted_again |= self.by_requests.take();
        self.by_connection.take();
    }

    /// The connection was moved on. Says whether the turn goes on, because that brought requests or something for them.
    pub(super) fn goes_on(&mut self, has_taken: bool) -> bool {
        let goes_on = self.by_requests.take() || has_taken;
        self.is_wanted_again |= !goes_on && self.by_connection.take();
        goes_on
    }

    /// Ends the turn, and has the task woken if there is more to do.
    pub(super) fn end(&mut self, task: &Waker) {
        let is_wanted = self.by_requests.end() | self.by_connection.end() | std::mem::take(&mut self.is_wanted_again);
        if is_wanted {
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Task(AtomicUsize);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn wakes_within_a_turn_are_seen_to_and_those_outside_pass_on() {
        let task = Arc::new(Task::default());
        let (waker, woken) = (Waker::from(task.clone()), || task.0.load(Ordering::SeqCst));
        let mut turn = Turn::new();
        turn.begin(&waker);
        // A request says something, which the connection takes in this turn.
        turn.connection.wake_by_ref();
        turn.have_moved();
        // The client sends something for a request.
        turn.requests.wake_by_ref();
        assert!(turn.goes_on(false));
        turn.have_moved();
        // A request is answered at once, and the answer is taken when the turn goes on.
        turn.connection.wake_by_ref();
        assert!(turn.goes_on(true));
        turn.have_moved();
        assert!(!turn.goes_on(false));
        turn.end(&waker);
        assert_eq!(woken(), 0);
        turn.connection.wake_by_ref();
        turn.requests.wake_by_ref();
        assert_eq!(woken(), 2);
        turn.begin(&waker);
        turn.have_moved();
        assert!(!turn.goes_on(false));
        turn.end(&waker);
        assert_eq!(woken(), 2);
    }

    #[test]
    fn request_that_wants_to_go_on_later_and_a_wake_at_the_end_lead_to_another_turn() {
        let task = Arc::new(Task::default());
        let (waker, woken) = (Waker::from(task.clone()), || task.0.load(Ordering::SeqCst));
        let mut turn = Turn::new();
        for (at, wake) in [("a request of itself", 0), ("the connection of itself", 1), ("at the end", 2)] {
            let before = woken();
            turn.begin(&waker);
            if wake == 0 {
                turn.requests.wake_by_ref();
            }
            turn.have_moved();
            if wake == 1 {
                turn.connection.wake_by_ref();
            }
            assert!(!turn.goes_on(false));
            if wake == 2 {
                turn.requests.wake_by_ref();
            }
            turn.end(&waker);
            assert_eq!(woken(), before + 1, "{at}");
        }
    }
}
