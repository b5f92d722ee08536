//! [`Edge`]: the parts that all listeners of the proxy share, or all listeners of the decision
//! service. [`Door`]: one listener.

use super::close_log::CloseLog;
use super::lane::Lane;
use super::tls::TlsListener;
use crate::forwarding::is_trusted;
use crate::requests::{Admission, Framing, Redirect, Requests, Respond, Ticket};
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

/// Bytes that a request holds in Pingora: its buffer for the response (Pingora 0.9.1).
pub const IN_PINGORA: usize = 64 * 1024;
/// Bytes of a request's body that Pingora reads ahead of the origin: four pieces wait, one has no
/// place yet, one is being written and one read, of 64 KiB each (Pingora 0.9.1).
pub const PINGORA_UPLOAD: usize = 448 * 1024;
/// Bytes of a body that a client sends before its request takes a place at an origin with few of
/// them. With less, clients that send nothing more could keep all places.
const MAX_BODY_FIRST: usize = 64 * 1024;

/// Pingora's work on a request. It returns the connection, if that goes on.
type Reused<'a> = Pin<Box<dyn Future<Output = Option<ReusedHttpStream>> + Send + 'a>>;

/// An application of Pingora's that gets requests one by one.
pub trait App: Send + Sync {
    /// Serves a request.
    fn process<'a>(&'a self, session: ServerSession, stop: &'a ShutdownWatch) -> Reused<'a>;
}

impl<A: HttpServerApp + Send + Sync + 'static> App for Arc<A> {
    fn process<'a>(&'a self, session: ServerSession, stop: &'a ShutdownWatch) -> Reused<'a> {
        self.process_new_http(session, stop)
    }
}

/// The parts that listeners share.
pub struct Edge {
    /// The sequence that every request goes through.
    pub(super) requests: Arc<Requests>,
    /// Pingora's proxy, for requests that are not answered here and do not fit the lane.
    pub(super) app: Option<Box<dyn App>>,
    /// Without it no request takes the lane.
    pub(super) lane: Option<Lane>,
    /// The origins, where requests are forwarded.
    upstreams: Option<Arc<Upstreams>>,
    /// The decision service, which answers every request in place of `app`.
    pub(super) responder: Option<Arc<dyn Respond>>,
    /// The proxies that may ask it.
    askers: Vec<IpNet>,
    pub(super) close_log: CloseLog,
    pub(super) admission: Arc<Admission>,
    pub(super) metrics: Arc<Metrics>,
}

impl Edge {
    /// In front of Pingora's proxy: it gets what is not answered here and does not fit the lane.
    pub fn new(
        requests: Arc<Requests>,
        app: Box<dyn App>,
        lane: Option<Lane>,
        upstreams: Arc<Upstreams>,
    ) -> Edge {
        Edge {
            app: Some(app),
            lane,
            upstreams: Some(upstreams),
            ..Edge::bare(requests)
        }
    }

    /// In front of a service that answers every request by itself. Then only `askers` may connect.
    pub fn answering(
        requests: Arc<Requests>,
        responder: Arc<dyn Respond>,
        askers: Vec<IpNet>,
    ) -> Edge {
        Edge {
            responder: Some(responder),
            askers,
            ..Edge::bare(requests)
        }
    }

    /// The parts that all kinds have: admission and log with the limits of `requests`. There is no
    /// app, no lane, no upstream and no responder yet.
    fn bare(requests: Arc<Requests>) -> Edge {
        let metrics = requests.metrics().clone();
        let limits = requests.settings().limits;
        Edge {
            admission: Admission::new(limits.connections, limits.connections_per_address),
            close_log: CloseLog::new(metrics.clone()),
            requests,
            app: None,
            lane: None,
            upstreams: None,
            responder: None,
            askers: Vec::new(),
            metrics,
        }
    }

    /// Bounds on heads and connections.
    pub(super) fn limits(&self) -> &Limits {
        &self.requests.settings().limits
    }

    /// Whether a peer may connect at all: everyone may connect to the proxy, and only `askers` to
    /// the decision service.
    pub(super) fn admits(&self, peer: IpAddr) -> bool {
        self.responder.is_none() || is_trusted(peer, &self.askers)
    }

    /// How many bytes of a request's body have to be there before the request may take a place at
    /// its origin: all of it, and at most 64 KiB. 0 without a body, and where places are not
    /// bounded.
    pub(super) fn body_first(&self, ticket: &Ticket, framing: Framing) -> usize {
        let first = match framing {
            Framing::None => return 0,
            Framing::Length(length) => {
                usize::try_from(length).map_or(MAX_BODY_FIRST, |length| length.min(MAX_BODY_FIRST))
            }
            Framing::Chunked => MAX_BODY_FIRST,
        };
        match &self.upstreams {
            Some(upstreams) if upstreams.has_places(ticket.host(), ticket.target()) => first,
            _ => 0,
        }
    }

    /// Whether the peer is one of `trusted_proxies`.
    pub(super) fn trusts(&self, peer: IpAddr) -> bool {
        is_trusted(peer, &self.requests.settings().trusted_proxies)
    }
}

/// One listener.
pub struct Door {
    /// The parts that it shares with other listeners.
    pub edge: Arc<Edge>,
    /// TLS; clear text without it.
    pub tls: Option<TlsListener>,
    /// Whether each connection begins with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Whether HTTP/2 is spoken beside HTTP/1.
    pub speaks_http2: bool,
    /// Whether requests are redirected to https.
    pub redirect: Option<Redirect>,
}
