//! [`Pace`]: whether a client moves so slowly that others should get its place at the origin (the setting `connections`).
//! Only the time in which crawlgate waits for the client counts, not that in which it waits for the origin.

use std::time::Duration;
use tokio::time::Instant;

/// While people wait for a place, a client that has one moves so many bytes, or the end, ...
const BYTES: usize = 16 * 1024;
/// ... in this time: 64 kbit/s, which an old mobile network has.
const TIME: Duration = Duration::from_secs(2);
/// How often a slow client looks whether people wait.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The pace of the client of one request, in both directions.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The time of earlier waits for the present [`BYTES`].
    waited: Duration,
    /// When the present wait began.
    since: Option<Instant>,
    moved: usize,
}

impl Pace {
    /// Records bytes that the client sent or took.
    pub(super) fn record(&mut self, bytes: usize) {
        self.pause();
        self.moved += bytes;
        if self.moved >= BYTES {
            *self = Pace::default();
        }
    }

    /// Ends a wait for the client.
    pub(super) fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
        }
    }

    /// Begins or continues a wait for the client. Returns whether it is too slow while people wait. `wake_at` has the task
    /// woken at a later time, to ask again.
    pub(super) fn is_too_slow(&mut self, people_wait: impl FnOnce() -> bool, wake_at: impl FnOnce(Instant)) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let left = TIME.saturating_sub(self.waited + since.elapsed());
        if left.is_zero() && people_wait() {
            return true;
        }
        wake_at(Instant::now() + if left.is_zero() { LOOK_AGAIN } else { left });
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn is_too_slow(pace: &mut Pace, people_wait: bool) -> bool {
        pace.is_too_slow(|| people_wait, |_| ())
    }

    #[tokio::test(start_paused = true)]
    async fn slow_client_is_too_slow_while_people_wait() {
        let mut pace = Pace::default();
        assert!(!is_too_slow(&mut pace, true));
        advance(TIME).await;
        assert!(!is_too_slow(&mut pace, false));
        assert!(is_too_slow(&mut pace, true));
        pace.record(BYTES - 1);
        assert!(is_too_slow(&mut pace, true), "it has not moved enough");
        pace.record(1);
        assert!(!is_too_slow(&mut pace, true));
    }

    #[tokio::test(start_paused = true)]
    async fn time_of_the_origin_does_not_count() {
        let mut pace = Pace::default();
        assert!(!is_too_slow(&mut pace, true));
        advance(TIME / 2).await;
        pace.pause();
        advance(TIME * 10).await;
        assert!(!is_too_slow(&mut pace, true));
        advance(TIME / 2).await;
        assert!(is_too_slow(&mut pace, true));
    }
}
