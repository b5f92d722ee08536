//! [`Notices`]: log lines about what any client can cause, at most one each ten seconds for each reason. The metrics count
//! every case.

use crate::telemetry::Metrics;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Milliseconds between two lines about one reason.
const PAUSE: u64 = 10_000;

/// Why the edge ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `limits.connections` is reached.
    TooMany,
    /// `limits.connections_per_address` is reached.
    TooManyOfOne,
    /// A connection cannot be accepted: descriptors or memory are exhausted.
    Accept,
    HandshakeTimeout,
    Handshake,
    /// A header of the PROXY protocol is missing, malformed, late, or comes from a peer that is not trusted.
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

impl Reason {
    const COUNT: usize = Reason::Http2 as usize + 1;

    fn name(self) -> &'static str {
        match self {
            Reason::TooMany => "too_many",
            Reason::TooManyOfOne => "too_many_of_one_address",
            Reason::Accept => "accept",
            Reason::HandshakeTimeout => "handshake_timeout",
            Reason::Handshake => "handshake",
            Reason::ProxyHeader => "proxy_header",
            Reason::Untrusted => "untrusted",
            Reason::Stall => "stall",
            Reason::NoPong => "no_pong",
            Reason::Http2 => "http2",
        }
    }

    /// What happened, and what the operator can do.
    fn text(self) -> &'static str {
        match self {
            Reason::TooMany => "closing new connections: `limits.connections` is reached",
            Reason::TooManyOfOne => {
                "closing new connections of a client: `limits.connections_per_address` is reached; if the client is a \
                 proxy of yours, add it to `trusted_proxies`"
            }
            Reason::Accept => {
                "cannot accept connections; trying again. If files are exhausted, raise LimitNOFILE or ulimit -n"
            }
            Reason::HandshakeTimeout => "closing connections whose TLS handshake takes longer than `limits.handshake`",
            Reason::Handshake => "TLS handshakes fail",
            Reason::ProxyHeader => {
                "closing connections without the header of the PROXY protocol that the listener requires"
            }
            Reason::Untrusted => {
                "closing connections of a peer that asks for decisions; if it is a proxy of yours, add it to \
                 `decisions.trusted`"
            }
            Reason::Stall => "closing connections of clients that take nothing for `limits.stall`",
            Reason::NoPong => "closing HTTP/2 connections of clients that do not answer",
            Reason::Http2 => "closing HTTP/2 connections that break the protocol",
        }
    }

    /// Whether it is worth a line without `RUST_LOG=debug`: what scanners cause all day is not.
    fn is_news(self) -> bool {
        matches!(
            self,
            Reason::TooMany | Reason::TooManyOfOne | Reason::Accept | Reason::ProxyHeader | Reason::Untrusted
        )
    }
}

/// When each reason was last told, and how often it came since.
pub struct Notices {
    metrics: Arc<Metrics>,
    start: Instant,
    told: [AtomicU64; Reason::COUNT],
    since: [AtomicU64; Reason::COUNT],
}

impl Notices {
    /// With nothing told yet.
    pub fn new(metrics: Arc<Metrics>) -> Notices {
        Notices { metrics, start: Instant::now(), told: Default::default(), since: Default::default() }
    }

    /// Counts a closed connection, and says so if it was not said lately.
    pub fn closed(&self, reason: Reason, client: Option<IpAddr>, detail: &dyn Display) {
        self.metrics.connection_closed(reason.name());
        let client = client.map(tracing::field::display);
        if !reason.is_news() {
            tracing::debug!(client, "{}: {detail}", reason.text());
            return;
        }
        let (told, since) = (&self.told[reason as usize], &self.since[reason as usize]);
        let count = since.fetch_add(1, Ordering::Relaxed) + 1;
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(PAUSE);
        let last = told.load(Ordering::Relaxed);
        let is_due = now >= last.saturating_add(PAUSE);
        if is_due && told.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            since.fetch_sub(count, Ordering::Relaxed);
            tracing::warn!(client, count, "{}: {detail}", reason.text());
        }
    }
}
