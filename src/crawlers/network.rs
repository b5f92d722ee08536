//! Parses IP networks and addresses. [`parse_network`] and [`parse_address`] parse one text, and
//! [`decode_networks`] decodes a YAML list of networks. [`is_public_address`] tells public
//! addresses from private ones.

use crate::yaml::NodeReader;
use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, SocketAddr};

/// The bits before the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2).
const MAPPED_PREFIX_BITS: u8 = 96;

/// Parses a network or a single address. An IPv4-mapped IPv6 network becomes IPv4, as do the
/// addresses that it is compared with. `None` for one that is wider than all mapped addresses, like
/// `::ffff:0.0.0.0/90`. Bits after the prefix are cleared.
pub fn parse_network(written: &str) -> Option<IpNet> {
    let network: IpNet = written
        .parse()
        .or_else(|_| written.parse::<IpAddr>().map(IpNet::from))
        .ok()?;
    if let IpNet::V6(network) = network
        && let Some(address) = network.addr().to_ipv4_mapped()
    {
        let length = network.prefix_len().checked_sub(MAPPED_PREFIX_BITS)?;
        return Some(IpNet::V4(Ipv4Net::new(address, length).ok()?.trunc()));
    }
    Some(network.trunc())
}

/// Decodes a list of networks; reports each mistake.
pub fn decode_networks(node: NodeReader<'_>) -> Vec<IpNet> {
    let help = "write \"10.20.0.0/16\", \"2001:db8::/32\" or one address; for IPv4 inside IPv6 \
                \"::ffff:\" at least /96";
    let mistake = ("bad-network", "is neither a network nor an address", help);
    node.parse_all_with(
        "a list of networks, like 10.20.0.0/16",
        parse_network,
        mistake,
    )
}

/// Parses an address, with or without a port or brackets. An IPv4-mapped IPv6 address becomes IPv4.
pub fn parse_address(text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    let address = address.or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok())?;
    Some(address.to_canonical())
}

/// Whether an address is public: not loopback, private, link-local, multicast, shared by carriers, or
/// unassignable (RFC 1112, 1122, 1918, 3879, 3927, 4193, 4291, 6598). Other addresses prove nothing
/// about a crawler.
pub fn is_public_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            let is_reserved = matches!(first, 0 | 10 | 127 | 224..);
            let is_shared = first == 100 && second & 0xc0 == 64;
            !(is_reserved || is_shared || address.is_private() || address.is_link_local())
        }
        IpAddr::V6(address) => {
            let first = address.segments()[0];
            let is_local = first & 0xfe00 == 0xfc00 || first >= 0xfe80;
            !(is_local || address.is_loopback() || address.is_unspecified())
        }
    }
}

/// Domains of internal names (RFC 6761, RFC 6762, RFC 8375; ICANN reserved `internal`).
const INTERNAL_DOMAINS: [&str; 4] = [".localhost", ".local", ".internal", ".home.arpa"];

/// Whether a host is not reachable from the Internet: a private address, a single label and so
/// on.
pub fn is_internal_host(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    match name.parse::<IpAddr>() {
        Ok(address) => !is_public_address(address),
        // Clients read `127.1` and `0x7f.0.0.1` as addresses, and decode escapes (WHATWG URL).
        Err(_) if name.contains('%') || ends_in_number(&name) => true,
        Err(_) => {
            !name.contains('.') || INTERNAL_DOMAINS.iter().any(|domain| name.ends_with(domain))
        }
    }
}

/// Whether the last label of a name has only digits (or is empty), or begins with `0x`.
fn ends_in_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{is_public_address, parse_network};

    #[test]
    fn networks_parse_with_and_without_mapping() {
        for (written, read) in [
            ("10.20.0.0/16", "10.20.0.0/16"),
            ("10.20.30.40/16", "10.20.0.0/16"),
            ("192.0.2.7", "192.0.2.7/32"),
            ("2001:db8::/32", "2001:db8::/32"),
            ("2001:db8::1", "2001:db8::1/128"),
            ("::ffff:10.20.0.0/112", "10.20.0.0/16"),
            ("::ffff:10.20.30.40/112", "10.20.0.0/16"),
            ("::ffff:192.0.2.7", "192.0.2.7/32"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(
                parse_network(written)
                    .map(|network| network.to_string())
                    .as_deref(),
                Some(read),
                "{written}"
            );
        }
        for written in [
            "",
            "10.20.0.0/33",
            "shop.example",
            "::ffff:10.20.0.0/129",
            "10.20/16",
            "::ffff:0.0.0.0/90",
        ] {
            assert_eq!(parse_network(written), None, "{written}");
        }
    }

    #[test]
    fn private_addresses_are_not_public() {
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "100.64.0.1",
            "169.254.1.1",
            "::1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(!is_public_address(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.1.2.3",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "ff02::1",
        ] {
            assert!(!is_public_address(address.parse().unwrap()), "{address}");
        }
        for address in [
            "223.255.255.255",
            "1.0.0.1",
            "128.0.0.1",
            "11.0.0.1",
            "::ffff:8.8.8.8",
            "fbff::1",
            "fe7f::1",
        ] {
            assert!(is_public_address(address.parse().unwrap()), "{address}");
        }
        for address in ["203.0.113.9", "100.128.0.1", "2001:db8::1", "172.32.0.1"] {
            assert!(is_public_address(address.parse().unwrap()), "{address}");
        }
    }
}
