//! [`Timer`]: an async timer that can be set again and again, and costs nothing until a task waits
//! for it. [`StallTimer`] fires when a client has not read the bytes written to it for too long.

use crate::local_pool::LocalPool;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// The most timers in the pool of a worker.
const MAX_POOLED: usize = 256;

thread_local! {
    static POOL: LocalPool<Pin<Box<Sleep>>> = const { LocalPool::new(MAX_POOLED) };
}

/// Waits for one moment after the other. It takes a timer of tokio's when it first has to wait, and
/// resets it only when it fires or when the next moment is earlier.
#[derive(Debug, Default)]
pub struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready when this moment has passed. Never too early, but up to some milliseconds late: the
    /// runtime's timers have that precision.
    pub fn poll_elapsed(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| {
            LocalPool::take(&POOL).unwrap_or_else(|| Box::pin(sleep_until(moment)))
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
            LocalPool::put(&POOL, timer);
        }
    }
}

/// Bounds the time in which a client takes nothing.
#[derive(Debug)]
pub struct StallTimer {
    limit: Duration,
    /// The end of the present wait.
    wait: Option<(Instant, Timer)>,
}

impl StallTimer {
    pub fn new(limit: Duration) -> StallTimer {
        StallTimer { limit, wait: None }
    }

    /// Records the result of a write to the client: ready ends the wait, pending begins or
    /// continues it. Returns whether the client has taken nothing for too long. While it waits, the
    /// task is woken when the time is over.
    pub fn record_write<T>(&mut self, polled: &Poll<T>, context: &mut Context<'_>) -> bool {
        if polled.is_ready() {
            self.wait = None;
            return false;
        }
        let (until, timer) = self
            .wait
            .get_or_insert_with(|| (Instant::now() + self.limit, Timer::default()));
        timer.poll_elapsed(*until, context).is_ready()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test(start_paused = true)]
    async fn timer_elapses_at_an_earlier_or_later_moment() {
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
