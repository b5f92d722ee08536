//! [`Networks`]: the networks that a policy lists for its crawlers. A client that claims to be such
//! a crawler is verified by its address: it must be inside the networks of that crawler.

use crate::crawlers::Claim;
use ipnet::IpNet;
use std::net::IpAddr;

/// The addresses that the owner vouches for, by crawler.
#[derive(Debug, Default)]
pub struct Networks(pub Vec<(Claim, Vec<IpNet>)>);

impl Networks {
    /// Whether the policy lists no address.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The networks of each crawler that has some.
    pub fn each(&self) -> impl Iterator<Item = (Claim, &[IpNet])> {
        self.0
            .iter()
            .map(|(claim, networks)| (*claim, networks.as_slice()))
    }

    /// Whether an address is among those that the policy lists for a crawler; `None` where it lists
    /// no address of that kind, IPv4 or IPv6, for the crawler.
    pub fn hold(&self, claim: Claim, address: IpAddr) -> Option<bool> {
        let (_, networks) = self.0.iter().find(|(listed, _)| *listed == claim)?;
        let mut of_its_kind = networks
            .iter()
            .filter(|network| network.addr().is_ipv4() == address.is_ipv4())
            .peekable();
        of_its_kind.peek()?;
        Some(of_its_kind.any(|network| network.contains(&address)))
    }
}
