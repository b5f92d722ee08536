//! The end of every request: the judge records what was sent.

use super::Gateway;
use super::ctx::RequestContext;
use super::early::connection;
use super::heads::facts;
use crate::heads::http_version;
use crate::judge::{Outcome, Unjudged};
use http::{HeaderValue, header};
use pingora_core::Error;
use pingora_proxy::Session;

pub(super) fn record(gateway: &Gateway, session: &Session, error: Option<&Error>, ctx: &RequestContext) {
    let request = session.req_header();
    let response = session.response_written();
    let tags = response.into_iter().flat_map(|response| response.headers.get_all("x-robots-tag"));
    let outcome = Outcome {
        status: response.map_or(0, |response| response.status.as_u16()),
        answered_whole: ctx.answered,
        x_robots_tag: tags.map(HeaderValue::as_bytes).collect(),
        body_octets: session.body_bytes_sent() as u64,
        elapsed: gateway.judge.recorder().elapsed(ctx.arrival.started),
        http: http_version(request.version),
        tls: connection(session).and_then(|connection| connection.tls),
        referer: request.headers.get(header::REFERER).map(HeaderValue::as_bytes),
        error: error.map(|error| error.etype().as_str()),
    };
    let facts = facts(request, ctx);
    match &ctx.judgement {
        Some(judgement) => gateway.judge.record(&facts, judgement, &outcome),
        None => gateway.judge.recorder().record_unjudged(&facts, Unjudged::Refused, &outcome),
    }
}
