//! [`serve`]: serves HTTP/2 on a client's connection, with the crate `h2`. The client chooses
//! HTTP/2 by ALPN or by prior knowledge (RFC 9113 section 3.3).
//!
//! One task drives a connection and all its requests ([`Http2Session`]). Each time the task is
//! polled, it takes new requests, advances every request as far as possible, and then writes the
//! output of all requests at once.
//!
//! When crawlgate stops, or when no request was open for the time `limits.idle`, crawlgate sends a
//! GOAWAY. The connection ends after its last request. If a client sends far more bytes than its
//! requests need, crawlgate at once ends the connection and all its requests. A proxy in
//! `trusted_proxies` is excepted, because one client of the proxy could otherwise end the requests
//! of the proxy's other clients. For a connection from such a proxy, only the memory is bounded.

mod batched_io;
mod client;
mod head;
mod pausable_waker;
mod pingora_bridge;
mod request_stream;
mod session;
mod timeouts;

use super::client_stream::{ClientStream, MAX_LINGER_BYTES};
use super::close_log::CloseReason;
use super::context::EdgeContext;
use crate::settings::Limits;
use batched_io::BatchedIo;
use h2::server;
use pingora_core::server::ShutdownWatch;
use session::Http2Session;
use timeouts::{MAX_RESETS, MAX_RESETS_OF_PROXY};
use tokio::time::timeout;

/// The first bytes of a client (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of request bodies that a client may send before the origin takes them.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The same for a trusted proxy, so that uploads that an origin does not take delay no other
/// clients. Each upload counts with its window in `limits.buffers`.
const CONNECTION_WINDOW_OF_PROXY: u32 = 64 * 1024 * 1024;
/// Bytes of a response in h2 that wait for the client.
const SEND_BUFFER: usize = 64 * 1024;

/// Bytes that a header list may have beyond the limits on a head: HTTP/2 counts 32 more for each
/// field (RFC 9113 section 10.5.1), and a cookie may come in hundreds of pieces.
const LIST_OVERHEAD: usize = 32 * 512;

/// The largest header list in bytes, as HTTP/2 counts them. h2 itself rejects a larger head, with
/// neither a body nor a line in the log. Of longer trailers it drops the rest.
fn max_header_list(limits: &Limits) -> usize {
    limits
        .headers
        .saturating_add(limits.target)
        .saturating_add(LIST_OVERHEAD)
}

/// The settings of h2 for a connection. A trusted proxy (`is_proxy`) has a larger window, and no
/// bound on the resets that it provokes.
fn h2_builder(limits: &Limits, is_proxy: bool) -> server::Builder {
    let mut builder = server::Builder::new();
    builder
        .max_header_list_size(u32::try_from(max_header_list(limits)).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.streams)
        .max_pending_accept_reset_streams(if is_proxy {
            MAX_RESETS_OF_PROXY
        } else {
            MAX_RESETS
        })
        .max_local_error_reset_streams((!is_proxy).then_some(MAX_RESETS))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(if is_proxy {
            CONNECTION_WINDOW_OF_PROXY
        } else {
            CONNECTION_WINDOW
        })
        .max_send_buffer_size(SEND_BUFFER);
    if is_proxy {
        // CONNECT is answered 405. If it is not offered, HAProxy resets a stream that it has not
        // opened, and h2 ends the connection for that (HAProxy 2.6).
        builder.enable_connect_protocol();
    }
    builder
}

/// Serves a connection to its end. A connection that ends by a fault of the client is logged and
/// closed at once. Otherwise it lingers.
pub async fn serve(edge: &EdgeContext, connection: Box<ClientStream>, stop: ShutdownWatch) {
    let client = connection.client.clone();
    let gauge = connection.gauge.clone();
    let address = client.peer.address;
    let is_proxy = client.peer.is_trusted;
    let output = BatchedIo::new(connection);
    let limits = edge.limits();
    let handshake = output.run_with_flush(h2_builder(limits, is_proxy).handshake(output.clone()));
    let connection = match timeout(limits.handshake, handshake).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return edge.close_log.record(CloseReason::Http2, address, &error),
        Err(late) => {
            return edge
                .close_log
                .record(CloseReason::HandshakeTimeout, address, &late);
        }
    };
    let mut session = Http2Session::new(edge, stop, client, gauge, connection, output);
    let end = session.run().await;
    let connection = session.finish().await;
    if let Err((reason, detail)) = end {
        // At once: a client that floods would go on.
        return edge.close_log.record(reason, address, &detail);
    }
    if let Some(mut connection) = connection.filter(|connection| !connection.client.is_stalled()) {
        connection.linger(MAX_LINGER_BYTES).await;
    }
}
