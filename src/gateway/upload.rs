//! The body of a request: not larger and not slower than the settings let it be. One that does not move at all is noticed
//! by the edge over HTTP/1, and over HTTP/2 by the time that the origin may take.

use super::Gateway;
use super::ctx::RequestContext;
use bytes::Bytes;
use pingora_core::{Error, ErrorSource, ErrorType, Result};

/// Counts a piece of the body.
pub(super) fn check(gateway: &Gateway, piece: Option<&Bytes>, ctx: &mut RequestContext) -> Result<()> {
    let limits = &gateway.limits;
    ctx.body_octets += piece.map_or(0, |piece| piece.len() as u64);
    if limits.body.is_some_and(|most| ctx.body_octets > most) {
        return refuse(gateway, 413, "body_too_large");
    }
    // What arrives in time is not measured, so that a short stop costs no client a request.
    let late = ctx.arrival.started.elapsed().saturating_sub(limits.stall).as_secs();
    if (limits.body_rate as u64).saturating_mul(late) > ctx.body_octets {
        return refuse(gateway, 408, "body_rate");
    }
    Ok(())
}

fn refuse(gateway: &Gateway, status: u16, reason: &'static str) -> Result<()> {
    gateway.metrics.request_rejected(reason);
    let mut error = Error::explain(ErrorType::HTTPStatus(status), reason);
    error.esource = ErrorSource::Downstream;
    Err(error)
}
