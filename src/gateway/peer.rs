//! Where the request goes: a prepared address, never a name.

use super::Gateway;
use super::ctx::RequestContext;
use super::errors::count_failure;
use super::heads::host;
use crate::origin::{NoPeer, failure_reason};
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::Session;

pub(super) fn choose(gateway: &Gateway, session: &Session, ctx: &mut RequestContext) -> Result<Box<HttpPeer>> {
    let request = session.req_header();
    let chosen = ctx.attempts.next(&gateway.origins, host(request));
    let error = match chosen.and_then(|choice| gateway.origins.http_peer(choice)) {
        Ok(peer) => return Ok(peer),
        Err(error) => error,
    };
    gateway.metrics.upstream_failure(ctx.attempts.place(), error.reason());
    match error {
        NoPeer::NoAddress(_) => count_failure(gateway, request, ctx, error.reason(), &error),
        NoPeer::NoOrigin => gateway.origins.has_no_origin(host(request), request.raw_path(), ctx.arrival.lived),
    }
    Error::e_explain(ErrorType::HTTPStatus(502), error.to_string())
}

/// Nothing of the request was sent, so that another try is safe whatever its method.
pub(super) fn connect_failed(
    gateway: &Gateway,
    session: &Session,
    ctx: &mut RequestContext,
    mut error: Box<Error>,
) -> Box<Error> {
    ctx.attempts.connect_failed(&gateway.origins);
    // Another server may answer the request. That this one does not is still to be seen.
    count_failure(gateway, session.req_header(), ctx, failure_reason(error.etype()), &error);
    if ctx.attempts.may_go_on() {
        error.set_retry(true);
    }
    error
}
