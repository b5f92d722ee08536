//! [`OriginRequest`]: an HTTP request as the forwarder sends it to the origin.
//! [`can_be_forwarded_directly`] says which HTTP/1 requests the forwarder can send; Pingora's proxy
//! sends the others.

use super::field_lines::FieldLines;
use crate::edge::http1_head::{Http1RequestHead, target_for_origin};
use crate::edge::pooled_buffer::PooledBuffer;
use crate::forwarding::{EditableHead, is_hop_by_hop};
use crate::requests::{BodyFraming, HeadWriter, Ticket};
use http::header;

/// A request as the forwarder sends it.
pub struct OriginRequest {
    /// The bytes of the head.
    pub head: PooledBuffer,
    pub body: BodyFraming,
    /// Whether the method is HEAD.
    pub is_head: bool,
    /// Whether it may be sent again after an origin has perhaps received it.
    pub may_repeat: bool,
    /// Whether the client waits for a 100 before it sends the body.
    pub expects_continue: bool,
    /// Whether the client asks for the end of its connection.
    pub wants_close: bool,
}

/// Whether the forwarder can send an HTTP/1 request: it is HTTP/1.1, its target is a path, its
/// fields are simple, it expects a 100 only if it has a body, and the site rewrites no pages.
pub fn can_be_forwarded_directly(request: &Http1RequestHead<'_, '_>, ticket: &Ticket) -> bool {
    request.has_simple_fields
        && (!request.expects_continue || request.framing != BodyFraming::None)
        && request.fields.target.starts_with(b"/")
        && !request.is_http10
        && !ticket.may_rewrite_pages()
}

impl OriginRequest {
    /// From an HTTP/1.1 request. `host` replaces the client's Host.
    pub fn new(
        request: &Http1RequestHead<'_, '_>,
        head_writer: &HeadWriter<'_>,
        host: Option<&str>,
    ) -> OriginRequest {
        let fields = request.lines.iter().map(|field| (field.name, field.value));
        let target = target_for_origin(request.fields.target);
        let method = request.fields.method;
        OriginRequest {
            expects_continue: request.expects_continue,
            wants_close: request.wants_close,
            ..OriginRequest::from_parts(method, &target, fields, request.framing, head_writer, host)
        }
    }

    /// From a request line, the client's fields, and the framing of the body. Removes the fields
    /// that end at a proxy, and Trailer unless the body is in chunks. `host` replaces the client's
    /// Host. `expects_continue` and `wants_close` are false.
    pub fn from_parts<'h>(
        method: &[u8],
        target: &[u8],
        fields: impl Iterator<Item = (&'h str, &'h [u8])>,
        body: BodyFraming,
        head_writer: &HeadWriter<'_>,
        host: Option<&str>,
    ) -> OriginRequest {
        let is_chunked = body == BodyFraming::Chunked;
        let mut lines = FieldLines::default();
        lines.extend(fields.filter(|(name, _)| !is_hop_by_hop_or_proxy_field(name)));
        head_writer.write_request(&mut lines, host);
        if is_chunked {
            lines.add("Transfer-Encoding", b"chunked");
        } else {
            lines.remove(&header::TRAILER);
        }
        let mut head = PooledBuffer::from_pool();
        write_request_head(method, target, &lines, &mut head);
        OriginRequest {
            head,
            body,
            is_head: method == b"HEAD",
            may_repeat: body == BodyFraming::None
                && matches!(method, b"GET" | b"HEAD" | b"OPTIONS"),
            expects_continue: false,
            wants_close: false,
        }
    }
}

/// Writes the head of an HTTP/1.1 request.
pub fn write_request_head(
    method: &[u8],
    target: &[u8],
    lines: &FieldLines<'_>,
    bytes: &mut Vec<u8>,
) {
    for part in [method, b" ", target, b" HTTP/1.1\r\n"] {
        bytes.extend_from_slice(part);
    }
    lines.write(bytes);
    bytes.extend_from_slice(b"\r\n");
}

/// Whether a field of a request is not passed on: it is hop-by-hop or for proxies.
fn is_hop_by_hop_or_proxy_field(name: &str) -> bool {
    match name.len() {
        18 => name.eq_ignore_ascii_case("proxy-authenticate"),
        19 => name.eq_ignore_ascii_case("proxy-authorization"),
        _ => is_hop_by_hop(name),
    }
}
