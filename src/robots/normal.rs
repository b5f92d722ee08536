//! [`normalise_into`] writes the normal form in which a pattern and a target are compared (RFC 9309
//! section 2.2.2, RFC 3986 section 6.2.2). Both sides use this one function.
//!
//! - An escape of an unreserved octet is decoded; every other escape stays, its hex digits in upper
//!   case.
//! - Octets above ASCII, controls and space are escaped, and so is `#`, which would begin a comment
//!   in a rule (in a target it begins the fragment, which is gone before).
//! - Reserved characters stay as they are: RFC 3986 section 2.2 does not let `/` and `%2F` be taken
//!   for each other.
//! - A `%` that begins no escape stays `%`. The RFC is silent here; both sides must only agree.
//!
//! `*` and `$` are the exception: figure 6 of RFC 9309 makes `%2A` and `%24` of a rule equal to the
//! raw characters of a URL. A target therefore has one octet for each of them, however it was
//! spelled: `$`, and [`LITERAL_STAR`] for `*`, which is the wildcard in a rule. (Escaped as
//! `/menu%24`, the URL `/menu$` would match the rule `/*4$`.)

use super::steps::took;

/// How `*` and `$` are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// They stay: the wildcard and the end of the URL.
    Pattern,
    /// Characters like others, in either spelling one octet: [`LITERAL_STAR`] and `$`.
    Target,
}

/// The character `*` in what is compared. No control stands in a normal form, so nothing else is
/// spelled like it.
pub const LITERAL_STAR: u8 = 1;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether an octet needs no escape (RFC 3986 section 2.3), so that its escape is equal to it.
const fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// Octets that stand for themselves on both sides: all that can be seen but for `#`, `*`, `%`.
/// (`"<>\^`{|}` are not characters of a URL, but browsers send some of them. The RFC changes
/// neither them nor their escapes.)
const VERBATIM: [bool; 256] = {
    let mut table = [false; 256];
    let mut octet = 0;
    while octet < 256 {
        let byte = octet as u8;
        table[octet] = byte.is_ascii_graphic() && !matches!(byte, b'#' | b'*' | b'%');
        octet += 1;
    }
    table
};

/// Whether an octet stands for itself.
pub(super) const fn is_verbatim(octet: u8) -> bool {
    VERBATIM[octet as usize]
}

/// The value of an upper or lower case hex digit.
fn hex_value(digit: u8) -> Option<u8> {
    Some(char::from(digit).to_digit(16)? as u8)
}

/// The octet that an escape at the beginning of `text` stands for.
pub(super) fn escape_at(text: &[u8]) -> Option<u8> {
    match text {
        [b'%', high, low, ..] => Some(hex_value(*high)? << 4 | hex_value(*low)?),
        _ => None,
    }
}

pub(super) fn push_escape(octet: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[
        b'%',
        HEX[usize::from(octet >> 4)],
        HEX[usize::from(octet & 15)],
    ]);
}

/// Whether `text` is in the normal form of a target already. May say no to one that is: a stray `%`
/// is left to [`normalise_into`].
pub(super) fn is_normal_target(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&octet) = text.get(at) {
        if VERBATIM[usize::from(octet)] {
            at += 1;
            continue;
        }
        match escape_at(&text[at..]) {
            Some(escaped)
                if !is_unreserved(escaped)
                    && !matches!(escaped, b'*' | b'$')
                    && !text[at + 1].is_ascii_lowercase()
                    && !text[at + 2].is_ascii_lowercase() =>
            {
                at += 3;
            }
            _ => return false,
        }
    }
    true
}

/// Appends the normal form of `text` to `out`: ASCII without controls (but for [`LITERAL_STAR`] in
/// a target), blanks and `#`, at most three times as long. Normalising a pattern again changes
/// nothing, nor a target, with its [`LITERAL_STAR`]s made `*` again.
pub(super) fn normalise_into(text: &[u8], side: Side, out: &mut Vec<u8>) {
    took(text.len());
    // Where in `out` the last `%` that begins no escape stands.
    let mut stray: Option<usize> = None;
    let mut at = 0;
    while let Some(&octet) = text.get(at) {
        if VERBATIM[usize::from(octet)] {
            out.push(octet);
            at += 1;
            continue;
        }
        match (octet, escape_at(&text[at..])) {
            (b'%', Some(escaped @ (b'*' | b'$'))) if side == Side::Target => {
                out.push(if escaped == b'*' {
                    LITERAL_STAR
                } else {
                    escaped
                });
                at += 3;
                continue;
            }
            (b'%', Some(escaped)) => {
                if is_unreserved(escaped) && !completes_an_escape(escaped, stray, out) {
                    out.push(escaped);
                } else {
                    push_escape(escaped, out);
                }
                at += 3;
                continue;
            }
            (b'%', None) => {
                stray = Some(out.len());
                out.push(octet);
            }
            (b'*', _) => out.push(if side == Side::Pattern {
                octet
            } else {
                LITERAL_STAR
            }),
            _ => push_escape(octet, out),
        }
        at += 1;
    }
}

/// Whether decoding a hex digit here would make an escape out of a stray `%` before it (`%%341`
/// must not become `%41`, which would be another URL, and would change again when normalised
/// again).
fn completes_an_escape(decoded: u8, stray: Option<usize>, out: &[u8]) -> bool {
    let Some(stray) = stray else { return false };
    decoded.is_ascii_hexdigit()
        && match &out[stray + 1..] {
            [] => true,
            [first] => first.is_ascii_hexdigit(),
            _ => false,
        }
}
