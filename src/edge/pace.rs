//! [`Pace`]: whether a request should give its place at the origin up (the setting `connections`),
//! because its client sends or takes so slowly that people wait for it. The time in which crawlgate
//! waits for the origin does not count.

use crate::upstreams::Place;
use std::time::Duration;
use tokio::time::Instant;

/// How long one request may wait for its client in all while people wait for its place.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a slow client looks whether people wait.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How long crawlgate has waited for the client of one request.
#[derive(Debug, Default)]
pub struct Pace {
    /// The time of earlier waits.
    waited: Duration,
    /// When the present wait began.
    since: Option<Instant>,
}

impl Pace {
    /// Ends a wait for the client, and counts its time. Does nothing if there is none.
    pub fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
        }
    }

    /// Begins or continues a wait for the client. If it has waited for `PATIENCE` in all, and
    /// people wait for the place, gives the place up. Otherwise calls `wake_at` with the time to
    /// ask again. Returns whether the request may go on: false only if it may not go on without a
    /// place.
    pub fn wait(&mut self, place: &Place, wake_at: impl FnOnce(Instant)) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        let left = PATIENCE.saturating_sub(self.waited + since.elapsed());
        if left.is_zero() && place.people_wait() {
            return place.give_up();
        }
        wake_at(Instant::now() + if left.is_zero() { LOOK_AGAIN } else { left });
        true
    }
}
