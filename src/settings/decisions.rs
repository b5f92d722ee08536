//! The decision service as settings: where it listens, and who may ask.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// The decision service.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionSettings {
    /// Where proxies ask.
    pub listen: Vec<SocketAddr>,
    /// The proxies that may ask, and that say for which client they do.
    pub trusted: Vec<IpNet>,
}

impl DecisionSettings {
    /// For proxies on this machine.
    pub fn local(listen: Vec<SocketAddr>) -> DecisionSettings {
        let loopback = [
            Ipv4Net::new(Ipv4Addr::new(127, 0, 0, 0), 8).map(IpNet::V4),
            Ipv6Net::new(Ipv6Addr::LOCALHOST, 128).map(IpNet::V6),
        ];
        DecisionSettings { listen, trusted: loopback.into_iter().flatten().collect() }
    }
}
