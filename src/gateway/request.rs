//! The request is received, and what is not forwarded is answered here.

use super::Gateway;
use super::ctx::RequestContext;
use super::early::shared;
use super::heads::mapped;
use super::send::send;
use crate::requests::Next;
use pingora_core::Result;
use pingora_proxy::Session;

/// Whether the request was answered.
pub(super) async fn filter(gateway: &Gateway, session: &mut Session, ctx: &mut RequestContext) -> Result<bool> {
    if ctx.ticket.is_some() {
        // The edge has received it, and answers what does not pass.
        return Ok(false);
    }
    let (ticket, next) = gateway.requests.receive(&mapped(session.req_header()), &shared(session), ctx.arrival);
    ctx.ticket = Some(Box::new(ticket));
    match next {
        Next::Answer(answer) => {
            ctx.answered = Some(send(session, answer).await?);
            Ok(true)
        }
        Next::Forward => Ok(false),
    }
}
