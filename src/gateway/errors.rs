//! [`answer_failure`] answers a request that Pingora could not forward to the origin. The answer is
//! an error page of crawlgate. Pingora does not run its response phase for such a page. So the
//! header fields that the policy adds, such as X-Robots-Tag, are added here.

use super::connection::connection_facts;
use super::peer::report_failure;
use super::{Gateway, GatewayContext};
use crate::answers::{Answer, http1_name};
use crate::upstreams::{AttemptProgress, failure_status};
use pingora_core::{Error, ErrorSource, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::{FailToProxy, Session};

/// Called when a request could not be forwarded to its end. Reports the failure of the server. The
/// client gets an answer if no final head was sent, or the rest of a page that was being rewritten.
/// Returns the status for the log. The connection is not used again.
pub async fn answer_failure(
    gateway: &Gateway,
    session: &mut Session,
    error: &Error,
    ctx: &mut GatewayContext,
) -> FailToProxy {
    // A failure before the body was counted when it happened.
    report_failure(gateway, ctx, AttemptProgress::Body, error);
    let has_begun = session
        .response_written()
        .is_some_and(|written| !written.status.is_informational());
    if has_begun && *error.esource() == ErrorSource::Upstream {
        let (rest, end) = ctx.body.abort();
        ctx.count_rewrite_outcome(end);
        // Not the end: without the last chunk the client notices that the page is incomplete.
        if let Err(error) = session
            .as_downstream_mut()
            .write_response_body(rest, false)
            .await
        {
            tracing::debug!(%error, "the rest of a page could not be written");
        }
    }
    let status = failure_status(error);
    if status > 0
        && !has_begun
        && let Some(ticket) = &ctx.ticket
    {
        let answer = ticket
            .head_writer(connection_facts(session))
            .no_response_answer(status, &ctx.attempts, &session.req_header().headers);
        let written = match pingora_head(&answer) {
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
    // It is not known how much of the request was read.
    FailToProxy {
        error_code: status,
        can_reuse_downstream: false,
    }
}

/// The head of an answer as Pingora sends it.
fn pingora_head(answer: &Answer) -> Result<ResponseHeader> {
    let mut head = ResponseHeader::build(answer.status(), Some(12))?;
    for (field, value) in answer.fields() {
        head.append_header(http1_name(field), value.clone())?;
    }
    Ok(head)
}
