//! [`RequestTarget`]: the target of an HTTP request (path and query), in the forms that are
//! compared with robots.txt patterns. One form is the target that the client sent, normalised. The
//! other forms are targets to which an origin might resolve it: without dot segments, doubled
//! slashes, `%2F` and parameters. [`TargetScratch`] makes the forms without allocation.

use super::normalise::{
    LITERAL_STAR, NormalForm, is_normal_byte, is_normal_target, normalise_into,
};
use memchr::{memchr, memchr2, memchr3_iter};

const ROBOTS_TXT: &[u8] = b"/robots.txt";

/// A target normalised for matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTarget<'a> {
    /// Path and query for Google's library: not normalised, without scheme, authority and fragment.
    pub written: &'a [u8],
    /// Path and query in the normal form of RFC 9309 section 2.2.2. `*` and `%2A` are the byte 1,
    /// `%24` is `$`.
    pub sent: &'a [u8],
    /// `sent` with dot segments, doubled slashes and `%2F` of the path resolved, as many origins
    /// do. `None` if that is `sent`.
    pub resolved: Option<ResolvedTarget<'a>>,
    /// The resolved form without the parameters of segments (`;x`), which servlet containers remove
    /// first. `None` if that is `sent` or `resolved`.
    pub stripped: Option<ResolvedTarget<'a>>,
}

/// A target as an origin resolves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolvedTarget<'a> {
    /// Path and query.
    pub target: &'a [u8],
    /// Whether dot segments or parameters were removed. A rule for the URL as sent then does not
    /// apply to this one: `/private/x;.css` lost its suffix, `/public/../private/` its directory.
    pub is_shortened: bool,
}

impl<'a> RequestTarget<'a> {
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
        self.sent.strip_prefix(ROBOTS_TXT).is_some_and(is_path_end)
    }

    /// Whether this is `/robots.txt` or origins answer it with that file: `//robots.txt`,
    /// `/robots.txt;x`, and `/robots.txt/.`, which some origins read as `/robots.txt/`, and that as
    /// `/robots.txt`.
    pub fn reaches_robots_txt(&self) -> bool {
        self.forms().any(|reading| {
            let rest = reading.strip_prefix(ROBOTS_TXT);
            rest.is_some_and(|rest| is_path_end(rest.strip_prefix(b"/").unwrap_or(rest)))
        })
    }

    /// The other targets that origins may resolve it to.
    pub fn resolutions(&self) -> impl Iterator<Item = ResolvedTarget<'a>> + use<'a> {
        [self.resolved, self.stripped].into_iter().flatten()
    }

    /// The target as sent, and as origins resolve it.
    pub fn forms(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        std::iter::once(self.sent).chain(self.resolutions().map(|resolved| resolved.target))
    }
}

/// Whether a target is `/robots.txt` in any spelling that origins answer with that file.
pub fn reaches_robots_txt(target: &[u8]) -> bool {
    TargetScratch::default()
        .normalise(target)
        .reaches_robots_txt()
}

/// Buffers for normalisation, kept between requests so that it does not allocate.
#[derive(Default)]
pub struct TargetScratch {
    sent: Vec<u8>,
    resolved: Vec<u8>,
    stripped: Vec<u8>,
}

impl TargetScratch {
    /// Normalises a path and query, or an absolute URL. Scheme, authority and fragment are dropped,
    /// a missing slash is added. A target that is already normal is borrowed, not copied.
    pub fn normalise<'a>(&'a mut self, raw: &'a [u8]) -> RequestTarget<'a> {
        if is_plain_target(raw) {
            RequestTarget {
                written: raw,
                sent: raw,
                resolved: None,
                stripped: None,
            }
        } else {
            self.normalise_fully(raw)
        }
    }

    /// `normalise` for a target that is not plain: in absolute form, with a fragment, or to be
    /// escaped or resolved.
    fn normalise_fully<'a>(&'a mut self, raw: &'a [u8]) -> RequestTarget<'a> {
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
            normalise_into(raw, NormalForm::Target, buffer);
            buffer
        };
        let written = google_target(if raw.starts_with(b"/") { raw } else { sent });
        let path = without_query(sent);
        // `2F` stands in few paths, and `%` in many.
        let is_resolvable = path
            .windows(2)
            .any(|pair| matches!(pair, b"//" | b"/." | b"2F"));
        let resolved = is_resolvable.then(|| resolve_into(sent, PathParameterMode::Kept, resolved));
        let resolved = resolved.filter(|resolved| resolved.target != sent);
        let stripped =
            memchr(b';', path).map(|_| resolve_into(sent, PathParameterMode::Stripped, stripped));
        let stripped = stripped.filter(|stripped| {
            stripped.target != sent
                && resolved.is_none_or(|resolved| resolved.target != stripped.target)
        });
        RequestTarget {
            written,
            sent,
            resolved,
            stripped,
        }
    }
}

/// Whether a target is in normal form already and no origin resolves it. Nearly every target is
/// plain, and this one pass takes a fraction of the time of full normalisation.
fn is_plain_target(raw: &[u8]) -> bool {
    let mut before = 0;
    raw.starts_with(b"/")
        && raw.iter().all(|&byte| {
            let follows_slash = std::mem::replace(&mut before, byte) == b'/';
            is_normal_byte(byte) && byte != b';' && !(follows_slash && matches!(byte, b'/' | b'.'))
        })
}

/// Whether the path of a target ends where `rest` begins.
fn is_path_end(rest: &[u8]) -> bool {
    matches!(rest, [] | [b'?', ..])
}

/// A path and query as Google's library compares it: up to the first NUL, because it is a C string.
pub(super) fn google_target(path: &[u8]) -> &[u8] {
    &path[..memchr(0, path).unwrap_or(path.len())]
}

/// A target without its query.
pub fn without_query(target: &[u8]) -> &[u8] {
    split_query(target).0
}

/// Path, and the query with its `?`.
fn split_query(target: &[u8]) -> (&[u8], &[u8]) {
    target.split_at(memchr(b'?', target).unwrap_or(target.len()))
}

/// The offset after `scheme://authority` if `raw` is in absolute form (RFC 9112 section 3.2.2).
pub(super) fn authority_end(raw: &[u8]) -> Option<usize> {
    if !raw.first()?.is_ascii_alphabetic() {
        return None;
    }
    let colon = raw
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte))?;
    let authority = raw[colon..].strip_prefix(b"://")?;
    // RFC 3986 section 3.2: an authority ends with `/`, `?`, `#` (gone by now) or the end.
    Some(raw.len() - authority.len() + memchr2(b'/', b'?', authority).unwrap_or(authority.len()))
}

/// Whether the parameters of segments are kept or stripped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathParameterMode {
    Kept,
    Stripped,
}

/// Writes `sent` with the path's dot segments removed (RFC 3986 section 5.2.4), doubled slashes
/// taken as one, and `%2F` taken for a slash, as nginx does. `%2E` was decoded by normalisation.
/// Slashes are merged before `..` climbs: `/a//../b` is `/b`. Parameters are stripped before that,
/// up to the next slash that is not an escape, as Tomcat does: `/a/..;x%2Fy/b` is `/b`.
fn resolve_into<'a>(
    sent: &[u8],
    parameters: PathParameterMode,
    out: &'a mut Vec<u8>,
) -> ResolvedTarget<'a> {
    let (path, query) = split_query(sent);
    out.clear();
    let mut is_shortened = parameters == PathParameterMode::Stripped;
    let mut rest = Some(path.strip_prefix(b"/").unwrap_or(path));
    while let Some(path) = rest {
        let segment;
        (segment, rest) = first_segment(path, parameters);
        match segment {
            b"" => {}
            b"." => is_shortened = true,
            b".." => {
                is_shortened = true;
                out.truncate(out.iter().rposition(|&byte| byte == b'/').unwrap_or(0));
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
    ResolvedTarget {
        target: out,
        is_shortened,
    }
}

/// The first segment of a path, and the rest behind the next slash or `%2F`.
fn first_segment(path: &[u8], parameters: PathParameterMode) -> (&[u8], Option<&[u8]>) {
    let end = memchr3_iter(b'/', b'%', b';', path).find_map(|at| match &path[at..] {
        [b'/', rest @ ..] | [b'%', b'2', b'F', rest @ ..] => Some((at, Some(rest))),
        parameter @ [b';', ..] if parameters == PathParameterMode::Stripped => Some((
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
    fn plain_targets_normalise_as_in_full() {
        let alphabet = b"/.a;?%2F#*$ ";
        let (mut scratch, mut in_full) = (TargetScratch::default(), TargetScratch::default());
        for length in 0..6 {
            for number in 0..alphabet.len().pow(length) {
                let bytes = (0..length)
                    .map(|place| alphabet[number / alphabet.len().pow(place) % alphabet.len()]);
                let raw: Vec<u8> = bytes.collect();
                assert_eq!(
                    scratch.normalise(&raw),
                    in_full.normalise_fully(&raw),
                    "{raw:?}"
                );
            }
        }
    }
}
