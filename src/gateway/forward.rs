//! The request as the origin gets it.

use super::Gateway;
use super::ctx::RequestContext;
use super::request::host;
use crate::crawlers::Claim;
use crate::policy::SiteEntry;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::borrow::Cow;
use std::net::IpAddr;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
/// The listener speaks no TLS.
const HTTP: HeaderValue = HeaderValue::from_static("http");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

pub(super) fn request_header(
    gateway: &Gateway,
    session: &Session,
    request: &mut RequestHeader,
    ctx: &RequestContext,
) -> Result<()> {
    let original = session.req_header();
    if let Cow::Owned(target) = origin_form(original.raw_path()) {
        request.set_raw_path(&target)?;
    }
    if session.is_http2()
        && let Some(joined) = joined_cookies(&original.headers)
    {
        request.insert_header(header::COOKIE, joined)?;
    }
    let asked_for = host(original);
    if asked_for.is_empty() {
        // HTTP/1.0 need not say; the request goes on as HTTP/1.1, which must.
        if let Some(authority) = ctx.origin.and_then(|choice| gateway.origins.authority(choice)) {
            request.insert_header(header::HOST, authority)?;
        }
    }
    whole_pages_for_crawlers(request, asked_for, ctx);
    forwarding_headers(request, &original.headers, asked_for, ctx)
}

/// A 304 would hide a new noindex from a crawler that has the page: where what is said changed lately, it gets the
/// page. So where the host came from another site lately, though it be at none now.
fn whole_pages_for_crawlers(request: &mut RequestHeader, asked_for: &[u8], ctx: &RequestContext) {
    let names = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];
    let Some(decision) = ctx.decision.as_ref().filter(|decision| decision.claim != Claim::Nobody) else { return };
    if !names.iter().any(|name| request.headers.contains_key(name)) {
        return;
    }
    let now = ctx.now();
    let changed = |entry: &SiteEntry| entry.tags_are_new(&decision.path_rules, now);
    if ctx.judged().is_some_and(|(_, entry)| changed(entry)) || ctx.snapshot.history(asked_for).has_moved_lately(now) {
        for name in names {
            request.remove_header(&name);
        }
    }
}

/// What an untrusted client says about itself is replaced, what a trusted proxy says is kept and extended.
fn forwarding_headers(
    request: &mut RequestHeader,
    original: &HeaderMap,
    asked_for: &[u8],
    ctx: &RequestContext,
) -> Result<()> {
    match ctx.peer {
        Some(peer) => {
            request.insert_header(FORWARDED_FOR, forwarded_for(original, peer, ctx.peer_trusted)?)?;
        }
        None => {
            request.remove_header(&FORWARDED_FOR);
        }
    }
    if !ctx.peer_trusted {
        request.remove_header(&FORWARDED);
        request.remove_header(&REAL_IP);
    }
    if !ctx.peer_trusted || !original.contains_key(FORWARDED_PROTO) {
        request.insert_header(FORWARDED_PROTO, HTTP)?;
    }
    if !ctx.peer_trusted || !original.contains_key(FORWARDED_HOST) {
        match HeaderValue::from_bytes(asked_for) {
            Ok(host) if !asked_for.is_empty() => {
                request.insert_header(FORWARDED_HOST, host)?;
            }
            _ => {
                request.remove_header(&FORWARDED_HOST);
            }
        }
    }
    Ok(())
}

fn forwarded_for(original: &HeaderMap, peer: IpAddr, trusted: bool) -> Result<HeaderValue> {
    let mut value = Vec::new();
    if trusted {
        for line in original.get_all(FORWARDED_FOR) {
            value.extend_from_slice(line.as_bytes());
            value.extend_from_slice(b", ");
        }
    }
    value.extend_from_slice(peer.to_string().as_bytes());
    HeaderValue::from_bytes(&value).map_err(|error| {
        pingora_core::Error::because(pingora_core::ErrorType::InvalidHTTPHeader, "joining X-Forwarded-For", error)
    })
}

/// HTTP/2 clients send a cookie in pieces; HTTP/1 wants one line (RFC 9113 section 8.2.3).
fn joined_cookies(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut lines = headers.get_all(header::COOKIE).iter();
    let (first, second) = (lines.next()?, lines.next()?);
    let pieces: Vec<&[u8]> = [first, second].into_iter().chain(lines).map(|line| line.as_bytes()).collect();
    HeaderValue::from_bytes(&pieces.join(b"; ".as_slice())).ok()
}

/// Path and query of a request target; borrowed when it is in origin form already. Absolute form is for proxies: an
/// origin expects a path (RFC 9112 section 3.2).
pub(super) fn origin_form(target: &[u8]) -> Cow<'_, [u8]> {
    if target.starts_with(b"/") || target == b"*" {
        return Cow::Borrowed(target);
    }
    let Some(scheme_end) = target.windows(3).position(|window| window == b"://") else { return Cow::Borrowed(target) };
    let after_scheme = &target[scheme_end + 3..];
    let path = after_scheme.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(after_scheme.len());
    match &after_scheme[path..] {
        path @ [b'/', ..] => Cow::Owned(path.to_vec()),
        query => Cow::Owned([b"/", query].concat()),
    }
}

/// Pingora issue 935: an empty last chunk from HTTP/2 becomes a second end of the body in HTTP/1, and what follows on
/// the connection is taken for another response.
pub(super) fn request_body(body: &mut Option<Bytes>, end_of_stream: bool) {
    if end_of_stream && body.as_ref().is_some_and(Bytes::is_empty) {
        *body = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_last_chunk_is_no_chunk() {
        let mut body = Some(Bytes::new());
        request_body(&mut body, true);
        assert_eq!(body, None);
        let mut body = Some(Bytes::from_static(b"x"));
        request_body(&mut body, true);
        assert_eq!(body.as_deref(), Some(b"x".as_slice()));
        let mut body = Some(Bytes::new());
        request_body(&mut body, false);
        assert!(body.is_some());
    }

    #[test]
    fn every_form_of_target_becomes_path_and_query() {
        for (target, path) in [
            ("/a?b", "/a?b"),
            ("*", "*"),
            ("http://a.example", "/"),
            ("http://a.example/", "/"),
            ("http://a.example:80/b?c=://d", "/b?c=://d"),
            ("https://a.example?q", "/?q"),
            ("//a/b", "//a/b"),
        ] {
            assert_eq!(&*origin_form(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }

    #[test]
    fn crumbs_of_a_cookie_are_joined_and_a_whole_one_is_left_alone() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1"));
        assert_eq!(joined_cookies(&headers), None);
        headers.append(header::COOKIE, HeaderValue::from_static("b=2"));
        headers.append(header::COOKIE, HeaderValue::from_static("c=3"));
        assert_eq!(joined_cookies(&headers).unwrap(), "a=1; b=2; c=3");
    }
}
