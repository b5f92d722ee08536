//! [`answer`] answers a request that could not be forwarded, with a page of crawlgate's and the
//! policy's tags for its status. Pingora does not run the response phase for it.

use super::early::shared;
use super::peer::note_failure;
use super::{Gateway, RequestContext};
use crate::answers::{Answer, Asked};
use crate::upstreams::{Reached, failure_status};
use pingora_core::{Error, ErrorSource, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::{FailToProxy, Session};

/// Handles that a request could not be forwarded to its end. Reports the failure of the server. If
/// nothing but informational responses was sent, the client gets an answer of crawlgate's; if a
/// page broke off, it gets what was still held of it. Returns the status for the log; the
/// connection is not used again.
pub async fn answer(
    gateway: &Gateway,
    session: &mut Session,
    error: &Error,
    ctx: &mut RequestContext,
) -> FailToProxy {
    // A failure before the body was counted when it happened.
    note_failure(gateway, ctx, Reached::Body, error);
    let has_begun = session
        .response_written()
        .is_some_and(|written| !written.status.is_informational());
    if has_begun && *error.esource() == ErrorSource::Upstream {
        let (held, end) = ctx.body.break_off();
        ctx.count_page(end);
        // Not the end: from the missing last chunk the client can tell that the page is incomplete.
        if let Err(error) = session
            .as_downstream_mut()
            .write_response_body(held, false)
            .await
        {
            tracing::debug!(%error, "what was held of a page could not be written");
        }
    }
    let status = failure_status(error);
    // Nothing can be written to a dead connection, nor after a first answer.
    if status > 0
        && !has_begun
        && let Some(ticket) = &ctx.ticket
    {
        let request = session.req_header();
        let asked = Asked {
            method: &request.method,
            headers: &request.headers,
        };
        let answer = ticket
            .forward(shared(session))
            .unanswered(status, &ctx.attempts, &asked);
        let written = match head(&answer) {
            Ok(head) => {
                session
                    .as_downstream_mut()
                    .write_error_response(head, answer.body().clone())
                    .await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            tracing::debug!(%error, "an error page could not be written");
        }
    }
    // It is not certain how much of the request was read, so the connection cannot go on.
    FailToProxy {
        error_code: status,
        can_reuse_downstream: false,
    }
}

/// The head of an answer as Pingora sends it.
fn head(answer: &Answer) -> Result<ResponseHeader> {
    let mut head = ResponseHeader::build(answer.status(), Some(12))?;
    for (field, value) in answer.fields() {
        head.append_header(field.written(), value.clone())?;
    }
    Ok(head)
}
