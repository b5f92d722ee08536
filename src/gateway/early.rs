//! [`take_over`] takes the ticket of a request that the edge has received, and sets the timeouts of
//! its connection. The ticket is the record of one request, with what was decided about it.
//! [`shared`] has the facts that all requests of the connection share.

use super::{Gateway, RequestContext};
use crate::forwarding::Peer;
use crate::requests::{ClientConnection, Connection};
use http::{Version, header};
use pingora_proxy::Session;
use std::sync::Arc;

/// Sets timeouts and keep-alive of the connection, and takes the ticket that the edge has left for
/// this request, with its arrival, into the context. Without a ticket the context stays as it is.
pub fn take_over(gateway: &Gateway, session: &mut Session, ctx: &mut RequestContext) {
    settle_connection(gateway, session);
    ctx.ticket = connection(session).and_then(ClientConnection::take_over);
    if let Some(ticket) = &ctx.ticket {
        ctx.arrival = ticket.arrival();
    }
}

/// Sets the read timeout to `limits.stall`, and keep-alive to `limits.idle` if it is on. A client
/// of HTTP/1.0 gets no keep-alive and no informational responses, and its Expect and Upgrade are
/// removed.
fn settle_connection(gateway: &Gateway, session: &mut Session) {
    // The edge watches whether the client takes what is written.
    session.set_read_timeout(Some(gateway.limits.stall));
    if session.req_header().version == Version::HTTP_10 {
        // A body of unknown length must end with the connection: chunked coding is not for HTTP/1.0
        // (Pingora 0.9.1).
        session.set_keepalive(None);
        // HTTP/1.0 has neither informational responses (RFC 9110 section 15.2) nor Expect and
        // Upgrade (sections 10.1.1, 7.8).
        session.set_ignore_info_resp(true);
        let head = session.req_header_mut();
        head.remove_header(&header::EXPECT);
        head.remove_header(&header::UPGRADE);
    } else if session.get_keepalive().is_some() {
        // Pingora makes keep-alive infinite after the first request. Asked only where it is on,
        // because setting it would switch it on for clients that asked to close (Pingora 0.9.1).
        session.set_keepalive(Some(gateway.limits.idle.as_secs().max(1)));
    }
}

/// The facts that the edge knows about the connection; `None` if Pingora has it from elsewhere.
pub fn connection(session: &Session) -> Option<&ClientConnection> {
    let digest = session.digest()?.proxy_digest.as_ref()?;
    digest
        .user_data
        .as_ref()?
        .downcast_ref::<Arc<ClientConnection>>()
        .map(Arc::as_ref)
}

/// The facts that all requests of the connection share. They are empty if the edge left none.
pub fn shared(session: &Session) -> Connection<'_> {
    match connection(session) {
        Some(connection) => connection.behind(None),
        None => Connection::from(Peer::default()),
    }
}
