//! [`LogRecord::client_address`] finds the address of the client in a line of an access log, and
//! skips trusted proxies. The client's column has one address, or a list as in X-Forwarded-For. In
//! some logs X-Forwarded-For has a column of its own.

use super::LogRecord;
use crate::crawlers::parse_address;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

impl LogRecord<'_> {
    /// The address of the client. Addresses are read from the right, first in the client's column,
    /// then in X-Forwarded-For, until one is not a trusted proxy's. If all are, it is the last one
    /// read. `None` where the client is not certain: with different addresses and no trusted proxies,
    /// or where an entry has no address.
    pub fn client_address(&self, trusted: &[IpNet]) -> Option<IpAddr> {
        let lists = [
            Some(self.client.as_deref()?),
            self.x_forwarded_for.as_deref(),
        ];
        let lists = lists.into_iter().flatten();
        let mut client = None;
        for entry in lists.flat_map(|list| list.rsplit(|byte| *byte == b',')) {
            let address = parse_log_address(entry)?;
            if trusted.is_empty() {
                if client.is_some_and(|known| known != address) {
                    return None;
                }
            } else if !trusted.iter().any(|network| network.contains(&address)) {
                return Some(address);
            }
            client = Some(address);
        }
        client
    }
}

/// Parses an address as logs write it, with or without port, brackets, quotes and blanks.
fn parse_log_address(entry: &[u8]) -> Option<IpAddr> {
    let entry = entry.trim_ascii();
    let entry = entry
        .strip_prefix(b"\"")
        .and_then(|entry| entry.strip_suffix(b"\""))
        .unwrap_or(entry);
    // A quick test: most words of a log are no address.
    if !entry
        .first()
        .is_some_and(|first| first.is_ascii_hexdigit() || b"[:".contains(first))
    {
        return None;
    }
    let entry = std::str::from_utf8(entry).ok()?;
    // A link-local address may have a zone: `fe80::1%eth0` (RFC 4007 section 11).
    let Some((address, zone)) = entry.split_once('%') else {
        return parse_address(entry);
    };
    let after = zone.find(']').map_or("", |end| &zone[end..]);
    parse_address(&format!("{address}{after}")).filter(IpAddr::is_ipv6)
}

/// Whether this is an address like `192.0.2.7`, without a port. A quick test: nearly every column
/// is one, and to parse it takes three times as long.
pub fn is_ipv4(word: &[u8]) -> bool {
    let mut parts = 0;
    word.split(|byte| *byte == b'.').all(|part| {
        parts += 1;
        // No zeros in front: some read them as octal numbers.
        matches!(
            part,
            [b'0'..=b'9']
                | [b'1'..=b'9', b'0'..=b'9']
                | [b'1', b'0'..=b'9', b'0'..=b'9']
                | [b'2', b'0'..=b'4', b'0'..=b'9']
                | [b'2', b'5', b'0'..=b'5']
        )
    }) && parts == 4
}

/// Whether this is one address.
pub fn is_address(word: &[u8]) -> bool {
    parse_log_address(word).is_some()
}

/// Whether this is one address with a port.
pub fn is_socket_address(word: &[u8]) -> bool {
    std::str::from_utf8(word).is_ok_and(|word| word.parse::<SocketAddr>().is_ok())
}

/// Whether this is an address or a list of addresses. In a list, some entries may be empty or
/// `unknown` (RFC 7239 section 6.2).
pub fn is_client_list(column: &[u8]) -> bool {
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

/// Splits off the first column, without its quotes, and skips the blanks after it. A column ends at
/// a blank that does not follow a comma.
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
