//! The decision: facts are gathered, the engine is asked, and what is not forwarded is answered here.

use super::ctx::RequestContext;
use super::heads::{asked, host};
use super::send::send;
use super::{Gateway, behaviour};
use crate::answers::{Answer, Ruling, rejection};
use crate::crawlers::Claim;
use crate::heads::{has_license_token, origin_form};
use crate::verdict::{Claimant, Decision, Facts, Holdings, Scratch, decide_for, identity_by_policy};
use http::header;
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::cell::RefCell;
use std::time::Instant;

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
    let before = Instant::now();
    let decision = judge(gateway, session.req_header(), ctx);
    let has_token = has_license_token(&session.req_header().headers);
    ctx.decision = Some(if has_token { decision.with_license_token() } else { decision });
    gateway.metrics.decision(before.elapsed().as_secs_f64());
    match answer(gateway, session.req_header(), ctx) {
        Some(answer) => {
            ctx.answered = send(session, answer).await?;
            Ok(true)
        }
        None => Ok(false),
    }
}

fn answer(gateway: &Gateway, request: &RequestHeader, ctx: &RequestContext) -> Option<Answer> {
    let (decision, entry) = ctx.judged()?;
    let ruling = Ruling {
        registry: gateway.registry,
        snapshot: &ctx.snapshot,
        entry,
        decision,
        now: ctx.now(),
        has_version_in_force: ctx.in_force,
    };
    gateway.answers.answer(&ruling, &asked(request))
}

fn judge(gateway: &Gateway, request: &RequestHeader, ctx: &mut RequestContext) -> Decision {
    let target = origin_form(request.raw_path());
    let mut facts = Facts {
        host: host(request),
        target: &target,
        method: request.method.as_str().as_bytes(),
        user_agent: request.headers.get(header::USER_AGENT).map_or(b"".as_slice(), |value| value.as_bytes()),
        client: ctx.client,
        identity: ctx.identity,
        now: ctx.now(),
    };
    let (snapshot, registry) = (&*ctx.snapshot, gateway.registry);
    let claimant = Claimant::of(snapshot, registry, &facts);
    let entry = claimant.site.and_then(|site| snapshot.sites().get(site));
    if let Some(entry) = entry.filter(|entry| claimant.claim != Claim::Nobody && entry.site.lists_addresses()) {
        let may_accuse = behaviour::may_accuse(request, ctx);
        let identity = identity_by_policy(&entry.site, &facts, claimant.claim, may_accuse);
        facts.identity = gateway.ledger.weigh(registry, entry, claimant.claim, identity, facts.now);
    }
    let holdings = entry.map_or_else(Holdings::default, |entry| {
        gateway.ledger.holdings(registry, entry, facts.host, claimant.claim, ctx.moment())
    });
    let how = gateway.behaviours.take_in(snapshot, registry, &facts, claimant, &holdings, ctx.moment().lived);
    let judged = |scratch: &mut Scratch| decide_for(snapshot, registry, &facts, claimant, &holdings, how, scratch);
    let decision = SCRATCH.with_borrow_mut(judged);
    if decision.trap_hit {
        gateway.behaviours.remember(&decision, snapshot, registry, &facts, ctx.moment().lived);
    }
    (ctx.identity, ctx.held, ctx.in_force) = (facts.identity, holdings.held, holdings.in_force);
    decision
}
