//! The origin's response on its way to the client, in Pingora's proxy. [`check_switch`] refuses an
//! unrequested switch of protocols. [`hold`] reserves buffer space. [`filter`] rewrites the head:
//! it removes the fields of one hop, adds the fields of the policy, and adapts the head for
//! HTTP/1.0.

use super::early::{connection, shared};
use super::peer::share_place;
use super::{Gateway, RequestContext};
use crate::forwarding::{Head, ends_here, remove_named_by_connection};
use crate::heads::{is_event_stream, members};
use crate::requests::{SMALL, memory_of_body, memory_of_head};
use http::{Method, StatusCode, Version, header};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::Session;

/// Refuses a switch of protocols that the request did not ask for (RFC 9110 section 15.2.2): the
/// client would take what follows for the response. Pingora takes `Upgrade` alone for the request
/// of one (Pingora 0.9.1); a client that sends no `Connection: upgrade` beside it does not expect
/// one (RFC 9110 section 7.8).
pub fn check_switch(session: &Session, response: &ResponseHeader) -> Result<()> {
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
    let mut tokens = request.lines(header::CONNECTION).flat_map(members);
    tokens.any(|token| token.eq_ignore_ascii_case(b"upgrade"))
}

/// Removes the fields that concern the connection to the origin alone, and those that Connection
/// names.
fn remove_of_one_hop(response: &mut ResponseHeader) {
    let status = response.status;
    response.remove_if(|name| ends_here(name, status));
    remove_named_by_connection(response);
}

/// Octets that Pingora may read ahead of a client: four pieces wait, five are being written and one
/// has no place yet, of 64 KiB each, and what it writes is joined (Pingora 0.9.1).
const AHEAD: usize = 1024 * 1024;

/// Reserves buffer space for a response; for its body only if it has one. Fails with 503 without
/// space, and also if space was missing for this request before.
pub fn hold(session: &Session, response: &ResponseHeader, ctx: &mut RequestContext) -> Result<()> {
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
        memory_of_body(response, AHEAD)
    };
    ticket.hold(memory_of_head(bytes_of(response)) + body);
    if ticket.lacks_space() {
        return Err(Error::explain(ErrorType::HTTPStatus(503), "no space in buffers").into_down());
    }
    Ok(())
}

/// Bytes of names and values of a head; line ends and separators do not count.
fn bytes_of(head: &ResponseHeader) -> usize {
    head.headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}

/// Turns the head of the origin's response into the one for the client. An informational head only
/// loses the fields of one hop, and all fields once these heads have more than `SMALL` bytes. A
/// switch of protocols is recorded, and gives the request's place at the server back. Every other
/// head is reported to `upstreams` and gets the fields of the policy.
pub fn filter(
    gateway: &Gateway,
    session: &mut Session,
    response: &mut ResponseHeader,
    ctx: &mut RequestContext,
) {
    // Early hints and the like are no answer (Pingora shows them here too); a switch of protocols
    // has no page to tag.
    if response.status.is_informational() {
        if response.status == StatusCode::SWITCHING_PROTOCOLS
            && let Some(connection) = connection(session)
        {
            connection.switch_protocol();
            if let Some(ticket) = &mut ctx.ticket {
                ticket.switch_protocol();
            }
            ctx.attempts.answered(
                &gateway.upstreams,
                response.status.as_u16(),
                ctx.arrival.lived,
                || true,
            );
            // The connection may last for days, and the server has done what its place was for.
            ctx.attempts.leave();
            share_place(session, ctx);
        } else {
            remove_of_one_hop(response);
            ctx.informational_bytes += bytes_of(response);
            if ctx.informational_bytes > SMALL {
                response.remove_if(|_| true);
            }
        }
        return;
    }
    let status = response.status.as_u16();
    let origin_elapsed =
        ctx.attempts
            .answered(&gateway.upstreams, status, ctx.arrival.lived, || {
                response.lines(header::CONTENT_TYPE).any(is_event_stream)
            });
    if let Some(ticket) = &mut ctx.ticket {
        ticket.set_origin_elapsed(origin_elapsed);
    }
    share_place(session, ctx);
    remove_of_one_hop(response);
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
            .forward(shared(session))
            .write_response(response, response.status, origin_host);
        // The response has the X-Robots-Tag that the client gets.
        ctx.body.begin(&response.headers);
    }
}
