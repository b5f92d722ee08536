//! A request target as rules see it.

use super::normal::{Side, is_normal_target, normalise_into};
use memchr::{memchr, memchr2, memchr2_iter};
use std::ops::Range;

/// A target normalised for matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Path and query as sent, in the normal form of RFC 9309 section 2.2.2; `*` is the octet 1, however
    /// it was spelled, and `%24` is `$`.
    pub sent: &'a [u8],
    /// The same with dot segments, doubled slashes and `%2F` of the path resolved, as many origins do; `None` when that
    /// changes nothing.
    pub resolved: Option<&'a [u8]>,
}

impl Target<'_> {
    /// Whether this is `/robots.txt` with any query, which is always allowed (RFC 9309 section 2.2.2).
    pub fn is_robots_txt(&self) -> bool {
        is_robots_txt(self.sent)
    }

    /// Whether this is `/robots.txt` or resolves to it: an origin would answer `//robots.txt` with its own file.
    pub fn reaches_robots_txt(&self) -> bool {
        self.is_robots_txt() || self.resolved.is_some_and(is_robots_txt)
    }
}

/// Buffers that normalisation writes into, kept between requests so that it does not allocate.
#[derive(Debug, Default)]
pub struct TargetScratch {
    sent: Vec<u8>,
    resolved: Vec<u8>,
}

impl TargetScratch {
    /// Buffers with room for targets of up to `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> TargetScratch {
        // An octet becomes at most three, and a slash may be missing.
        let room = capacity.saturating_mul(3).saturating_add(1);
        TargetScratch { sent: Vec::with_capacity(room), resolved: Vec::with_capacity(room) }
    }

    /// Normalises a path with optional query (or an absolute URL, of which scheme and authority are dropped). A
    /// fragment is dropped, a missing slash added. What is normal already is borrowed, not copied.
    pub fn normalise<'a>(&'a mut self, raw: &'a [u8]) -> Target<'a> {
        let TargetScratch { sent: buffer, resolved } = self;
        let raw = &raw[..memchr(b'#', raw).unwrap_or(raw.len())];
        let raw = authority_end(raw).map_or(raw, |end| &raw[end..]);
        let sent = if raw.starts_with(b"/") && is_normal_target(raw) {
            raw
        } else {
            buffer.clear();
            if !raw.starts_with(b"/") {
                buffer.push(b'/');
            }
            normalise_into(raw, Side::Target, buffer);
            buffer
        };
        Target { sent, resolved: resolve_into(sent, resolved) }
    }
}

fn is_robots_txt(target: &[u8]) -> bool {
    split_query(target).0 == b"/robots.txt"
}

/// Path, and the query with its `?`.
fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    target.split_at(memchr(b'?', target).unwrap_or(target.len()))
}

/// Where path or query begin if `raw` is in absolute form (RFC 9112 section 3.2.2): after `scheme://authority`.
fn authority_end(raw: &[u8]) -> Option<usize> {
    if !raw.first()?.is_ascii_alphabetic() {
        return None;
    }
    let colon = raw.iter().position(|octet| !octet.is_ascii_alphanumeric() && !b"+-.".contains(octet))?;
    let authority = raw[colon..].strip_prefix(b"://")?;
    // RFC 3986 section 3.2: an authority ends with `/`, `?`, `#` (gone by now) or the end.
    Some(raw.len() - authority.len() + memchr2(b'/', b'?', authority).unwrap_or(authority.len()))
}

/// Writes `sent` with the path's dot segments removed (RFC 3986 section 5.2.4), doubled slashes taken as one, and `%2F`
/// taken for a slash, as nginx does. `%2E` was decoded by normalisation. Slashes are merged before `..` climbs:
/// `/a//../b` is `/b`.
fn resolve_into<'a>(sent: &[u8], out: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let (path, query) = split_query(sent);
    // `2F` stands in few paths, and `%` in many.
    if !path.windows(2).any(|pair| matches!(pair, b"//" | b"/." | b"2F")) {
        return None;
    }
    out.clear();
    let mut rest = path.strip_prefix(b"/").unwrap_or(path);
    loop {
        let slash = slash_in(rest);
        let segment = slash.as_ref().map_or(rest, |slash| &rest[..slash.start]);
        match segment {
            b"" | b"." => {}
            b".." => out.truncate(out.iter().rposition(|&octet| octet == b'/').unwrap_or(0)),
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
        let Some(slash) = slash else {
            // What ends with a slash or a dot segment names a directory.
            if matches!(segment, b"" | b"." | b"..") {
                out.push(b'/');
            }
            break;
        };
        rest = &rest[slash.end..];
    }
    out.extend_from_slice(query);
    (out.as_slice() != sent).then_some(out.as_slice())
}

/// Where the next slash stands, or its escape.
fn slash_in(path: &[u8]) -> Option<Range<usize>> {
    memchr2_iter(b'/', b'%', path).find_map(|at| match &path[at..] {
        [b'/', ..] => Some(at..at + 1),
        [b'%', b'2', b'F', ..] => Some(at..at + 3),
        _ => None,
    })
}
