//! [`NetworkTable`]: a set of networks in which one address is found in some ten nanoseconds, among tens of thousands. Knows
//! addresses; must not know whose they are.

use ipnet::IpNet;
use std::net::IpAddr;

/// Networks as sorted intervals that neither overlap nor touch, IPv4 and IPv6 apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkTable {
    v4: Intervals<u32>,
    v6: Intervals<u128>,
    networks: Vec<IpNet>,
}

impl NetworkTable {
    /// Of these networks, in any order; they may repeat and overlap.
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> NetworkTable {
        let mut networks: Vec<IpNet> = networks.into_iter().map(|network| network.trunc()).collect();
        networks.sort_unstable();
        networks.dedup();
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for network in &networks {
            match network {
                IpNet::V4(network) => v4.push((network.network().into(), network.broadcast().into())),
                IpNet::V6(network) => v6.push((network.network().into(), network.broadcast().into())),
            }
        }
        NetworkTable {
            v4: Intervals::new(v4, |end| end.checked_add(1)),
            v6: Intervals::new(v6, |end| end.checked_add(1)),
            networks,
        }
    }

    /// Whether an address is in one of the networks.
    pub fn contains(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => self.v4.holds(address.into()),
            IpAddr::V6(address) => self.v6.holds(address.into()),
        }
    }

    /// Whether the table says anything about addresses of this kind, IPv4 or IPv6.
    pub fn covers_kind_of(&self, address: IpAddr) -> bool {
        if address.is_ipv4() { !self.v4.firsts.is_empty() } else { !self.v6.firsts.is_empty() }
    }

    /// The narrowest network that holds an address. Looks at each: for explanations.
    pub fn network_of(&self, address: IpAddr) -> Option<IpNet> {
        let holding = self.networks.iter().filter(|network| network.contains(&address));
        holding.max_by_key(|network| network.prefix_len()).copied()
    }

    /// The networks, sorted, each once.
    pub fn networks(&self) -> &[IpNet] {
        &self.networks
    }
}

/// Sorted intervals that neither overlap nor touch. Their beginnings are apart from their ends, so that a search meets few
/// lines of the cache.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Intervals<N> {
    firsts: Vec<N>,
    lasts: Vec<N>,
}

impl<N: Copy + Ord> Intervals<N> {
    fn new(mut intervals: Vec<(N, N)>, after: impl Fn(N) -> Option<N>) -> Intervals<N> {
        intervals.sort_unstable();
        let (mut firsts, mut lasts): (Vec<N>, Vec<N>) = (Vec::new(), Vec::new());
        for (first, last) in intervals {
            match lasts.last_mut() {
                Some(before) if after(*before).is_none_or(|next| first <= next) => *before = last.max(*before),
                _ => {
                    firsts.push(first);
                    lasts.push(last);
                }
            }
        }
        Intervals { firsts, lasts }
    }

    fn holds(&self, address: N) -> bool {
        let after = self.firsts.partition_point(|first| *first <= address);
        after > 0 && self.lasts[after - 1] >= address
    }
}

#[cfg(test)]
mod tests {
    use super::NetworkTable;
    use ipnet::IpNet;
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn table(networks: &[&str]) -> NetworkTable {
        NetworkTable::new(networks.iter().map(|network| network.parse::<IpNet>().expect("a network")))
    }

    #[test]
    fn edges_of_networks_are_inside() {
        let table =
            table(&["198.51.100.0/25", "198.51.100.128/25", "203.0.113.7/32", "2001:db8::/32", "255.255.255.255/32"]);
        let has = |address: &str| table.contains(address.parse().expect("an address"));
        for inside in
            ["198.51.100.0", "198.51.100.255", "203.0.113.7", "2001:db8::", "2001:db8:ffff::1", "255.255.255.255"]
        {
            assert!(has(inside), "{inside}");
        }
        for outside in
            ["198.51.99.255", "198.51.101.0", "203.0.113.6", "203.0.113.8", "2001:db9::", "2001:db7:ffff::", "::"]
        {
            assert!(!has(outside), "{outside}");
        }
        assert_eq!(table.v4.firsts.len(), 3, "neighbours are one interval");
    }

    #[test]
    fn a_table_of_one_kind_says_nothing_of_the_other() {
        let table = table(&["198.51.100.0/24"]);
        assert!(table.covers_kind_of("192.0.2.1".parse().expect("an address")));
        assert!(!table.covers_kind_of("2001:db8::1".parse().expect("an address")));
        assert!(!NetworkTable::default().contains("192.0.2.1".parse().expect("an address")));
    }

    #[test]
    fn the_narrowest_network_is_named() {
        let table = table(&["198.51.0.0/16", "198.51.100.0/24"]);
        let named = table.network_of("198.51.100.9".parse().expect("an address")).map(|network| network.to_string());
        assert_eq!(named.as_deref(), Some("198.51.100.0/24"));
    }

    proptest! {
        #[test]
        fn finds_what_trying_each_network_finds(
            networks in prop::collection::vec((any::<u32>(), 0u8..=32), 0..40),
            address in any::<u32>(),
        ) {
            let networks: Vec<IpNet> = networks
                .into_iter()
                .map(|(address, length)| IpNet::new(IpAddr::V4(address.into()), length).expect("a network"))
                .collect();
            let address = IpAddr::V4(address.into());
            let naive = networks.iter().any(|network| network.contains(&address));
            prop_assert_eq!(NetworkTable::new(networks).contains(address), naive);
        }
    }
}
