//! Where the request goes: a prepared address, never a name.

use super::Gateway;
use super::ctx::RequestContext;
use super::errors::count_failure;
use super::heads::host;
use crate::origin::NoPeer;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::Session;
use std::time::Instant;

/// Connections tried for a request.
pub(super) const ATTEMPTS: u8 = 2;

pub(super) fn choose(gateway: &Gateway, session: &Session, ctx: &mut RequestContext) -> Result<Box<HttpPeer>> {
    ctx.asked_origin.get_or_insert_with(Instant::now);
    ctx.attempts = ctx.attempts.saturating_add(1);
    let request = session.req_header();
    match gateway.origins.peer(host(request)) {
        Ok((peer, choice)) => {
            let is_tried_again = ctx.origin.is_some_and(|before| before.is_same_server(choice));
            ctx.failure_counted &= is_tried_again;
            ctx.origin = Some(choice);
            Ok(peer)
        }
        Err(NoPeer::NoAddress(choice)) => {
            ctx.origin = Some(choice);
            gateway.metrics.upstream_failure("no_address");
            let error = "the name of the origin has no address";
            count_failure(gateway, request, ctx, "no_address", &error);
            Error::e_explain(ErrorType::HTTPStatus(502), error)
        }
        Err(NoPeer::NoOrigin) => {
            ctx.has_no_origin = true;
            gateway.metrics.upstream_failure("no_origin");
            gateway.origins.has_no_origin(host(request), request.raw_path(), ctx.arrival.lived);
            Error::e_explain(ErrorType::HTTPStatus(502), "no origin for this host")
        }
    }
}

/// Nothing of the request was sent, so that another try is safe whatever its method.
pub(super) fn connect_failed(
    gateway: &Gateway,
    session: &Session,
    ctx: &mut RequestContext,
    mut error: Box<Error>,
) -> Box<Error> {
    if let Some(choice) = ctx.origin {
        gateway.origins.connect_failed(choice);
    }
    // Another server may answer the request. That this one does not is still to be seen.
    count_failure(gateway, session.req_header(), ctx, super::errors::reason(error.etype()), &error);
    if ctx.attempts < ATTEMPTS {
        error.set_retry(true);
    }
    error
}
