//! [`check_head`] refuses a request head that crawlgate and the origin behind it could understand
//! differently. It also applies the limits on sizes, and refuses TRACE and CONNECT. [`HeadParts`]
//! collects the parts of a head that the check needs. Only a reverse proxy needs the check: inside
//! an application, or beside a proxy that asks crawlgate for decisions, another server has already
//! read the head.

use super::head_error::HeadError;
use crate::heads::is_host;
use crate::settings::Limits;
use HeadError::*;

/// How the body of a request is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body.
    None,
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

impl BodyFraming {
    /// The most bytes of the body that can be in a buffer of `size` bytes.
    pub fn buffered_bytes(self, size: usize) -> usize {
        match self {
            BodyFraming::None => 0,
            BodyFraming::Length(length) => {
                usize::try_from(length).map_or(size, |length| length.min(size))
            }
            BodyFraming::Chunked => size,
        }
    }
}

/// The parts of a head that [`check_head`] needs.
#[derive(Default)]
pub struct HeadParts<'b> {
    method: &'b [u8],
    target: &'b [u8],
    is_http10: bool,
    /// `:authority` of HTTP/2.
    pub authority: Option<&'b [u8]>,
    /// Bytes of all fields.
    pub bytes: usize,
    /// How many fields there are.
    pub fields: usize,
    host: Option<&'b [u8]>,
    agent: Option<&'b [u8]>,
    length: Option<&'b [u8]>,
    coding: Option<&'b [u8]>,
    has_other_expectation: bool,
}

impl<'b> HeadParts<'b> {
    /// The parts of a head without its fields.
    pub fn new(method: &'b [u8], target: &'b [u8], is_http10: bool) -> HeadParts<'b> {
        HeadParts {
            method,
            target,
            is_http10,
            ..HeadParts::default()
        }
    }

    /// Adds a field, if [`check_head`] needs it.
    ///
    /// # Errors
    /// The field came before, and may come only once: Host, User-Agent, Content-Length,
    /// Transfer-Encoding.
    pub fn add_field(&mut self, name: &str, value: &'b [u8]) -> Result<(), HeadError> {
        match name.len() {
            6 if name.eq_ignore_ascii_case("expect") => {
                self.has_other_expectation |= !value.eq_ignore_ascii_case(b"100-continue");
                Ok(())
            }
            4 if name.eq_ignore_ascii_case("host") && self.host.replace(value).is_some() => {
                Err(BadHost)
            }
            10 if name.eq_ignore_ascii_case("user-agent")
                && self.agent.replace(value).is_some() =>
            {
                Err(UserAgent)
            }
            14 if name.eq_ignore_ascii_case("content-length")
                && self.length.replace(value).is_some() =>
            {
                Err(ContentLength)
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding")
                && self.coding.replace(value).is_some() =>
            {
                Err(TransferEncoding)
            }
            _ => Ok(()),
        }
    }
}

/// Checks a head, and returns its host and the framing of its body. The host is empty if an
/// HTTP/1.0 request has none.
///
/// # Errors
/// The first error in the head.
pub fn check_head<'b>(
    parts: &HeadParts<'b>,
    limits: &Limits,
) -> Result<(&'b [u8], BodyFraming), HeadError> {
    if parts.target.len() > limits.target {
        return Err(TargetTooLong);
    }
    if parts.bytes > limits.headers {
        return Err(HeadersTooLarge);
    }
    if parts.fields > limits.fields {
        return Err(TooManyFields);
    }
    let host = check_host(parts)?;
    check_target(parts, host)?;
    let framing = body_framing(parts)?;
    if let (BodyFraming::Length(length), Some(most)) = (framing, limits.body)
        && length > most
    {
        return Err(BodyTooLarge);
    }
    if matches!(parts.method, b"TRACE" | b"CONNECT") {
        return Err(Method);
    }
    // HTTP/1.0 has no expectations.
    if parts.has_other_expectation && !parts.is_http10 {
        return Err(Expectation);
    }
    Ok((host, framing))
}

/// The host: Host, else `:authority`. Both have to be equal if both are there. Only HTTP/1.0 may
/// have none; it is empty then.
fn check_host<'b>(parts: &HeadParts<'b>) -> Result<&'b [u8], HeadError> {
    // RFC 9113 section 8.3.1: Host and `:authority` name the same host.
    if let (Some(host), Some(authority)) = (parts.host, parts.authority)
        && !host.eq_ignore_ascii_case(authority)
    {
        return Err(if is_host(host) { OtherHost } else { BadHost });
    }
    match parts.host.or(parts.authority) {
        Some(b"") | None if !parts.is_http10 => Err(NoHost),
        Some(b"") | None => Ok(b""),
        Some(host) if is_host(host) => Ok(host),
        Some(_) => Err(BadHost),
    }
}

/// Checks the form of the target: a path, `*` for OPTIONS, or an http or https URL of `host`. A
/// target in absolute form names the host that Host names. A fragment is never sent (RFC 9112
/// section 3.2). CONNECT passes here, and is rejected for its method.
fn check_target(parts: &HeadParts<'_>, host: &[u8]) -> Result<(), HeadError> {
    let target = parts.target;
    if target.contains(&b'#') {
        return Err(Target);
    }
    match target {
        [b'/', ..] => Ok(()),
        b"*" if parts.method == b"OPTIONS" => Ok(()),
        _ if parts.method == b"CONNECT" => Ok(()),
        _ => {
            let scheme = memchr::memchr(b':', target).ok_or(Target)?;
            let (scheme, rest) = target.split_at(scheme);
            if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
                return Err(Target);
            }
            let rest = rest.strip_prefix(b"://").ok_or(Target)?;
            let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
            let named = &rest[..end];
            if !is_host(named) {
                return Err(Target);
            }
            if named.eq_ignore_ascii_case(host) {
                Ok(())
            } else {
                Err(OtherHost)
            }
        }
    }
}

/// The number in a Content-Length. It has at most 18 digits, so that it fits every counter.
pub fn content_length(value: &[u8]) -> Option<u64> {
    let is_number = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        value
            .iter()
            .fold(0, |number, digit| 10 * number + u64::from(digit - b'0'))
    })
}

/// The framing of the body by Content-Length or Transfer-Encoding. A length of 0 is no body. Both
/// together, a length that is not 1 to 18 digits, a coding other than `chunked`, and any coding
/// over HTTP/1.0 are errors.
fn body_framing(parts: &HeadParts<'_>) -> Result<BodyFraming, HeadError> {
    match (parts.length, parts.coding) {
        (None, None) => Ok(BodyFraming::None),
        (Some(length), None) => match content_length(length).ok_or(ContentLength)? {
            0 => Ok(BodyFraming::None),
            length => Ok(BodyFraming::Length(length)),
        },
        (None, Some(coding)) if !parts.is_http10 && coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(BodyFraming::Chunked)
        }
        _ => Err(TransferEncoding),
    }
}
