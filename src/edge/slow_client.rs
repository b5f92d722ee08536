//! [`SlowClientTimer`] measures how long a forwarded request waits for its client, so that slow
//! clients do not keep visitors from an origin. The setting `connections` limits how many requests
//! an origin handles at once. When this limit is reached, new requests queue. If visitors are in
//! the queue, a request that has waited too long for its slow client no longer counts towards the
//! limit, so that the next visitor is served. The slow request goes on. But if too many requests
//! already go on uncounted, crawlgate ends the slow request.

use crate::upstreams::ReleasablePlace;
use std::time::Duration;
use tokio::time::Instant;

/// How long a request may wait for its client in all while people wait for its place.
const MAX_CLIENT_WAIT: Duration = Duration::from_secs(2);
/// How often it is checked whether people wait, after `MAX_CLIENT_WAIT`.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long one request has waited for its client.
#[derive(Debug, Default)]
pub struct SlowClientTimer {
    earlier_waits: Duration,
    /// When the present wait began.
    wait_began: Option<Instant>,
}

impl SlowClientTimer {
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
