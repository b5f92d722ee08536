//! Parsers for parts of an HTTP head. HTTP/1, HTTP/2, the middleware (crawlgate inside an
//! application) and the decision service (for other proxies) share them, so that all read heads in
//! the same way. [`HeadFields`] are the parts of a request head that judging needs;
//! [`ForwardingFieldSet`] are the fields in which a proxy describes its client, such as
//! X-Forwarded-For.

mod fields;
mod forwarding;
mod likely_type;
mod trace;

pub use fields::HeadFields;
pub use forwarding::ForwardingFieldSet;
pub use likely_type::{example_extension, likely_content_type};
pub use trace::{is_request_id, trace_id};

use http::{HeaderName, HeaderValue, Version};
use std::borrow::Cow;

/// The user agent of crawlgate's own requests.
pub const OWN_USER_AGENT: &str = concat!("crawlgate/", env!("CARGO_PKG_VERSION"));
/// The user agent of the server's own requests for an origin's robots.txt, which must not come back
/// to it. `init` uses it too. Other commands use [`OWN_USER_AGENT`], and are answered.
pub const ORIGIN_USER_AGENT: &str = concat!("crawlgate/", env!("CARGO_PKG_VERSION"), " (origin)");
/// The field with the tags of a policy.
pub const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// Whether this is a host with or without a port (RFC 3986 section 3.2.2): a name, an IPv4 address,
/// or an IPv6 address in brackets. Escapes are not allowed: no client sends them, and not every
/// server decodes them. Neither are empty labels, except that a dot may end the name. A port has at
/// most five digits.
pub fn is_host(host: &[u8]) -> bool {
    let (name, port) = match memchr::memrchr(b':', host) {
        Some(colon) if !host.ends_with(b"]") => (&host[..colon], &host[colon + 1..]),
        _ => (host, b"".as_slice()),
    };
    if !port.iter().all(u8::is_ascii_digit) || port.len() > 5 {
        return false;
    }
    if let Some(address) = name.strip_prefix(b"[") {
        let address = address
            .strip_suffix(b"]")
            .and_then(|address| std::str::from_utf8(address).ok());
        return address.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok());
    }
    is_dns_name(name.strip_suffix(b".").unwrap_or(name))
}

/// Whether this is a host name without empty labels and with a letter or digit.
fn is_dns_name(name: &[u8]) -> bool {
    let mut before = b'.';
    let mut has_letter = false;
    for &byte in name {
        match byte {
            b'.' if before == b'.' => return false,
            b'.' | b'-' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+'
            | b';' | b'=' => {}
            _ if byte.is_ascii_alphanumeric() => has_letter = true,
            _ => return false,
        }
        before = byte;
    }
    has_letter && before != b'.'
}

/// A request target in origin form (RFC 9112 section 3.2): path and query of a target in absolute
/// form (`http://host/a?b`), with the path `/` if it has none. Any other target is returned as it
/// is.
pub fn origin_form(target: &[u8]) -> Cow<'_, [u8]> {
    if target.starts_with(b"/") || target == b"*" {
        return Cow::Borrowed(target);
    }
    let Some(scheme_end) = memchr::memmem::find(target, b"://") else {
        return Cow::Borrowed(target);
    };
    let after_scheme = &target[scheme_end + 3..];
    let path = memchr::memchr2(b'/', b'?', after_scheme).unwrap_or(after_scheme.len());
    match &after_scheme[path..] {
        path @ [b'/', ..] => Cow::Owned(path.to_vec()),
        query => Cow::Owned([b"/", query].concat()),
    }
}

/// The members of a comma-separated list, without the spaces around them (RFC 9110 section 5.6.1).
#[inline]
pub fn list_members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// The path of a request target in origin form.
pub fn path_of(target: &[u8]) -> &[u8] {
    let query = memchr::memchr(b'?', target);
    &target[..query.unwrap_or(target.len())]
}

/// The file extension in the last segment of a path, without its dot.
pub fn file_extension(path: &[u8]) -> Option<&[u8]> {
    let directory = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    let name = &path[directory..];
    Some(&name[memchr::memrchr(b'.', name)? + 1..])
}

/// Whether a content type is that of server-sent events.
pub fn is_event_stream(content_type: &[u8]) -> bool {
    has_media_type(content_type, b"text/event-stream")
}

/// A content type without its parameters.
pub fn media_type(content_type: &[u8]) -> &[u8] {
    let mut parts = content_type.split(|byte| *byte == b';');
    parts.next().unwrap_or_default().trim_ascii()
}

/// Whether a content type is this type, whatever its parameters.
pub fn has_media_type(content_type: &[u8], media: &[u8]) -> bool {
    media_type(content_type).eq_ignore_ascii_case(media)
}

/// The lines of one field, joined by `, ` (RFC 9110 section 5.3); `None` without lines. Several
/// content types are joined too, because each client uses another one of them.
pub fn join_lines<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Option<Cow<'a, [u8]>> {
    let first = Cow::Borrowed(lines.next()?);
    Some(lines.fold(first, |joined, line| {
        Cow::Owned([&joined, b", ".as_slice(), line].concat())
    }))
}

/// Whether this value of Authorization is a licence token: `License TOKEN`, with the scheme in any
/// case (RFC 9110 section 11.1).
pub fn is_license_token(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let scheme = memchr::memchr(b' ', value).unwrap_or(value.len());
    let (scheme, token) = value.split_at(scheme);
    scheme.eq_ignore_ascii_case(b"License") && !token.trim_ascii().is_empty()
}

/// The fields of an HTTP message signature, as they came.
#[derive(Clone, Copy, Default)]
pub struct SignatureFields<'a> {
    /// `Signature-Input`.
    pub input: &'a str,
    /// `Signature`.
    pub signature: &'a str,
    /// `Signature-Agent`.
    pub agent: &'a str,
}

impl<'a> SignatureFields<'a> {
    /// `None` unless `Signature-Input` and `Signature` are both present.
    pub fn if_signed(self) -> Option<SignatureFields<'a>> {
        (!self.input.is_empty() && !self.signature.is_empty()).then_some(self)
    }
}

/// Lines of X-Robots-Tag as field values, one each. They are never joined: a scope would apply to
/// the lines that follow it. A line that cannot be a field value is logged and dropped.
pub fn tag_values(lines: &[String]) -> impl Iterator<Item = HeaderValue> {
    lines.iter().filter_map(|line| match HeaderValue::from_bytes(line.as_bytes()) {
        Ok(value) => Some(value),
        Err(_) => {
            tracing::warn!(%line, "a tag cannot be written as a field value; the response is sent without it");
            None
        }
    })
}

/// The version of HTTP in the access log; `1.1` for an unknown one.
pub fn http_version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        Version::HTTP_3 => "3",
        _ => "1.1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_become_origin_form() {
        for (target, path) in [
            ("/a?b", "/a?b"),
            ("*", "*"),
            ("http://a.example", "/"),
            ("http://a.example/", "/"),
            ("http://a.example:80/b?c=://d", "/b?c=://d"),
            ("https://a.example?q", "/?q"),
            ("//a/b", "//a/b"),
        ] {
            assert_eq!(
                &*origin_form(target.as_bytes()),
                path.as_bytes(),
                "{target}"
            );
        }
    }

    #[test]
    fn several_content_types_are_joined() {
        let joined = |lines: &[&'static str]| join_lines(lines.iter().map(|line| line.as_bytes()));
        assert_eq!(joined(&[]), None);
        assert!(matches!(
            joined(&["text/html"]),
            Some(Cow::Borrowed(b"text/html"))
        ));
        assert_eq!(
            joined(&["text/html", "image/png"]).as_deref(),
            Some(b"text/html, image/png".as_slice())
        );
    }

    #[test]
    fn license_scheme_matches_in_any_case() {
        let has = |line: &str| is_license_token(line.as_bytes());
        for line in [
            "License abc",
            "license abc",
            "LICENSE   a.b.c==",
            " License abc ",
        ] {
            assert!(has(line), "{line:?}");
        }
        for line in [
            "License",
            "License ",
            "Licensed abc",
            "Bearer abc",
            "Basic TGljZW5zZQ==",
            "",
            "License\tabc",
        ] {
            assert!(!has(line), "{line:?}");
        }
    }

    #[test]
    fn each_tag_line_is_a_field_value() {
        let lines = [
            "noindex".to_owned(),
            "bad\nline".to_owned(),
            "googlebot: nofollow".to_owned(),
        ];
        let values: Vec<_> = tag_values(&lines).collect();
        assert_eq!(values, ["noindex", "googlebot: nofollow"]);
    }
}
