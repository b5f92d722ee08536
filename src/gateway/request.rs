//! The request is received, and what is not forwarded is answered here.

use super::Gateway;
use super::ctx::RequestContext;
use super::early::shared;
use super::heads::{asked, mapped};
use super::send::send;
use crate::requests::Next;
use pingora_core::Result;
use pingora_proxy::Session;

/// What an open request over HTTP/2 takes, with its connection to the origin.
const REQUEST: usize = 24 * 1024;
/// How often its head is in memory, at most.
const COPIES: usize = 3;

/// Whether the request was answered.
pub(super) async fn filter(gateway: &Gateway, session: &mut Session, ctx: &mut RequestContext) -> Result<bool> {
    if ctx.ticket.is_some() {
        // The edge has received it, and answers what does not pass.
        return Ok(false);
    }
    let head = session.req_header();
    let (mut ticket, mut next) = gateway.requests.receive(&mapped(head), &shared(session), ctx.arrival);
    // `: ` and the line's end are four octets.
    let octets: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    ticket.hold(REQUEST + COPIES * octets);
    if ticket.lacks_space() {
        next = Next::Answer(ticket.forward(shared(session)).fail(503, &asked(head)));
    }
    ctx.ticket = Some(Box::new(ticket));
    match next {
        Next::Answer(answer) => {
            ctx.answered = Some(send(session, answer).await?);
            Ok(true)
        }
        Next::Forward => Ok(false),
    }
}
