//! [`client_address`] finds the address of a client: that of the peer, or the one that trusted proxies ([`is_trusted`])
//! name in `X-Forwarded-For`. [`is_forwarding_field`] knows the fields that name another client.

use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};

/// Fields by which a proxy says for which client it speaks. From a peer that the settings do not name as a trusted proxy
/// they prove one thing: the peer's address may be that of a proxy.
const FORWARDING: [&str; 7] =
    ["x-forwarded-for", "forwarded", "x-real-ip", "true-client-ip", "cf-connecting-ip", "fastly-client-ip", "via"];

/// Whether a field with this name says that the peer speaks for another client.
pub fn is_forwarding_field(name: &str) -> bool {
    // Most fields of a head end here.
    let may_be_one =
        matches!(name.as_bytes().first(), Some(b'c' | b'C' | b'f' | b'F' | b't' | b'T' | b'v' | b'V' | b'x' | b'X'));
    may_be_one && FORWARDING.iter().any(|forwarding| name.eq_ignore_ascii_case(forwarding))
}

/// Whether the forwarding fields of this peer are believed.
pub fn is_trusted(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|network| network.contains(&address))
}

/// Walks `X-Forwarded-For` from right to left, over several lines, to the first address that is not a trusted proxy. No
/// trusted proxy vouches for the entries left of that one. An entry that is no address ends the walk.
pub fn client_address<'a>(
    peer: IpAddr,
    forwarded_for: impl DoubleEndedIterator<Item = &'a [u8]>,
    trusted: &[IpNet],
) -> IpAddr {
    let mut current = peer.to_canonical();
    for entry in forwarded_for.rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
        if !is_trusted(current, trusted) {
            return current;
        }
        match parse(entry) {
            Some(address) => current = address,
            None => return current,
        }
    }
    current
}

/// An address, with or without a port, an IPv6 one with or without brackets.
pub(super) fn parse(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let address = text
        .parse::<IpAddr>()
        .ok()
        .or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
        .or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok())?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(peer: &str, lines: &[&str]) -> String {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "::1/128"].iter().map(|network| network.parse().unwrap()).collect();
        client_address(peer.parse().unwrap(), lines.iter().map(|line| line.as_bytes()), &trusted).to_string()
    }

    #[test]
    fn an_untrusted_peer_is_the_client_whatever_it_claims() {
        assert_eq!(walk("192.0.2.1", &["198.51.100.1"]), "192.0.2.1");
    }

    #[test]
    fn trusted_proxies_are_peeled_off_from_the_right_over_lines() {
        assert_eq!(walk("10.0.0.1", &["203.0.113.9, 198.51.100.1", "10.0.0.3,10.0.0.2"]), "198.51.100.1");
    }

    #[test]
    fn when_all_are_trusted_the_leftmost_is_the_client() {
        assert_eq!(walk("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        assert_eq!(walk("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn an_entry_that_is_no_address_ends_the_walk_at_what_is_known() {
        assert_eq!(walk("10.0.0.1", &["198.51.100.1, unknown, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(walk("10.0.0.1", &["198.51.100.1,"]), "10.0.0.1");
        assert_eq!(walk("10.0.0.1", &["\u{1f980}"]), "10.0.0.1");
    }

    #[test]
    fn ports_brackets_and_mapped_addresses_are_understood() {
        assert_eq!(walk("10.0.0.1", &["198.51.100.1:4711"]), "198.51.100.1");
        assert_eq!(walk("10.0.0.1", &["[2001:db8::1]:443"]), "2001:db8::1");
        assert_eq!(walk("10.0.0.1", &["[2001:db8::1]"]), "2001:db8::1");
        assert_eq!(walk("::ffff:10.0.0.1", &["::ffff:198.51.100.1"]), "198.51.100.1");
    }
}
