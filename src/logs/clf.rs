//! [`read`] reads a line in the Common or Combined log format of Apache and nginx, with or without a leading virtual
//! host. It ignores fields after the user agent, so lines of Traefik and of most extended formats are read, too.

use super::{Line, Octets, Record, moment, number, or_empty, owned_request_line, unescape};
use crate::time::Timestamp;
use memchr::{memchr, memchr_iter, memchr2};
use std::net::IpAddr;

/// Reads a line.
pub fn read(line: &[u8]) -> Option<Line<'_>> {
    let (head, time, rest) = split_at_time(line)?;
    let (request, rest) = quoted(rest.trim_ascii_start())?;
    let (status, rest) = word(rest)?;
    let (bytes, rest) = word(rest)?;
    let is_number = |field: &[u8]| field == b"-" || field.iter().all(u8::is_ascii_digit);
    if !is_number(status) || !is_number(bytes) {
        return None;
    }
    let user_agent = user_agent(rest.trim_ascii_start())?;
    let Some((method, target)) = owned_request_line(unescape(request)) else { return Some(Line::NoRequest) };
    let (host, client) = host_and_client(head);
    Some(Line::Request(Record {
        host: host.map(Into::into),
        client: client.map(Into::into),
        time,
        method,
        target,
        status: number(status),
        bytes: number(bytes),
        content_type: None,
        user_agent: user_agent.map(or_empty),
    }))
}

/// What stands before the time, the time, and what stands behind it. A user name may hold a `[`.
fn split_at_time(line: &[u8]) -> Option<(&[u8], Timestamp, &[u8])> {
    memchr_iter(b'[', line).find_map(|place| {
        let text = line.get(place + 1..)?;
        let (time, rest) = text.split_at_checked(moment::CLF_LENGTH)?;
        let rest = rest.strip_prefix(b"]")?;
        Some((line[..place].trim_ascii_end(), moment::clf(time)?, rest))
    })
}

/// The user agent behind the referer; nothing in the Common format. `None` where the line breaks off.
fn user_agent(rest: &[u8]) -> Option<Option<Octets<'_>>> {
    if !rest.starts_with(b"\"") {
        return Some(None);
    }
    let (_, rest) = quoted(rest)?;
    let rest = rest.trim_ascii_start();
    if !rest.starts_with(b"\"") {
        return Some(None);
    }
    let (user_agent, _) = quoted(rest)?;
    Some(Some(unescape(user_agent)))
}

/// What stands between quotes, and what follows. A backslash escapes the sign behind it: nginx and Apache write none that
/// does not.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let mut from = 0;
    loop {
        let place = from + memchr2(b'"', b'\\', text.get(from..)?)?;
        if text[place] == b'"' {
            return Some((&text[..place], &text[place + 1..]));
        }
        from = place + 2;
    }
}

fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b" ")?;
    let (word, rest) = text.split_at(memchr(b' ', text).unwrap_or(text.len()));
    (!word.is_empty()).then_some((word, rest))
}

/// The virtual host, if there is one, and the client: `host client ident user` or `client ident user`. User names may have
/// blanks in them, so an address in front is the client's, unless another address follows.
fn host_and_client(head: &[u8]) -> (Option<&[u8]>, Option<&[u8]>) {
    let is_address = |word: &[u8]| std::str::from_utf8(word).is_ok_and(|word| word.parse::<IpAddr>().is_ok());
    let mut words = head.split(|octet| *octet == b' ');
    let (first, second) = (words.next(), words.next());
    let (Some(host), Some(client), Some(_)) = (first, second, words.nth(1)) else { return (None, first) };
    if is_address(host) && !is_address(client) {
        return (None, first);
    }
    (first.filter(|host| !host.is_empty() && *host != b"-"), second)
}
