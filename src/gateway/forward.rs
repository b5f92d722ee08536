//! The request on its way to the origin: Pingora's head, written by `forwarding`.

use super::Gateway;
use super::ctx::RequestContext;
use super::early::shared;
use crate::heads::origin_form;
use bytes::Bytes;
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::borrow::Cow;

pub(super) fn request_header(
    gateway: &Gateway,
    session: &Session,
    request: &mut RequestHeader,
    ctx: &RequestContext,
) -> Result<()> {
    let original = session.req_header();
    if let Cow::Owned(target) = origin_form(original.raw_path()) {
        request.set_raw_path(&target)?;
    }
    if let Some(ticket) = &ctx.ticket {
        let default_host = ctx.attempts.choice().and_then(|choice| gateway.origins.authority(choice));
        ticket.forward(shared(session)).write_request(request, session.is_http2(), default_host);
    }
    Ok(())
}

/// Pingora issue 935: an empty last chunk from HTTP/2 becomes a second end of the body in HTTP/1, and what follows on
/// the connection is taken for another response.
pub(super) fn end_request_body(body: &mut Option<Bytes>, end_of_stream: bool) {
    if end_of_stream && body.as_ref().is_some_and(Bytes::is_empty) {
        *body = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_last_chunk_is_no_chunk() {
        let mut body = Some(Bytes::new());
        end_request_body(&mut body, true);
        assert_eq!(body, None);
        let mut body = Some(Bytes::from_static(b"x"));
        end_request_body(&mut body, true);
        assert_eq!(body.as_deref(), Some(b"x".as_slice()));
        let mut body = Some(Bytes::new());
        end_request_body(&mut body, false);
        assert!(body.is_some());
    }
}
