//! [`DecisionSettings`]: the addresses of the decision service, which tells another reverse proxy
//! whether a request may pass, and the networks of the proxies that may ask it. [`decisions`]
//! decodes them.

use super::address::{AddressError, listen_address};
use crate::yaml::Reader;
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
    /// A socket in the file system, written `unix:/run/crawlgate/decide.sock`. Its permissions say
    /// who may ask.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = AddressError;

    fn from_str(written: &str) -> Result<ListenAddress, AddressError> {
        match written
            .strip_prefix("unix:")
            .filter(|path| !path.is_empty())
        {
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
    /// A decision service for proxies on this machine: the loopback networks are trusted.
    pub fn local(listen: Vec<ListenAddress>) -> DecisionSettings {
        let loopback = ["127.0.0.0/8", "::1/128"].map(str::parse);
        DecisionSettings {
            listen,
            trusted: loopback.into_iter().flatten().collect(),
        }
    }
}

/// `off`, an address, a list of them, or a map with `listen` and `trusted`. Without `trusted` the
/// loopback networks are. `None` for `off`, and after a mistake.
pub(super) fn decisions(node: Reader<'_>) -> Option<DecisionSettings> {
    if !node.is_map() {
        return super::values::or_off(|node| Some(DecisionSettings::local(addresses(node))))(node)?;
    }
    node.map("a map: listen, trusted", |fields| {
        let listen = fields.get("listen", |node| Some(addresses(node)));
        let trusted = fields.get("trusted", |node| Some(crate::crawlers::read_networks(node)));
        fields.finish();
        fields.required(
            "listen",
            "`decisions` needs `listen`, like 127.0.0.1:9180",
            None,
        );
        let settings = DecisionSettings::local(listen?);
        Some(DecisionSettings {
            trusted: trusted.unwrap_or(settings.trusted),
            ..settings
        })
    })?
}

/// One address to listen on, or a list. A mistake is reported and left out.
fn addresses(node: Reader<'_>) -> Vec<ListenAddress> {
    let mut addresses = Vec::new();
    for item in node.one_or_many("an address and port, like 127.0.0.1:9180") {
        let Some(text) = item.text("an address and port, or `unix:` and a path") else {
            continue;
        };
        match text.parse::<ListenAddress>() {
            Ok(ListenAddress::Unix(path)) => {
                addresses.push(ListenAddress::Unix(node.decoder.directory.join(path)));
            }
            Ok(address) => addresses.push(address),
            Err(error) => item.error("bad-address", error.to_string()),
        }
    }
    addresses
}
