//! Takes over a client's connection from the module `edge`, which has received and judged the
//! request. [`take_ticket`] takes the ticket that `edge` left: the request, and the decision about
//! the request. It also configures the connection. [`connection_facts`] returns what all requests
//! of the connection have in common.

use super::{Gateway, GatewayContext};
use crate::requests::{ClientConnection, ConnectionFacts};
use http::{Version, header};
use pingora_proxy::Session;
use std::sync::Arc;

/// Configures the connection, and takes the ticket that the edge has left for this request into the
/// context, with the arrival.
pub fn take_ticket(gateway: &Gateway, session: &mut Session, ctx: &mut GatewayContext) {
    configure_connection(gateway, session);
    ctx.ticket = client_connection(session).and_then(ClientConnection::take_ticket);
    if let Some(ticket) = &ctx.ticket {
        ctx.arrival = ticket.arrival();
    }
}

/// Sets the read timeout to `limits.stall`, and keep-alive to `limits.idle`. A client of HTTP/1.0
/// gets no keep-alive and no informational responses, and its Expect and Upgrade are removed.
fn configure_connection(gateway: &Gateway, session: &mut Session) {
    // The edge has a timeout for writes.
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

/// What the edge has attached to the connection.
pub fn client_connection(session: &Session) -> Option<&ClientConnection> {
    let digest = session.digest()?.proxy_digest.as_ref()?;
    digest
        .user_data
        .as_ref()?
        .downcast_ref::<Arc<ClientConnection>>()
        .map(Arc::as_ref)
}

/// What all requests of the connection share; empty if the edge has attached nothing.
pub fn connection_facts(session: &Session) -> ConnectionFacts<'_> {
    client_connection(session).map_or_else(ConnectionFacts::default, |connection| {
        connection.facts(None)
    })
}
