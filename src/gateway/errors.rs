//! When the request could not be forwarded: a page of our own, with the tags that the policy has for its status.
//! (Pingora does not run the response phase for it.)

use super::Gateway;
use super::body;
use super::ctx::RequestContext;
use super::early::{connection, shared};
use super::heads::{asked, host};
use super::send::head;
use crate::origin::{FailedRequest, failure_reason, failure_status};
use pingora_core::{Error, ErrorSource, ErrorType};
use pingora_http::RequestHeader;
use pingora_proxy::{FailToProxy, Session};

pub(super) async fn answer(
    gateway: &Gateway,
    session: &mut Session,
    error: &Error,
    ctx: &mut RequestContext,
) -> FailToProxy {
    if *error.esource() == ErrorSource::Upstream {
        gateway.metrics.upstream_failure(ctx.attempts.place(), failure_reason(error.etype()));
        count_failure(gateway, session.req_header(), ctx, failure_reason(error.etype()), error);
    }
    if is_reset(session, error)
        && let Some(connection) = connection(session)
    {
        connection.count_reset();
    }
    let begun = session.response_written().is_some_and(|written| !written.status.is_informational());
    if begun && *error.esource() == ErrorSource::Upstream {
        let held = body::broken_off(ctx);
        // Not the end: by the missing last chunk, or the reset of its stream, a client can tell.
        if let Err(error) = session.as_downstream_mut().write_response_body(held, false).await {
            tracing::debug!(%error, "what was held of a page could not be written");
        }
    }
    let status = failure_status(error);
    // Nothing can be written to a dead connection, nor after a first answer.
    if status > 0
        && session.response_written().is_none_or(|written| written.status.is_informational())
        && let Some(ticket) = &ctx.ticket
    {
        let (asked, forward) = (asked(session.req_header()), ticket.forward(shared(session)));
        let answer = match ctx.attempts.has_no_origin() {
            true => forward.has_no_origin(&asked),
            false => forward.fail(status, &asked),
        };
        let written = match head(&answer) {
            Ok(head) => session.as_downstream_mut().write_error_response(head, answer.body().clone()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "an error page could not be written");
        }
    }
    // What was read of the request, and what was not, is not known well enough to go on with the connection.
    FailToProxy { error_code: status, can_reuse_downstream: false }
}

/// Counts and logs, once for each server that was tried, that it did not answer the request.
pub(super) fn count_failure(
    gateway: &Gateway,
    request: &RequestHeader,
    ctx: &mut RequestContext,
    reason: &'static str,
    error: &dyn std::fmt::Display,
) {
    let (host, target, at) = (host(request), request.raw_path(), gateway.clock.moment());
    ctx.attempts.failed(&gateway.origins, &FailedRequest { host, target, reason, error, at });
}

/// Whether the stream of a request was reset, by the client or because the client broke the protocol.
fn is_reset(session: &Session, error: &Error) -> bool {
    session.is_http2()
        && *error.esource() == ErrorSource::Downstream
        && matches!(error.etype(), ErrorType::H2Error | ErrorType::ReadError | ErrorType::WriteError)
}

/// Whether an error is the client's own doing: clients go away all day, and none of it is news.
pub(super) fn is_clients_own(error: &Error, ctx: &RequestContext) -> bool {
    ctx.ticket.as_ref().is_some_and(|ticket| ticket.is_refused()) || *error.esource() == ErrorSource::Downstream
}
