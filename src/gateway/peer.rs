//! Where the request goes: a prepared address, never a name.

use super::Gateway;
use super::ctx::RequestContext;
use super::heads::host;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_proxy::Session;
use std::time::Instant;

/// Connections tried for a request.
pub(super) const ATTEMPTS: u8 = 2;

pub(super) fn choose(gateway: &Gateway, session: &Session, ctx: &mut RequestContext) -> Result<Box<HttpPeer>> {
    ctx.asked_origin.get_or_insert_with(Instant::now);
    ctx.attempts = ctx.attempts.saturating_add(1);
    match gateway.origins.peer(host(session.req_header())) {
        Some((peer, choice)) => {
            ctx.origin = Some(choice);
            Ok(peer)
        }
        None => {
            gateway.metrics.upstream_failure("no_address");
            Error::e_explain(ErrorType::HTTPStatus(502), "no origin with an address for this host")
        }
    }
}

/// Nothing of the request was sent, so that another try is safe whatever its method.
pub(super) fn connect_failed(gateway: &Gateway, ctx: &RequestContext, mut error: Box<Error>) -> Box<Error> {
    if let Some(choice) = ctx.origin {
        gateway.origins.connect_failed(choice);
    }
    if ctx.attempts < ATTEMPTS {
        error.set_retry(true);
    }
    error
}
