//! [`normalise_into`] writes a path in a normal form (RFC 9309 section 2.2.2, RFC 3986 section
//! 6.2.2), so that the pattern of a robots.txt rule and the target of a request can be compared
//! byte by byte. Patterns and targets both go through this one function.
//!
//! - An escape of an unreserved byte is decoded; every other escape stays, its hex digits in upper
//!   case.
//! - Bytes above ASCII, controls and space are escaped. `#` is escaped, too: in a rule it would
//!   begin a comment. (In a target it begins the fragment, which was removed before.)
//! - Reserved characters stay as they are: RFC 3986 section 2.2 does not let `/` and `%2F` be taken
//!   for each other.
//! - A `%` that begins no escape stays `%`. The RFC is silent here; it matters only that patterns
//!   and targets are treated alike.
//!
//! The characters `*` and `$` are an exception. By figure 6 of RFC 9309, `%2A` and `%24` in a rule
//! match the raw characters in a URL. So a normalised target has one byte for the raw and for the
//! escaped character: `$` for `$` and `%24`, and [`LITERAL_STAR`] for `*` and `%2A`, because `*` is
//! the wildcard in a rule. (If a normalised target wrote `$` as `%24`, the URL `/menu$` would
//! become `/menu%24` and match the rule `/*4$`.)

use super::step_counter::count_steps;

/// The normal form to write. The two differ in `*` and `$`.
#[derive(PartialEq, Eq)]
pub(super) enum NormalForm {
    /// Of a pattern: both stay, as the wildcard and the end of the URL.
    Pattern,
    /// Of a target: ordinary characters, raw or escaped one byte: [`LITERAL_STAR`] and `$`.
    Target,
}

/// The byte for the character `*` in a normalised target. A normal form has no other control.
pub const LITERAL_STAR: u8 = 1;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether a byte and its escape are equal (RFC 3986 section 2.3).
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Bytes that normalisation keeps in patterns and targets: all visible ones except `#`, `*`, `%`.
/// (`"<>\^`{|}` are not characters of a URL, but browsers send some of them. The RFC changes
/// neither them nor their escapes.)
const VERBATIM: [bool; 256] = {
    let mut table = [false; 256];
    let mut index = 0;
    while index < 256 {
        let byte = index as u8;
        table[index] = byte.is_ascii_graphic() && !matches!(byte, b'#' | b'*' | b'%');
        index += 1;
    }
    table
};

/// Whether normalisation keeps a byte.
pub(super) const fn is_normal_byte(byte: u8) -> bool {
    VERBATIM[byte as usize]
}

/// The value of an upper or lower case hex digit.
fn hex_value(digit: u8) -> Option<u8> {
    Some(char::from(digit).to_digit(16)? as u8)
}

/// The byte of the percent-escape at the beginning of `text`.
pub fn parse_escape(text: &[u8]) -> Option<u8> {
    match text {
        [b'%', high, low, ..] => Some(hex_value(*high)? << 4 | hex_value(*low)?),
        _ => None,
    }
}

pub(super) fn push_escape(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(&[
        b'%',
        HEX[usize::from(byte >> 4)],
        HEX[usize::from(byte & 15)],
    ]);
}

/// Writes a URL or path as a crawler sends it: the characters that no URL has are escaped (WHATWG
/// URL, path and query). Escapes stay as they are.
pub fn escape_url(url: &str) -> String {
    let mut out = Vec::with_capacity(url.len());
    for byte in url.bytes() {
        if byte.is_ascii_graphic() && !b"\"<>`".contains(&byte) {
            out.push(byte);
        } else {
            push_escape(byte, &mut out);
        }
    }
    out.into_iter().map(char::from).collect()
}

/// Whether `text` is already the normal form of a target. May be false for one with a stray `%`,
/// which only [`normalise_into`] decides.
pub(super) fn is_normal_target(text: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if VERBATIM[usize::from(byte)] {
            at += 1;
            continue;
        }
        match parse_escape(&text[at..]) {
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
pub(super) fn normalise_into(text: &[u8], side: NormalForm, out: &mut Vec<u8>) {
    count_steps(text.len());
    // The offset in `out` of the last `%` that begins no escape.
    let mut stray: Option<usize> = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if VERBATIM[usize::from(byte)] {
            out.push(byte);
            at += 1;
            continue;
        }
        match (byte, parse_escape(&text[at..])) {
            (b'%', Some(escaped @ (b'*' | b'$'))) if side == NormalForm::Target => {
                out.push(if escaped == b'*' {
                    LITERAL_STAR
                } else {
                    escaped
                });
                at += 3;
                continue;
            }
            (b'%', Some(escaped)) => {
                if is_unreserved(escaped) && !completes_escape(escaped, stray, out) {
                    out.push(escaped);
                } else {
                    push_escape(escaped, out);
                }
                at += 3;
                continue;
            }
            (b'%', None) => {
                stray = Some(out.len());
                out.push(byte);
            }
            (b'*', _) => out.push(if side == NormalForm::Pattern {
                byte
            } else {
                LITERAL_STAR
            }),
            _ => push_escape(byte, out),
        }
        at += 1;
    }
}

/// Whether decoding a hex digit here would make an escape out of a stray `%` before it (`%%341`
/// must not become `%41`, which would be another URL, and would change again when normalised
/// again).
fn completes_escape(decoded: u8, stray: Option<usize>, out: &[u8]) -> bool {
    let Some(stray) = stray else { return false };
    decoded.is_ascii_hexdigit()
        && match &out[stray + 1..] {
            [] => true,
            [first] => first.is_ascii_hexdigit(),
            _ => false,
        }
}
