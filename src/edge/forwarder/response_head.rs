//! [`parse_response_head`] parses the status line and header lines of an origin's response. It is
//! strict: if two readers could disagree about where the response ends, that is an error.

use crate::heads::list_members;
use crate::requests::content_length;
use http::StatusCode;
use httparse::{Header, ParserConfig, Status};
use std::mem::MaybeUninit;

/// The most field lines of a head.
const MAX_FIELDS: usize = 256;
/// The most bytes of a head.
pub const MAX_HEAD: usize = 64 * 1024;

/// How the body of a response ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFraming {
    /// There is no body.
    None,
    /// After this many bytes.
    Length(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// Why a response cannot be passed on.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResponse {
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

/// What crawlgate reads from a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// Never 101.
    pub status: StatusCode,
    pub framing: ResponseFraming,
    /// Whether the head lets the connection be used again.
    pub keeps_alive: bool,
    /// Whether its Connection field names other fields.
    pub names_fields: bool,
    /// The length of the head in bytes.
    pub length: usize,
}

/// A parsed head, with its fields as they came.
pub struct ParsedResponse<'h, 'b> {
    /// What crawlgate reads from it.
    pub head: ResponseHead,
    /// The reason phrase.
    pub reason: &'b str,
    pub fields: &'h [Header<'b>],
}

/// Parses the head at the beginning of `bytes`, calls `with_head` with it, and returns the result;
/// `None` if the head is not complete. `is_head` is whether the request was HEAD: then, and with
/// 204 and 304, there is no body, whatever the fields say.
///
/// # Errors
/// The response cannot be passed on.
pub fn parse_response_head<'b, T>(
    bytes: &'b [u8],
    is_head: bool,
    with_head: impl FnOnce(ParsedResponse<'_, 'b>) -> T,
) -> Result<Option<T>, InvalidResponse> {
    let mut line_memory = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        bytes,
        &mut line_memory,
    );
    let length = match parsed.map_err(InvalidResponse::Malformed)? {
        Status::Complete(length) if length <= MAX_HEAD => length,
        Status::Partial if bytes.len() <= MAX_HEAD => return Ok(None),
        _ => return Err(InvalidResponse::TooLarge),
    };
    let status = response
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or(InvalidResponse::Status)?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(InvalidResponse::Switch);
    }
    let mut framing_fields = FramingFields::default();
    for field in &*response.headers {
        framing_fields.read_field(field)?;
    }
    let is_http10 = response.version == Some(0);
    let framing = match framing_fields.framing(is_http10)? {
        _ if is_head || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => {
            ResponseFraming::None
        }
        framing => framing,
    };
    let head = ResponseHead {
        status,
        framing,
        keeps_alive: framing_fields.keeps_alive(is_http10),
        names_fields: framing_fields.names_other_fields,
        length,
    };
    Ok(Some(with_head(ParsedResponse {
        head,
        reason: response.reason.unwrap_or_default(),
        fields: response.headers,
    })))
}

/// The fields that frame the response.
#[derive(Default)]
struct FramingFields {
    length: Option<u64>,
    is_chunked: bool,
    has_close: bool,
    has_keep_alive: bool,
    /// Whether Connection has another token than `close` and `keep-alive`.
    names_other_fields: bool,
}

impl FramingFields {
    /// Reads a field, if it is one of these. Fails for a second length or coding, and for one that
    /// is not understood.
    fn read_field(&mut self, field: &Header<'_>) -> Result<(), InvalidResponse> {
        match field.name.len() {
            14 if field.name.eq_ignore_ascii_case("content-length") => {
                let length = content_length(field.value).filter(|_| self.length.is_none());
                self.length = Some(length.ok_or(InvalidResponse::Length)?);
            }
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                if self.is_chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                    return Err(InvalidResponse::Coding);
                }
                self.is_chunked = true;
            }
            10 if field.name.eq_ignore_ascii_case("connection") => {
                for token in list_members(field.value) {
                    match token.len() {
                        5 if token.eq_ignore_ascii_case(b"close") => self.has_close = true,
                        10 if token.eq_ignore_ascii_case(b"keep-alive") => {
                            self.has_keep_alive = true
                        }
                        length => self.names_other_fields |= length > 0,
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The framing by the fields. Length and chunks together, and chunks of HTTP/1.0, are errors.
    fn framing(&self, is_http10: bool) -> Result<ResponseFraming, InvalidResponse> {
        match (self.length, self.is_chunked) {
            (Some(_), true) => Err(InvalidResponse::LengthAndCoding),
            // HTTP/1.0 knows no chunks (RFC 9112 section 6.1).
            (None, true) if is_http10 => Err(InvalidResponse::Coding),
            (None, true) => Ok(ResponseFraming::Chunked),
            (Some(length), false) => Ok(ResponseFraming::Length(length)),
            (None, false) => Ok(ResponseFraming::UntilClose),
        }
    }

    /// Whether the connection can be used again: without `close`, and over HTTP/1.0 with
    /// `keep-alive`.
    fn keeps_alive(&self, is_http10: bool) -> bool {
        !self.has_close && (self.has_keep_alive || !is_http10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &str, is_head: bool) -> Result<Option<ResponseHead>, InvalidResponse> {
        parse_response_head(fields.as_bytes(), is_head, |parsed| parsed.head)
    }

    fn framing(fields: &str) -> Result<ResponseFraming, InvalidResponse> {
        head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), false).map(|head| head.unwrap().framing)
    }

    #[test]
    fn body_ends_by_length_chunks_or_close() {
        assert_eq!(
            framing("Content-Length: 12\r\n"),
            Ok(ResponseFraming::Length(12))
        );
        assert_eq!(
            framing("content-length: 0\r\n"),
            Ok(ResponseFraming::Length(0))
        );
        assert_eq!(
            framing("Transfer-Encoding: Chunked\r\n"),
            Ok(ResponseFraming::Chunked)
        );
        assert_eq!(framing("A: b\r\n"), Ok(ResponseFraming::UntilClose));
    }

    #[test]
    fn ambiguous_framing_is_an_error() {
        for length in ["+1", "-1", "1 2", "1,1", "0x1", "", "1234567890123456789"] {
            assert_eq!(
                framing(&format!("Content-Length: {length}\r\n")),
                Err(InvalidResponse::Length),
                "{length}"
            );
        }
        assert_eq!(
            framing("Content-Length: 1\r\nContent-Length: 1\r\n"),
            Err(InvalidResponse::Length)
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
                Err(InvalidResponse::Coding),
                "{coding}"
            );
        }
        assert_eq!(
            framing("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
            Err(InvalidResponse::Coding)
        );
        let both = "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n";
        assert_eq!(framing(both), Err(InvalidResponse::LengthAndCoding));
        let old = head(
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            false,
        );
        assert_eq!(old, Err(InvalidResponse::Coding));
    }

    #[test]
    fn bodiless_response_ignores_its_length() {
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
            assert_eq!(read.framing, ResponseFraming::None, "{status}");
        }
    }

    #[test]
    fn connection_is_kept_by_version_and_field() {
        for (bytes, keeps_alive) in [
            ("HTTP/1.1 200 OK\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\nConnection: a, Close\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\n\r\n", false),
            ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", true),
        ] {
            assert_eq!(
                head(bytes, false).unwrap().unwrap().keeps_alive,
                keeps_alive,
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn connection_field_with_other_tokens_names_fields() {
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
    fn large_head_is_an_error_complete_or_not() {
        let large = format!("HTTP/1.1 200 OK\r\nA: {}", "b".repeat(MAX_HEAD));
        assert_eq!(head(&large, false), Err(InvalidResponse::TooLarge));
        assert_eq!(
            head(&format!("{large}\r\n\r\n"), false),
            Err(InvalidResponse::TooLarge)
        );
    }

    #[test]
    fn complete_head_is_parsed() {
        assert_eq!(head("HTTP/1.1 200 OK\r\nA: b\r\n", false), Ok(None));
        assert_eq!(
            head("HTTP/1.1 101 Switch\r\n\r\n", false),
            Err(InvalidResponse::Switch)
        );
        assert_eq!(
            head("HTTP/1.1 099 No\r\n\r\n", false),
            Err(InvalidResponse::Status)
        );
        for bytes in [
            "HTTP/2 200 OK\r\n\r\n",
            "SSH-2.0-x\r\n",
            "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        ] {
            assert!(
                matches!(head(bytes, false), Err(InvalidResponse::Malformed(_))),
                "{bytes:?}"
            );
        }
        let read = head("HTTP/1.1 404 Gone missing\r\n\r\nrest", false)
            .unwrap()
            .unwrap();
        assert_eq!((read.status.as_u16(), read.length), (404, 29));
    }
}
