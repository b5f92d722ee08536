//! The connections of clients: admission, PROXY protocol, TLS, HTTP/1, HTTP/2, and the lane (the
//! forwarding to origins without Pingora's proxy). [`Edge`] has the parts that listeners share,
//! [`Door`] is one listener, and [`Listening`] accepts connections.
//!
//! A connection, in order: `serve_door` counts it; `proxy_protocol` reads which client a proxy
//! speaks for; `tls` encrypts it; `http1` or `http2` serves it. `scan` and `head` read the head of
//! an HTTP/1 request, and `http1::decide` has `requests` decide about it. `http2` hands each of its
//! requests to `requests` itself. `lane` forwards the requests that fit it. The others go to
//! Pingora's proxy, one at a time: requests of HTTP/1 by `connection`, requests of HTTP/2 over
//! connections in memory.

mod answered;
mod buffered;
mod buffers;
mod chunks;
mod close_log;
mod connection;
mod date;
mod door;
mod head;
mod http1;
mod http2;
mod lane;
mod listening;
mod open;
mod pace;
mod plain;
mod proxy_protocol;
mod pulse;
mod scan;
mod serve_door;
mod stops;
mod timer;
mod tls;
mod transport;

pub use door::{Door, Edge};
pub use lane::Lane;
pub use listening::{BoundListener, Listening, Serve, Share, bind};
pub use open::Open;
pub use plain::Plain;
pub use pulse::Pulse;
pub use stops::{Stopper, Stops};
pub use tls::{ACME_ALPN, Certificates, OrderedCertificates, TlsError, TlsListener};
#[cfg(feature = "internals")]
pub use {
    chunks::Chunks,
    head::{MOST_FIELDS, Request},
    lane::{Incoming, ResponseFraming, read_response, read_trailers},
    proxy_protocol::{parse_binary, parse_line},
    scan::Scanner,
};
