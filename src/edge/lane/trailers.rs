//! [`read_trailers`] reads the trailers of a body in chunks. It leaves out fields that a server
//! could take for fields of the head: with those a client could contradict the head that crawlgate
//! has judged.

use crate::edge::chunks::{ASIDE, MAX_TRAILERS};
use crate::heads::ForwardingFields;
use http::HeaderMap;
use httparse::{EMPTY_HEADER, Header, Status};

/// Fields that say where a message ends or goes to, how it is read or who sends it (RFC 9110
/// section 6.5.1).
const OF_HEADS: [&str; 29] = [
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "expect",
    "host",
    "http2-settings",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "max-forwards",
    "range",
    "set-cookie",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "x-request-id",
    "x-robots-tag",
];

/// Trailers that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTrailers;

/// Reads `lines`, each with its end, and hands the fields that may be passed on to `with`, all at
/// once. Returns the result of `with`, which gets an empty list where there are none.
///
/// # Errors
/// The lines are no fields.
pub fn read_trailers<T>(
    lines: &[u8],
    with: impl FnOnce(&[Header<'_>]) -> T,
) -> Result<T, BadTrailers> {
    if lines.is_empty() {
        return Ok(with(&[]));
    }
    let octets = [lines, b"\r\n"].concat();
    let mut room = [EMPTY_HEADER; MAX_TRAILERS];
    match httparse::parse_headers(&octets, &mut room) {
        Ok(Status::Complete((length, fields))) if length == octets.len() => {
            let passed: Vec<Header<'_>> = fields
                .iter()
                .filter(|field| may_be_trailer(field.name))
                .copied()
                .collect();
            Ok(with(&passed))
        }
        _ => Err(BadTrailers),
    }
}

/// Checks trailers of HTTP/2 against the limits that those of HTTP/1.1 have. A colon counts as one
/// of their bytes.
///
/// # Errors
/// They are too many or too large.
pub fn check_trailers(trailers: &HeaderMap) -> Result<(), BadTrailers> {
    let bytes: usize = trailers
        .iter()
        .map(|(name, value)| name.as_str().len() + 1 + value.len())
        .sum();
    if trailers.len() > MAX_TRAILERS || bytes > ASIDE {
        Err(BadTrailers)
    } else {
        Ok(())
    }
}

/// Whether a trailer with this name is passed on: not one of `OF_HEADS`, for a proxy, or about
/// forwarding. `_` counts as `-`, as applications read it.
pub fn may_be_trailer(name: &str) -> bool {
    let name = name.replace('_', "-").to_ascii_lowercase();
    OF_HEADS.binary_search(&name.as_str()).is_err()
        && !name.starts_with("proxy-")
        && ForwardingFields::named(&name).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(lines: &str) -> Result<Vec<String>, BadTrailers> {
        let line = |field: &Header<'_>| {
            format!("{}: {}", field.name, String::from_utf8_lossy(field.value))
        };
        read_trailers(lines.as_bytes(), |fields| fields.iter().map(line).collect())
    }

    #[test]
    fn trailers_are_passed_on_but_for_fields_of_heads() {
        assert!(OF_HEADS.is_sorted());
        let lines = "X-Check: 1\r\nContent-Length: 5\r\ntransfer-encoding: chunked\r\nHost: a\r\nX_Forwarded_For: 192.0.2.1\r\n\
                     X-Real-IP: 192.0.2.1\r\nX-Rewrite-URL: /\r\nFly_Client_IP: 192.0.2.1\r\nProxy-Authorization: a\r\nServer-Timing: a;dur=1 \r\n";
        assert_eq!(
            passed(lines),
            Ok(vec![
                "X-Check: 1".to_owned(),
                "Server-Timing: a;dur=1".to_owned()
            ])
        );
        assert_eq!(passed(""), Ok(Vec::new()));
    }

    #[test]
    fn lines_that_are_no_fields_are_refused() {
        for lines in [
            "no colon\r\n",
            "A : b\r\n",
            ": b\r\n",
            "A: b\0\r\n",
            &"A: b\r\n".repeat(MAX_TRAILERS + 1),
        ] {
            assert_eq!(passed(lines), Err(BadTrailers), "{lines:?}");
        }
    }
}
