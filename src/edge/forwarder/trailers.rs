//! [`read_trailers`] reads the trailers (fields after a chunked body) of an HTTP/1 message. It
//! drops every field that a server could take for a header field. crawlgate judges only the head of
//! a request, so a client could otherwise contradict the head in the trailers.

use crate::edge::body_decoder::{MAX_EXTRA_BYTES, MAX_TRAILERS, MalformedBody};
use crate::heads::ForwardingFieldSet;
use http::HeaderMap;
use httparse::{EMPTY_HEADER, Header, Status};

/// Fields that frame, route, describe or authorise a message (RFC 9110 section 6.5.1).
const FORBIDDEN_TRAILERS: &str = include_str!("forbidden_trailers.txt");

/// Parses `lines`, each with its end, and calls `with` with the fields that may be passed on,
/// perhaps none. Returns its result.
///
/// # Errors
/// The lines are no fields.
pub fn read_trailers<T>(
    lines: &[u8],
    with: impl FnOnce(&[Header<'_>]) -> T,
) -> Result<T, MalformedBody> {
    if lines.is_empty() {
        return Ok(with(&[]));
    }
    let bytes = [lines, b"\r\n"].concat();
    let mut lines = [EMPTY_HEADER; MAX_TRAILERS];
    match httparse::parse_headers(&bytes, &mut lines) {
        Ok(Status::Complete((length, fields))) if length == bytes.len() => {
            let passed: Vec<Header<'_>> = fields
                .iter()
                .filter(|field| may_be_trailer(field.name))
                .copied()
                .collect();
            Ok(with(&passed))
        }
        _ => Err(MalformedBody),
    }
}

/// Checks the trailers of an HTTP/2 message against the limits of HTTP/1.1, with a byte for the
/// colon of each.
///
/// # Errors
/// They are too many or too large.
pub fn check_trailers(trailers: &HeaderMap) -> Result<(), MalformedBody> {
    let bytes: usize = trailers
        .iter()
        .map(|(name, value)| name.as_str().len() + 1 + value.len())
        .sum();
    if trailers.len() > MAX_TRAILERS || bytes > MAX_EXTRA_BYTES {
        Err(MalformedBody)
    } else {
        Ok(())
    }
}

/// Whether a trailer with this name may be passed on: not one of `FORBIDDEN_TRAILERS`, not for a
/// proxy, and not a forwarding field. `_` counts as `-`, as applications read it.
pub fn may_be_trailer(name: &str) -> bool {
    let name = name.replace('_', "-").to_ascii_lowercase();
    !FORBIDDEN_TRAILERS.lines().any(|known| known == name)
        && !name.starts_with("proxy-")
        && ForwardingFieldSet::from_name(&name).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(lines: &str) -> Result<Vec<String>, MalformedBody> {
        let line = |field: &Header<'_>| {
            format!("{}: {}", field.name, String::from_utf8_lossy(field.value))
        };
        read_trailers(lines.as_bytes(), |fields| fields.iter().map(line).collect())
    }

    #[test]
    fn trailers_pass_except_fields_of_heads() {
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
    fn malformed_lines_are_an_error() {
        for lines in [
            "no colon\r\n",
            "A : b\r\n",
            ": b\r\n",
            "A: b\0\r\n",
            &"A: b\r\n".repeat(MAX_TRAILERS + 1),
        ] {
            assert_eq!(passed(lines), Err(MalformedBody), "{lines:?}");
        }
    }
}
