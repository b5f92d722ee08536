//! [`serve`]: HTTP/2 on a connection, chosen by ALPN or by prior knowledge (RFC 9113 section 3.3),
//! with the crate `h2`.
//!
//! One task drives a connection and all its requests, in turns. In a turn it takes the requests
//! that have come, advances each one as far as possible, and writes the output of all of them at
//! once. An answer is recorded when its last octet was written.
//!
//! A connection is open, or is ending: then it has sent a GOAWAY, and ends with its last request. A
//! stop, or `limits.idle` without a request, moves it from open to ending. Its last GOAWAY always
//! names the last request that crawlgate has taken, so that the client can send later ones again
//! elsewhere. If a client floods, its connection ends with all its requests. A proxy in
//! `trusted_proxies` speaks for many clients: there only what costs memory is bounded, and no
//! visitor ends the connection of the others.

mod client;
mod head;
mod memory;
mod output;
mod session;
mod stream;
mod timeouts;
mod wakes;

use super::close_log::CloseReason;
use super::connection::{Connection, LINGERING};
use super::door::Edge;
use crate::settings::Limits;
use h2::server;
use output::Output;
use pingora_core::server::ShutdownWatch;
use session::Session;
use timeouts::{MAX_RESETS_OF_PROXY, RESETS};
use tokio::time::timeout;

/// The first octets of a client (RFC 9113 section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Octets of request bodies that a client may send before the origin takes them.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The same of a proxy, which speaks for many clients: uploads that an origin does not take delay
/// no others. Each upload is counted with its window, so that this takes no memory beyond
/// `limits.buffers`.
const CONNECTION_WINDOW_OF_PROXY: u32 = 64 * 1024 * 1024;
/// Octets of a response that wait for the client. The rest waits at the origin.
const SEND_BUFFER: usize = 64 * 1024;

/// Octets that a list of fields may have beyond the limits on a head: HTTP/2 counts 32 more for
/// each field (RFC 9113 section 10.5.1), and a cookie may come in hundreds of pieces.
const FIELDS: usize = 32 * 512;

/// The largest list of fields, as HTTP/2 counts it. h2 itself refuses a larger head, with neither a
/// body nor a line in the log. Of longer trailers it drops the rest.
fn max_list(limits: &Limits) -> usize {
    limits
        .headers
        .saturating_add(limits.target)
        .saturating_add(FIELDS)
}

/// The settings of h2 for a connection. `is_proxy` says that the peer is a trusted proxy, which
/// speaks for many clients: it has a larger window and no bound on the resets that it provokes.
fn builder(limits: &Limits, is_proxy: bool) -> server::Builder {
    let mut builder = server::Builder::new();
    builder
        .max_header_list_size(u32::try_from(max_list(limits)).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.streams)
        .max_pending_accept_reset_streams(if is_proxy {
            MAX_RESETS_OF_PROXY
        } else {
            RESETS
        })
        .max_local_error_reset_streams((!is_proxy).then_some(RESETS))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(if is_proxy {
            CONNECTION_WINDOW_OF_PROXY
        } else {
            CONNECTION_WINDOW
        })
        .max_send_buffer_size(SEND_BUFFER);
    if is_proxy {
        // It is answered 405. HAProxy resets a stream that it has not opened if this is not
        // offered, and h2 ends the connection for that (HAProxy 2.6).
        builder.enable_connect_protocol();
    }
    builder
}

/// Serves a connection to its end: the client closes it or breaks the protocol, `limits.idle`
/// passes without a request, or the server leaves (`stop`). A connection that ends for a fault of
/// the client is logged and closed at once; otherwise crawlgate still reads on for a while.
pub async fn serve(edge: &Edge, connection: Box<Connection>, stop: ShutdownWatch) {
    let client = connection.client.clone();
    let counted = connection.counted.clone();
    let address = client.peer.address;
    let is_proxy = client.peer.is_trusted;
    let output = Output::new(connection);
    let limits = edge.limits();
    let handshake = output.flushing(builder(limits, is_proxy).handshake(output.clone()));
    let connection = match timeout(limits.handshake, handshake).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return edge.close_log.note(CloseReason::Http2, address, &error),
        Err(late) => {
            return edge
                .close_log
                .note(CloseReason::HandshakeTimeout, address, &late);
        }
    };
    let mut session = Session::new(edge, stop, client, counted, connection, output);
    let end = session.run().await;
    let connection = session.finish().await;
    if let Err((reason, detail)) = end {
        // At once: a client that floods would go on.
        return edge.close_log.note(reason, address, &detail);
    }
    if let Some(mut connection) = connection.filter(|connection| !connection.client.is_given_up()) {
        connection.linger(LINGERING).await;
    }
}
