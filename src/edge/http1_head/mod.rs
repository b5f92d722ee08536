//! [`Http1RequestHead`]: the request line and header lines of an HTTP/1 request, parsed strictly.
//! The origin reads the same head as crawlgate, and must not understand it differently. So every
//! ambiguous head is rejected.

use crate::answers::RequestToAnswer;
use crate::heads::{list_members, origin_form};
use crate::requests::{BodyFraming, HeadError, HeadFields, HeadParts, RequestHead, check_head};
use crate::settings::Limits;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use httparse::Header;
use std::borrow::Cow;
use std::mem::MaybeUninit;

/// The most fields that a head may have: as many as Pingora reads.
pub const MAX_FIELDS: usize = 256;

/// The head of a request.
pub struct Http1RequestHead<'h, 'b> {
    /// What judging and recording read. The method is a token; the target is in origin form,
    /// absolute form, or `*`.
    pub fields: HeadFields<'b>,
    /// All field lines, as they came.
    pub lines: &'h [Header<'b>],
    /// Whether it is HTTP/1.0.
    pub is_http10: bool,
    /// How the body is framed.
    pub framing: BodyFraming,
    /// Whether the client asks for the end of the connection.
    pub wants_close: bool,
    /// Whether it has an Expect field. Nearly every client that sends it waits for a 100 before it
    /// sends the body.
    pub expects_continue: bool,
    /// Whether it asks for another protocol.
    pub wants_upgrade: bool,
    /// Whether its fields fit the forwarder: no Upgrade, no HTTP2-Settings, no fields named by
    /// Connection, one Expect at most.
    pub has_simple_fields: bool,
}

impl<'h, 'b> Http1RequestHead<'h, 'b> {
    /// Parses a whole head, which ends with its empty line. `line_memory` is for its field lines:
    /// more of them than fit, or than `limits.fields`, are `TooManyFields`.
    ///
    /// # Errors
    /// The first error in the head.
    pub fn parse(
        head: &'b [u8],
        line_memory: &'h mut [MaybeUninit<Header<'b>>],
        limits: &Limits,
    ) -> Result<Http1RequestHead<'h, 'b>, HeadError> {
        use HeadError::*;

        let line_end = memchr::memchr(b'\r', head).ok_or(RequestLine)?;
        let (line, rest) = head.split_at(line_end);
        let (method, target, is_http10) = parse_request_line(line)?;
        if target.len() > limits.target {
            return Err(TargetTooLong);
        }
        let rest = rest.strip_prefix(b"\r\n").ok_or(RequestLine)?;
        if rest.len() > limits.headers {
            return Err(HeadersTooLarge);
        }
        let max_fields = limits.fields.min(line_memory.len());
        let line_memory = &mut line_memory[..max_fields];
        let mut parsed = httparse::Request::new(&mut []);
        let lines = match parsed.parse_with_uninit_headers(head, line_memory) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => &*parsed.headers,
            Err(httparse::Error::TooManyHeaders) => return Err(TooManyFields),
            _ => return Err(Field),
        };
        let http = if is_http10 { "1.0" } else { "1.1" };
        let mut request = Http1RequestHead {
            fields: HeadFields {
                method,
                target,
                http,
                ..HeadFields::default()
            },
            lines: &[],
            is_http10,
            framing: BodyFraming::None,
            // Keep-alive is not offered to HTTP/1.0.
            wants_close: is_http10,
            expects_continue: false,
            wants_upgrade: false,
            has_simple_fields: true,
        };
        let mut parts = HeadParts::new(method, target, is_http10);
        let mut has_connection = false;
        for field in lines {
            request.read_field(field, &mut parts, &mut has_connection)?;
        }
        (request.fields.host, request.framing) = check_head(&parts, limits)?;
        request.lines = lines;
        Ok(request)
    }

    /// Reads one field line into the request, and into `parts`, which `check` reads later.
    /// `has_connection` is whether a Connection line came before, and is updated.
    fn read_field(
        &mut self,
        field: &Header<'b>,
        parts: &mut HeadParts<'b>,
        has_connection: &mut bool,
    ) -> Result<(), HeadError> {
        let name = field.name;
        let value = field.value.trim_ascii();
        if matches!(name.len(), 4 | 6 | 10 | 14 | 17) {
            parts.add_field(name, value)?;
        }
        match name.len() {
            6 if name.eq_ignore_ascii_case("expect") => {
                self.has_simple_fields &= !self.expects_continue;
                self.expects_continue = true;
            }
            7 if name.eq_ignore_ascii_case("upgrade") => {
                self.wants_upgrade = true;
                self.has_simple_fields = false;
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                self.wants_close |=
                    list_members(value).any(|token| token.eq_ignore_ascii_case(b"close"));
                let is_alone = value.eq_ignore_ascii_case(b"close")
                    || value.eq_ignore_ascii_case(b"keep-alive");
                self.has_simple_fields &= is_alone && !std::mem::replace(has_connection, true);
            }
            14 if name.eq_ignore_ascii_case("http2-settings") => self.has_simple_fields = false,
            _ => self.fields.record_line(name, value),
        }
        Ok(())
    }
}

/// The target that the origin gets: path and query, because Pingora compares the host of an
/// absolute form with Host in its own way (Pingora 0.9.1). Bytes that no URL may have (RFC 3986
/// section 3.3) and that Pingora refuses (`PathAndQuery` of http 1.5.0) are escaped, as browsers do
/// it: `<` and `>`, `"` in a query, and a backtick in a path.
pub fn target_for_origin(target: &[u8]) -> Cow<'_, [u8]> {
    let target = origin_form(target);
    if memchr::memchr3(b'<', b'>', b'"', &target)
        .or_else(|| memchr::memchr(b'`', &target))
        .is_none()
    {
        return target;
    }
    let query = memchr::memchr(b'?', &target).unwrap_or(target.len());
    let mut escaped = Vec::with_capacity(target.len() + 16);
    for (index, byte) in target.iter().enumerate() {
        match byte {
            b'<' => escaped.extend_from_slice(b"%3C"),
            b'>' => escaped.extend_from_slice(b"%3E"),
            b'"' if index > query => escaped.extend_from_slice(b"%22"),
            b'`' if index < query => escaped.extend_from_slice(b"%60"),
            byte => escaped.push(*byte),
        }
    }
    Cow::Owned(escaped)
}

/// Returns method, target, and whether it is HTTP/1.0. There is one space between each. The method
/// is a token; the target is UTF-8 without spaces and control characters. Another version than 1.0
/// and 1.1 is `HeadError::Version`, everything else `HeadError::RequestLine`.
fn parse_request_line(line: &[u8]) -> Result<(&[u8], &[u8], bool), HeadError> {
    use HeadError::{RequestLine, Version};

    let mut parts = line.splitn(3, |byte| *byte == b' ');
    let method = parts.next().ok_or(RequestLine)?;
    let target = parts.next().ok_or(RequestLine)?;
    let version = parts.next().ok_or(RequestLine)?;
    // `http` would take any token, and so does RFC 9110; clients send letters and signs alone.
    if method.is_empty() || Method::from_bytes(method).is_err() {
        return Err(RequestLine);
    }
    // Characters beyond ASCII are not for a target either, but clients send them, and origins take
    // them. What is no UTF-8 Pingora refuses without a word (Pingora 0.9.1).
    let is_plain = target.iter().all(|byte| *byte > b' ' && *byte != 0x7f);
    if target.is_empty() || !is_plain || std::str::from_utf8(target).is_err() {
        return Err(RequestLine);
    }
    match version {
        b"HTTP/1.1" => Ok((method, target, false)),
        b"HTTP/1.0" => Ok((method, target, true)),
        _ => Err(Version),
    }
}

impl RequestHead for Http1RequestHead<'_, '_> {
    fn fields(&self) -> HeadFields<'_> {
        self.fields
    }

    fn values(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.lines
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case(name.as_str()))
            .map(|field| field.value)
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(answer_fields_of(self.lines))
    }
}

/// The fields that an answer of crawlgate's own depends on. Most requests have none or one of them,
/// and a map of all fields would cost as much as the rest of the answer.
fn answer_fields_of(fields: &[Header<'_>]) -> HeaderMap {
    to_header_map(
        fields
            .iter()
            .filter(|field| RequestToAnswer::may_affect_answer(field.name)),
    )
}

/// These fields as a map, without those that `http` does not take: a parsed head has none of them.
pub fn to_header_map<'f, 'b: 'f>(fields: impl Iterator<Item = &'f Header<'b>>) -> HeaderMap {
    let read = fields.filter_map(|field| {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(field.value).ok()?))
    });
    read.collect()
}

/// The fields that an answer depends on, of a whole head that was parsed before.
pub fn parse_answer_fields(head: &[u8]) -> HeaderMap {
    let mut lines = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let line_end = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    match httparse::parse_headers(&head[line_end..], &mut lines) {
        Ok(httparse::Status::Complete((_, fields))) => answer_fields_of(fields),
        _ => HeaderMap::new(),
    }
}

#[cfg(test)]
mod tests;
