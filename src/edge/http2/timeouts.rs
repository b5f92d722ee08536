//! [`Http2Timeouts`] decides when an HTTP/2 connection times out. [`ResetCounter`] limits how many
//! requests of a connection end by a reset.
//!
//! After `limits.idle` without a request, crawlgate sends a GOAWAY. If the client does not close
//! the connection, crawlgate sends a second GOAWAY, which names the last request, and soon
//! afterwards closes the connection. While a request is open, crawlgate sends a PING every
//! `limits.stall`. The client must answer the PING within the same time.

use crate::edge::timer::Timer;
use crate::settings::Limits;
use h2::{Ping, PingPong};
use std::task::{
    Context,
    Poll::{self, Ready},
    ready,
};
use std::time::Duration;
use tokio::time::Instant;

/// How long a connection without a request stays open after each GOAWAY.
const GOAWAY_GRACE: Duration = Duration::from_secs(2);

/// The most resets of a connection within [`RESET_WINDOW`]: by the client (CVE-2023-44487), and
/// those that it provokes crawlgate to send (CVE-2025-8671). A browser that leaves a page resets at
/// most `limits.streams` requests (100 by default) at once; an attack does so again and again.
///
/// h2 has two counts of its own with this bound (h2 0.4.20): resets of streams without a request,
/// for the life of the connection, and requests that are reset before crawlgate has begun with
/// them.
pub const MAX_RESETS: usize = 100;
/// The most requests of a trusted proxy that may be reset before crawlgate has begun with them.
/// They take memory until then: 10 MB.
pub const MAX_RESETS_OF_PROXY: usize = 10_000;
const RESET_WINDOW: Duration = Duration::from_secs(10);

/// What the connection's task has to do.
#[derive(Debug, PartialEq, Eq)]
pub enum DueStep {
    /// Send the first GOAWAY, which announces the end.
    FirstGoaway,
    /// Send the second GOAWAY, which names the last request.
    LastGoaway,
    /// Close the connection.
    Close,
    /// Close the connection, because the client did not answer a ping.
    PingTimeout,
}

/// The timeouts of a connection.
pub struct Http2Timeouts {
    idle: Duration,
    stall: Duration,
    pings: Option<PingPong>,
    /// Whether a ping waits for its answer.
    is_ping_pending: bool,
    goaways_sent: u8,
    has_requests: bool,
    /// Whether the next poll begins a new wait.
    restarts_wait: bool,
    /// The end of the present wait.
    until: Instant,
    timer: Timer,
}

impl Http2Timeouts {
    /// The timeouts of a new connection. Without `pings`, no ping is sent.
    pub fn new(limits: &Limits, pings: Option<PingPong>) -> Http2Timeouts {
        Http2Timeouts {
            idle: limits.idle,
            stall: limits.stall,
            pings,
            is_ping_pending: false,
            goaways_sent: 0,
            has_requests: false,
            restarts_wait: false,
            until: Instant::now() + limits.idle,
            timer: Timer::default(),
        }
    }

    /// Begins a new wait, because the client has sent a request.
    pub fn restart_wait(&mut self) {
        self.restarts_wait = true;
    }

    /// Whether a GOAWAY was sent.
    pub fn has_sent_goaway(&self) -> bool {
        self.goaways_sent > 0
    }

    /// Called when a GOAWAY is sent. Begins a new wait.
    pub fn count_goaway(&mut self) {
        self.goaways_sent = self.goaways_sent.saturating_add(1);
        self.restarts_wait = true;
    }

    /// How long a wait is in the present state.
    fn wait_time(&self) -> Duration {
        match (self.has_requests, self.has_sent_goaway()) {
            (true, _) => self.stall,
            (false, true) => GOAWAY_GRACE,
            (false, false) => self.idle,
        }
    }

    /// Ready with the step that the caller has to do now. `has_requests` is whether a request is
    /// open: then this sends the pings. A change of it begins a new wait.
    pub fn poll(&mut self, has_requests: bool, context: &mut Context<'_>) -> Poll<DueStep> {
        use DueStep::*;
        let has_changed = std::mem::replace(&mut self.has_requests, has_requests) != has_requests;
        if std::mem::take(&mut self.restarts_wait) || has_changed {
            self.until = Instant::now() + self.wait_time();
        }
        loop {
            // h2 reports an error elsewhere.
            let pong = self
                .pings
                .as_mut()
                .filter(|_| self.is_ping_pending)
                .map(|pings| pings.poll_pong(context));
            self.is_ping_pending &= !matches!(pong, Some(Ready(Ok(_))));
            ready!(self.timer.poll_elapsed(self.until, context));
            match (has_requests, self.goaways_sent) {
                (false, 0) => return Ready(FirstGoaway),
                (false, 1) => return Ready(LastGoaway),
                (false, _) => return Ready(Close),
                (true, _) if self.is_ping_pending => return Ready(PingTimeout),
                (true, _) => {
                    self.is_ping_pending = self
                        .pings
                        .as_mut()
                        .is_some_and(|pings| pings.send_ping(Ping::opaque()).is_ok());
                    self.until = Instant::now() + self.stall;
                }
            }
        }
    }
}

/// Counts the resets of a connection.
pub struct ResetCounter {
    /// When the present [`RESET_WINDOW`] began.
    window_began: Instant,
    /// The resets in it.
    count: usize,
}

impl ResetCounter {
    pub fn new() -> ResetCounter {
        ResetCounter {
            window_began: Instant::now(),
            count: 0,
        }
    }

    /// Counts a reset. Returns whether there are more than `MAX_RESETS` in the present window.
    pub fn record_reset(&mut self) -> bool {
        if self.window_began.elapsed() > RESET_WINDOW {
            *self = ResetCounter::new();
        }
        self.count += 1;
        self.count > MAX_RESETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn hundred_resets_are_allowed_and_one_more_is_not() {
        let mut resets = ResetCounter::new();
        assert!((0..MAX_RESETS).all(|_| !resets.record_reset()) && resets.record_reset());
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connection_gets_goaways_and_is_closed() {
        let limits = Limits {
            idle: Duration::from_secs(60),
            ..Limits::default()
        };
        let mut timeouts = Http2Timeouts::new(&limits, None);
        let began = tokio::time::Instant::now();
        timeouts.restart_wait();
        assert_eq!(
            poll_fn(|context| timeouts.poll(false, context)).await,
            DueStep::FirstGoaway
        );
        assert_eq!(began.elapsed().as_secs(), 60);
        timeouts.count_goaway();
        assert!(timeouts.has_sent_goaway());
        assert_eq!(
            poll_fn(|context| timeouts.poll(false, context)).await,
            DueStep::LastGoaway
        );
        assert_eq!(began.elapsed().as_secs(), 62);
        timeouts.count_goaway();
        assert_eq!(
            poll_fn(|context| timeouts.poll(false, context)).await,
            DueStep::Close
        );
        assert_eq!(began.elapsed().as_secs(), 64);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_without_pings_has_no_ping_timeout() {
        let limits = Limits {
            idle: Duration::from_secs(5),
            stall: Duration::from_secs(60),
            ..Limits::default()
        };
        let mut timeouts = Http2Timeouts::new(&limits, None);
        let due = tokio::time::timeout(
            Duration::from_secs(600),
            poll_fn(|context| timeouts.poll(true, context)),
        )
        .await;
        assert!(due.is_err());
    }
}
