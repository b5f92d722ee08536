//! [`check`] refuses a request head that two servers could understand differently, because the
//! origin behind crawlgate reads it too. It also applies the limits on sizes, and refuses TRACE and
//! CONNECT. [`Seen`] collects what `check` needs. The reader of HTTP/1.1 and `MappedRequest` (for
//! HTTP/2) fill it. A head that another server has read before (in the middleware and the decision
//! service) skips `check`.

use super::mistake::Mistake;
use crate::heads::is_host;
use crate::settings::Limits;

/// How the body of a request is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// No body.
    None,
    /// So many octets.
    Length(u64),
    /// Chunks.
    Chunked,
}

impl Framing {
    /// The most bytes of the body that can wait in a buffer of `most` bytes: fewer if the body is
    /// shorter.
    pub fn at_most(self, most: usize) -> usize {
        match self {
            Framing::None => 0,
            Framing::Length(length) => {
                usize::try_from(length).map_or(most, |length| length.min(most))
            }
            Framing::Chunked => most,
        }
    }
}

/// The parts of a head that [`check`] needs.
pub struct Seen<'b> {
    method: &'b [u8],
    target: &'b [u8],
    is_http10: bool,
    /// `:authority` of HTTP/2.
    pub authority: Option<&'b [u8]>,
    /// Octets of all fields.
    pub octets: usize,
    /// How many fields there are.
    pub fields: usize,
    host: Option<&'b [u8]>,
    agent: Option<&'b [u8]>,
    length: Option<&'b [u8]>,
    coding: Option<&'b [u8]>,
    has_other_expectation: bool,
}

impl<'b> Seen<'b> {
    /// A head of which no field is noted yet.
    pub fn new(method: &'b [u8], target: &'b [u8], is_http10: bool) -> Seen<'b> {
        Seen {
            method,
            target,
            is_http10,
            authority: None,
            octets: 0,
            fields: 0,
            host: None,
            agent: None,
            length: None,
            coding: None,
            has_other_expectation: false,
        }
    }

    /// Takes a field in, if [`check`] needs it.
    ///
    /// # Errors
    /// The field came before, and may come only once: Host, User-Agent, Content-Length,
    /// Transfer-Encoding.
    pub fn note(&mut self, name: &str, value: &'b [u8]) -> Result<(), Mistake> {
        match name.len() {
            6 if name.eq_ignore_ascii_case("expect") => {
                self.has_other_expectation |= !value.eq_ignore_ascii_case(b"100-continue");
                Ok(())
            }
            4 if name.eq_ignore_ascii_case("host") && self.host.replace(value).is_some() => {
                Err(Mistake::BadHost)
            }
            10 if name.eq_ignore_ascii_case("user-agent")
                && self.agent.replace(value).is_some() =>
            {
                Err(Mistake::UserAgent)
            }
            14 if name.eq_ignore_ascii_case("content-length")
                && self.length.replace(value).is_some() =>
            {
                Err(Mistake::ContentLength)
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding")
                && self.coding.replace(value).is_some() =>
            {
                Err(Mistake::TransferEncoding)
            }
            _ => Ok(()),
        }
    }
}

/// The host and the framing of a head. The host is empty where an HTTP/1.0 request has none.
///
/// # Errors
/// The first mistake in it.
pub fn check<'b>(seen: &Seen<'b>, limits: &Limits) -> Result<(&'b [u8], Framing), Mistake> {
    if seen.target.len() > limits.target {
        return Err(Mistake::TargetTooLong);
    }
    if seen.octets > limits.headers {
        return Err(Mistake::HeadersTooLarge);
    }
    if seen.fields > limits.fields {
        return Err(Mistake::TooManyFields);
    }
    let host = host(seen)?;
    check_target(seen, host)?;
    let framing = framing(seen)?;
    if let (Framing::Length(length), Some(most)) = (framing, limits.body)
        && length > most
    {
        return Err(Mistake::BodyTooLarge);
    }
    if matches!(seen.method, b"TRACE" | b"CONNECT") {
        return Err(Mistake::Method);
    }
    // HTTP/1.0 has no expectations.
    if seen.has_other_expectation && !seen.is_http10 {
        return Err(Mistake::Expectation);
    }
    Ok((host, framing))
}

/// The host: Host, else `:authority`. Both have to be equal if both are there. Only HTTP/1.0 may
/// have none; it is empty then.
fn host<'b>(seen: &Seen<'b>) -> Result<&'b [u8], Mistake> {
    // RFC 9113 section 8.3.1: Host and `:authority` name the same.
    if let (Some(host), Some(authority)) = (seen.host, seen.authority)
        && !host.eq_ignore_ascii_case(authority)
    {
        return Err(if is_host(host) {
            Mistake::OtherHost
        } else {
            Mistake::BadHost
        });
    }
    match seen.host.or(seen.authority) {
        Some(b"") | None if !seen.is_http10 => Err(Mistake::NoHost),
        Some(b"") | None => Ok(b""),
        Some(host) if is_host(host) => Ok(host),
        Some(_) => Err(Mistake::BadHost),
    }
}

/// Checks the form of the target: a path, `*` for OPTIONS, or an http or https URL of `host`. A
/// target in absolute form names the host that Host names. A fragment is never sent (RFC 9112
/// section 3.2). CONNECT passes here, and is refused for its method.
fn check_target(seen: &Seen<'_>, host: &[u8]) -> Result<(), Mistake> {
    let target = seen.target;
    if target.contains(&b'#') {
        return Err(Mistake::Target);
    }
    match target {
        [b'/', ..] => Ok(()),
        b"*" if seen.method == b"OPTIONS" => Ok(()),
        // CONNECT has a target of its own, and is refused for its method.
        _ if seen.method == b"CONNECT" => Ok(()),
        _ => {
            let scheme = memchr::memchr(b':', target).ok_or(Mistake::Target)?;
            let (scheme, rest) = target.split_at(scheme);
            if !scheme.eq_ignore_ascii_case(b"http") && !scheme.eq_ignore_ascii_case(b"https") {
                return Err(Mistake::Target);
            }
            let rest = rest.strip_prefix(b"://").ok_or(Mistake::Target)?;
            let end = memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len());
            let named = &rest[..end];
            if !is_host(named) {
                return Err(Mistake::Target);
            }
            if named.eq_ignore_ascii_case(host) {
                Ok(())
            } else {
                Err(Mistake::OtherHost)
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
/// over HTTP/1.0 are mistakes.
fn framing(seen: &Seen<'_>) -> Result<Framing, Mistake> {
    match (seen.length, seen.coding) {
        (None, None) => Ok(Framing::None),
        (Some(length), None) => match content_length(length).ok_or(Mistake::ContentLength)? {
            0 => Ok(Framing::None),
            length => Ok(Framing::Length(length)),
        },
        (None, Some(coding)) if !seen.is_http10 && coding.eq_ignore_ascii_case(b"chunked") => {
            Ok(Framing::Chunked)
        }
        _ => Err(Mistake::TransferEncoding),
    }
}
