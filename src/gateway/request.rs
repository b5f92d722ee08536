//! The judgement: the facts of the request go to the judge, and what is not forwarded is answered here.

use super::Gateway;
use super::ctx::RequestContext;
use super::heads::{asked, facts};
use super::send::send;
use crate::answers::{Answer, Ruling, rejection};
use crate::verdict::Scratch;
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::cell::RefCell;

thread_local! {
    /// One per worker; `decide` runs to its end on one thread.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Whether the request was answered.
pub(super) async fn filter(gateway: &Gateway, session: &mut Session, ctx: &mut RequestContext) -> Result<bool> {
    if let Some(reason) = ctx.rejection {
        let answer = rejection(reason, &asked(session.req_header()));
        ctx.answered = send(session, answer).await?;
        return Ok(true);
    }
    let judgement = SCRATCH.with_borrow_mut(|scratch| gateway.judge.judge(&facts(session.req_header(), ctx), scratch));
    ctx.judgement = Some(judgement);
    match answer(gateway, session.req_header(), ctx) {
        Some(answer) => {
            ctx.answered = send(session, answer).await?;
            Ok(true)
        }
        None => Ok(false),
    }
}

fn answer(gateway: &Gateway, request: &RequestHeader, ctx: &RequestContext) -> Option<Answer> {
    let judged = ctx.judgement.as_ref()?.judged()?;
    let ruling = Ruling {
        registry: gateway.judge.registry,
        snapshot: judged.snapshot(),
        entry: judged.entry(),
        decision: &judged.decision,
        now: ctx.now(),
        may_confirm_by_date: judged.may_confirm_by_date,
    };
    gateway.answers.answer(&ruling, &asked(request))
}
