//! [`Request`]: the head of an HTTP/1 request, read strictly. A head that two servers could
//! understand differently is refused, because the origin behind crawlgate reads it too.

use crate::answers::Asked;
use crate::heads::{members, origin_form};
use crate::requests::{Framing, HeadFields, Mistake, RequestHead, Seen, check};
use crate::settings::Limits;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use httparse::Header;
use std::borrow::Cow;
use std::mem::MaybeUninit;

/// The most fields that a head may have: as many as Pingora reads.
pub const MOST_FIELDS: usize = 256;

/// The head of a request.
#[derive(Clone, Debug)]
pub struct Request<'h, 'b> {
    /// The parts that judging and recording read. The method is a token; the target is in origin
    /// form or absolute form, or `*`.
    pub fields: HeadFields<'b>,
    /// All field lines.
    pub lines: &'h [Header<'b>],
    /// Whether it is HTTP/1.0.
    pub is_http10: bool,
    /// The framing of the body.
    pub framing: Framing,
    /// Whether the client wants the connection to end.
    pub closes: bool,
    /// Whether it has an Expect field. With it, nearly every client waits for a 100 before it sends
    /// the body.
    pub expects: bool,
    /// Whether it asks for another protocol.
    pub upgrades: bool,
    /// Whether its fields fit the lane: no Upgrade, no HTTP2-Settings, no fields named by
    /// Connection, one Expect at most.
    pub is_simple: bool,
}

impl<'h, 'b> Request<'h, 'b> {
    /// Reads a whole head, which ends with its empty line. `room` is memory for its fields: more of
    /// them than it holds, or than `limits.fields`, are `TooManyFields`.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn read(
        head: &'b [u8],
        room: &'h mut [MaybeUninit<Header<'b>>],
        limits: &Limits,
    ) -> Result<Request<'h, 'b>, Mistake> {
        let line_end = memchr::memchr(b'\r', head).ok_or(Mistake::RequestLine)?;
        let (line, rest) = head.split_at(line_end);
        let (method, target, is_http10) = request_line(line)?;
        if target.len() > limits.target {
            return Err(Mistake::TargetTooLong);
        }
        let rest = rest.strip_prefix(b"\r\n").ok_or(Mistake::RequestLine)?;
        if rest.len() > limits.headers {
            return Err(Mistake::HeadersTooLarge);
        }
        let most = limits.fields.min(room.len());
        let room = &mut room[..most];
        let mut parsed = httparse::Request::new(&mut []);
        let lines = match parsed.parse_with_uninit_headers(head, room) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => &*parsed.headers,
            Err(httparse::Error::TooManyHeaders) => return Err(Mistake::TooManyFields),
            _ => return Err(Mistake::Field),
        };
        let http = if is_http10 { "1.0" } else { "1.1" };
        let mut request = Request {
            fields: HeadFields {
                method,
                target,
                http,
                ..HeadFields::default()
            },
            lines: &[],
            is_http10,
            framing: Framing::None,
            // Keep-alive is not offered to HTTP/1.0.
            closes: is_http10,
            expects: false,
            upgrades: false,
            is_simple: true,
        };
        let mut seen = Seen::new(method, target, is_http10);
        let mut has_connection = false;
        for field in lines {
            request.take_in(field, &mut seen, &mut has_connection)?;
        }
        (request.fields.host, request.framing) = check(&seen, limits)?;
        request.lines = lines;
        Ok(request)
    }

    /// Takes one field line into the request, and into `seen`, which `check` reads later. Sets
    /// `is_simple` to false where the field does not fit the lane. `has_connection` says whether a
    /// Connection line came before, and is updated.
    fn take_in(
        &mut self,
        field: &Header<'b>,
        seen: &mut Seen<'b>,
        has_connection: &mut bool,
    ) -> Result<(), Mistake> {
        let name = field.name;
        let value = field.value.trim_ascii();
        if matches!(name.len(), 4 | 6 | 10 | 14 | 17) {
            seen.note(name, value)?;
        }
        match name.len() {
            6 if name.eq_ignore_ascii_case("expect") => {
                self.is_simple &= !self.expects;
                self.expects = true;
            }
            7 if name.eq_ignore_ascii_case("upgrade") => {
                self.upgrades = true;
                self.is_simple = false;
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                self.closes |= members(value).any(|token| token.eq_ignore_ascii_case(b"close"));
                let is_alone = value.eq_ignore_ascii_case(b"close")
                    || value.eq_ignore_ascii_case(b"keep-alive");
                self.is_simple &= is_alone && !std::mem::replace(has_connection, true);
            }
            14 if name.eq_ignore_ascii_case("http2-settings") => self.is_simple = false,
            _ => self.fields.note(name, value),
        }
        Ok(())
    }
}

/// A target as the origin gets it, whichever way the request takes: path and query, because Pingora
/// compares the host of an absolute form with Host in its own way (Pingora 0.9.1), with escapes for
/// the bytes that no URL may have (RFC 3986 section 3.3) and that Pingora refuses (`PathAndQuery`
/// of http 1.5.0). They are `<` and `>`, `"` in a query and a backtick in a path: some clients send
/// them as they are, browsers escape them.
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
    for (place, byte) in target.iter().enumerate() {
        match byte {
            b'<' => escaped.extend_from_slice(b"%3C"),
            b'>' => escaped.extend_from_slice(b"%3E"),
            b'"' if place > query => escaped.extend_from_slice(b"%22"),
            b'`' if place < query => escaped.extend_from_slice(b"%60"),
            byte => escaped.push(*byte),
        }
    }
    Cow::Owned(escaped)
}

/// Method, target, and whether it is HTTP/1.0. One space between each, and nothing else. The method
/// is a token; the target is UTF-8 without spaces and control characters. Other versions than 1.0
/// and 1.1 are `Mistake::Version`, all else `Mistake::RequestLine`.
fn request_line(line: &[u8]) -> Result<(&[u8], &[u8], bool), Mistake> {
    let mut parts = line.splitn(3, |octet| *octet == b' ');
    let method = parts.next().ok_or(Mistake::RequestLine)?;
    let target = parts.next().ok_or(Mistake::RequestLine)?;
    let version = parts.next().ok_or(Mistake::RequestLine)?;
    // `http` would take any token, and so does RFC 9110; clients send letters and signs alone.
    if method.is_empty() || Method::from_bytes(method).is_err() {
        return Err(Mistake::RequestLine);
    }
    // Characters beyond ASCII are not for a target either, but clients send them, and origins take
    // them. What is no UTF-8 Pingora refuses without a word (Pingora 0.9.1).
    let is_plain = target.iter().all(|octet| *octet > b' ' && *octet != 0x7f);
    if target.is_empty() || !is_plain || std::str::from_utf8(target).is_err() {
        return Err(Mistake::RequestLine);
    }
    match version {
        b"HTTP/1.1" => Ok((method, target, false)),
        b"HTTP/1.0" => Ok((method, target, true)),
        _ => Err(Mistake::Version),
    }
}

impl RequestHead for Request<'_, '_> {
    fn fields(&self) -> HeadFields<'_> {
        self.fields
    }

    fn values(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        let lines = self
            .lines
            .iter()
            .filter(|field| field.name.eq_ignore_ascii_case(name.as_str()));
        lines.map(|field| field.value)
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(fields_of_answer(self.lines))
    }
}

/// The fields that shape an answer of crawlgate's own. Most requests have none or one of them, and
/// the map of all would cost as much as the rest of the answer.
fn fields_of_answer(fields: &[Header<'_>]) -> HeaderMap {
    header_map(fields.iter().filter(|field| Asked::reads(field.name)))
}

/// These fields as a map. Fields that `http` does not take are left out; heads that were read have
/// none.
pub fn header_map<'f, 'b: 'f>(fields: impl Iterator<Item = &'f Header<'b>>) -> HeaderMap {
    let read = fields.filter_map(|field| {
        // Both were read already, so neither fails.
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(field.value).ok()?))
    });
    read.collect()
}

/// The fields that shape an answer, of a whole head that was read before. An empty map if it cannot
/// be read.
pub fn fields_of(head: &[u8]) -> HeaderMap {
    let mut room = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let line_end = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    match httparse::parse_headers(&head[line_end..], &mut room) {
        Ok(httparse::Status::Complete((_, fields))) => fields_of_answer(fields),
        _ => HeaderMap::new(),
    }
}

#[cfg(test)]
mod tests;
