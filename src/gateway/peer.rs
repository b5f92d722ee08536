//! [`choose_peer`] chooses to which server of the origin Pingora sends a request. It gives Pingora
//! the address of that server, so Pingora looks up no names. [`report_failure`] reports that a
//! server failed, and says whether the request may be sent to another one.

use super::connection::client_connection;
use super::{Gateway, GatewayContext};
use crate::upstreams::{AttemptProgress, NoServer};
use AttemptProgress::*;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::Session;

/// In the text of Pingora's error if no byte of a response has come. There is no other sign of that
/// (Pingora 0.9.1).
const NO_BYTES_READ: &str = "bytes already read: 0";

/// Chooses the server of the next attempt, and waits for a place at it if places are bounded. A
/// request without a body stops waiting when its client leaves. Fails, and records it in the
/// ticket, if there is no server.
pub async fn choose_peer(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut GatewayContext,
) -> Result<Box<HttpPeer>> {
    let Some(ticket) = &ctx.ticket else {
        return Err(NoServer::NoOrigin.error());
    };
    let has_body = !session.is_body_empty();
    ctx.may_repeat = !has_body && matches!(ticket.method(), b"GET" | b"HEAD" | b"OPTIONS");
    ctx.has_response = false;
    let wanted = ticket.routing_facts(ctx.may_repeat);
    let next = ctx.attempts.next_server(&gateway.upstreams, &wanted);
    let chosen = if has_body {
        next.await
    } else {
        tokio::select! {
            biased;
            chosen = next => chosen,
            // There is no body, so that this ends only when the client leaves.
            _ = session.as_downstream_mut().read_body_or_idle(true) => {
                let error = Error::explain(ErrorType::ConnectionClosed, "the client left while it waited");
                return Err(error.into_down());
            }
        }
    };
    if let Err(none) = chosen {
        if let Some(ticket) = &mut ctx.ticket {
            ticket.record_no_server(none);
        }
        return Err(none.error());
    }
    if let Some(ticket) = &mut ctx.ticket {
        ticket.set_server(ctx.attempts.server_address());
    }
    share_place_with_connection(session, ctx);
    ctx.attempts
        .peer()
        .map(Box::new)
        .ok_or_else(|| NoServer::NoAddress.error())
}

/// Tells the client's connection which place the request has, so that a slow client loses it.
pub fn share_place_with_connection(session: &Session, ctx: &GatewayContext) {
    if let Some(connection) = client_connection(session) {
        connection.set_place(ctx.attempts.releasable_place().cloned());
    }
}

/// Reports the failure of a request that was sent, at least in part. Marks in the error whether it
/// may be sent again. `is_reused` is whether the connection was used before.
pub fn report_request_failure(
    gateway: &Gateway,
    ctx: &mut GatewayContext,
    mut error: Box<Error>,
    is_reused: bool,
) -> Box<Error> {
    let is_silent =
        *error.etype() == ErrorType::WriteError || error.to_string().contains(NO_BYTES_READ);
    let reached = if ctx.has_response {
        Body
    } else if !is_silent {
        Bytes
    } else if is_reused {
        KeptConnection
    } else {
        NewConnection
    };
    let may_retry = report_failure(gateway, ctx, reached, &error);
    error.set_retry(may_retry);
    error
}

/// Reports to `upstreams` that the server failed. Returns whether the request may be sent again.
pub fn report_failure(
    gateway: &Gateway,
    ctx: &mut GatewayContext,
    reached: AttemptProgress,
    error: &Error,
) -> bool {
    let Some(ticket) = &ctx.ticket else {
        return false;
    };
    ctx.attempts.record_failure(
        &gateway.upstreams,
        &ticket.routing_facts(ctx.may_repeat),
        reached,
        error,
    )
}
