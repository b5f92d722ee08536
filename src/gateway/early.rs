//! Before a request is judged: whether it is a proper one, its client, and how long the connection may live. A request over
//! HTTP/1 comes from the edge, which has settled the first two and judged it.

use super::Gateway;
use super::ctx::RequestContext;
use crate::answers::{Answer, Field, Rejection};
use crate::forwarding::{ClientConnection, JudgedRequest, client_address};
use http::{Method, Version, header};
use pingora_proxy::Session;
use std::sync::Arc;

pub(super) fn check(gateway: &Gateway, session: &mut Session, ctx: &mut RequestContext) {
    settle_connection(gateway, session);
    let connection = connection(session);
    if let Some(connection) = connection {
        ctx.peer = connection.peer;
    }
    if let Some(JudgedRequest { arrival, client, judgement }) = connection.and_then(|connection| connection.take_over())
    {
        (ctx.arrival, ctx.client, ctx.judgement) = (arrival, client, Some(judgement));
        return;
    }
    let forwarded_for = session.req_header().headers.get_all("x-forwarded-for");
    let forwarded_for = forwarded_for.iter().map(|line| line.as_bytes());
    ctx.client = ctx.peer.address.map(|peer| client_address(peer, forwarded_for, &gateway.trusted_proxies));
    ctx.rejection = rejection(gateway, session);
    if let Some(rejection) = ctx.rejection {
        gateway.metrics.request_rejected(reason(rejection));
    }
}

fn settle_connection(gateway: &Gateway, session: &mut Session) {
    if session.is_http2() {
        // Of a stream. The edge watches whether a connection takes what is written.
        session.set_write_timeout(Some(gateway.limits.stall));
    }
    // Of HTTP/1. Over HTTP/2 the origin's time is the limit: Pingora has none there (Pingora 0.9.1).
    session.set_read_timeout(Some(gateway.limits.stall));
    if session.req_header().version == Version::HTTP_10 {
        // A body of unknown length must end with the connection: chunked coding is not for HTTP/1.0 (Pingora 0.9.1).
        session.set_keepalive(None);
    } else if session.get_keepalive().is_some() {
        // Pingora makes keep-alive infinite after the first request. Asked only where it is on, because setting it
        // would switch it on for clients that asked to close (Pingora 0.9.1).
        session.set_keepalive(Some(gateway.limits.idle.as_secs().max(1)));
    }
}

/// The connection as the edge knows it.
pub(super) fn connection(session: &Session) -> Option<&ClientConnection> {
    let digest = session.digest()?.proxy_digest.as_ref()?;
    digest.user_data.as_ref()?.downcast_ref::<Arc<ClientConnection>>().map(Arc::as_ref)
}

/// An answer of our own, with the HSTS of the listener.
pub(super) fn with_hsts(answer: Answer, session: &Session) -> Answer {
    match connection(session).and_then(|connection| connection.hsts.clone()) {
        Some(hsts) => answer.with(Field::StrictTransportSecurity, hsts),
        None => answer,
    }
}

/// Whether the client says that its body is longer than the settings let it be.
fn is_too_long(gateway: &Gateway, session: &Session) -> bool {
    let length = session.req_header().headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()).and_then(|length| length.trim().parse::<u64>().ok());
    gateway.limits.body.zip(length).is_some_and(|(most, length)| length > most)
}

/// The word that the edge has for it.
fn reason(rejection: Rejection) -> &'static str {
    match rejection {
        Rejection::NoHost => "no_host",
        Rejection::Method => "method",
        Rejection::TargetTooLong => "target_too_long",
        Rejection::HeadersTooLarge => "headers_too_large",
        Rejection::BodyTooLarge => "body_too_large",
        _ => "malformed",
    }
}

/// What is wrong with a request over HTTP/2. The edge has looked at one over HTTP/1.
fn rejection(gateway: &Gateway, session: &Session) -> Option<Rejection> {
    let request = session.req_header();
    if request.raw_path().len() > gateway.limits.target {
        return Some(Rejection::TargetTooLong);
    }
    // `: ` and the line's end are four octets.
    let octets: usize = request.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if octets > gateway.limits.headers {
        return Some(Rejection::HeadersTooLarge);
    }
    let host = request.headers.get(header::HOST).map(|host| host.as_bytes().trim_ascii());
    let named = match host {
        Some(host) => !host.is_empty(),
        None => request.version == Version::HTTP_10 || request.uri.host().is_some(),
    };
    if !named {
        return Some(Rejection::NoHost);
    }
    if is_too_long(gateway, session) {
        return Some(Rejection::BodyTooLarge);
    }
    (request.method == Method::TRACE).then_some(Rejection::Method)
}
