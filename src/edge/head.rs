//! [`Request`]: the head of a request, read strictly: what two readers could understand differently is refused, because
//! the origin behind crawlgate is the second reader. Borrows the octets; must not know connections or policies.

use crate::answers::Asked;
use crate::forwarding::is_forwarding_field;
use crate::heads::{SignatureFields, is_license_token};
use crate::requests::{Framing, HeadFields, Mistake, RequestHead, Seen, check};
use crate::settings::Limits;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use httparse::Header;
use std::borrow::Cow;

/// The most fields that a head may have: as many as Pingora reads.
pub const MOST_FIELDS: usize = 256;

/// What a head says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'b> {
    /// The method, which is a token.
    pub method: &'b [u8],
    /// The target, in origin form or absolute form, or `*`.
    pub target: &'b [u8],
    /// Whether it is HTTP/1.0.
    pub is_http10: bool,
    /// The host; empty where an HTTP/1.0 request has none.
    pub host: &'b [u8],
    /// The User-Agent field.
    pub user_agent: Option<&'b [u8]>,
    /// The Referer field.
    pub referer: Option<&'b [u8]>,
    /// The body.
    pub framing: Framing,
    /// Whether the client wants the connection to end.
    pub closes: bool,
    /// Whether it has an expectation: nearly always to be told, by a 100, that it may send the body.
    pub expects: bool,
    /// Whether it asks for another protocol.
    pub upgrades: bool,
    /// Its signature; empty where it has none.
    pub signature: SignatureFields<'b>,
    /// Whether it carries a licence token.
    pub has_license_token: bool,
    /// Whether it says that its peer speaks for another client.
    pub names_another_client: bool,
    /// Its X-Request-Id field.
    pub request_id: Option<&'b [u8]>,
    /// Its traceparent field; empty where it has several lines.
    pub traceparent: Option<&'b [u8]>,
    /// Whether no field speaks of another protocol, of fields that end here, or of an expectation beside 100.
    pub is_simple: bool,
}

/// The field lines of a head.
pub type Fields<'h, 'b> = &'h [Header<'b>];

impl<'b> Request<'b> {
    /// Reads a whole head. `room` is where its fields go.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn read<'h>(
        head: &'b [u8],
        room: &'h mut [Header<'b>],
        limits: &Limits,
    ) -> Result<(Request<'b>, Fields<'h, 'b>), Mistake> {
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
        let fields = match httparse::parse_headers(rest, room) {
            Ok(httparse::Status::Complete((length, fields))) if length == rest.len() => fields,
            Err(httparse::Error::TooManyHeaders) => return Err(Mistake::TooManyFields),
            _ => return Err(Mistake::Field),
        };
        let mut request = Request::bare(method, target, is_http10);
        let mut seen = Seen::new(method, target, is_http10);
        let mut has_connection = false;
        for field in fields {
            request.take_in(field, &mut seen, &mut has_connection)?;
        }
        (request.host, request.framing) = check(&seen, limits)?;
        Ok((request, fields))
    }

    /// Before its fields are read.
    fn bare(method: &'b [u8], target: &'b [u8], is_http10: bool) -> Request<'b> {
        Request {
            method,
            target,
            is_http10,
            host: b"",
            user_agent: None,
            referer: None,
            framing: Framing::None,
            // Keep-alive is not offered to HTTP/1.0.
            closes: is_http10,
            expects: false,
            upgrades: false,
            signature: SignatureFields::default(),
            has_license_token: false,
            names_another_client: false,
            request_id: None,
            traceparent: None,
            is_simple: true,
        }
    }

    fn take_in(&mut self, field: &Header<'b>, seen: &mut Seen<'b>, has_connection: &mut bool) -> Result<(), Mistake> {
        let (name, value) = (field.name, field.value.trim_ascii());
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        match name.len() {
            4 | 14 | 17 if is("host") || is("content-length") || is("transfer-encoding") => seen.note(name, value)?,
            6 if is("expect") => {
                self.is_simple &= value.eq_ignore_ascii_case(b"100-continue") && !self.expects;
                self.expects = true;
            }
            9 if is("signature") => first(&mut self.signature.signature, value),
            15 if is("signature-input") => first(&mut self.signature.input, value),
            15 if is("signature-agent") => first(&mut self.signature.agent, value),
            7 if is("referer") => self.referer = self.referer.or(Some(value)),
            7 if is("upgrade") => (self.upgrades, self.is_simple) = (true, false),
            10 if is("user-agent") => {
                seen.note(name, value)?;
                self.user_agent = Some(value);
            }
            10 if is("connection") => {
                self.closes |=
                    value.split(|octet| *octet == b',').any(|token| token.trim_ascii().eq_ignore_ascii_case(b"close"));
                let is_alone = value.eq_ignore_ascii_case(b"close") || value.eq_ignore_ascii_case(b"keep-alive");
                self.is_simple &= is_alone && !std::mem::replace(has_connection, true);
            }
            11 if is("traceparent") => self.traceparent = Some(if self.traceparent.is_some() { b"" } else { value }),
            12 if is("x-request-id") => self.request_id = self.request_id.or(Some(value)),
            13 if is("authorization") => self.has_license_token |= is_license_token(value),
            14 if is("http2-settings") => self.is_simple = false,
            _ => {}
        }
        self.names_another_client |= is_forwarding_field(name);
        Ok(())
    }
}

/// Keeps the first line of a field, if it is text.
fn first<'b>(field: &mut &'b str, value: &'b [u8]) {
    if field.is_empty() {
        *field = std::str::from_utf8(value).unwrap_or_default();
    }
}

/// Method, target, and whether it is HTTP/1.0. One space between each, and nothing else.
fn request_line(line: &[u8]) -> Result<(&[u8], &[u8], bool), Mistake> {
    let mut parts = line.splitn(3, |octet| *octet == b' ');
    let (Some(method), Some(target), Some(version)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Mistake::RequestLine);
    };
    // `http` would take any token, and so does RFC 9110; clients send letters and signs alone.
    if method.is_empty() || Method::from_bytes(method).is_err() {
        return Err(Mistake::RequestLine);
    }
    // Characters beyond ASCII are not for a target either, but clients send them, and origins take them. What is no UTF-8
    // Pingora refuses without a word (Pingora 0.9.1).
    let is_plain = |target: &[u8]| target.iter().all(|octet| *octet > b' ' && *octet != 0x7f);
    if target.is_empty() || !is_plain(target) || std::str::from_utf8(target).is_err() {
        return Err(Mistake::RequestLine);
    }
    match version {
        b"HTTP/1.1" => Ok((method, target, false)),
        b"HTTP/1.0" => Ok((method, target, true)),
        _ => Err(Mistake::Version),
    }
}

/// A head that was read, with its fields.
pub(super) struct ReadHead<'h, 'b> {
    pub request: &'h Request<'b>,
    pub fields: Fields<'h, 'b>,
}

impl RequestHead for ReadHead<'_, '_> {
    fn method(&self) -> &[u8] {
        self.request.method
    }

    fn target(&self) -> &[u8] {
        self.request.target
    }

    fn host(&self) -> &[u8] {
        self.request.host
    }

    fn http(&self) -> &'static str {
        if self.request.is_http10 { "1.0" } else { "1.1" }
    }

    fn fields(&self) -> HeadFields<'_> {
        let request = self.request;
        HeadFields {
            user_agent: request.user_agent,
            referer: request.referer,
            signature: request.signature.if_present(),
            has_license_token: request.has_license_token,
            names_another_client: request.names_another_client,
            request_id: request.request_id,
            traceparent: request.traceparent,
        }
    }

    fn forwarded_for(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        let fields = if self.request.names_another_client { self.fields } else { &[] };
        let lines = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("x-forwarded-for"));
        lines.map(|field| field.value)
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(fields_of_answer(self.fields))
    }
}

/// All fields.
pub fn header_map(fields: Fields<'_, '_>) -> HeaderMap {
    map_of(fields.iter())
}

/// The fields that shape an answer of crawlgate's own. Most requests have none or one of them, and the map of all would
/// cost as much as the rest of the answer.
fn fields_of_answer(fields: Fields<'_, '_>) -> HeaderMap {
    map_of(fields.iter().filter(|field| Asked::reads(field.name)))
}

fn map_of<'f, 'b: 'f>(fields: impl Iterator<Item = &'f Header<'b>>) -> HeaderMap {
    let read = fields.filter_map(|field| {
        // Both were read already, so neither fails.
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        Some((name, HeaderValue::from_bytes(field.value).ok()?))
    });
    let mut map = HeaderMap::new();
    for (name, value) in read {
        map.append(name, value);
    }
    map
}

/// The same of a whole head that was read before.
pub(super) fn fields_of(head: &[u8]) -> HeaderMap {
    let mut room = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let line_end = memchr::memchr(b'\n', head).map_or(head.len(), |end| end + 1);
    match httparse::parse_headers(&head[line_end..], &mut room) {
        Ok(httparse::Status::Complete((_, fields))) => fields_of_answer(fields),
        _ => HeaderMap::new(),
    }
}

#[cfg(test)]
mod tests;
