//! The lane: crawlgate's own forwarding of requests to origins, over HTTP/1.1 and without Pingora's
//! proxy. Most requests take it, because it costs less. [`fits`] decides which requests of HTTP/1
//! take the lane, and `http2::session::requests` which of HTTP/2.
//!
//! [`Lane`] holds the connections to origins. [`Exchange`] sends a [`LaneRequest`] and passes its
//! response on. [`Client`] is the client's side of an exchange, for each version of HTTP.
//!
//! An exchange gets a connection to a server, then the head of the response, then its body. Before
//! the first octet of a response it may begin again, once, as `upstreams` says. If it fails before
//! the client has a head, the client gets an error from crawlgate. Later, a failure ends the
//! client's connection or stream.

mod client;
mod exchange;
mod incoming;
mod lines;
mod outgoing;
mod pool;
mod request;
mod response;
mod trailers;
mod wire;

pub use client::{BodyError, Client, ClientHead};
pub use exchange::{After, Exchange};
pub use incoming::Incoming;
pub use lines::Lines;
pub use outgoing::{LANE_UPLOAD, Outgoing, write_chunk};
pub use request::{LaneRequest, fits, write_head};
#[cfg(feature = "internals")]
pub use response::read as read_response;
pub use response::{BadResponse, Framing as ResponseFraming, Parsed, ResponseHead};
pub use trailers::{BadTrailers, check_trailers, read_trailers};
pub use wire::poll_read;

use crate::requests::Ticket;
use crate::upstreams::Upstreams;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::server::configuration::ServerConf;
use pool::Pool;
use std::sync::Arc;
use std::time::Duration;

/// The parts that all requests in the lane share.
pub struct Lane {
    upstreams: Arc<Upstreams>,
    connector: TransportConnector,
    pool: Arc<Pool>,
    /// The longest time in which a client may send nothing of a body.
    stall: Duration,
}

impl Lane {
    /// The Host that the origin of a request wants; `None` if it gets the client's.
    pub fn origin_host(&self, ticket: &Ticket) -> Option<&str> {
        ticket.origin_host(&self.upstreams)
    }

    /// A lane to these origins. It connects and keeps connections as Pingora is configured to.
    /// A client that sends nothing of a body for `stall` is given up.
    pub fn new(upstreams: Arc<Upstreams>, configuration: &ServerConf, stall: Duration) -> Lane {
        Lane {
            upstreams,
            connector: TransportConnector::new(Some(ConnectorOptions::from_server_conf(
                configuration,
            ))),
            pool: Arc::new(Pool::new(
                configuration.threads,
                configuration.upstream_keepalive_pool_size,
            )),
            stall,
        }
    }
}
