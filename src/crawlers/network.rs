//! Networks as people write them: [`read_network`] reads one, [`read_networks`] a list in a file.
//! [`written_address`] reads an address, and [`is_public`] tells public addresses from others.

use crate::yaml::Reader;
use ipnet::{IpNet, Ipv4Net};
use std::net::{IpAddr, SocketAddr};

/// The bits before the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2).
const MAPPED: u8 = 96;

/// Reads a network, or a single address; `None` for any other text. An IPv4-mapped IPv6 network
/// becomes IPv4, as do the addresses that it is compared with; one that is wider than all mapped
/// addresses, like `::ffff:0.0.0.0/90`, is refused (`None`). Bits after the prefix are cleared.
pub fn read_network(written: &str) -> Option<IpNet> {
    let network = written
        .parse()
        .or_else(|_| written.parse::<IpAddr>().map(IpNet::from))
        .ok()?;
    let mapped = match network {
        IpNet::V6(network) => network
            .addr()
            .to_ipv4_mapped()
            .map(|address| (address, network.prefix_len())),
        IpNet::V4(_) => None,
    };
    let network = match mapped {
        Some((address, length)) => {
            IpNet::V4(Ipv4Net::new(address, length.checked_sub(MAPPED)?).ok()?)
        }
        None => network,
    };
    Some(network.trunc())
}

/// The networks that a file lists.
pub fn read_networks(node: Reader<'_>) -> Vec<IpNet> {
    let help = "write `10.20.0.0/16`, `2001:db8::/32` or a single address; of IPv4 within IPv6 `::ffff:` at least /96";
    let mistake = ("bad-network", "is neither a network nor an address", help);
    node.all_parsed(
        "a list of networks, like 10.20.0.0/16",
        read_network,
        mistake,
    )
}

/// Reads an address, with or without a port, an IPv6 one with or without brackets; `None` for any
/// other text. An IPv4-mapped IPv6 address becomes IPv4.
pub fn written_address(text: &str) -> Option<IpAddr> {
    let address = text.parse::<IpAddr>().ok();
    let address = address.or_else(|| Some(text.parse::<SocketAddr>().ok()?.ip()));
    let address = address.or_else(|| text.strip_prefix('[')?.strip_suffix(']')?.parse().ok())?;
    Some(address.to_canonical())
}

/// Whether an address is one of the public network. Others prove nothing of a crawler, and lead no
/// crawler anywhere.
pub fn is_public(address: IpAddr) -> bool {
    !is_private(address)
}

/// Loopback, private networks, link-local and multicast addresses, those shared by carriers, and
/// those that no host can have (RFC 1112, 1122, 1918, 3879, 3927, 4193, 4291, 6598).
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            matches!(first, 0 | 10 | 127 | 224..)
                || address.is_private()
                || address.is_link_local()
                || first == 100 && second & 0xc0 == 64
        }
        IpAddr::V6(address) => {
            let first = address.segments()[0];
            address.is_loopback()
                || address.is_unspecified()
                || first & 0xfe00 == 0xfc00
                || first >= 0xfe80
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{is_private, read_network};

    #[test]
    fn networks_and_addresses_mapped_or_not() {
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
                read_network(written)
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
            assert_eq!(read_network(written), None, "{written}");
        }
    }

    #[test]
    fn addresses_that_prove_nothing() {
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
            assert!(is_private(address.parse().unwrap()), "{address}");
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
            assert!(is_private(address.parse().unwrap()), "{address}");
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
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
        for address in ["203.0.113.9", "100.128.0.1", "2001:db8::1", "172.32.0.1"] {
            assert!(!is_private(address.parse().unwrap()), "{address}");
        }
    }
}
