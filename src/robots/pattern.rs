//! [`Pattern`]: the path pattern of an Allow or Disallow line.

use super::normal::{LITERAL_STAR, Side, normalise_into};
use super::steps::took;
use memchr::{memchr, memmem};

/// A pattern, normalised as a request target is (RFC 9309 section 2.2.2), so that both sides
/// compare as bytes.
///
/// `*` stands for any octets, `$` as the last character for the end of the target; elsewhere `$` is
/// a character like others. `%2A` and `%24` are the characters themselves (figure 6 of RFC 9309).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    normalised: Box<str>,
    /// The spelling that is compared where it differs from `normalised`: the characters `*` and
    /// `$`, written `%2A` and `%24`, as targets spell them. Kept apart because the priority counts
    /// the octets that were written.
    respelled: Option<Box<[u8]>>,
    /// Octets before the first `*`, or before the end.
    prefix: usize,
    /// Whether the pattern ends with `$`.
    anchored: bool,
}

impl Pattern {
    /// Normalises `written`. Blanks around it are no part of it, as on a line of a robots.txt.
    /// Whatever is written, [`as_str`](Pattern::as_str) stays within its line: ASCII without
    /// controls, blanks and `#`.
    ///
    /// ```
    /// use crawlgate::robots::Pattern;
    /// assert_eq!(Pattern::new("/%70rivate/ツ").as_str(), "/private/%E3%83%84");
    /// ```
    pub fn new(written: &str) -> Pattern {
        Pattern::from_bytes(written.trim_matches([' ', '\t']).as_bytes())
    }

    /// [`new`](Pattern::new) for the value of a line, which need not be UTF-8.
    pub(super) fn from_bytes(written: &[u8]) -> Pattern {
        let mut normalised = Vec::with_capacity(written.len());
        normalise_into(written, Side::Pattern, &mut normalised);
        let mut pattern = Pattern::verbatim(&normalised);
        let body = pattern.literal();
        if memmem::find(body, b"%2").is_some() {
            // Whatever looks like an escape in a normal form is one.
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

    /// ASCII that is compared as it is: the caller has escaped what it wants escaped.
    pub(super) fn verbatim(escaped: &[u8]) -> Pattern {
        // Every octet is ASCII, so each is a character.
        let normalised: Box<str> = escaped.iter().copied().map(char::from).collect();
        let anchored = normalised.ends_with('$');
        let body = &normalised.as_bytes()[..normalised.len() - usize::from(anchored)];
        let prefix = memchr(b'*', body).unwrap_or(body.len());
        Pattern {
            normalised,
            respelled: None,
            prefix,
            anchored,
        }
    }

    /// Whether it has an escaped `*` or `$`, which only RFC 9309 takes for the character (figure
    /// 6).
    pub(super) fn is_respelled(&self) -> bool {
        self.respelled.is_some()
    }

    /// The normalised pattern, as it is rendered. Giving it to [`new`](Pattern::new) gives the same
    /// pattern.
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

    /// The length in octets, as rendered: of matching rules the longest decides.
    #[doc(hidden)]
    pub fn priority(&self) -> usize {
        self.normalised.len()
    }

    /// Whether the pattern matches a target normalised by [`TargetScratch`](super::TargetScratch).
    /// Takes time linear in the lengths of the two, and does not allocate.
    #[doc(hidden)]
    pub fn matches(&self, target: &[u8]) -> bool {
        !self.is_empty() && target.starts_with(self.prefix()) && self.matches_beyond_prefix(target)
    }

    /// The octets before the first wildcard: every matching target begins with them.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.literal()[..self.prefix]
    }

    /// The texts after the first `*`, between the wildcards; some may be empty.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.literal()
            .get(self.prefix + 1..)
            .into_iter()
            .flat_map(|rest| rest.split(|octet| *octet == b'*'))
    }

    /// [`matches`](Pattern::matches) for a target that is known to begin with
    /// [`prefix`](Pattern::prefix).
    pub(super) fn matches_beyond_prefix(&self, target: &[u8]) -> bool {
        let Some(mut rest) = target.get(self.prefix..) else {
            return false;
        };
        let Some(mut pieces) = self.literal().get(self.prefix + 1..) else {
            return !self.anchored || rest.is_empty();
        };
        // Between wildcards the leftmost place is as good as any other, so each piece is looked for
        // once, and only in what the pieces before it left over: nothing is tried twice.
        while let Some(star) = memchr(b'*', pieces) {
            let piece = &pieces[..star];
            let found = memmem::find(rest, piece);
            took(piece.len() + found.unwrap_or(rest.len()) + 1);
            let Some(place) = found else { return false };
            rest = &rest[place + piece.len()..];
            pieces = &pieces[star + 1..];
        }
        took(rest.len() + pieces.len());
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

    /// What is compared: without the `$` of the end; a `*` in it is always the wildcard.
    pub(super) fn literal(&self) -> &[u8] {
        match &self.respelled {
            Some(respelled) => respelled,
            None => {
                &self.normalised.as_bytes()[..self.normalised.len() - usize::from(self.anchored)]
            }
        }
    }
}
