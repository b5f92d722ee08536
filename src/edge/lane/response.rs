//! [`ResponseHead`]: the head of an origin's response, read strictly: a response whose end two
//! readers could see in different places is refused.

use crate::heads::members;
use crate::requests::content_length;
use http::StatusCode;
use httparse::{Header, ParserConfig, Status};
use std::mem::MaybeUninit;

/// The most fields that a head may have.
const MOST_FIELDS: usize = 256;
/// Octets of a head.
pub const LARGEST_HEAD: usize = 64 * 1024;

/// The sign of the end of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// So many octets.
    Length(u64),
    /// Chunks.
    Chunked,
    /// The end of the connection.
    UntilClose,
}

/// Why a response cannot be passed on.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    #[error("the head of the response is malformed: {0}")]
    Malformed(httparse::Error),
    #[error("the head of the response is larger than 64 KiB")]
    TooLarge,
    #[error("the response has no proper status")]
    Status,
    #[error("the response switches the protocol, and the request did not ask for it")]
    Switch,
    #[error("the response has a Content-Length that is no single number")]
    Length,
    #[error("the response has a Transfer-Encoding other than chunked")]
    Coding,
    #[error("the response has Content-Length and Transfer-Encoding")]
    LengthAndCoding,
}

/// The facts that crawlgate reads from a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Its status, which is not 101.
    pub status: StatusCode,
    /// The framing of the body.
    pub framing: Framing,
    /// Whether the origin keeps the connection, as far as the head tells.
    pub keeps_alive: bool,
    /// Whether its Connection field names other fields of it.
    pub names_fields: bool,
    /// Octets of the head.
    pub length: usize,
}

/// A head that is complete, as it came.
pub struct Parsed<'h, 'b> {
    /// The facts that crawlgate reads from it.
    pub head: ResponseHead,
    /// The words after the status.
    pub reason: &'b str,
    /// Its lines.
    pub fields: &'h [Header<'b>],
}

/// Reads the head that these bytes begin with, hands it to `with_head` and returns its result;
/// `None` if the head is not complete. `is_head` says whether the request was HEAD: then, and with
/// 204 and 304, there is no body, whatever the fields say.
///
/// # Errors
/// The response cannot be passed on.
pub fn read<'b, T>(
    octets: &'b [u8],
    is_head: bool,
    with_head: impl FnOnce(Parsed<'_, 'b>) -> T,
) -> Result<Option<T>, BadResponse> {
    let mut room = [const { MaybeUninit::uninit() }; MOST_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        octets,
        &mut room,
    );
    let length = match parsed.map_err(BadResponse::Malformed)? {
        Status::Complete(length) if length <= LARGEST_HEAD => length,
        Status::Partial if octets.len() <= LARGEST_HEAD => return Ok(None),
        _ => return Err(BadResponse::TooLarge),
    };
    let status = response
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or(BadResponse::Status)?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(BadResponse::Switch);
    }
    let mut seen = Seen::default();
    for field in &*response.headers {
        seen.take_in(field)?;
    }
    let is_http10 = response.version == Some(0);
    let framing = match seen.framing(is_http10)? {
        _ if is_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => {
            Framing::None
        }
        framing => framing,
    };
    let head = ResponseHead {
        status,
        framing,
        keeps_alive: seen.keeps_alive(is_http10),
        names_fields: seen.names_others,
        length,
    };
    Ok(Some(with_head(Parsed {
        head,
        reason: response.reason.unwrap_or_default(),
        fields: response.headers,
    })))
}

/// The fields that say where the response ends.
#[derive(Default)]
struct Seen {
    length: Option<u64>,
    is_chunked: bool,
    closes: bool,
    keeps: bool,
    /// Whether Connection has a token that is no option of its own.
    names_others: bool,
}

impl Seen {
    /// Notes a field that says where the response ends, or whether the connection goes on. Fails
    /// for a second length or coding, and for one that is not understood.
    fn take_in(&mut self, field: &Header<'_>) -> Result<(), BadResponse> {
        match field.name.len() {
            14 if field.name.eq_ignore_ascii_case("content-length") => {
                let length = content_length(field.value).filter(|_| self.length.is_none());
                self.length = Some(length.ok_or(BadResponse::Length)?);
            }
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                if self.is_chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(BadResponse::Coding);
                }
                self.is_chunked = true;
            }
            10 if field.name.eq_ignore_ascii_case("connection") => {
                for token in members(field.value) {
                    match token.len() {
                        5 if token.eq_ignore_ascii_case(b"close") => self.closes = true,
                        10 if token.eq_ignore_ascii_case(b"keep-alive") => self.keeps = true,
                        length => self.names_others |= length > 0,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The framing that the fields ask for: without length and chunks, the body ends with the
    /// connection. Length and chunks together, and chunks of HTTP/1.0, are errors.
    fn framing(&self, is_http10: bool) -> Result<Framing, BadResponse> {
        match (self.length, self.is_chunked) {
            (Some(_), true) => Err(BadResponse::LengthAndCoding),
            // HTTP/1.0 knows no chunks (RFC 9112 section 6.1).
            (None, true) if is_http10 => Err(BadResponse::Coding),
            (None, true) => Ok(Framing::Chunked),
            (Some(length), false) => Ok(Framing::Length(length)),
            (None, false) => Ok(Framing::UntilClose),
        }
    }

    /// Whether the origin keeps the connection: it does not say `close`, and over HTTP/1.0 it says
    /// `keep-alive`.
    fn keeps_alive(&self, is_http10: bool) -> bool {
        !self.closes && (self.keeps || !is_http10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str, is_head: bool) -> Result<Option<ResponseHead>, BadResponse> {
        read(fields.as_bytes(), is_head, |parsed| parsed.head)
    }

    fn framing(fields: &str) -> Result<Framing, BadResponse> {
        head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), false).map(|head| head.unwrap().framing)
    }

    #[test]
    fn end_of_a_body_is_told_by_length_chunks_or_close() {
        assert_eq!(framing("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
        assert_eq!(framing("content-length: 0\r\n"), Ok(Framing::Length(0)));
        assert_eq!(
            framing("Transfer-Encoding: Chunked\r\n"),
            Ok(Framing::Chunked)
        );
        assert_eq!(framing("A: b\r\n"), Ok(Framing::UntilClose));
    }

    #[test]
    fn body_whose_end_two_readers_could_see_elsewhere_is_refused() {
        for length in ["+1", "-1", "1 2", "1,1", "0x1", "", "1234567890123456789"] {
            assert_eq!(
                framing(&format!("Content-Length: {length}\r\n")),
                Err(BadResponse::Length),
                "{length}"
            );
        }
        assert_eq!(
            framing("Content-Length: 1\r\nContent-Length: 1\r\n"),
            Err(BadResponse::Length)
        );
        for coding in [
            "gzip, chunked",
            "identity",
            "chunked, chunked",
            "chunked;a",
            "",
            "x",
        ] {
            assert_eq!(
                framing(&format!("Transfer-Encoding: {coding}\r\n")),
                Err(BadResponse::Coding),
                "{coding}"
            );
        }
        assert_eq!(
            framing("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            Err(BadResponse::Coding)
        );
        let both = "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n";
        assert_eq!(framing(both), Err(BadResponse::LengthAndCoding));
        let old = head(
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            false,
        );
        assert_eq!(old, Err(BadResponse::Coding));
    }

    #[test]
    fn responses_without_a_body_have_none_whatever_they_say() {
        for (status, is_head) in [
            ("204 No Content", false),
            ("304 Not Modified", false),
            ("200 OK", true),
        ] {
            let read = head(
                &format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nrest"),
                is_head,
            )
            .unwrap()
            .unwrap();
            assert_eq!(read.framing, Framing::None, "{status}");
        }
    }

    #[test]
    fn connection_is_kept_as_the_version_and_the_field_say() {
        for (octets, keeps_alive) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nConnection: a, Close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", true),
        ] {
            assert_eq!(
                head(octets, false).unwrap().unwrap().keeps_alive,
                keeps_alive,
                "{octets:?}"
            );
        }
    }

    #[test]
    fn fields_are_named_by_a_connection_field_that_says_more_than_keep_alive() {
        for (fields, names_fields) in [
            ("A: b\r\n", false),
            ("Keep-Alive: timeout=5\r\n", false),
            ("Connection: keep-alive,, close\r\n", false),
            ("Connection: close, X-Hop\r\n", true),
            ("Connection: Keep-Alive\r\nkeep-alive: timeout=5\r\n", false),
        ] {
            let head = head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), false)
                .unwrap()
                .unwrap();
            assert_eq!(head.names_fields, names_fields, "{fields:?}");
        }
    }

    #[test]
    fn head_that_is_too_large_is_refused_complete_or_not() {
        let large = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(LARGEST_HEAD));
        assert_eq!(head(&large, false), Err(BadResponse::TooLarge));
        assert_eq!(
            head(&format!("{large}\r\n\r\n"), false),
            Err(BadResponse::TooLarge)
        );
    }

    #[test]
    fn head_is_read_when_it_is_complete_and_proper() {
        assert_eq!(head("HTTP/1.1 200 OK\r\nA: b\r\n", false), Ok(None));
        assert_eq!(
            head("HTTP/1.1 101 Switch\r\n\r\n", false),
            Err(BadResponse::Switch)
        );
        assert_eq!(
            head("HTTP/1.1 099 No\r\n\r\n", false),
            Err(BadResponse::Status)
        );
        for octets in [
            "HTTP/2 200 OK\r\n\r\n",
            "SSH-2.0-x\r\n",
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        ] {
            assert!(
                matches!(head(octets, false), Err(BadResponse::Malformed(_))),
                "{octets:?}"
            );
        }
        let read = head("HTTP/1.1 404 Gone missing\r\n\r\nrest", false)
            .unwrap()
            .unwrap();
        assert_eq!((read.status.as_u16(), read.length), (404, 29));
    }
}
