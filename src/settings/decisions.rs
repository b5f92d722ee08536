//! The decision service as settings: where it listens, and who may ask.

use super::address::{ListenAddressError, listen_address};
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Where the service listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecisionAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system, written `unix:/run/crawlgate/decide.sock`. Its permissions say who may ask.
    Unix(PathBuf),
}

impl FromStr for DecisionAddress {
    type Err = ListenAddressError;

    fn from_str(written: &str) -> Result<DecisionAddress, ListenAddressError> {
        match written.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            Some(path) => Ok(DecisionAddress::Unix(path.into())),
            None => listen_address(written).map(DecisionAddress::Tcp),
        }
    }
}

impl fmt::Display for DecisionAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecisionAddress::Tcp(address) => write!(out, "http://{address}"),
            DecisionAddress::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// The decision service.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionSettings {
    /// Where proxies ask.
    pub listen: Vec<DecisionAddress>,
    /// The proxies that may ask, and that say for which client they do.
    pub trusted: Vec<IpNet>,
}

impl DecisionSettings {
    /// For proxies on this machine.
    pub fn local(listen: Vec<DecisionAddress>) -> DecisionSettings {
        let loopback = [
            Ipv4Net::new(Ipv4Addr::new(127, 0, 0, 0), 8).map(IpNet::V4),
            Ipv6Net::new(Ipv6Addr::LOCALHOST, 128).map(IpNet::V6),
        ];
        DecisionSettings { listen, trusted: loopback.into_iter().flatten().collect() }
    }
}
