//! [`DecisionSettings`]: the addresses of the decision service, and the proxies that may ask it.

use super::address::{ListenAddressError, listen_address};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server listens. Port 0 is any port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket in the file system, written `unix:/run/crawlgate/decide.sock`. Its permissions say who may ask.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = ListenAddressError;

    fn from_str(written: &str) -> Result<ListenAddress, ListenAddressError> {
        match written.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            Some(path) => Ok(ListenAddress::Unix(path.into())),
            None => listen_address(written).map(ListenAddress::Tcp),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Tcp(address) => write!(out, "http://{address}"),
            ListenAddress::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// The decision service.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionSettings {
    /// Where proxies ask.
    pub listen: Vec<ListenAddress>,
    /// The proxies that may ask, and that say for which client they do.
    pub trusted: Vec<IpNet>,
}

impl DecisionSettings {
    /// For proxies on this machine.
    pub fn local(listen: Vec<ListenAddress>) -> DecisionSettings {
        let loopback = ["127.0.0.0/8", "::1/128"].map(str::parse);
        DecisionSettings { listen, trusted: loopback.into_iter().flatten().collect() }
    }
}
