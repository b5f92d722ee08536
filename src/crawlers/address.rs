//! Finds URLs, host names and mail addresses inside a `User-Agent`. A word such as `bot` in an
//! address says nothing about the client, so it must not identify a crawler. [`is_in_address`]
//! tests whether a position is inside an address, and [`words_outside_addresses`] returns the words
//! that are not.

use super::byte_search::{starts_with_ignore_case, words};

/// The most bytes that are examined at each side of a word, so that a long text costs no more.
const MAX_CONTEXT_BYTES: usize = 256;

/// Whether an offset lies in a URL, in a host with a common top-level domain, or in a mail address.
/// Examines the text around it up to the next blank or bracket, at most 256 bytes at each side.
pub fn is_in_address(text: &[u8], place: usize) -> bool {
    let before = &text[place.saturating_sub(MAX_CONTEXT_BYTES)..place];
    let after = &text[place..text.len().min(place + MAX_CONTEXT_BYTES)];
    let begin = place
        - before
            .iter()
            .rev()
            .position(is_address_boundary)
            .unwrap_or(before.len());
    let end = place
        + after
            .iter()
            .position(is_address_boundary)
            .unwrap_or(after.len());
    let part = &text[begin..end];
    let mut behind_scheme = part.windows(3).take(place - begin);
    if starts_with_ignore_case(part, b"www.") || behind_scheme.any(|window| window == b"://") {
        return true;
    }
    let mut parts = part.split(|byte| matches!(byte, b'/' | b':' | b'?'));
    let host = parts.next().unwrap_or_default();
    let is_host = memchr::memchr(b'.', host)
        .is_some_and(|dot| dot > 0 && starts_with_tld(from_last_dot(&host[dot..])));
    is_host
        || memchr::memchr(b'@', part)
            .is_some_and(|at| at > 0 && starts_with_mail_host(&part[at + 1..]))
}

/// The words of a text with their offsets, without empty ones and those in addresses.
pub fn words_outside_addresses(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    words(text).filter(|(begin, word)| !word.is_empty() && !is_in_address(text, *begin))
}

fn is_address_boundary(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || b"()[]<>{},;\"'|+".contains(byte)
}

/// The letters, digits, hyphens and dots with which a text begins.
fn leading_host(text: &[u8]) -> &[u8] {
    let mut parts = text.split(|byte| !byte.is_ascii_alphanumeric() && !b"-.".contains(byte));
    parts.next().unwrap_or_default()
}

/// For a text that begins within a host: the text from the last dot of the host. The whole text if
/// there is no dot.
pub fn from_last_dot(text: &[u8]) -> &[u8] {
    &text[memchr::memrchr(b'.', leading_host(text)).unwrap_or_default()..]
}

/// Whether a text begins with a common top-level domain, such as `.com`, and no letter, digit or `-`
/// follows. Case-sensitive.
pub fn starts_with_tld(text: &[u8]) -> bool {
    const DOMAINS: [&[u8]; 16] = [
        b".com", b".net", b".org", b".info", b".co", b".io", b".eu", b".de", b".fr", b".it",
        b".nl", b".pl", b".cz", b".ru", b".uk", b".jp",
    ];
    let name = text
        .iter()
        .skip(1)
        .take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'-')
        .count();
    DOMAINS.contains(&&text[..text.len().min(1 + name)])
}

/// Whether a text begins with a host of at least two labels, of which the last has only letters. The
/// `10.0.4.1853` of `Ecosia ios@10.0.4.1853` does not count.
pub fn starts_with_mail_host(text: &[u8]) -> bool {
    let mut labels = leading_host(text)
        .rsplit(|&byte| byte == b'.')
        .skip_while(|label| label.is_empty());
    let top = labels
        .next()
        .is_some_and(|label| label.len() >= 2 && label.iter().all(u8::is_ascii_alphabetic));
    top && labels.next().is_some_and(|label| !label.is_empty())
}
