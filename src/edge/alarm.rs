//! [`Alarm`]: a deadline that costs nothing until something has to wait for it. Must not know what is waited for.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// One deadline, set again and again. The timer behind it is made when it is first needed, and moved when it fires or when
/// a deadline comes nearer.
#[derive(Debug)]
pub(super) struct Alarm {
    deadline: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    pub(super) fn new() -> Alarm {
        Alarm { deadline: Instant::now(), timer: None }
    }

    /// Sets the deadline.
    pub(super) fn set(&mut self, after: Duration) {
        self.set_at(Instant::now() + after);
    }

    /// Sets the deadline to this moment.
    pub(super) fn set_at(&mut self, moment: Instant) {
        self.deadline = moment;
    }

    /// Whether the deadline has passed. If not, the task is woken when it has.
    pub(super) fn has_passed(&mut self, context: &mut Context<'_>) -> bool {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(self.deadline)));
        if timer.deadline() > self.deadline {
            timer.as_mut().reset(self.deadline);
        }
        while timer.as_mut().poll(context).is_ready() {
            if Instant::now() >= self.deadline {
                return true;
            }
            timer.as_mut().reset(self.deadline);
        }
        false
    }
}

/// An alarm of a request, used by one after the other: to make and to end a timer for each would cost more than the rest of
/// waiting.
#[derive(Debug)]
pub(super) struct KeptAlarm(Option<Alarm>);

/// Alarms that a worker keeps.
const MOST_KEPT: usize = 256;

thread_local! {
    static KEPT: RefCell<Vec<Alarm>> = RefCell::default();
}

impl KeptAlarm {
    /// An alarm that is not set.
    pub(super) fn take() -> KeptAlarm {
        KeptAlarm(KEPT.with_borrow_mut(Vec::pop))
    }

    /// Whether this moment has passed. If not, the task is woken when it has.
    pub(super) fn has_passed(&mut self, moment: Instant, context: &mut Context<'_>) -> bool {
        let alarm = self.0.get_or_insert_with(Alarm::new);
        alarm.set_at(moment);
        alarm.has_passed(context)
    }
}

impl Drop for KeptAlarm {
    fn drop(&mut self) {
        let Some(alarm) = self.0.take() else { return };
        // The worker may be ending, or keep enough.
        let _ = KEPT.try_with(|kept| {
            if let Ok(mut kept) = kept.try_borrow_mut()
                && kept.len() < MOST_KEPT
            {
                kept.push(alarm);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;

    #[tokio::test(start_paused = true)]
    async fn deadline_that_moved_in_either_direction_is_kept() {
        let wait = async |alarm: &mut Alarm| {
            let began = Instant::now();
            let passed =
                |context: &mut Context<'_>| if alarm.has_passed(context) { Poll::Ready(()) } else { Poll::Pending };
            poll_fn(passed).await;
            began.elapsed().as_secs()
        };
        let mut alarm = Alarm::new();
        for seconds in [60, 1, 5, 0, 30] {
            alarm.set(Duration::from_secs(600));
            assert!(poll_fn(|context| Poll::Ready(!alarm.has_passed(context))).await);
            alarm.set(Duration::from_secs(seconds));
            assert_eq!(wait(&mut alarm).await, seconds);
        }
    }
}
