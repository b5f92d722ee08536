//! [`RequestLine`]: the method, host and target of a request, parsed from a request line (`GET /
//! HTTP/1.1`) or a URL in an access log.

use super::{FieldBytes, LineResult, LogLine, LogRecord, UnreadableReason, non_empty, slice_field};
use memchr::{memchr, memrchr};
use std::borrow::Cow;

/// The method, host and target of a request.
pub struct RequestLine<'a> {
    /// Empty where it is not known.
    pub method: FieldBytes<'a>,
    /// The host of an absolute URL: it counts, and not the Host field (RFC 9112 section 3.2.2).
    pub host: Option<FieldBytes<'a>>,
    /// Path and query.
    pub target: FieldBytes<'a>,
}

impl<'a> RequestLine<'a> {
    /// Parses a request line, or a path alone, whose method is empty. The target may have blanks,
    /// and the version may be missing (HTTP/0.9). `None` for anything else.
    pub fn parse(line: &FieldBytes<'a>) -> Option<RequestLine<'a>> {
        let start = if line.starts_with(b"/") {
            0
        } else {
            memchr(b' ', line)? + 1
        };
        let method = &line[..start.saturating_sub(1)];
        if start == 1
            || !method
                .iter()
                .all(|byte| byte.is_ascii_alphabetic() || *byte == b'-')
        {
            return None;
        }
        let end = match memrchr(b' ', &line[start..]) {
            Some(end) if line[start + end + 1..].starts_with(b"HTTP/") => start + end,
            // HTTP/0.9, and targets with blanks in them.
            _ => line.len(),
        };
        RequestLine::from_target(
            slice_field(line, 0..method.len()),
            slice_field(line, start..end),
        )
    }

    /// Parses a target: a path, a URL, or `*`. A URL is split into host and path; its user name is
    /// dropped, and an empty path becomes `/`. `None` for anything else.
    pub fn from_target(method: FieldBytes<'a>, target: FieldBytes<'a>) -> Option<RequestLine<'a>> {
        if target.starts_with(b"/") || *target == *b"*" {
            return Some(RequestLine {
                method,
                host: None,
                target,
            });
        }
        let start = authority_start(&target)?;
        let length = target[start..]
            .iter()
            .position(|byte| b"/?#".contains(byte));
        let end = length.map_or(target.len(), |length| start + length);
        let host = start + memrchr(b'@', &target[start..end]).map_or(0, |at| at + 1);
        if host == end {
            return None;
        }
        let path = slice_field(&target, end..target.len());
        let path = if path.starts_with(b"/") {
            path
        } else {
            Cow::Owned([b"/", &*path].concat())
        };
        Some(RequestLine {
            method,
            host: Some(slice_field(&target, host..end)),
            target: path,
        })
    }

    /// Adds the query of a separate field, unless the target has a query already.
    pub fn with_query(self, query: &[u8]) -> RequestLine<'a> {
        if query.is_empty() || memchr(b'?', &self.target).is_some() {
            return self;
        }
        RequestLine {
            target: Cow::Owned([&*self.target, b"?", query].concat()),
            ..self
        }
    }
}

/// The position after the scheme and `://` of a URL. `None` for any other text.
pub fn authority_start(text: &[u8]) -> Option<usize> {
    let scheme = text
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte))?;
    (scheme > 0 && text[scheme..].starts_with(b"://")).then_some(scheme + 3)
}

/// Makes a line of a record and its `request`, whose host counts before that of the record. Without
/// a request, `text` stands in its place.
///
/// # Errors
/// See [`classify_bad_request`].
#[inline]
pub fn into_line<'a>(
    request: Option<RequestLine<'a>>,
    text: &[u8],
    status: Option<u16>,
    record: LogRecord<'a>,
) -> LineResult<'a> {
    let Some(request) = request else {
        return classify_bad_request(text, status);
    };
    Ok(LogLine::Request(LogRecord {
        host: non_empty(request.host).or(record.host),
        method: request.method,
        target: request.target,
        status: status.unwrap_or(0),
        ..record
    }))
}

/// The result for a line whose request is malformed: [`LogLine::NoRequest`] for CONNECT, and if the
/// server rejected it (status zero or at least 400; without a status, an empty request).
///
/// # Errors
/// The server did not reject it, so the line was misread.
pub fn classify_bad_request(request: &[u8], status: Option<u16>) -> LineResult<'static> {
    let was_refused = match status {
        Some(status) => status == 0 || status >= 400,
        None => matches!(request, b"" | b"-"),
    };
    // A tunnel has no path (RFC 9110 section 9.3.6).
    if was_refused || request.starts_with(b"CONNECT ") {
        Ok(LogLine::NoRequest)
    } else {
        Err(UnreadableReason::BadRequest)
    }
}
