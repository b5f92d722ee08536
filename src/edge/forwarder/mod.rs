//! The forwarder sends requests to origins over HTTP/1.1, at less cost than Pingora's proxy. It can
//! send most requests; Pingora's proxy sends the others. [`can_be_forwarded_directly`] chooses
//! between the two for an HTTP/1 request, and `http2::session::requests` for an HTTP/2 request.
//!
//! [`Forwarder`] has the connections to origins. A [`RoundTrip`] sends an [`OriginRequest`] and
//! passes the response on to a [`ClientSide`], which HTTP/1.1 and HTTP/2 implement.
//!
//! A round trip gets a connection to a server, then the head of the response, then its body. If it
//! fails before the first byte of a response, the request may be sent once more; the module
//! `upstreams` decides that. If the request fails for good, and the client has no response head
//! yet, the client gets an error response from crawlgate. If the client already has the head, the
//! failure ends the client's connection or stream.

mod client_side;
mod field_lines;
mod origin_io;
mod origin_pool;
mod origin_request;
mod request_buffer;
mod response_head;
mod response_reader;
mod round_trip;
mod trailers;

pub use client_side::{BodyError, ClientSide};
pub use field_lines::FieldLines;
pub use origin_io::poll_read;
pub use origin_request::{OriginRequest, can_be_forwarded_directly, write_request_head};
pub use request_buffer::{FORWARDER_UPLOAD_BYTES, RequestBuffer, write_chunk};
#[cfg(feature = "internals")]
pub use response_head::parse_response_head;
pub use response_head::{ParsedResponse, ResponseFraming, ResponseHead};
pub use response_reader::ResponseReader;
pub use round_trip::{RoundTrip, RoundTripOutcome};
pub use trailers::{check_trailers, read_trailers};

use crate::upstreams::Upstreams;
use origin_pool::OriginPool;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::server::configuration::ServerConf;
use std::sync::Arc;
use std::time::Duration;

/// Forwards requests to origins, over connections of its own.
pub struct Forwarder {
    /// The origins and their servers.
    pub upstreams: Arc<Upstreams>,
    connector: TransportConnector,
    pool: Arc<OriginPool>,
    /// How long a client may send nothing of a body.
    stall: Duration,
}

impl Forwarder {
    /// Connects, and keeps connections, as Pingora's `configuration` says. A client that sends
    /// nothing of a body for `stall` is given up.
    pub fn new(
        upstreams: Arc<Upstreams>,
        configuration: &ServerConf,
        stall: Duration,
    ) -> Forwarder {
        Forwarder {
            upstreams,
            connector: TransportConnector::new(Some(ConnectorOptions::from_server_conf(
                configuration,
            ))),
            pool: Arc::new(OriginPool::new(
                configuration.threads,
                configuration.upstream_keepalive_pool_size,
            )),
            stall,
        }
    }
}
