//! [`Asked`]: the method, host and target that a client asked for, of a request line or of a URL.

use super::{Line, Octets, Reading, Unreadable, part};
use memchr::{memchr, memrchr};
use std::borrow::Cow;

/// What a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// Empty where it is not known.
    pub method: Octets<'a>,
    /// The host of an absolute URL: it counts, and not the Host field (RFC 9112 section 3.2.2).
    pub host: Option<Octets<'a>>,
    /// Path and query.
    pub target: Octets<'a>,
}

impl<'a> Asked<'a> {
    /// Reads a request line, or a path alone, whose method is empty. A target may have blanks in
    /// it, and the version may be missing (HTTP/0.9). `None` where it is neither.
    pub fn line(line: &Octets<'a>) -> Option<Asked<'a>> {
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
        Asked::url(part(line, 0..method.len()), part(line, start..end))
    }

    /// Reads a target: a path, a URL with its host, or `*`. Of a URL the host is kept apart,
    /// without a user name, and an empty path becomes `/`. `None` where it is none of them.
    pub fn url(method: Octets<'a>, target: Octets<'a>) -> Option<Asked<'a>> {
        if target.starts_with(b"/") || *target == *b"*" {
            return Some(Asked {
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
        let path = part(&target, end..target.len());
        let path = if path.starts_with(b"/") {
            path
        } else {
            Cow::Owned([b"/", &*path].concat())
        };
        Some(Asked {
            method,
            host: Some(part(&target, host..end)),
            target: path,
        })
    }

    /// The same with a query that stands in a field of its own, unless the target has a query
    /// already.
    pub fn with_query(self, query: &[u8]) -> Asked<'a> {
        if query.is_empty() || memchr(b'?', &self.target).is_some() {
            return self;
        }
        Asked {
            target: Cow::Owned([&*self.target, b"?", query].concat()),
            ..self
        }
    }
}

/// Where a URL goes on behind its scheme and `://`. `None` where this is no URL with a scheme.
pub fn authority_start(text: &[u8]) -> Option<usize> {
    let scheme = text
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte))?;
    (scheme > 0 && text[scheme..].starts_with(b"://")).then_some(scheme + 3)
}

/// The result for a line whose request cannot be read: a connection without a request if the server
/// refused it (status zero or at least 400; without a status, an empty request), or for CONNECT.
///
/// # Errors
/// The server did not refuse it: the line cannot be read.
pub fn none(request: &[u8], status: Option<u16>) -> Reading<'static> {
    let was_refused = match status {
        Some(status) => status == 0 || status >= 400,
        None => matches!(request, b"" | b"-"),
    };
    // A tunnel has no path (RFC 9110 section 9.3.6).
    if was_refused || request.starts_with(b"CONNECT ") {
        Ok(Line::NoRequest)
    } else {
        Err(Unreadable::BadRequest)
    }
}
