//! Addresses inside user agents: pages, hosts and mail addresses. The words of an address are names
//! of other things, so they say nothing about the client. The entry points are [`is_in_address`]
//! and [`words_outside_addresses`].

use super::octets::{begins_with, words};

/// How many octets are read before and after a place, so that a long field costs no more.
const MAX_SIDE: usize = 256;

/// Whether a place is part of a page's address, of a host with one of the common top-level domains,
/// or of a mail address. Looks at the text around the place up to the next blank, bracket or the
/// like, at most 256 bytes to either side.
pub fn is_in_address(text: &[u8], place: usize) -> bool {
    let before = &text[place.saturating_sub(MAX_SIDE)..place];
    let after = &text[place..text.len().min(place + MAX_SIDE)];
    let begin = place
        - before
            .iter()
            .rev()
            .position(is_break)
            .unwrap_or(before.len());
    let end = place + after.iter().position(is_break).unwrap_or(after.len());
    let part = &text[begin..end];
    let mut behind_scheme = part.windows(3).take(place - begin);
    if begins_with(part, b"www.") || behind_scheme.any(|window| window == b"://") {
        return true;
    }
    let mut parts = part.split(|byte| matches!(byte, b'/' | b':' | b'?'));
    let host = parts.next().unwrap_or_default();
    let is_host =
        memchr::memchr(b'.', host).is_some_and(|dot| dot > 0 && ends_host(host_end(&host[dot..])));
    is_host || memchr::memchr(b'@', part).is_some_and(|at| at > 0 && is_mail_host(&part[at + 1..]))
}

/// The words of a text with the places where they begin, without empty ones and those in addresses.
pub fn words_outside_addresses(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    words(text).filter(|(begin, word)| !word.is_empty() && !is_in_address(text, *begin))
}

fn is_break(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || b"()[]<>{},;\"'|+".contains(byte)
}

/// For a text that begins within a host: the text from the last dot of that host on, which is its
/// top-level domain with all that follows. The whole text if the host has no dot here.
pub fn host_end(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !b"-.".contains(byte))
        .unwrap_or(text.len());
    let last = text[..end]
        .iter()
        .rposition(|&byte| byte == b'.')
        .unwrap_or_default();
    &text[last..]
}

/// Whether a text begins with a top-level domain that programs name themselves by, such as `.com`,
/// and no letter, digit or `-` follows it. With regard to case.
pub fn ends_host(text: &[u8]) -> bool {
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

/// Whether a text begins with a host as in mail addresses: at least two labels, of which the last
/// has only letters. The `10.0.4.1853` of `Ecosia ios@10.0.4.1853` does not count.
pub fn is_mail_host(text: &[u8]) -> bool {
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.' && *byte != b'-');
    let host = &text[..end.unwrap_or(text.len())];
    let mut labels = host
        .rsplit(|&byte| byte == b'.')
        .skip_while(|label| label.is_empty());
    let top = labels
        .next()
        .is_some_and(|label| label.len() >= 2 && label.iter().all(u8::is_ascii_alphabetic));
    top && labels.next().is_some_and(|label| !label.is_empty())
}
