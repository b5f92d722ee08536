//! [`Timer`]: a timer that can be set again and again, and costs nothing until a task really waits
//! for it. [`Stall`] notices a client that takes nothing of what is written to it for too long.

use crate::reuse::Reuse;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// Timers that a worker keeps.
const MOST_KEPT: usize = 256;

thread_local! {
    static KEPT: Reuse<Pin<Box<Sleep>>> = const { Reuse::new(MOST_KEPT) };
}

/// Waits for one moment after the other. The timer behind it is taken when it is first needed, and
/// moved when it fires or when a moment comes nearer.
#[derive(Debug, Default)]
pub struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready when this moment has passed. Never too early, but up to some milliseconds late: the
    /// runtime's timers have that precision.
    pub fn poll_elapsed(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| {
            Reuse::take(&KEPT).unwrap_or_else(|| Box::pin(sleep_until(moment)))
        });
        if timer.deadline() > moment {
            timer.as_mut().reset(moment);
        }
        while timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= moment {
                return Poll::Ready(());
            }
            timer.as_mut().reset(moment);
        }
        Poll::Pending
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(timer) = self.0.take() {
            Reuse::give(&KEPT, timer);
        }
    }
}

/// The longest time in which a client may take nothing, and the end of the present wait.
#[derive(Debug)]
pub struct Stall {
    limit: Duration,
    waiting: Option<(Instant, Timer)>,
}

impl Stall {
    pub fn new(limit: Duration) -> Stall {
        Stall {
            limit,
            waiting: None,
        }
    }

    /// Records the result of a write to the client: ready ends the wait, pending begins or
    /// continues it. Returns whether the client has taken nothing for too long. While it waits, the
    /// task is woken when the time is over.
    pub fn record<T>(&mut self, polled: &Poll<T>, context: &mut Context<'_>) -> bool {
        if polled.is_ready() {
            self.waiting = None;
            return false;
        }
        let (until, timer) = self
            .waiting
            .get_or_insert_with(|| (Instant::now() + self.limit, Timer::default()));
        timer.poll_elapsed(*until, context).is_ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test(start_paused = true)]
    async fn moment_that_moved_in_either_direction_is_kept() {
        let wait = async |timer: &mut Timer, after: u64| {
            let began = Instant::now();
            let moment = began + Duration::from_secs(after);
            poll_fn(|context| timer.poll_elapsed(moment, context)).await;
            began.elapsed().as_secs()
        };
        let mut timer = Timer::default();
        for seconds in [60, 1, 5, 0, 30] {
            let far = Instant::now() + Duration::from_secs(600);
            let polled = poll_fn(|context| Poll::Ready(timer.poll_elapsed(far, context))).await;
            assert!(polled.is_pending());
            assert_eq!(wait(&mut timer, seconds).await, seconds);
        }
    }
}
