//! The lane: HTTP/1.1 requests without a body to origins, without Pingora's proxy. [`fits`] says which requests take it,
//! [`LaneRequest`] is one of them, [`Lane`] has the connections to origins, and [`Exchange`] passes a request and its response
//! on. Must not know what a policy says: fields are written by `forwarding`, servers are chosen by `origin`.
//!
//! An exchange has a connection to a server, then the head of the response, then its body. Before the first octet of a
//! response it may begin again, once, if the connection was a kept one. Afterwards an error ends the client's connection.

mod buffers;
mod exchange;
mod lines;
mod pool;
mod request;
mod response;
mod wire;

pub use exchange::{After, Exchange};
pub use request::{LaneRequest, fits};
pub use response::{BadResponse, Framing as ResponseFraming, Parsed, ResponseHead, read as read_response};

use crate::clock::Clock;
use crate::origin::Origins;
use crate::telemetry::Metrics;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::protocols::Stream;
use pingora_core::server::configuration::ServerConf;
use pool::Pool;
use std::sync::Arc;

/// What all requests in the lane share.
pub struct Lane {
    origins: Arc<Origins>,
    connector: TransportConnector,
    pool: Arc<Pool<Stream>>,
    metrics: Arc<Metrics>,
    clock: Clock,
}

impl Lane {
    /// A lane to these origins. It connects and keeps connections as Pingora is configured to.
    pub fn new(origins: Arc<Origins>, configuration: &ServerConf, metrics: Arc<Metrics>, clock: Clock) -> Lane {
        Lane {
            origins,
            connector: TransportConnector::new(Some(ConnectorOptions::from_server_conf(configuration))),
            pool: Arc::new(Pool::new(configuration.threads, configuration.upstream_keepalive_pool_size)),
            metrics,
            clock,
        }
    }
}
