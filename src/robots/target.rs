//! [`Target`]: a request target normalised for matching, both as it was sent and as origins resolve
//! it (dot segments, doubled slashes, `%2F`, parameters). [`TargetScratch`] makes it without
//! allocation.

use super::normal::{LITERAL_STAR, Side, is_normal_target, is_verbatim, normalise_into};
use memchr::{memchr, memchr2, memchr3_iter};

const ROBOTS_TXT: &[u8] = b"/robots.txt";

/// A target normalised for matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// Path and query as Google's library compares them: not normalised, without scheme, authority
    /// and fragment.
    pub written: &'a [u8],
    /// Path and query as sent, in the normal form of RFC 9309 section 2.2.2; `*` is the octet 1,
    /// however it was spelled, and `%24` is `$`.
    pub sent: &'a [u8],
    /// `sent` with dot segments, doubled slashes and `%2F` of the path resolved, as many origins
    /// do; `None` when that changes nothing.
    pub resolved: Option<Resolved<'a>>,
    /// The resolved form without the parameters of segments (`;x`), which servlet containers take
    /// away before anything else; `None` when that is `sent` or `resolved`.
    pub stripped: Option<Resolved<'a>>,
}

/// A target as read by an origin that resolves paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// Path and query.
    pub target: &'a [u8],
    /// Whether dot segments or parameters were removed. A rule for the URL as sent then says
    /// nothing of this one: the suffix of `/private/x;.css` is gone here, and so is the directory
    /// of `/public/../private/`.
    pub is_shortened: bool,
}

impl<'a> Target<'a> {
    /// Whether it was sent in normal form, and no origin resolves it to another path.
    pub fn is_normal(&self) -> bool {
        let mut pairs = self.written.iter().zip(self.sent);
        self.resolutions().next().is_none()
            && self.written.len() == self.sent.len()
            && pairs
                .all(|(written, sent)| written == sent || (*written, *sent) == (b'*', LITERAL_STAR))
    }

    /// Whether this is `/robots.txt` with any query, which is always allowed (RFC 9309 section
    /// 2.2.2).
    pub fn is_robots_txt(&self) -> bool {
        self.sent.strip_prefix(ROBOTS_TXT).is_some_and(ends_path)
    }

    /// Whether this is `/robots.txt` or origins answer it with that file: `//robots.txt`,
    /// `/robots.txt;x`, and `/robots.txt/.`, which some origins read as `/robots.txt/`, and that as
    /// `/robots.txt`.
    pub fn reaches_robots_txt(&self) -> bool {
        self.readings().any(|reading| {
            let rest = reading.strip_prefix(ROBOTS_TXT);
            rest.is_some_and(|rest| ends_path(rest.strip_prefix(b"/").unwrap_or(rest)))
        })
    }

    /// The other paths that origins may read the target as.
    pub fn resolutions(&self) -> impl Iterator<Item = Resolved<'a>> + use<'a> {
        [self.resolved, self.stripped].into_iter().flatten()
    }

    /// Path and query as sent, and as origins resolve them.
    pub fn readings(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        std::iter::once(self.sent).chain(self.resolutions().map(|resolved| resolved.target))
    }
}

/// Whether a target is `/robots.txt` in any spelling that origins answer with that file.
pub fn reaches_robots_txt(target: &[u8]) -> bool {
    TargetScratch::default()
        .normalise(target)
        .reaches_robots_txt()
}

/// Buffers that normalisation writes into, kept between requests so that it does not allocate.
#[derive(Debug, Default)]
pub struct TargetScratch {
    sent: Vec<u8>,
    resolved: Vec<u8>,
    stripped: Vec<u8>,
}

impl TargetScratch {
    /// Normalises a path with optional query (or an absolute URL, of which scheme and authority are
    /// dropped). A fragment is dropped, a missing slash added. What is normal already is borrowed,
    /// not copied.
    pub fn normalise<'a>(&'a mut self, raw: &'a [u8]) -> Target<'a> {
        if is_plain(raw) {
            Target {
                written: raw,
                sent: raw,
                resolved: None,
                stripped: None,
            }
        } else {
            self.normalise_in_full(raw)
        }
    }

    /// `normalise` for a target that is not plain: in absolute form, with a fragment, to be
    /// escaped, or to be resolved.
    fn normalise_in_full<'a>(&'a mut self, raw: &'a [u8]) -> Target<'a> {
        let TargetScratch {
            sent: buffer,
            resolved,
            stripped,
        } = self;
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
        let written = google_target(if raw.starts_with(b"/") { raw } else { sent });
        let path = path_of(sent);
        // `2F` stands in few paths, and `%` in many.
        let is_resolvable = path
            .windows(2)
            .any(|pair| matches!(pair, b"//" | b"/." | b"2F"));
        let resolved = is_resolvable.then(|| resolve_into(sent, Parameters::Kept, resolved));
        let resolved = resolved.filter(|resolved| resolved.target != sent);
        let stripped =
            memchr(b';', path).map(|_| resolve_into(sent, Parameters::Stripped, stripped));
        let stripped = stripped.filter(|stripped| {
            stripped.target != sent
                && resolved.is_none_or(|resolved| resolved.target != stripped.target)
        });
        Target {
            written,
            sent,
            resolved,
            stripped,
        }
    }
}

/// Whether a target is in normal form already and no origin resolves it. Nearly every target is
/// plain, and this one pass takes a fraction of the time of full normalisation.
fn is_plain(raw: &[u8]) -> bool {
    let mut before = 0;
    raw.starts_with(b"/")
        && raw.iter().all(|&octet| {
            let follows_slash = std::mem::replace(&mut before, octet) == b'/';
            is_verbatim(octet) && octet != b';' && !(follows_slash && matches!(octet, b'/' | b'.'))
        })
}

/// Whether the path of a target is over where this rest of it begins.
fn ends_path(rest: &[u8]) -> bool {
    matches!(rest, [] | [b'?', ..])
}

/// A path and query as Google's library compares it. The library is written in C++ and takes a path
/// for over at a NUL.
pub(super) fn google_target(path: &[u8]) -> &[u8] {
    &path[..memchr(0, path).unwrap_or(path.len())]
}

/// A target without its query.
pub fn path_of(target: &[u8]) -> &[u8] {
    split_query(target).0
}

/// Path, and the query with its `?`.
fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    target.split_at(memchr(b'?', target).unwrap_or(target.len()))
}

/// Where path or query begin if `raw` is in absolute form (RFC 9112 section 3.2.2): after
/// `scheme://authority`.
fn authority_end(raw: &[u8]) -> Option<usize> {
    if !raw.first()?.is_ascii_alphabetic() {
        return None;
    }
    let colon = raw
        .iter()
        .position(|octet| !octet.is_ascii_alphanumeric() && !b"+-.".contains(octet))?;
    let authority = raw[colon..].strip_prefix(b"://")?;
    // RFC 3986 section 3.2: an authority ends with `/`, `?`, `#` (gone by now) or the end.
    Some(raw.len() - authority.len() + memchr2(b'/', b'?', authority).unwrap_or(authority.len()))
}

/// Whether the parameters of segments are kept or stripped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parameters {
    Kept,
    Stripped,
}

/// Writes `sent` with the path's dot segments removed (RFC 3986 section 5.2.4), doubled slashes
/// taken as one, and `%2F` taken for a slash, as nginx does. `%2E` was decoded by normalisation.
/// Slashes are merged before `..` climbs: `/a//../b` is `/b`. Parameters are stripped before that,
/// up to the next slash that is not an escape, as Tomcat does: `/a/..;x%2Fy/b` is `/b`.
fn resolve_into<'a>(sent: &[u8], parameters: Parameters, out: &'a mut Vec<u8>) -> Resolved<'a> {
    let (path, query) = split_query(sent);
    out.clear();
    let mut is_shortened = parameters == Parameters::Stripped;
    let mut rest = Some(path.strip_prefix(b"/").unwrap_or(path));
    while let Some(path) = rest {
        let segment;
        (segment, rest) = first_segment(path, parameters);
        match segment {
            b"" => {}
            b"." => is_shortened = true,
            b".." => {
                is_shortened = true;
                out.truncate(out.iter().rposition(|&octet| octet == b'/').unwrap_or(0));
            }
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
        // A path that ends with a slash or a dot segment names a directory.
        if rest.is_none() && matches!(segment, b"" | b"." | b"..") {
            out.push(b'/');
        }
    }
    out.extend_from_slice(query);
    Resolved {
        target: out,
        is_shortened,
    }
}

/// The first segment of a path, and what follows the slash after it, or the escape of one.
fn first_segment(path: &[u8], parameters: Parameters) -> (&[u8], Option<&[u8]>) {
    let end = memchr3_iter(b'/', b'%', b';', path).find_map(|at| match &path[at..] {
        [b'/', rest @ ..] | [b'%', b'2', b'F', rest @ ..] => Some((at, Some(rest))),
        parameter @ [b';', ..] if parameters == Parameters::Stripped => Some((
            at,
            memchr(b'/', parameter).map(|slash| &parameter[slash + 1..]),
        )),
        _ => None,
    });
    end.map_or((path, None), |(end, rest)| (&path[..end], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_targets_are_read_as_in_full() {
        let alphabet = b"/.a;?%2F#*$ ";
        let (mut scratch, mut in_full) = (TargetScratch::default(), TargetScratch::default());
        for length in 0..6 {
            for number in 0..alphabet.len().pow(length) {
                let octets = (0..length)
                    .map(|place| alphabet[number / alphabet.len().pow(place) % alphabet.len()]);
                let raw: Vec<u8> = octets.collect();
                assert_eq!(
                    scratch.normalise(&raw),
                    in_full.normalise_in_full(&raw),
                    "{raw:?}"
                );
            }
        }
    }
}
