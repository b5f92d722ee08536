//! The body of a request: not larger and not slower than the settings let it be. One that does not move at all is noticed
//! by Pingora.

use super::ctx::RequestContext;
use bytes::Bytes;
use pingora_core::{Error, ErrorType, Result};

/// Counts a piece of the body.
pub(super) fn check(piece: Option<&Bytes>, ctx: &mut RequestContext) -> Result<()> {
    let Some(ticket) = &mut ctx.ticket else { return Ok(()) };
    ticket.count_upload(piece.map_or(0, Bytes::len)).map_err(|error| {
        let mut error = Error::because(ErrorType::HTTPStatus(error.status()), "while reading the request", error);
        error.as_down();
        error
    })
}
