//! [`Dialect`]: the two ways to read a robots.txt, RFC 9309 and Google's open-source library. This
//! module has the differences in user-agent tokens, path patterns and request targets. The module
//! `dialect_rules` has the differences in lines, groups and verdicts. Where the RFC is silent
//! (missing colons, misspelt keys, byte order marks, long lines), both dialects do as Google does.

use super::PathPattern;
use super::normalise::{parse_escape, push_escape};
use super::target::{TargetScratch, google_target};
use Dialect::*;
use memchr::{memchr, memrchr};
use strum::{EnumString, IntoStaticStr, VariantNames};

/// A way to read a robots.txt. Choose [`Dialect::Rfc9309`] for a crawler of your own. Choose
/// [`Dialect::Google`] to predict what Google's crawlers do.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    EnumString,
    IntoStaticStr,
    VariantNames,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Dialect {
    /// RFC 9309. Rules and URLs are compared in one normal form. `/robots.txt` is always allowed.
    /// Tokens may have digits. Misspelt names of fields (`Disalow`) count, as for Google. Bytes after
    /// the first 500 KiB are not read.
    #[default]
    Rfc9309,
    /// <https://github.com/google/robotstxt> to the letter. Googlebot itself normalises URLs before
    /// it asks the library.
    Google,
}

named!(Dialect);

impl Dialect {
    /// Both dialects.
    pub const ALL: [Dialect; 2] = [Rfc9309, Google];
}

/// The value of a User-agent line.
pub enum AgentName<'a> {
    /// `*`.
    Star,
    /// The product token, cut as the dialect does. An empty one names no crawler (for Google: a
    /// crawler without a name).
    Token(&'a [u8]),
}

/// Whether a byte is a blank as in C's `isspace`. Both dialects strip these.
#[inline]
pub(super) const fn is_c_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}

/// Whether a byte ends a token. A comma and a semicolon do: `One, Two` names One, as for Google.
fn is_token_delimiter(byte: &u8) -> bool {
    is_c_space(*byte) || matches!(byte, b'/' | b',' | b';')
}

impl Dialect {
    /// Reads the value of a User-agent line. `spaced_tokens` are the known tokens with blanks in them
    /// (`Sogou web spider`); the Google dialect ignores them. The token may be empty. Of
    /// `MJ12bot/v1.4` it is `MJ12bot` by RFC 9309, and `MJ` for Google.
    pub(crate) fn parse_agent<'a>(self, value: &'a [u8], spaced_tokens: &[&str]) -> AgentName<'a> {
        // `*` followed by a blank and more still means all crawlers.
        if value.first() == Some(&b'*') && value.get(1).is_none_or(|byte| is_c_space(*byte)) {
            return AgentName::Star;
        }
        match self {
            Google => {
                let mut bytes = value.iter();
                let end =
                    bytes.position(|byte| !byte.is_ascii_alphabetic() && !b"-_".contains(byte));
                AgentName::Token(&value[..end.unwrap_or(value.len())])
            }
            Rfc9309 => {
                let known = spaced_tokens.iter().filter(|token| {
                    value
                        .split_at_checked(token.len())
                        .is_some_and(|(start, rest)| {
                            let next = rest.iter().find(|byte| **byte != b'*');
                            start.eq_ignore_ascii_case(token.as_bytes())
                                && next.is_none_or(is_token_delimiter)
                        })
                });
                if let Some(length) = known.map(|token| token.len()).max() {
                    return AgentName::Token(&value[..length]);
                }
                let end = value.iter().position(is_token_delimiter);
                let mut token = &value[..end.unwrap_or(value.len())];
                while let Some(rest) = token.strip_suffix(b"*") {
                    token = rest;
                }
                AgentName::Token(token)
            }
        }
    }

    /// Reads the value of an Allow or Disallow line. It is normalised for RFC 9309, and only
    /// escaped for Google.
    #[inline]
    pub fn parse_pattern(self, value: &[u8]) -> PathPattern {
        match self {
            Rfc9309 => PathPattern::from_bytes(value),
            Google => PathPattern::from_escaped(&google_escape(value)),
        }
    }

    /// The directory of an index page (`/dir/$` of `/dir/index.html`), which Google allows together
    /// with the page. `None` for other paths, and for RFC 9309. The caller checks that the line is
    /// an Allow.
    pub(super) fn index_directory_pattern(self, value: &[u8]) -> Option<PathPattern> {
        if self != Google {
            return None;
        }
        let slash = memrchr(b'/', value)?;
        value[slash..].starts_with(b"/index.htm").then(|| {
            let mut directory = google_escape(&value[..=slash]);
            directory.push(b'$');
            PathPattern::from_escaped(&directory)
        })
    }

    /// The form of a URL's [path and query](url_path) that rules match.
    pub(super) fn normalise_target<'a>(
        self,
        path: &'a [u8],
        scratch: &'a mut TargetScratch,
    ) -> &'a [u8] {
        match self {
            Rfc9309 => scratch.normalise(path).sent,
            Google => google_target(path),
        }
    }
}

/// A rule's value as Google compares it: bytes above ASCII are escaped, escapes get upper-case
/// digits, nothing is decoded.
fn google_escape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&byte) = value.get(at) {
        match parse_escape(&value[at..]) {
            Some(escaped) => {
                push_escape(escaped, &mut out);
                at += 3;
                continue;
            }
            None if byte.is_ascii() => out.push(byte),
            None => push_escape(byte, &mut out),
        }
        at += 1;
    }
    out
}

/// The offset at or after `from` at which a path, a query or parameters begin.
fn find_path_start(url: &[u8], from: usize) -> Option<usize> {
    let mut bytes = url.iter().skip(from);
    let place = bytes.position(|byte| matches!(byte, b'/' | b'?' | b';'))?;
    Some(from + place)
}

/// The path and query of a URL as Google's library extracts them: beginning with `/`, without
/// scheme, authority and fragment; `/` when there is no path. `example.com/a`, `a/a` and `/a` all
/// give `/a`.
pub fn url_path(url: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let start = if url.starts_with(b"//") { 2 } else { 0 };
    // A `://` after the path began belongs to the path.
    let scheme = memchr::memmem::find(&url[start..], b"://").map(|place| start + place);
    let authority = match (scheme, find_path_start(url, start)) {
        (Some(scheme), early) if early.is_none_or(|early| early >= scheme) => scheme + 3,
        _ => start,
    };
    let Some(path) = find_path_start(url, authority) else {
        return b"/".into();
    };
    let end = match memchr(b'#', &url[start..]).map(|place| start + place) {
        Some(fragment) if fragment < path => return b"/".into(),
        Some(fragment) => fragment,
        None => url.len(),
    };
    match url[path] {
        b'/' => url[path..end].into(),
        _ => [b"/", &url[path..end]].concat().into(),
    }
}
