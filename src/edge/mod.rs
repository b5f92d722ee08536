//! A connection before it is Pingora's: admission, PROXY protocol, TLS, limits, and answers that need no origin. [`Edge`]
//! is what all listeners share, [`Door`] is one listener, [`Listening`] accepts connections. Must not know how a policy is
//! written or judged, nor how a request is forwarded.
//!
//! A connection, in order: `admission` counts it; `proxy_protocol` reads who the client is; `tls` encrypts it; `http1` or
//! `http2` serves it. `scan` and `head` read the head of an HTTP/1 request, `desk` has `requests` decide about it. `http2` hands
//! each of its requests to `requests` itself. `lane` passes on what it can, and `connection` gives Pingora the rest, one request at
//! a time, those of HTTP/2 in memory.

mod alarm;
mod answered;
mod buffered;
mod chunks;
mod connection;
mod date;
mod desk;
mod door;
mod head;
mod http1;
mod http2;
mod lane;
mod linger;
mod listening;
mod notices;
mod open;
mod passage;
mod plain;
mod proxy_protocol;
mod pulse;
mod scan;
mod stops;
mod tls;
mod transport;

pub use chunks::{BadChunk, Chunks};
pub use desk::Desk;
pub use door::{Door, Edge, NoApp};
pub use head::{MOST_FIELDS, Request};
pub use lane::{
    BadResponse, BadTrailers, Incoming, Lane, LaneRequest, Parsed, ResponseFraming, ResponseHead, read_response,
    read_trailers,
};
pub use listening::{BoundListener, Listening, Serve, Share, bind};
pub use open::Open;
pub use plain::Plain;
pub use proxy_protocol::{ProxyHeaderError, parse_binary, parse_line};
pub use pulse::Pulse;
pub use scan::Scanner;
pub use stops::{Stopper, Stops};
pub use tls::{CertificateError, CertificateProblem, Certificates, TlsError, TlsListener};
