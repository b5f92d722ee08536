//! [`EdgeContext`] has what all listeners of the proxy use: the [`RequestPipeline`] that judges
//! requests, the limits, the metrics, and the forwarder to the origins.

use super::close_log::CloseLog;
use super::forwarder::Forwarder;
use crate::forwarding::is_trusted;
use crate::requests::{AdmissionLimiter, BodyFraming, RequestPipeline, Responder, Ticket};
use crate::settings::Limits;
use crate::telemetry::Metrics;
use crate::upstreams::Upstreams;
use ipnet::IpNet;
use pingora_core::apps::{HttpServerApp, ReusedHttpStream};
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

/// Bytes that a request takes in Pingora: its buffer for the response (Pingora 0.9.1).
pub const PINGORA_BUFFER_BYTES: usize = 64 * 1024;
/// Bytes of a request's body that Pingora reads ahead of the origin: four pieces wait, one has no
/// place yet, one is being written and one read, of 64 KiB each (Pingora 0.9.1).
pub const PINGORA_UPLOAD_BYTES: usize = 448 * 1024;
/// Bytes of a body that have to be received before the request takes a place at an origin with a
/// bounded number of them. With less, clients that send nothing more could keep all places.
const MAX_REQUIRED_BODY: usize = 64 * 1024;

/// Pingora's work on a request. Returns the connection if it can be used again.
type ReusedStreamFuture<'a> = Pin<Box<dyn Future<Output = Option<ReusedHttpStream>> + Send + 'a>>;

/// A Pingora application that is called for each request.
pub trait PingoraApp: Send + Sync {
    /// Serves a request.
    fn process<'a>(
        &'a self,
        session: ServerSession,
        stop: &'a ShutdownWatch,
    ) -> ReusedStreamFuture<'a>;
}

impl<A: HttpServerApp + Send + Sync + 'static> PingoraApp for Arc<A> {
    fn process<'a>(
        &'a self,
        session: ServerSession,
        stop: &'a ShutdownWatch,
    ) -> ReusedStreamFuture<'a> {
        self.process_new_http(session, stop)
    }
}

/// What all listeners of the proxy, or of the decision service, share.
pub struct EdgeContext {
    /// What judges the requests.
    pub requests: Arc<RequestPipeline>,
    /// Pingora's proxy, for requests that do not fit the forwarder.
    pub pingora: Option<Box<dyn PingoraApp>>,
    /// `None` with `direct_forwarding: off`.
    pub forwarder: Option<Forwarder>,
    /// `None` in the decision service.
    pub upstreams: Option<Arc<Upstreams>>,
    /// The decision service, which answers every request instead.
    pub responder: Option<Arc<dyn Responder>>,
    /// The proxies that may connect to the decision service.
    pub decision_peers: Vec<IpNet>,
    /// The log of connections that are closed.
    pub close_log: CloseLog,
    /// The limits for connections.
    pub admission: Arc<AdmissionLimiter>,
    /// The metrics.
    pub metrics: Arc<Metrics>,
}

impl EdgeContext {
    /// A context that neither forwards nor answers yet, with the limits of `requests`.
    pub fn new(requests: Arc<RequestPipeline>) -> EdgeContext {
        let metrics = requests.metrics().clone();
        let limits = requests.settings().limits;
        EdgeContext {
            admission: AdmissionLimiter::new(limits.connections, limits.connections_per_address),
            close_log: CloseLog::new(metrics.clone()),
            requests,
            pingora: None,
            forwarder: None,
            upstreams: None,
            responder: None,
            decision_peers: Vec::new(),
            metrics,
        }
    }

    /// The limits for requests and connections.
    pub fn limits(&self) -> &Limits {
        &self.requests.settings().limits
    }

    /// The bytes of a request's body that have to be received before the request takes a place at
    /// its origin: the whole body, at most 64 KiB. 0 if the origin's places are not bounded.
    pub fn required_body_bytes(&self, ticket: &Ticket, framing: BodyFraming) -> usize {
        let first = framing.buffered_bytes(MAX_REQUIRED_BODY);
        match &self.upstreams {
            Some(upstreams)
                if first > 0 && upstreams.has_admission_limit(ticket.host(), ticket.target()) =>
            {
                first
            }
            _ => 0,
        }
    }

    /// Whether the peer is one of `trusted_proxies`.
    pub fn is_trusted_proxy(&self, peer: IpAddr) -> bool {
        is_trusted(peer, &self.requests.settings().trusted_proxies)
    }
}
