//! [`LaneRequest`]: a request that fits the lane, as the origin gets it. Must not know the origin.

use super::buffers::Buffers;
use super::lines::Lines;
use crate::edge::head::{ReadHead, Request};
use crate::requests::{Forward, Ticket};

/// A request in the lane. Its head is in the buffers, ready to be sent.
#[derive(Debug)]
pub struct LaneRequest {
    pub(super) buffers: Buffers,
    pub(super) is_head: bool,
    /// Whether the client wants the connection to end.
    pub(super) closes: bool,
}

/// Whether the lane can do what a request needs: it has no body, and the site changes nothing about bodies.
pub fn fits(request: &Request<'_>, ticket: &Ticket) -> bool {
    request.is_simple
        && matches!(request.method, b"GET" | b"HEAD")
        && request.target.starts_with(b"/")
        && !request.is_http10
        && ticket.judged().is_none_or(|(_, entry)| entry.site.html.is_none())
}

impl LaneRequest {
    /// Writes the head as the origin gets it.
    pub(in crate::edge) fn new(head: &ReadHead<'_, '_>, forward: &Forward<'_>) -> LaneRequest {
        let request = head.request;
        let mut lines = Lines::new(head.fields, is_for_next_hop);
        forward.write_request(&mut lines, false, None);
        let mut buffers = Buffers::take();
        let octets = &mut buffers.request;
        for part in [request.method, b" ", request.target, b" HTTP/1.1\r\n"] {
            octets.extend_from_slice(part);
        }
        lines.write(octets);
        octets.extend_from_slice(b"\r\n");
        LaneRequest { buffers, is_head: request.method == b"HEAD", closes: request.closes }
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
