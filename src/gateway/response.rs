//! Handles the origin's response before Pingora sends it to the client. [`check_protocol_switch`]
//! rejects a switch of protocols that the client did not ask for. [`reserve_space`] reserves buffer
//! space for the response, and fails if there is none. [`rewrite_head`] removes hop-by-hop fields,
//! adds the fields of the policy, and adapts the head for HTTP/1.0.

use super::connection::{client_connection, connection_facts};
use super::peer::share_place_with_connection;
use super::{Gateway, GatewayContext};
use crate::forwarding::{EditableHead, is_dropped_from_response, remove_connection_named};
use crate::heads::{is_event_stream, list_members};
use crate::requests::{MAX_UNRESERVED, body_reservation, head_reservation};
use http::{Method, StatusCode, Version, header};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::Session;

/// Fails for a switch of protocols that the request did not ask for (RFC 9110 section 15.2.2): the
/// client would take what follows for the response. For Pingora `Upgrade` is enough (Pingora
/// 0.9.1), but a client that does not send `Connection: upgrade` expects no switch (RFC 9110
/// section 7.8).
pub fn check_protocol_switch(session: &Session, response: &ResponseHeader) -> Result<()> {
    let asks = session.is_upgrade_req() && wants_upgrade(session.req_header());
    if response.status != StatusCode::SWITCHING_PROTOCOLS || asks {
        return Ok(());
    }
    Err(Error::explain(
        ErrorType::InvalidHTTPHeader,
        "the request did not ask for another protocol",
    )
    .into_up())
}

/// Whether Connection has the token `upgrade`.
fn wants_upgrade(request: &RequestHeader) -> bool {
    let mut tokens = request.lines(header::CONNECTION).flat_map(list_members);
    tokens.any(|token| token.eq_ignore_ascii_case(b"upgrade"))
}

/// Removes hop-by-hop fields, and those that Connection names.
fn remove_hop_by_hop(response: &mut ResponseHeader) {
    let status = response.status;
    response.remove_if(|name| is_dropped_from_response(name, status));
    remove_connection_named(response);
}

/// Bytes that Pingora may read ahead of a client: four pieces wait, five are being written and one
/// has no place yet, of 64 KiB each, and what it writes is copied once more (Pingora 0.9.1).
const RESPONSE_READ_AHEAD: usize = 1024 * 1024;

/// Reserves buffer space for a response. Fails with 503 if there is none, or was none before.
pub fn reserve_space(
    session: &Session,
    response: &ResponseHeader,
    ctx: &mut GatewayContext,
) -> Result<()> {
    let has_no_body = response.status.is_informational()
        || matches!(
            response.status,
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        )
        || session.req_header().method == Method::HEAD;
    let Some(ticket) = &mut ctx.ticket else {
        return Ok(());
    };
    let body = if has_no_body {
        0
    } else {
        body_reservation(response, RESPONSE_READ_AHEAD)
    };
    ticket.reserve_buffers(head_reservation(head_size(response)) + body);
    if ticket.lacks_buffer_space() {
        return Err(Error::explain(ErrorType::HTTPStatus(503), "no space in buffers").into_down());
    }
    Ok(())
}

/// Bytes of names and values of a head, without separators and line ends.
fn head_size(head: &ResponseHeader) -> usize {
    head.headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}

/// Turns the head of the origin's response into the one for the client. An informational head loses
/// its hop-by-hop fields, and all fields once these heads have more than `MAX_UNRESERVED` bytes. A
/// switch of protocols is recorded, and releases the place at the server. A final head is reported
/// to `upstreams` and gets the fields of the policy.
pub fn rewrite_head(
    gateway: &Gateway,
    session: &mut Session,
    response: &mut ResponseHeader,
    ctx: &mut GatewayContext,
) {
    // Pingora calls this for informational responses too.
    if response.status.is_informational() {
        if response.status == StatusCode::SWITCHING_PROTOCOLS
            && let Some(connection) = client_connection(session)
        {
            connection.mark_protocol_switched();
            if let Some(ticket) = &mut ctx.ticket {
                ticket.switch_protocol();
            }
            ctx.attempts.record_response(
                &gateway.upstreams,
                response.status.as_u16(),
                ctx.arrival.monotonic,
                || true,
            );
            // The connection may last for days.
            ctx.attempts.release_place();
            share_place_with_connection(session, ctx);
        } else {
            remove_hop_by_hop(response);
            ctx.informational_bytes += head_size(response);
            if ctx.informational_bytes > MAX_UNRESERVED {
                response.remove_if(|_| true);
            }
        }
        return;
    }
    let status = response.status.as_u16();
    let origin_elapsed =
        ctx.attempts
            .record_response(&gateway.upstreams, status, ctx.arrival.monotonic, || {
                response.lines(header::CONTENT_TYPE).any(is_event_stream)
            });
    if let Some(ticket) = &mut ctx.ticket {
        ticket.record_origin_head(response, origin_elapsed);
    }
    share_place_with_connection(session, ctx);
    remove_hop_by_hop(response);
    // Pingora passes no trailers on (Pingora 0.9.1).
    response.remove_header(&header::TRAILER);
    if session.is_process_shutting_down() {
        session.set_keepalive(None);
    }
    if response.version == Version::HTTP_10 {
        // A proxy answers in its own version, whatever the origin's (RFC 9112 section 2.3). Where
        // Pingora makes a body chunked it says so, elsewhere (HEAD, or with a length) it would not.
        response.set_version(Version::HTTP_11);
    }
    if session.req_header().version == Version::HTTP_10 {
        response.remove_header(&header::TRANSFER_ENCODING);
    }
    if let Some(ticket) = &ctx.ticket {
        let origin_host = ticket.host_to_replace(&gateway.upstreams);
        ticket
            .head_writer(connection_facts(session))
            .write_response(response, response.status, origin_host);
        // The response has the X-Robots-Tag that the client gets.
        ctx.body.start(&response.headers);
    }
}
