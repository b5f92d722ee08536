//! [`LaneRequest`]: a request that the lane forwards, with its head for the origin.

use super::lines::Lines;
use crate::edge::buffers::Buffer;
use crate::edge::head::{Request, target_for_origin};
use crate::forwarding::{Head, is_of_one_hop};
use crate::requests::{Forward, Framing, Ticket};
use http::header;

/// See the top of this file.
pub struct LaneRequest {
    pub(super) head: Buffer,
    pub body: Framing,
    pub(super) is_head: bool,
    /// Whether it may be sent to an origin that perhaps has it already.
    pub(super) may_repeat: bool,
    /// Whether the client waits for a 100 before it sends the body.
    pub expects: bool,
    /// Whether the client wants the connection to end.
    pub closes: bool,
}

/// Whether a request of HTTP/1 takes the lane: it is HTTP/1.1 for a path, its fields are simple, it
/// expects a 100 only for a body, and the site rewrites no pages.
pub fn fits(request: &Request<'_, '_>, ticket: &Ticket) -> bool {
    request.is_simple
        && (!request.expects || request.framing != Framing::None)
        && request.fields.target.starts_with(b"/")
        && !request.is_http10
        && !ticket.may_rewrite_pages()
}

impl LaneRequest {
    /// A request of HTTP/1.1, with its head for the origin. `host` is the Host that the origin
    /// wants in place of the client's.
    pub fn new(
        request: &Request<'_, '_>,
        forward: &Forward<'_>,
        host: Option<&str>,
    ) -> LaneRequest {
        let fields = request.lines.iter().map(|field| (field.name, field.value));
        let target = target_for_origin(request.fields.target);
        let method = request.fields.method;
        LaneRequest {
            expects: request.expects,
            closes: request.closes,
            ..LaneRequest::of(method, &target, fields, request.framing, forward, host)
        }
    }

    /// A request with this request line, these fields without those that end here, and a body with
    /// this framing. `host` is the Host that the origin wants in place of the client's. Trailers
    /// are announced only for chunks. `expects` and `closes` are false: the caller sets them for
    /// HTTP/1.1.
    pub fn of<'h>(
        method: &[u8],
        target: &[u8],
        fields: impl Iterator<Item = (&'h str, &'h [u8])>,
        body: Framing,
        forward: &Forward<'_>,
        host: Option<&str>,
    ) -> LaneRequest {
        let is_chunked = body == Framing::Chunked;
        let mut lines = Lines::default();
        lines.take(fields.filter(|(name, _)| !is_for_next_hop(name)));
        forward.write_request(&mut lines, host);
        if is_chunked {
            lines.add("Transfer-Encoding", b"chunked");
        } else {
            lines.remove(&header::TRAILER);
        }
        let mut octets = Buffer::take();
        write_head(method, target, &lines, &mut octets);
        LaneRequest {
            head: octets,
            body,
            is_head: method == b"HEAD",
            may_repeat: body == Framing::None && matches!(method, b"GET" | b"HEAD" | b"OPTIONS"),
            expects: false,
            closes: false,
        }
    }
}

/// Writes a whole head with this method and target.
pub fn write_head(method: &[u8], target: &[u8], lines: &Lines<'_>, octets: &mut Vec<u8>) {
    for part in [method, b" ", target, b" HTTP/1.1\r\n"] {
        octets.extend_from_slice(part);
    }
    lines.write(octets);
    octets.extend_from_slice(b"\r\n");
}

/// Whether a field ends at crawlgate: the fields of one hop, those for proxies, and those that
/// frame the body, which the lane writes itself.
fn is_for_next_hop(name: &str) -> bool {
    match name.len() {
        18 => name.eq_ignore_ascii_case("proxy-authenticate"),
        19 => name.eq_ignore_ascii_case("proxy-authorization"),
        _ => is_of_one_hop(name),
    }
}
