//! The judgement: the facts of the request go to the judge, and what is not forwarded is answered here.

use super::answers::{self, Reply};
use super::ctx::RequestContext;
use super::{Gateway, client, robots_txt, signals};
use crate::judge::{Judgement, RequestFacts};
use crate::verdict::{Action, Scratch};
use http::{HeaderValue, header};
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::cell::RefCell;
use std::time::Duration;

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
    let judgement = SCRATCH.with_borrow_mut(|scratch| gateway.judge.judge(&facts(session.req_header(), ctx), scratch));
    ctx.judgement = Some(judgement);
    match reply(gateway, session.req_header(), ctx)? {
        Some(reply) => {
            ctx.answered = send(session, reply).await;
            Ok(true)
        }
        None => Ok(false),
    }
}

/// What the judge is told of a request.
pub(super) fn facts<'a>(request: &'a RequestHeader, ctx: &RequestContext) -> RequestFacts<'a> {
    RequestFacts {
        host: host(request),
        target: request.raw_path(),
        method: request.method.as_str().as_bytes(),
        user_agent: request.headers.get(header::USER_AGENT).map(HeaderValue::as_bytes),
        client: ctx.client,
        address_may_accuse: ctx.peer_trusted || !client::names_another(&request.headers),
        has_license_token: signals::shows_license_token(request),
        arrived: ctx.arrived,
        lived: ctx.lived,
    }
}

/// The host that is asked for: the Host field, `:authority` in HTTP/2, nothing in some HTTP/1.0 requests.
pub(super) fn host(request: &RequestHeader) -> &[u8] {
    match request.headers.get(header::HOST) {
        Some(host) => host.as_bytes().trim_ascii(),
        None => request.uri.authority().map_or(b"".as_slice(), |authority| authority.as_str().as_bytes()),
    }
}

fn reply(gateway: &Gateway, request: &RequestHeader, ctx: &RequestContext) -> Result<Option<Reply>> {
    let Some(judged) = ctx.judgement.as_ref().and_then(Judgement::judged) else { return Ok(None) };
    let (decision, entry, registry) = (&judged.decision, judged.entry(), gateway.judge.registry);
    let mut reply = match decision.action {
        Action::Pass => return Ok(None),
        Action::RobotsTxt => robots_txt::reply(entry, request, ctx.now(), judged.has_version_in_force)?,
        Action::Pause { retry_after } => answers::pause(retry_after, request)?,
        Action::License { status } => signals::license_wanted(status, registry, entry, decision, request)?,
        Action::TdmRep => match entry.site.signals.tdmrep() {
            Some(file) => signals::tdmrep(file, request)?,
            None => return Ok(None),
        },
        Action::Block(answer) | Action::Slow { answer, .. } => match entry.site.answers.get(usize::from(answer)) {
            Some(answer) => answers::block(answer, &answers::Reason::new(registry, entry, decision), request)?,
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
