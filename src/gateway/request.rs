//! The judgement: the facts of the request go to the judge, and what is not forwarded is answered here.

use super::Gateway;
use super::ctx::RequestContext;
use super::early::with_hsts;
use super::heads::{asked, facts};
use super::send::send;
use crate::answers::{Answer, Ruling, rejection};
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;

/// Whether the request was answered.
pub(super) async fn filter(gateway: &Gateway, session: &mut Session, ctx: &mut RequestContext) -> Result<bool> {
    if let Some(reason) = ctx.rejection {
        let answer = rejection(reason, &asked(session.req_header()));
        ctx.answered = send(session, with_hsts(answer, session)).await?;
        return Ok(true);
    }
    if ctx.judgement.is_none() {
        let facts = facts(session.req_header(), ctx);
        ctx.judgement = Some(gateway.judge.judge(&facts));
    }
    match answer(gateway, session.req_header(), ctx) {
        Some(answer) => {
            ctx.answered = send(session, with_hsts(answer, session)).await?;
            Ok(true)
        }
        None => Ok(false),
    }
}

fn answer(gateway: &Gateway, request: &RequestHeader, ctx: &RequestContext) -> Option<Answer> {
    let judged = ctx.judgement.as_ref()?.judged()?;
    let ruling = Ruling::new(judged, gateway.judge.registry(), ctx.now());
    gateway.answers.answer(&ruling, &asked(request))
}
