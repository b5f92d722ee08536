//! The request on its way to the origin: Pingora's head, written by `forwarding`.

use super::ctx::RequestContext;
use super::early::shared;
use crate::heads::origin_form;
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::borrow::Cow;

pub(super) fn request_header(session: &Session, request: &mut RequestHeader, ctx: &RequestContext) -> Result<()> {
    let original = session.req_header();
    if let Cow::Owned(target) = origin_form(original.raw_path()) {
        request.set_raw_path(&target)?;
    }
    if let Some(ticket) = &ctx.ticket {
        let default_host = ctx.attempts.authority();
        ticket.forward(shared(session)).write_request(request, default_host);
    }
    Ok(())
}
