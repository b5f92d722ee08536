//! [`PlaceReleaseTimer`] keeps slow clients from using up the limit on requests that an origin
//! handles at once (setting `connections`). Requests beyond this limit wait in a queue.
//!
//! The timer measures how long a forwarded request waits for its client to send or to read. If the
//! wait gets too long and visitors (not crawlers) are in the queue, the slow request stops counting
//! towards the limit. crawlgate still forwards the slow request, and now also the next request in
//! the queue. Only a certain number of requests may go on uncounted. When that number is reached,
//! crawlgate ends further slow requests instead.

use crate::upstreams::ReleasablePlace;
use std::time::Duration;
use tokio::time::Instant;

/// How long a request may wait for its client in all while people wait for its place.
const MAX_CLIENT_WAIT: Duration = Duration::from_secs(2);
/// How often it is checked whether people wait, after `MAX_CLIENT_WAIT`.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long one request has waited for its client.
#[derive(Debug, Default)]
pub struct PlaceReleaseTimer {
    earlier_waits: Duration,
    /// When the present wait began.
    wait_began: Option<Instant>,
}

impl PlaceReleaseTimer {
    /// Ends the present wait, if there is one, and adds its time.
    pub fn end_wait(&mut self) {
        if let Some(began) = self.wait_began.take() {
            self.earlier_waits += began.elapsed();
        }
    }

    /// Begins or continues a wait for the client. After `MAX_CLIENT_WAIT` in all, gives the place
    /// up if people wait for it. Otherwise calls `wake_at` with the time of the next call. Returns
    /// whether the request may go on: false only if it may not go on without a place.
    pub fn continue_wait(
        &mut self,
        place: &ReleasablePlace,
        wake_at: impl FnOnce(Instant),
    ) -> bool {
        let began = *self.wait_began.get_or_insert_with(Instant::now);
        let left = MAX_CLIENT_WAIT.saturating_sub(self.earlier_waits + began.elapsed());
        if left.is_zero() && place.is_contended() {
            return place.try_release();
        }
        wake_at(Instant::now() + if left.is_zero() { CHECK_INTERVAL } else { left });
        true
    }
}
