//! The origin's answer on its way to the client: Pingora's head, written by `forwarding`, and what HTTP/1.0 needs.

use super::Gateway;
use super::ctx::RequestContext;
use super::early::connection;
use crate::forwarding::{ForwardedResponse, write_response};
use http::{StatusCode, Version, header};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;

pub(super) fn filter(
    gateway: &Gateway,
    session: &mut Session,
    response: &mut ResponseHeader,
    ctx: &mut RequestContext,
) {
    // Early hints and the like are no answer (Pingora shows them here too); a switch of protocols has no page to tag.
    if response.status.is_informational() {
        if response.status == StatusCode::SWITCHING_PROTOCOLS
            && let Some(connection) = connection(session)
        {
            connection.switch_protocol();
        }
        return;
    }
    if let Some(elapsed) = ctx.attempts.answered(&gateway.origins, response.status.as_u16(), ctx.arrival.lived) {
        gateway.metrics.upstream(response.status.as_u16(), elapsed.as_secs_f64());
    }
    if session.is_process_shutting_down() {
        session.set_keepalive(None);
    }
    if response.version == Version::HTTP_10 {
        // A proxy answers in its own version, whatever the origin's (RFC 9112 section 2.3). Where Pingora makes a body
        // chunked it says so, elsewhere (HEAD, or with a length) it would not.
        response.set_version(Version::HTTP_11);
    }
    if session.req_header().version == Version::HTTP_10 {
        response.remove_header(&header::TRANSFER_ENCODING);
    }
    let hsts = connection(session).and_then(|connection| connection.hsts.as_ref());
    let forwarded = ForwardedResponse { status: response.status, hsts, judged: ctx.judged() };
    write_response(response, &forwarded);
}
