//! When the request could not be forwarded: a page of our own, with the tags that the policy has for its status.
//! (Pingora does not run the response phase for it.)

use super::Gateway;
use super::body;
use super::ctx::RequestContext;
use super::early::shared;
use super::heads::asked;
use super::peer::may_go_on;
use crate::answers::Answer;
use crate::upstreams::{Reached, failure_status};
use pingora_core::{Error, ErrorSource, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::{FailToProxy, Session};

pub(super) async fn answer(
    gateway: &Gateway,
    session: &mut Session,
    error: &Error,
    ctx: &mut RequestContext,
) -> FailToProxy {
    // What came before the body was told when it happened.
    may_go_on(gateway, ctx, Reached::Body, error);
    let begun = session.response_written().is_some_and(|written| !written.status.is_informational());
    if begun && *error.esource() == ErrorSource::Upstream {
        let held = body::broken_off(ctx);
        // Not the end: by the missing last chunk a client can tell.
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
        let answer = forward.unanswered(status, &ctx.attempts, &asked);
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

/// The head of an answer as Pingora sends it.
fn head(answer: &Answer) -> Result<ResponseHeader> {
    let mut head = ResponseHeader::build(answer.status(), Some(12))?;
    for (field, value) in answer.fields() {
        head.append_header(field.written(), value.clone())?;
    }
    Ok(head)
}

/// Whether an error is the client's own doing: clients go away all day, and none of it is news.
pub(super) fn is_clients_own(error: &Error, ctx: &RequestContext) -> bool {
    ctx.ticket.as_ref().is_some_and(|ticket| ticket.is_refused()) || *error.esource() == ErrorSource::Downstream
}
