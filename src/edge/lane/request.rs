//! [`LaneRequest`]: a request that fits the lane, as the origin gets it. Must not know the origin.

use super::buffers::Buffers;
use super::lines::Lines;
use crate::edge::head::{Fields, Request};
use crate::forwarding::{ForwardedRequest, Peer, has_condition, write_request};
use crate::judge::Judgement;
use crate::time::Timestamp;

/// A request in the lane. Its head is in the buffers, ready to be sent.
#[derive(Debug)]
pub struct LaneRequest {
    /// What the judge found.
    pub judgement: Judgement,
    pub(super) buffers: Buffers,
    pub(super) is_head: bool,
}

/// Whether the lane can do what a request needs: it has no body, and the site changes nothing about bodies.
pub fn fits(request: &Request<'_>, judgement: &Judgement) -> bool {
    request.is_simple
        && matches!(request.method, b"GET" | b"HEAD")
        && request.target.starts_with(b"/")
        && !request.is_http10
        && !rewrites(judgement)
}

#[cfg(feature = "html")]
fn rewrites(judgement: &Judgement) -> bool {
    judgement.judged().is_some_and(|judged| judged.entry().site.html.is_some())
}

#[cfg(not(feature = "html"))]
fn rewrites(_judgement: &Judgement) -> bool {
    false
}

impl LaneRequest {
    /// Writes the head as the origin gets it.
    pub fn new(
        request: &Request<'_>,
        fields: Fields<'_, '_>,
        peer: Peer,
        judgement: Judgement,
        now: Timestamp,
    ) -> LaneRequest {
        let mut lines = Lines::new(fields, is_for_next_hop);
        let forwarded = ForwardedRequest {
            host: request.host,
            peer,
            is_http2: false,
            default_host: None,
            needs_whole_page: has_condition(&lines) && judgement.needs_whole_page(request.host, now),
        };
        write_request(&mut lines, &forwarded);
        let mut buffers = Buffers::take();
        let head = &mut buffers.request;
        for part in [request.method, b" ", request.target, b" HTTP/1.1\r\n"] {
            head.extend_from_slice(part);
        }
        lines.write(head);
        head.extend_from_slice(b"\r\n");
        LaneRequest { judgement, buffers, is_head: request.method == b"HEAD" }
    }
}

/// Fields that end here (RFC 9110 section 7.6.1). A request with one of the others does not fit the lane.
fn is_for_next_hop(name: &str) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case("connection") || name.eq_ignore_ascii_case("keep-alive"),
        16 => name.eq_ignore_ascii_case("proxy-connection"),
        18 => name.eq_ignore_ascii_case("proxy-authenticate"),
        19 => name.eq_ignore_ascii_case("proxy-authorization"),
        _ => false,
    }
}
