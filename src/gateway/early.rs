//! Before a request is judged: whether it is a proper one, its client, and how long the connection may live.

use super::Gateway;
use super::ctx::RequestContext;
use crate::answers::Rejection;
use crate::forwarding::{client_address, is_trusted};
use http::{Method, Version, header};
use pingora_proxy::Session;
use std::time::Duration;

/// How long a client may refuse to take what is written to it. Pingora sets no limit; its limit on reads is 60 s too.
const WRITE_LIMIT: Duration = Duration::from_secs(60);

pub(super) fn check(gateway: &Gateway, session: &mut Session, ctx: &mut RequestContext) {
    settle_connection(gateway, session);
    settle_client(gateway, session, ctx);
    ctx.rejection = rejection(gateway, session);
}

fn settle_connection(gateway: &Gateway, session: &mut Session) {
    session.set_write_timeout(Some(WRITE_LIMIT));
    if session.req_header().version == Version::HTTP_10 {
        // A body of unknown length must end with the connection: chunked coding is not for HTTP/1.0 (Pingora 0.9.1).
        session.set_keepalive(None);
    } else if session.get_keepalive().is_some() {
        // Pingora makes keep-alive infinite after the first request. Asked only where it is on, because setting it
        // would switch it on for clients that asked to close (Pingora 0.9.1).
        session.set_keepalive(Some(gateway.limits.keepalive.as_secs().max(1)));
    }
}

fn settle_client(gateway: &Gateway, session: &Session, ctx: &mut RequestContext) {
    ctx.peer = session.client_addr().and_then(|address| address.as_inet()).map(|address| address.ip().to_canonical());
    if let Some(peer) = ctx.peer {
        ctx.peer_trusted = is_trusted(peer, &gateway.trusted_proxies);
        let lines = session.req_header().headers.get_all("x-forwarded-for");
        ctx.client = Some(client_address(peer, lines.iter().map(|line| line.as_bytes()), &gateway.trusted_proxies));
    }
}

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
    (request.method == Method::TRACE).then_some(Rejection::Trace)
}
