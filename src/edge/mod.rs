//! Serves client connections: limits, PROXY protocol, TLS, HTTP/1 and HTTP/2. [`AcceptService`]
//! accepts connections, [`ListenerService`] serves them, and [`EdgeContext`] has what listeners
//! share.
//!
//! `http1_head` and `http2` read request heads, and the module `requests` decides what happens. If
//! a request may pass, the [`Forwarder`] sends it to the origin; Pingora's proxy sends the few
//! requests that the [`Forwarder`] cannot send. For an HTTP/1 request, Pingora reads from the
//! client's connection (`client_stream`); for an HTTP/2 request, it reads from
//! `http2::pingora_bridge`.

mod accept;
mod admin_listener;
mod body_decoder;
mod buffered_stream;
mod client_stream;
mod close_log;
mod connection_counter;
mod context;
mod date;
mod forwarder;
mod head_scanner;
mod http1;
mod http1_head;
mod http2;
mod listener;
mod pooled_buffer;
mod proxy_protocol;
mod sent_answer;
mod slow_client;
mod stop_signals;
mod timer;
mod tls;
mod transport;
mod worker_health;

pub use accept::{AcceptService, BoundListener, ServeConnection, ServedListeners, bind};
pub use admin_listener::AdminService;
pub use connection_counter::ConnectionCounter;
pub use context::EdgeContext;
pub use forwarder::Forwarder;
pub use listener::ListenerService;
pub use stop_signals::StopSender;
pub use tls::{ACME_ALPN, AcmeCertificates, CertificateStore, ListenerTls, TlsError, dns_names};
pub use worker_health::WorkerHealth;
#[cfg(feature = "internals")]
pub use {
    body_decoder::ChunkedDecoder,
    forwarder::{ResponseFraming, ResponseReader, parse_response_head, read_trailers},
    head_scanner::HeadScanner,
    http1_head::{Http1RequestHead, MAX_FIELDS},
    proxy_protocol::{parse_v1, parse_v2},
};
