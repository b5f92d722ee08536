//! [`LaneRequest`]: a request that fits the lane, as the origin gets it. Must not know the origin.

use super::buffers::Buffer;
use super::lines::Lines;
use crate::edge::head::{ReadHead, Request};
use crate::forwarding::Head;
use crate::requests::{Forward, Framing, Ticket};
use http::header;

/// A request in the lane, with its head as the origin gets it.
#[derive(Debug)]
pub struct LaneRequest {
    pub(super) head: Buffer,
    pub(in crate::edge) body: Framing,
    pub(super) is_head: bool,
    /// Whether it may be sent to an origin that perhaps has it already.
    pub(super) may_repeat: bool,
    /// Whether the client waits for a 100 before it sends the body.
    pub(in crate::edge) expects: bool,
    /// Whether the client wants the connection to end.
    pub(in crate::edge) closes: bool,
}

/// Whether the lane can do what a request needs: it stays with HTTP/1.1, and the site changes nothing about bodies.
pub fn fits(request: &Request<'_>, ticket: &Ticket) -> bool {
    request.is_simple
        && (!request.expects || request.framing != Framing::None)
        && request.target.starts_with(b"/")
        && !request.is_http10
        && ticket.judged().is_none_or(|(_, entry)| entry.site.html.is_none())
}

impl LaneRequest {
    /// Writes the head as the origin gets it.
    pub(in crate::edge) fn new(head: &ReadHead<'_, '_>, forward: &Forward<'_>) -> LaneRequest {
        let request = head.request;
        let fields = head.fields.iter().map(|field| (field.name, field.value));
        let written =
            LaneRequest::of((request.method, request.target), fields, (request.framing, request.expects), forward);
        LaneRequest { closes: request.closes, ..written }
    }

    /// The same of a request line, fields, and a body that is framed so. `expects` says whether the client waits for a 100
    /// before it sends that.
    pub(in crate::edge) fn of<'h>(
        (method, target): (&[u8], &[u8]),
        fields: impl Iterator<Item = (&'h str, &'h [u8])>,
        (body, expects): (Framing, bool),
        forward: &Forward<'_>,
    ) -> LaneRequest {
        let is_chunked = body == Framing::Chunked;
        let mut lines = Lines::default();
        lines.take(fields.filter(|(name, _)| !is_for_next_hop(name)));
        forward.write_request(&mut lines, None);
        if is_chunked {
            lines.add("Transfer-Encoding", b"chunked");
        } else {
            lines.remove(&header::TRAILER);
        }
        let mut octets = Buffer::take();
        for part in [method, b" ", target, b" HTTP/1.1\r\n"] {
            octets.extend_from_slice(part);
        }
        lines.write(&mut octets);
        octets.extend_from_slice(b"\r\n");
        LaneRequest {
            head: octets,
            body,
            is_head: method == b"HEAD",
            may_repeat: body == Framing::None && matches!(method, b"GET" | b"HEAD" | b"OPTIONS"),
            expects,
            closes: false,
        }
    }
}

/// Fields that end here (RFC 9110 section 7.6.1), and the framing, which is the lane's own. A request with one of the others
/// does not fit the lane.
fn is_for_next_hop(name: &str) -> bool {
    match name.len() {
        2 => name.eq_ignore_ascii_case("te"),
        10 => name.eq_ignore_ascii_case("connection") || name.eq_ignore_ascii_case("keep-alive"),
        16 => name.eq_ignore_ascii_case("proxy-connection"),
        17 => name.eq_ignore_ascii_case("transfer-encoding"),
        18 => name.eq_ignore_ascii_case("proxy-authenticate"),
        19 => name.eq_ignore_ascii_case("proxy-authorization"),
        _ => false,
    }
}
