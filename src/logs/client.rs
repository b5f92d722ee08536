//! The client's column of a log: an address, or a list of addresses as in X-Forwarded-For, which
//! may also stand in a column of its own. [`Record::client_address`] says which of them is the
//! client's.

use super::Record;
use crate::crawlers::written_address;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

impl Record<'_> {
    /// The address of the client, which logs write with or without port, brackets or quotes. Read
    /// from the right, through the client's column and then X-Forwarded-For, it is the first
    /// address that is no trusted proxy's, or the last one if all are. `None` where the client is
    /// not certain: among different addresses without trusted proxies, and where a proxy names
    /// nobody.
    pub fn client_address(&self, trusted: &[IpNet]) -> Option<IpAddr> {
        let column = self.client.as_deref()?;
        let forwarded = self.forwarded.as_deref();
        if trusted.is_empty() {
            let client = address(column)?;
            let is_alone = forwarded
                .is_none_or(|list| entries(list).all(|entry| address(entry) == Some(client)));
            return is_alone.then_some(client);
        }
        let mut client = None;
        for entry in entries(column).chain(forwarded.into_iter().flat_map(entries)) {
            let address = address(entry)?;
            client = Some(address);
            if !trusted.iter().any(|network| network.contains(&address)) {
                break;
            }
        }
        client
    }
}

/// The entries of a list, the last first.
fn entries(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.rsplit(|byte| *byte == b',')
}

/// Reads an address as logs write it, with or without port, brackets, quotes and blanks.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = entry.trim_ascii();
    let entry = entry
        .strip_prefix(b"\"")
        .and_then(|entry| entry.strip_suffix(b"\""))
        .unwrap_or(entry);
    // Nearly all words of a log that are no address end here.
    if !entry
        .first()
        .is_some_and(|first| first.is_ascii_hexdigit() || b"[:".contains(first))
    {
        return None;
    }
    written_address(std::str::from_utf8(entry).ok()?)
}

/// Whether this is an address like `192.0.2.7`, without a port. A quick test: nearly every column
/// is one, and to parse it takes three times as long.
pub fn is_ipv4(word: &[u8]) -> bool {
    let mut value = None;
    let mut dots = 0;
    for byte in word {
        value = match (byte, value) {
            (b'0'..=b'9', None) => Some(u16::from(byte - b'0')),
            // No zeros in front: some read them as octal numbers.
            (b'0'..=b'9', Some(value @ 1..=255)) => Some(value * 10 + u16::from(byte - b'0')),
            (b'.', Some(0..=255)) => {
                dots += 1;
                None
            }
            _ => return false,
        };
    }
    dots == 3 && value.is_some_and(|value| value <= 255)
}

/// Whether this is one address.
pub fn is_address(word: &[u8]) -> bool {
    address(word).is_some()
}

/// Whether this is one address with a port.
pub fn is_socket_address(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<SocketAddr>().is_ok())
}

/// Whether this names clients by their addresses: one, or a list in which proxies may have written
/// `unknown` or nothing for some (RFC 7239 section 6.2).
pub fn is_client(column: &[u8]) -> bool {
    // Nearly every column is one address, or `-`.
    if memchr::memchr(b',', column).is_none() {
        return is_address(column);
    }
    let mut entries = column.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut has_address = false;
    let is_whole = entries.all(|entry| {
        let is_address = is_address(entry);
        has_address |= is_address;
        is_address || matches!(entry, b"" | b"-" | b"unknown")
    });
    is_whole && has_address
}

/// The first column of a text, without its quotes, and what follows it without blanks in front. A
/// column ends at a blank, unless a comma stands before that: a list goes on.
pub fn split_column(text: &[u8]) -> (&[u8], &[u8]) {
    if let Some(quoted) = text.strip_prefix(b"\"")
        && let Some(end) = memchr::memchr(b'"', quoted)
    {
        return (&quoted[..end], quoted[end + 1..].trim_ascii_start());
    }
    let mut end = 0;
    loop {
        end += memchr::memchr(b' ', &text[end..]).unwrap_or(text.len() - end);
        if !text[..end].ends_with(b",") || end == text.len() {
            return (&text[..end], text[end..].trim_ascii_start());
        }
        end += 1;
    }
}
