//! [`Timeouts`]: the timeouts of a connection over HTTP/2, with one timer. [`Resets`] limits how
//! many requests of a connection end by a reset of their stream.
//!
//! On a connection without a request, the client gets a GOAWAY after `limits.idle`. If the
//! connection does not end, a second GOAWAY names the last request, and soon afterwards crawlgate
//! closes the connection. On a connection with a request, the client gets a PING every
//! `limits.stall`, and has the same time to answer it.

use crate::edge::timer::Timer;
use crate::settings::Limits;
use h2::{Ping, PingPong};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// How long a connection stays open after each GOAWAY when no request is open.
const FAREWELL: Duration = Duration::from_secs(2);

/// Requests of a connection that may end by a reset within [`RESET_WINDOW`]. Those that the client
/// resets (CVE-2023-44487) and those that it provokes crawlgate to reset (CVE-2025-8671) are one
/// count: they cost the origin the same. A browser that leaves a page resets what is open, at most
/// `limits.streams` requests at once, which are 100 by default. An attack does so again and again.
///
/// h2 keeps counts of its own (h2 0.4.20), which have the same bound: resets of streams that no
/// request is known of, for the life of the connection, and requests that are reset before
/// crawlgate has begun with them.
pub const RESETS: usize = 100;
/// Requests of a trusted proxy that may be reset before crawlgate has begun with them. They take
/// memory until then: 10 MB.
pub const MAX_RESETS_OF_PROXY: usize = 10_000;
const RESET_WINDOW: Duration = Duration::from_secs(10);

/// The step that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// The first GOAWAY: the client is told that the connection ends.
    FirstGoaway,
    /// The second GOAWAY: the client is told which request was the last one.
    LastGoaway,
    /// The connection ends.
    Close,
    /// The client did not answer a ping: the connection is lost.
    Lost,
}

pub struct Timeouts {
    idle: Duration,
    stall: Duration,
    pings: Option<PingPong>,
    /// Whether a ping waits for its answer.
    is_asked: bool,
    /// The number of GOAWAYs.
    told: u8,
    has_requests: bool,
    has_moved: bool,
    /// The end of the present wait.
    until: Instant,
    timer: Timer,
}

impl Timeouts {
    /// The timeouts of a new connection, which has `limits.idle` for its first request. `pings`
    /// sends pings; without it none is sent.
    pub fn new(limits: &Limits, pings: Option<PingPong>) -> Timeouts {
        Timeouts {
            idle: limits.idle,
            stall: limits.stall,
            pings,
            is_asked: false,
            told: 0,
            has_requests: false,
            has_moved: false,
            until: Instant::now() + limits.idle,
            timer: Timer::default(),
        }
    }

    /// Records that the client has sent a request: the present wait begins again.
    pub fn note_request(&mut self) {
        self.has_moved = true;
    }

    /// Whether the client was told that the connection ends.
    pub fn is_ending(&self) -> bool {
        self.told > 0
    }

    /// Counts a GOAWAY that the caller sends now. The present wait begins again.
    pub fn begin_to_end(&mut self) {
        self.told = self.told.saturating_add(1);
        self.has_moved = true;
    }

    /// How long the present wait is: with a request until the next ping, after a GOAWAY `FAREWELL`,
    /// else `limits.idle`.
    fn patience(&self) -> Duration {
        match (self.has_requests, self.is_ending()) {
            (true, _) => self.stall,
            (false, true) => FAREWELL,
            (false, false) => self.idle,
        }
    }

    /// Ready with the step that the caller has to do now; pending until one is due. `has_requests`
    /// says whether a request is open: then the client gets a ping for each wait, and is lost if it
    /// does not answer within the next one. A change of it, a request or a GOAWAY begins a new
    /// wait.
    pub fn poll(&mut self, has_requests: bool, context: &mut Context<'_>) -> Poll<Due> {
        let has_changed = std::mem::replace(&mut self.has_requests, has_requests) != has_requests;
        if std::mem::take(&mut self.has_moved) || has_changed {
            self.until = Instant::now() + self.patience();
        }
        loop {
            // An error ends the connection, which tells of it.
            let pong = self
                .pings
                .as_mut()
                .filter(|_| self.is_asked)
                .map(|pings| pings.poll_pong(context));
            self.is_asked &= !matches!(pong, Some(Poll::Ready(Ok(_))));
            ready!(self.timer.poll_elapsed(self.until, context));
            match (has_requests, self.told) {
                (false, 0) => return Poll::Ready(Due::FirstGoaway),
                (false, 1) => return Poll::Ready(Due::LastGoaway),
                (false, _) => return Poll::Ready(Due::Close),
                (true, _) if self.is_asked => return Poll::Ready(Due::Lost),
                (true, _) => {
                    self.is_asked = self
                        .pings
                        .as_mut()
                        .is_some_and(|pings| pings.send_ping(Ping::opaque()).is_ok());
                    self.until = Instant::now() + self.stall;
                }
            }
        }
    }
}

pub struct Resets {
    /// When the present [`RESET_WINDOW`] began, and how many there were in it.
    since: Instant,
    count: usize,
}

impl Resets {
    pub fn new() -> Resets {
        Resets {
            since: Instant::now(),
            count: 0,
        }
    }

    /// Counts a reset. Returns true if there were more than `RESETS` within the present
    /// `RESET_WINDOW`, which begins anew when it has passed.
    pub fn count(&mut self) -> bool {
        if self.since.elapsed() > RESET_WINDOW {
            *self = Resets::new();
        }
        self.count += 1;
        self.count > RESETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn hundred_resets_at_once_are_a_browser_and_one_more_an_attack() {
        let mut resets = Resets::new();
        assert!((0..RESETS).all(|_| !resets.count()) && resets.count());
    }

    #[tokio::test(start_paused = true)]
    async fn resting_connection_is_told_and_then_ended() {
        let limits = Limits {
            idle: Duration::from_secs(60),
            ..Limits::DEFAULT
        };
        let mut timeouts = Timeouts::new(&limits, None);
        let began = tokio::time::Instant::now();
        timeouts.note_request();
        assert_eq!(
            poll_fn(|context| timeouts.poll(false, context)).await,
            Due::FirstGoaway
        );
        assert_eq!(began.elapsed().as_secs(), 60);
        timeouts.begin_to_end();
        assert!(timeouts.is_ending());
        assert_eq!(
            poll_fn(|context| timeouts.poll(false, context)).await,
            Due::LastGoaway
        );
        assert_eq!(began.elapsed().as_secs(), 62);
        timeouts.begin_to_end();
        assert_eq!(
            poll_fn(|context| timeouts.poll(false, context)).await,
            Due::Close
        );
        assert_eq!(began.elapsed().as_secs(), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_cannot_be_asked_is_not_given_up() {
        let limits = Limits {
            idle: Duration::from_secs(5),
            stall: Duration::from_secs(60),
            ..Limits::DEFAULT
        };
        let mut timeouts = Timeouts::new(&limits, None);
        let due = tokio::time::timeout(
            Duration::from_secs(600),
            poll_fn(|context| timeouts.poll(true, context)),
        )
        .await;
        assert!(due.is_err());
    }
}
