//! [`CrawlerNetworks`]: the IP networks that a policy lists for crawlers. A client that claims to
//! be such a crawler is verified if its address is in the crawler's networks.

use crate::crawlers::Claim;
use ipnet::IpNet;
use std::net::IpAddr;

/// The networks of crawlers, as the policy lists them.
#[derive(Debug)]
pub struct CrawlerNetworks(pub Vec<(Claim, Vec<IpNet>)>);

impl CrawlerNetworks {
    /// Whether an address is in the networks of a crawler; `None` where the policy lists no network
    /// of that family (IPv4 or IPv6) for it.
    pub fn contains_address(&self, claim: Claim, address: IpAddr) -> Option<bool> {
        let (_, networks) = self.0.iter().find(|(listed, _)| *listed == claim)?;
        let mut of_its_kind = networks
            .iter()
            .filter(|network| network.addr().is_ipv4() == address.is_ipv4())
            .peekable();
        of_its_kind.peek()?;
        Some(of_its_kind.any(|network| network.contains(&address)))
    }
}
