//! [`CloseLog`] counts and logs the client connections that crawlgate closes because of a limit or
//! a fault. Any client can cause a log line in this way, so each [`CloseReason`] is logged at most
//! once in ten seconds.

use crate::telemetry::{LogThrottle, Metrics};
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use strum::IntoStaticStr;

/// The time between two lines about one reason.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Why the edge closed a connection.
#[derive(Clone, Copy, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum CloseReason {
    /// `limits.connections` is reached.
    TooMany,
    /// `limits.connections_per_address` is reached.
    #[strum(serialize = "too_many_of_one_address")]
    TooManyOfOne,
    /// A connection cannot be accepted: descriptors or memory are exhausted.
    Accept,
    HandshakeTimeout,
    Handshake,
    /// A header of the PROXY protocol is missing, malformed, late, or comes from a peer that is not
    /// trusted.
    ProxyHeader,
    /// A peer that `decisions.trusted` does not name asks for decisions.
    Untrusted,
    /// The client took nothing of a response for `limits.stall`.
    Stall,
    /// An HTTP/2 client did not answer a ping.
    NoPong,
    /// An HTTP/2 client broke the protocol, or flooded.
    Http2,
}

impl CloseReason {
    const COUNT: usize = CloseReason::Http2 as usize + 1;

    /// Whether the reason is logged as a warning (true) or only with `RUST_LOG=debug` (false), and
    /// its text for the log, with what the operator can do. Scanners cause some reasons all day.
    fn level_and_text(self) -> (bool, &'static str) {
        use CloseReason::*;

        match self {
            TooMany => (
                true,
                "closing new connections: limits.connections is reached. Raise it if the machine has memory for more",
            ),
            TooManyOfOne => (
                true,
                "closing new connections of a client: limits.connections_per_address is reached. If the client is a \
                 proxy of yours, add it to trusted_proxies",
            ),
            Accept => (
                true,
                "cannot accept connections; trying again. If there are too many open files, raise LimitNOFILE or \
                 ulimit -n",
            ),
            HandshakeTimeout => (
                false,
                "closing connections whose TLS handshake takes longer than limits.handshake",
            ),
            Handshake => (false, "TLS handshakes fail"),
            ProxyHeader => (
                true,
                "closing connections without the PROXY protocol header that this listener requires",
            ),
            Untrusted => (
                true,
                "closing connections of a peer that may not ask for decisions. If it is a proxy of yours, add it to \
                 decisions.trusted",
            ),
            Stall => (
                false,
                "closing connections of clients that read nothing for the time of limits.stall",
            ),
            NoPong => (
                false,
                "closing HTTP/2 connections of clients that do not answer",
            ),
            Http2 => (false, "closing HTTP/2 connections that break the protocol"),
        }
    }
}

/// The throttled log, with the time of the last line and the number of closes since for each
/// reason.
pub struct CloseLog {
    metrics: Arc<Metrics>,
    start: Instant,
    throttles: [LogThrottle; CloseReason::COUNT],
}

impl CloseLog {
    pub fn new(metrics: Arc<Metrics>) -> CloseLog {
        CloseLog {
            metrics,
            start: Instant::now(),
            throttles: Default::default(),
        }
    }

    /// Counts a closed connection in the metrics, and logs it. A reason that is a warning is logged
    /// at most once in ten seconds, with the number of connections since its last line; the others
    /// are logged each time, for `RUST_LOG=debug`.
    pub fn record(&self, reason: CloseReason, client: Option<IpAddr>, detail: &dyn Display) {
        let (is_warning, text) = reason.level_and_text();
        self.metrics
            .edge
            .closed
            .with_label_values(&[<&str>::from(reason)])
            .inc();
        let client = client.map(tracing::field::display);
        if !is_warning {
            tracing::debug!(client, "{text}: {detail}");
            return;
        }
        if let Some(left_out) =
            self.throttles[reason as usize].admit_after(LOG_INTERVAL, self.start.elapsed())
        {
            tracing::warn!(client, count = left_out + 1, "{text}: {detail}");
        }
    }
}
