//! [`choose`] gives Pingora a server for a request: a prepared address, never a name. [`failed`]
//! and [`note_failure`] report a failed server, after which another one may be tried.

use super::early::connection;
use super::{Gateway, RequestContext};
use crate::upstreams::{NoServer, Reached};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::Session;

/// The words in Pingora's error if no octet of a response had come. There is no other sign of that
/// (Pingora 0.9.1).
const NO_OCTETS: &str = "bytes already read: 0";

/// Chooses the server of the next attempt, and waits for a place at it if the origin has a bound. A
/// request without a body stops waiting when its client leaves. Fails if there is no server, which
/// the ticket records, or no ticket.
pub async fn choose(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut RequestContext,
) -> Result<Box<HttpPeer>> {
    let Some(ticket) = &ctx.ticket else {
        return Err(NoServer::NoOrigin.error());
    };
    let has_body = !session.is_body_empty();
    ctx.may_repeat = !has_body && matches!(ticket.method(), b"GET" | b"HEAD" | b"OPTIONS");
    ctx.has_octets = false;
    let wanted = ticket.wanted(ctx.may_repeat);
    let next = ctx.attempts.next(&gateway.upstreams, &wanted);
    let chosen = if has_body {
        next.await
    } else {
        tokio::select! {
            biased;
            chosen = next => chosen,
            // Nothing more of the request is to come, so this ends only when the client is gone.
            _ = session.as_downstream_mut().read_body_or_idle(true) => {
                let error = Error::explain(ErrorType::ConnectionClosed, "the client left while it waited");
                return Err(error.into_down());
            }
        }
    };
    if let Err(none) = chosen {
        if let Some(ticket) = &mut ctx.ticket {
            ticket.note_no_server(none);
        }
        return Err(none.error());
    }
    share_place(session, ctx);
    ctx.attempts
        .peer()
        .map(Box::new)
        .ok_or_else(|| NoServer::NoAddress.error())
}

/// Gives the client's connection the place of the request, so that a slow client gives it up; takes
/// it away if the request has none that it may give up.
pub fn share_place(session: &Session, ctx: &RequestContext) {
    if let Some(connection) = connection(session) {
        connection.set_place(ctx.attempts.place().cloned());
    }
}

/// Reports the failure of a request that was sent, at least in part, and returns the error with the
/// mark whether it may be sent once more. `is_kept` says that the connection was used before.
pub fn failed(
    gateway: &Gateway,
    ctx: &mut RequestContext,
    mut error: Box<Error>,
    is_kept: bool,
) -> Box<Error> {
    let is_silent =
        *error.etype() == ErrorType::WriteError || error.to_string().contains(NO_OCTETS);
    let reached = if ctx.has_octets {
        Reached::Body
    } else if !is_silent {
        Reached::Octets
    } else if is_kept {
        Reached::KeptConnection
    } else {
        Reached::NewConnection
    };
    let goes_on = note_failure(gateway, ctx, reached, &error);
    error.set_retry(goes_on);
    error
}

/// Reports to `upstreams` that the server did not answer, and how far it came. Returns whether the
/// request may be sent once more.
pub fn note_failure(
    gateway: &Gateway,
    ctx: &mut RequestContext,
    reached: Reached,
    error: &Error,
) -> bool {
    let Some(ticket) = &ctx.ticket else {
        return false;
    };
    ctx.attempts.failed(
        &gateway.upstreams,
        &ticket.wanted(ctx.may_repeat),
        reached,
        error,
    )
}
