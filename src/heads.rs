//! Functions that read a part of a head, so that HTTP/1, HTTP/2, the middleware and the decision
//! service read it in the same way: [`is_host`], [`origin_form`], [`is_event_stream`],
//! [`is_license_token`], [`is_request_id`], [`trace_id`]. [`ForwardingFields`] are the fields by
//! which a proxy speaks for its client. [`likely_type`] guesses the content type of a response.

mod fields;
mod forwarding;
mod likely_type;
mod trace;

pub use fields::HeadFields;
pub use forwarding::ForwardingFields;
pub use likely_type::{example_of, likely_type};
pub use trace::{is_request_id, trace_id};

use http::{HeaderName, HeaderValue, Version};
use std::borrow::Cow;

/// The user agent of crawlgate's own requests.
pub const OWN_AGENT: &str = concat!("crawlgate/", env!("CARGO_PKG_VERSION"));
/// The field with the tags of a policy.
pub const X_ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// Whether this is a host with or without a port, in the characters of RFC 3986 section 3.2.2: a
/// name, an IPv4 address, or an IPv6 address in brackets. Without escapes, which no client sends
/// and not every server decodes, and without empty labels, as in every name of DNS: a dot may end
/// it. A port has at most five digits.
pub fn is_host(written: &[u8]) -> bool {
    let (name, port) = match memchr::memrchr(b':', written) {
        Some(colon) if !written.ends_with(b"]") => (&written[..colon], &written[colon + 1..]),
        _ => (written, b"".as_slice()),
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
    is_name_of_dns(name.strip_suffix(b".").unwrap_or(name))
}

/// The kind of an octet in the name of a host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OfName {
    /// No part of one.
    Nothing,
    Letter,
    Sign,
    Dot,
}

const OF_NAME: [OfName; 256] = {
    let mut table = [OfName::Nothing; 256];
    let mut octet = 0;
    while octet < 256 {
        table[octet] = match octet as u8 {
            b'.' => OfName::Dot,
            b'-' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';'
            | b'=' => OfName::Sign,
            octet if octet.is_ascii_alphanumeric() => OfName::Letter,
            _ => OfName::Nothing,
        };
        octet += 1;
    }
    table
};

/// Whether this is a host name: labels of the characters of a host, none empty, with a letter or
/// digit somewhere. Read in one pass and by a table, because the host of each request is checked.
fn is_name_of_dns(name: &[u8]) -> bool {
    let mut before = OfName::Dot;
    let mut has_letter = false;
    for &octet in name {
        let of_name = OF_NAME[usize::from(octet)];
        if of_name == OfName::Nothing || (of_name == OfName::Dot && before == OfName::Dot) {
            return false;
        }
        has_letter |= of_name == OfName::Letter;
        before = of_name;
    }
    has_letter && before != OfName::Dot
}

/// Path and query of a request target. A target in absolute form (`http://host/a?b`) loses scheme
/// and host, and gets the path `/` if it has none; any other is returned as it is. Absolute form is
/// for proxies: an origin expects a path (RFC 9112 section 3.2).
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

/// The members of a list in a field, without the spaces around them (RFC 9110 section 5.6.1).
#[inline]
pub fn members(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|octet| *octet == b',').map(<[u8]>::trim_ascii)
}

/// The path of a request target in origin form.
pub fn path_of(target: &[u8]) -> &[u8] {
    let query = memchr::memchr(b'?', target);
    &target[..query.unwrap_or(target.len())]
}

/// The extension of the file that a path names, without its dot.
pub fn extension(path: &[u8]) -> Option<&[u8]> {
    let directory = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    let name = &path[directory..];
    Some(&name[memchr::memrchr(b'.', name)? + 1..])
}

/// Whether a content type is that of server-sent events, which go on until the client leaves.
pub fn is_event_stream(content_type: &[u8]) -> bool {
    is_media(content_type, b"text/event-stream")
}

/// Whether a content type is this type, whatever its parameters.
pub fn is_media(content_type: &[u8], media: &[u8]) -> bool {
    let own = content_type
        .split(|octet| *octet == b';')
        .next()
        .unwrap_or_default();
    own.trim_ascii().eq_ignore_ascii_case(media)
}

/// The lines of one field as one line (RFC 9110 section 5.3), separated by `, `; `None` without
/// lines. Several content types are joined too: each crawler and browser uses another one of them.
pub fn joined<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Option<Cow<'a, [u8]>> {
    let first = Cow::Borrowed(lines.next()?);
    Some(lines.fold(first, |joined, line| {
        Cow::Owned([&joined, b", ".as_slice(), line].concat())
    }))
}

/// Whether this value of Authorization is a licence token: `License TOKEN`, the scheme in any case
/// (RFC 9110 section 11.1).
pub fn is_license_token(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    let scheme = memchr::memchr(b' ', value).unwrap_or(value.len());
    let (scheme, token) = value.split_at(scheme);
    scheme.eq_ignore_ascii_case(b"License") && !token.trim_ascii().is_empty()
}

/// The fields of a signature, as they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureFields<'a> {
    /// `Signature-Input`.
    pub input: &'a str,
    /// `Signature`.
    pub signature: &'a str,
    /// `Signature-Agent`.
    pub agent: &'a str,
}

impl<'a> SignatureFields<'a> {
    /// These fields, if `Signature-Input` and `Signature` are both there; `Signature-Agent` may be
    /// missing.
    pub fn if_present(self) -> Option<SignatureFields<'a>> {
        (!self.input.is_empty() && !self.signature.is_empty()).then_some(self)
    }
}

/// Lines of X-Robots-Tag as field values, one each. They are never folded into one: a scope would
/// swallow the lines that follow it. A line that cannot be a field value is logged and left out.
pub fn tag_values(lines: &[String]) -> impl Iterator<Item = HeaderValue> {
    lines.iter().filter_map(|line| match HeaderValue::from_bytes(line.as_bytes()) {
        Ok(value) => Some(value),
        Err(_) => {
            tracing::warn!(%line, "a tag cannot be written as a field value; the response goes without it");
            None
        }
    })
}

/// The version of HTTP, as the access log writes it; `1.1` for one that is not known.
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
    fn every_form_of_target_becomes_path_and_query() {
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
        let joined = |lines: &[&'static str]| joined(lines.iter().map(|line| line.as_bytes()));
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
    fn license_token_is_seen_in_any_case() {
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
    fn tags_are_field_lines_of_their_own() {
        let lines = [
            "noindex".to_owned(),
            "bad\nline".to_owned(),
            "googlebot: nofollow".to_owned(),
        ];
        let values: Vec<_> = tag_values(&lines).collect();
        assert_eq!(values, ["noindex", "googlebot: nofollow"]);
    }
}
