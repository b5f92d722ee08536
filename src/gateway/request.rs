//! The decision: facts are gathered, the engine is asked, and what is not forwarded is answered here.

use super::answers::{self, Reply};
use super::ctx::RequestContext;
use super::{Gateway, behaviour, forward, robots_txt, signals};
use crate::crawlers::Claim;
use crate::verdict::{Action, Claimant, Decision, Facts, Holdings, Scratch, decide_for, identity_by_policy};
use http::header;
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A request body up to this size is read and thrown away when the request is answered here, so that the connection
/// can go on; a longer one closes it (Pingora 0.9.1).
const DRAINED_BODY: u64 = 64 * 1024;
/// What is read of a longer one while the connection is being closed.
const LINGERING_BODY: usize = 1024 * 1024;
/// How long either may take.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

thread_local! {
    /// One per worker; `decide` runs to its end on one thread.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Whether the request was answered.
pub(super) async fn filter(gateway: &Gateway, session: &mut Session, ctx: &mut RequestContext) -> Result<bool> {
    if let Some(refusal) = ctx.refusal {
        let reply = answers::refusal(refusal, session.req_header())?;
        ctx.answered = send(session, reply).await;
        return Ok(true);
    }
    let before = Instant::now();
    let decision = judge(gateway, session.req_header(), ctx);
    ctx.decision =
        Some(if signals::shows_license_token(session.req_header()) { decision.with_license_token() } else { decision });
    gateway.metrics.decision(before.elapsed().as_secs_f64());
    match reply(gateway, session.req_header(), ctx)? {
        Some(reply) => {
            ctx.answered = send(session, reply).await;
            Ok(true)
        }
        None => Ok(false),
    }
}

fn judge(gateway: &Gateway, request: &RequestHeader, ctx: &mut RequestContext) -> Decision {
    let target = forward::origin_form(request.raw_path());
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

/// The host that is asked for: the Host field, `:authority` in HTTP/2, nothing in some HTTP/1.0 requests.
pub(super) fn host(request: &RequestHeader) -> &[u8] {
    match request.headers.get(header::HOST) {
        Some(host) => host.as_bytes().trim_ascii(),
        None => request.uri.authority().map_or(b"".as_slice(), |authority| authority.as_str().as_bytes()),
    }
}

fn reply(gateway: &Gateway, request: &RequestHeader, ctx: &RequestContext) -> Result<Option<Reply>> {
    let Some((decision, entry)) = ctx.judged() else { return Ok(None) };
    let mut reply = match decision.action {
        Action::Pass => return Ok(None),
        Action::RobotsTxt => robots_txt::reply(entry, request, ctx.now(), ctx.in_force)?,
        Action::Pause { retry_after } => answers::pause(retry_after, request)?,
        Action::License { status } => signals::license_wanted(status, gateway.registry, entry, decision, request)?,
        Action::TdmRep => match entry.site.signals.tdmrep() {
            Some(file) => signals::tdmrep(file, request)?,
            None => return Ok(None),
        },
        Action::Block(answer) | Action::Slow { answer, .. } => match entry.site.answers.get(usize::from(answer)) {
            Some(answer) => answers::block(answer, &answers::Reason::new(gateway.registry, entry, decision), request)?,
            None => return Ok(None),
        },
    };
    answers::attach_tags(&mut reply.header, ctx)?;
    Ok(Some(reply))
}

/// Writes an answer of our own, and says whether all of it was written. A client that has gone away is no error of
/// ours.
async fn send(session: &mut Session, reply: Reply) -> bool {
    settle_body(session);
    if reply.close {
        session.set_keepalive(None);
    }
    let bodiless = reply.body.is_empty() || session.req_header().method == http::Method::HEAD;
    let mut written = session.write_response_header(Box::new(reply.header), bodiless).await;
    if written.is_ok() && !bodiless {
        written = session.write_response_body(Some(reply.body), true).await;
    }
    match written {
        Ok(()) => {
            linger(session).await;
            true
        }
        Err(error) => {
            tracing::debug!(%error, "the client left before its answer was written");
            session.set_keepalive(None);
            false
        }
    }
}

/// A connection that is closed while the client still sends is reset, and the client may lose the answer. So what it
/// sends is read for a while, when the connection is about to end.
async fn linger(session: &mut Session) {
    let waits = session.req_header().headers.contains_key(header::EXPECT);
    if session.is_http2() || waits || session.get_keepalive().is_some() || session.is_body_done() {
        return;
    }
    let read = async {
        session.as_downstream_mut().finish_body().await?;
        let mut left = LINGERING_BODY;
        while let Some(piece) = session.read_request_body().await? {
            match left.checked_sub(piece.len()) {
                Some(rest) => left = rest,
                None => break,
            }
        }
        Ok::<(), Box<pingora_core::Error>>(())
    };
    // Whatever comes of it, the connection ends now.
    let _ = tokio::time::timeout(DRAIN_LIMIT, read).await;
}

/// What becomes of a request body that nobody will read.
fn settle_body(session: &mut Session) {
    if session.is_http2() || session.is_body_done() {
        return;
    }
    let headers = &session.req_header().headers;
    let length = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.trim().parse::<u64>().ok());
    // After `Expect: 100-continue` the client may leave the body out, and what comes next would be taken for it.
    if length.is_some_and(|length| length <= DRAINED_BODY) && !headers.contains_key(header::EXPECT) {
        session.set_close_on_response_before_downstream_finish(false);
        session.set_total_drain_timeout(Some(DRAIN_LIMIT));
    }
}
