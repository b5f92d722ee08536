//! [`PathPattern`]: the path pattern of an Allow or Disallow line of robots.txt, with the wildcards
//! `*` and `$`. It matches normalised request targets in linear time and without allocation.

use super::normalise::{LITERAL_STAR, NormalForm, normalise_into};
use super::step_counter::count_steps;
use memchr::{memchr, memmem};

/// A pattern, normalised as a request target is (RFC 9309 section 2.2.2), so that both sides
/// compare as bytes.
///
/// `*` stands for any bytes. `$` as the last character stands for the end of the target; elsewhere
/// it is an ordinary character. `%2A` and `%24` are the literal characters (figure 6 of RFC 9309).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PathPattern {
    normalised: Box<str>,
    /// The bytes to compare, if they differ from `normalised`: `%2A` and `%24` as targets spell
    /// them. A field of its own, because the priority counts the bytes as written.
    respelled: Option<Box<[u8]>>,
    /// Bytes before the first `*`, or before the end.
    prefix: usize,
    /// Whether the pattern ends with `$`.
    anchored: bool,
}

impl PathPattern {
    /// Normalises `written`, without the blanks around it. The result is ASCII without controls,
    /// blanks and `#`, so it always stays within its line of a robots.txt.
    ///
    /// ```
    /// use crawlgate::robots::PathPattern;
    /// assert_eq!(PathPattern::new("/%70rivate/ツ").as_str(), "/private/%E3%83%84");
    /// ```
    pub fn new(written: &str) -> PathPattern {
        PathPattern::from_bytes(written.trim_matches([' ', '\t']).as_bytes())
    }

    /// [`new`](PathPattern::new) for the value of a line, which need not be UTF-8.
    pub(super) fn from_bytes(written: &[u8]) -> PathPattern {
        let mut normalised = Vec::with_capacity(written.len());
        normalise_into(written, NormalForm::Pattern, &mut normalised);
        let mut pattern = PathPattern::from_escaped(&normalised);
        let body = pattern.body();
        if memmem::find(body, b"%2").is_some() {
            // In normal form every `%2A` and `%24` is an escape.
            let body: String = body.iter().copied().map(char::from).collect();
            let respelled = body
                .replace("%24", "$")
                .replace("%2A", &char::from(LITERAL_STAR).to_string());
            if respelled != body {
                pattern.prefix = memchr(b'*', respelled.as_bytes()).unwrap_or(respelled.len());
                pattern.respelled = Some(respelled.into_bytes().into());
            }
        }
        pattern
    }

    /// A pattern of ASCII bytes that the caller has escaped. Nothing is normalised.
    pub(super) fn from_escaped(escaped: &[u8]) -> PathPattern {
        // Every byte is ASCII, so each is a character.
        let normalised: Box<str> = escaped.iter().copied().map(char::from).collect();
        let anchored = normalised.ends_with('$');
        let body = &normalised.as_bytes()[..normalised.len() - usize::from(anchored)];
        let prefix = memchr(b'*', body).unwrap_or(body.len());
        PathPattern {
            normalised,
            respelled: None,
            prefix,
            anchored,
        }
    }

    /// Whether it has an escaped `*` or `$`. Only RFC 9309 reads these as the character (figure
    /// 6).
    pub(super) fn has_escaped_wildcard(&self) -> bool {
        self.respelled.is_some()
    }

    /// The normalised pattern, as it is rendered. [`new`](PathPattern::new) of it is the same pattern.
    pub fn as_str(&self) -> &str {
        &self.normalised
    }

    /// Whether this is an empty pattern, which matches nothing.
    pub fn is_empty(&self) -> bool {
        self.normalised.is_empty()
    }

    /// Whether the pattern matches the whole site.
    pub fn is_blanket(&self) -> bool {
        matches!(self.as_str(), "/" | "/*" | "*" | "/*$" | "*$")
    }

    /// The length in bytes, as rendered. Of all rules that match, the longest decides.
    #[doc(hidden)]
    pub fn priority(&self) -> usize {
        self.normalised.len()
    }

    /// Whether the pattern matches a target normalised by [`TargetScratch`](super::TargetScratch).
    /// Takes time linear in both lengths, and does not allocate.
    #[doc(hidden)]
    pub fn matches(&self, target: &[u8]) -> bool {
        !self.is_empty() && target.starts_with(self.prefix()) && self.matches_after_prefix(target)
    }

    /// The bytes before the first wildcard: every matching target begins with them.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.body()[..self.prefix]
    }

    /// The texts after the first `*`, split at the wildcards; some may be empty.
    pub(super) fn wildcard_pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.body()
            .get(self.prefix + 1..)
            .into_iter()
            .flat_map(|rest| rest.split(|byte| *byte == b'*'))
    }

    /// [`matches`](PathPattern::matches) for a target that is known to begin with
    /// [`prefix`](PathPattern::prefix).
    pub(super) fn matches_after_prefix(&self, target: &[u8]) -> bool {
        let Some(mut rest) = target.get(self.prefix..) else {
            return false;
        };
        let Some(mut pieces) = self.body().get(self.prefix + 1..) else {
            return !self.anchored || rest.is_empty();
        };
        // The leftmost match of a piece leaves the most text for the next, so each piece is
        // searched once, behind the one before: there is no backtracking.
        while let Some(star) = memchr(b'*', pieces) {
            let piece = &pieces[..star];
            let found = memmem::find(rest, piece);
            count_steps(piece.len() + found.unwrap_or(rest.len()) + 1);
            let Some(place) = found else { return false };
            rest = &rest[place + piece.len()..];
            pieces = &pieces[star + 1..];
        }
        count_steps(rest.len() + pieces.len());
        if self.anchored {
            rest.ends_with(pieces)
        } else {
            memmem::find(rest, pieces).is_some()
        }
    }

    /// Whether the end of the pattern is the end of the target.
    pub(super) fn is_anchored(&self) -> bool {
        self.anchored
    }

    /// The bytes to compare, without a final `$`. Each `*` in them is a wildcard.
    pub(super) fn body(&self) -> &[u8] {
        match &self.respelled {
            Some(respelled) => respelled,
            None => {
                &self.normalised.as_bytes()[..self.normalised.len() - usize::from(self.anchored)]
            }
        }
    }
}
