//! What of a client's address is stored beyond the marks of traps: `privacy.history` of the settings. The main type is
//! [`AddressHistory`]. This file must not know which facts hold addresses.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};

/// How much of an address is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressHistory {
    /// The network: /24 of IPv4, /48 of IPv6.
    #[default]
    Network,
    /// The whole address.
    Full,
    /// Nothing.
    None,
}

impl AddressHistory {
    /// What is stored of this address.
    pub fn stored(self, address: IpAddr) -> Option<IpNet> {
        // An IPv4 address in an IPv6 spelling is an IPv4 address: /48 of it would be every one of them.
        let address = match address {
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
            IpAddr::V4(_) => address,
        };
        let of_v6 = |v6: Ipv6Addr| Ipv6Net::new(v6, 48).map(|network| IpNet::V6(network.trunc()));
        match (self, address) {
            (AddressHistory::None, _) => None,
            (AddressHistory::Full, address) => Some(IpNet::from(address)),
            (AddressHistory::Network, IpAddr::V4(v4)) => {
                Ipv4Net::new(v4, 24).map(|network| network.trunc().into()).ok()
            }
            (AddressHistory::Network, IpAddr::V6(v6)) => of_v6(v6).ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AddressHistory::{self, Full, Network, None as Nothing};

    fn stored(history: AddressHistory, address: &str) -> Option<String> {
        history.stored(address.parse().expect("an address")).map(|network| network.to_string())
    }

    #[test]
    fn the_network_of_an_address_is_stored_unless_asked_otherwise() {
        assert_eq!(AddressHistory::default(), Network);
        assert_eq!(stored(Network, "192.0.2.77").as_deref(), Some("192.0.2.0/24"));
        assert_eq!(stored(Network, "2001:db8:1:2::3").as_deref(), Some("2001:db8:1::/48"));
        assert_eq!(stored(Network, "::ffff:192.0.2.77").as_deref(), Some("192.0.2.0/24"));
    }

    #[test]
    fn whole_addresses_and_none_can_be_chosen() {
        assert_eq!(stored(Full, "192.0.2.77").as_deref(), Some("192.0.2.77/32"));
        assert_eq!(stored(Full, "2001:db8::3").as_deref(), Some("2001:db8::3/128"));
        assert_eq!(stored(Nothing, "192.0.2.77"), None);
        assert_eq!(stored(Nothing, "2001:db8::3"), None);
    }
}
