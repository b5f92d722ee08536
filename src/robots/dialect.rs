//! [`Dialect`]: the two ways to read a robots.txt, RFC 9309 and Google's open-source library. This
//! file has their differences in tokens, patterns and targets; `reading.rs` has those in lines,
//! groups and verdicts.
//!
//! Where the RFC is silent, both dialects do as Google does: a colon left out, the misspellings of
//! keys, a byte order mark, lines of more than 16,663 octets.

use super::Pattern;
use super::normal::{escape_at, push_escape};
use super::target::{TargetScratch, google_target};
use memchr::{memchr, memrchr};
use std::str::FromStr;

/// The way in which a robots.txt is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// RFC 9309. Rules and URLs are compared in one normal form, `/robots.txt` is always allowed,
    /// tokens may have digits, and what lies beyond 500 KiB is not read.
    #[default]
    Rfc9309,
    /// <https://github.com/google/robotstxt> to the letter. Googlebot itself normalises URLs before
    /// it asks the library.
    Google,
}

impl Dialect {
    /// Both dialects.
    pub const ALL: [Dialect; 2] = [Dialect::Rfc9309, Dialect::Google];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Rfc9309 => "rfc9309",
            Dialect::Google => "google",
        }
    }
}

/// The error for a name that is not a dialect's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("dialects are: rfc9309, google")]
pub struct UnknownDialect;

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Dialect, UnknownDialect> {
        Dialect::ALL
            .into_iter()
            .find(|dialect| dialect.name() == name)
            .ok_or(UnknownDialect)
    }
}

/// The value of a User-agent line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent<'a> {
    /// `*`.
    Star,
    /// The product token that is left after the dialect's cut. An empty one names no crawler (in
    /// the Google dialect: a crawler without a name).
    Token(&'a [u8]),
}

/// Blanks as C's `isspace` has them: both dialects strip these.
#[inline]
pub(super) const fn is_blank(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t' | b'\n' | 0x0B | 0x0C | b'\r')
}

/// Whether an octet ends a token. No token has a comma or a semicolon: `One, Two` names One, as it
/// does for Google.
fn ends_token(octet: &u8) -> bool {
    is_blank(*octet) || matches!(octet, b'/' | b',' | b';')
}

impl Dialect {
    /// The token of a User-agent line as the dialect cuts it, or `*`. `spaced` are the tokens with
    /// blanks in them that exist (`Sogou web spider`); the Google dialect ignores them. The token
    /// may be empty.
    ///
    /// ```
    /// use crawlgate::robots::{Agent, Dialect};
    /// assert_eq!(Dialect::Rfc9309.agent(b"MJ12bot/v1.4", &[]), Agent::Token(b"MJ12bot"));
    /// assert_eq!(Dialect::Google.agent(b"MJ12bot/v1.4", &[]), Agent::Token(b"MJ"));
    /// ```
    pub fn agent<'a>(self, value: &'a [u8], spaced: &[&str]) -> Agent<'a> {
        // `*` followed by a blank and more still means all crawlers.
        if value.first() == Some(&b'*') && value.get(1).is_none_or(|octet| is_blank(*octet)) {
            return Agent::Star;
        }
        match self {
            Dialect::Google => {
                let mut octets = value.iter();
                let end =
                    octets.position(|octet| !octet.is_ascii_alphabetic() && !b"-_".contains(octet));
                Agent::Token(&value[..end.unwrap_or(value.len())])
            }
            Dialect::Rfc9309 => {
                let known = spaced.iter().filter(|token| {
                    value
                        .split_at_checked(token.len())
                        .is_some_and(|(start, rest)| {
                            let next = rest.iter().find(|octet| **octet != b'*');
                            start.eq_ignore_ascii_case(token.as_bytes())
                                && next.is_none_or(ends_token)
                        })
                });
                if let Some(length) = known.map(|token| token.len()).max() {
                    return Agent::Token(&value[..length]);
                }
                let end = value.iter().position(ends_token);
                let mut token = &value[..end.unwrap_or(value.len())];
                while let Some(rest) = token.strip_suffix(b"*") {
                    token = rest;
                }
                Agent::Token(token)
            }
        }
    }

    /// The pattern of an Allow or Disallow line: in normal form for RFC 9309, only escaped for
    /// Google.
    #[inline]
    pub fn pattern(self, value: &[u8]) -> Pattern {
        match self {
            Dialect::Rfc9309 => Pattern::from_bytes(value),
            Dialect::Google => Pattern::verbatim(&google_escape(value)),
        }
    }

    /// For `Allow: /dir/index.html` Google also allows the directory itself, `/dir/$` (any ending
    /// that begins with `/index.htm`). `None` for other paths, and for RFC 9309. The caller checks
    /// that it is an Allow.
    pub(super) fn directory_of_index(self, value: &[u8]) -> Option<Pattern> {
        if self != Dialect::Google {
            return None;
        }
        let slash = memrchr(b'/', value)?;
        value[slash..].starts_with(b"/index.htm").then(|| {
            let mut directory = google_escape(&value[..=slash]);
            directory.push(b'$');
            Pattern::verbatim(&directory)
        })
    }

    /// The form of a URL's [path and query](path_of_url) that rules are compared with.
    pub(super) fn target<'a>(self, path: &'a [u8], scratch: &'a mut TargetScratch) -> &'a [u8] {
        match self {
            Dialect::Rfc9309 => scratch.normalise(path).sent,
            Dialect::Google => google_target(path),
        }
    }
}

/// Rules as Google compares them: octets above ASCII are escaped, escapes get upper-case digits,
/// nothing is decoded.
fn google_escape(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    while let Some(&octet) = value.get(at) {
        match escape_at(&value[at..]) {
            Some(escaped) => {
                push_escape(escaped, &mut out);
                at += 3;
                continue;
            }
            None if octet.is_ascii() => out.push(octet),
            None => push_escape(octet, &mut out),
        }
        at += 1;
    }
    out
}

/// Where a path, a query or parameters begin, at `from` or behind it.
fn path_start(url: &[u8], from: usize) -> Option<usize> {
    let mut octets = url.iter().skip(from);
    let place = octets.position(|octet| matches!(octet, b'/' | b'?' | b';'))?;
    Some(from + place)
}

/// Path and query of a URL, beginning with `/`, as Google's library takes them out: without scheme,
/// authority and fragment; `/` when there is no path. `example.com/a` and `/a` are `/a`; so is
/// `a/a`.
pub fn path_of_url(url: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let start = if url.starts_with(b"//") { 2 } else { 0 };
    // A `://` after the path began belongs to the path.
    let scheme = memchr::memmem::find(&url[start..], b"://").map(|place| start + place);
    let authority = match (scheme, path_start(url, start)) {
        (Some(scheme), early) if early.is_none_or(|early| early >= scheme) => scheme + 3,
        _ => start,
    };
    let Some(path) = path_start(url, authority) else {
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
