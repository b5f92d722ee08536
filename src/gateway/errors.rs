//! When the request could not be forwarded: a page of our own, with the tags that the policy has for its status.
//! (Pingora does not run the response phase for it.)

use super::Gateway;
use super::body;
use super::ctx::RequestContext;
use super::early::with_hsts;
use super::heads::{asked, host};
use super::send::head;
use crate::answers::{failure, no_origin};
use crate::origin::FailedRequest;
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
        gateway.metrics.upstream_failure(reason(error.etype()));
        count_failure(gateway, session.req_header(), ctx, reason(error.etype()), error);
    }
    let begun = session.response_written().is_some_and(|written| !written.status.is_informational());
    if begun && *error.esource() == ErrorSource::Upstream {
        let held = body::broken_off(gateway, ctx);
        // Not the end: by the missing last chunk, or the reset of its stream, a client can tell.
        if let Err(error) = session.as_downstream_mut().write_response_body(held, false).await {
            tracing::debug!(%error, "what was held of a page could not be written");
        }
    }
    let status = status(error);
    // Nothing can be written to a dead connection, nor after a first answer.
    if status > 0 && session.response_written().is_none_or(|written| written.status.is_informational()) {
        let request = session.req_header();
        let answer = match ctx.has_no_origin {
            true => no_origin(host(request), &asked(request), ctx.judged()),
            false => failure(status, &asked(request), ctx.judged()),
        };
        let answer = with_hsts(answer, session);
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
    let Some(choice) = ctx.origin.filter(|_| !ctx.failure_counted) else { return };
    ctx.failure_counted = true;
    let (host, target, at) = (host(request), request.raw_path(), gateway.judge.clock.moment());
    gateway.origins.failed(choice, &FailedRequest { host, target, reason, error, at });
}

/// Pingora's mapping, with 504 for an origin that is too slow.
fn status(error: &Error) -> u16 {
    match (error.etype(), error.esource()) {
        (ErrorType::HTTPStatus(status), _) => *status,
        (kind, ErrorSource::Upstream) if is_timeout(kind) => 504,
        (_, ErrorSource::Upstream) => 502,
        (ErrorType::ReadTimedout, ErrorSource::Downstream) => 408,
        (ErrorType::WriteError | ErrorType::ReadError | ErrorType::ConnectionClosed, ErrorSource::Downstream) => 0,
        (_, ErrorSource::Downstream) => 400,
        (_, ErrorSource::Internal | ErrorSource::Unset) => 500,
    }
}

fn is_timeout(kind: &ErrorType) -> bool {
    matches!(
        kind,
        ErrorType::ConnectTimedout
            | ErrorType::TLSHandshakeTimedout
            | ErrorType::ReadTimedout
            | ErrorType::WriteTimedout
    )
}

/// A fixed word for metric, log and status.
pub(super) fn reason(kind: &ErrorType) -> &'static str {
    match kind {
        ErrorType::ConnectTimedout => "connect_timeout",
        ErrorType::ConnectRefused => "connect_refused",
        ErrorType::ConnectNoRoute | ErrorType::ConnectError | ErrorType::SocketError => "connect",
        ErrorType::TLSHandshakeFailure | ErrorType::TLSHandshakeTimedout | ErrorType::InvalidCert => "tls",
        ErrorType::ReadTimedout => "read_timeout",
        ErrorType::WriteTimedout => "write_timeout",
        ErrorType::ReadError | ErrorType::ConnectionClosed => "read",
        ErrorType::WriteError => "write",
        ErrorType::InvalidHTTPHeader => "invalid_response",
        _ => "other",
    }
}

/// Whether an error is the client's own doing: clients go away all day, and none of it is news.
pub(super) fn is_clients_own(error: &Error, ctx: &RequestContext) -> bool {
    ctx.rejection.is_some() || *error.esource() == ErrorSource::Downstream
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_that_is_too_slow_is_told_from_one_that_is_down() {
        assert_eq!(status(&Error::new_up(ErrorType::ConnectTimedout)), 504);
        assert_eq!(status(&Error::new_up(ErrorType::ReadTimedout)), 504);
        assert_eq!(status(&Error::new_up(ErrorType::ConnectRefused)), 502);
        assert_eq!(status(&Error::new_up(ErrorType::InvalidHTTPHeader)), 502);
    }

    #[test]
    fn a_client_that_left_gets_nothing_and_one_that_erred_gets_400() {
        assert_eq!(status(&Error::new_down(ErrorType::ConnectionClosed)), 0);
        assert_eq!(status(&Error::new_down(ErrorType::InvalidHTTPHeader)), 400);
        assert_eq!(status(&Error::new_in(ErrorType::InternalError)), 500);
        assert_eq!(status(&Error::new_in(ErrorType::HTTPStatus(502))), 502);
    }
}
