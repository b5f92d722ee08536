//! [`DecisionSettings`]: the settings of the decision service, by which another reverse proxy asks
//! crawlgate whether a request may pass. They say where the service listens, and which proxies may
//! ask.

use super::address::{AddressError, parse_listen_address};
use crate::yaml::NodeReader;
use ListenAddress::{Tcp, Unix};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a server listens. Port 0 means any free port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A Unix socket, written `unix:/run/crawlgate/decide.sock`. Its permissions decide which
    /// processes may connect.
    Unix(PathBuf),
}

impl FromStr for ListenAddress {
    type Err = AddressError;

    fn from_str(written: &str) -> Result<ListenAddress, AddressError> {
        match written
            .strip_prefix("unix:")
            .filter(|path| !path.is_empty())
        {
            Some(path) => Ok(Unix(path.into())),
            None => parse_listen_address(written).map(Tcp),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tcp(address) => write!(out, "http://{address}"),
            Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// The decision service.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionSettings {
    /// The addresses.
    pub listen: Vec<ListenAddress>,
    /// The proxies that may ask, and whose word about the client counts.
    pub trusted: Vec<IpNet>,
}

impl DecisionSettings {
    /// Trusts proxies on this machine: the loopback networks.
    pub fn local(listen: Vec<ListenAddress>) -> DecisionSettings {
        let loopback = ["127.0.0.0/8", "::1/128"].map(str::parse);
        DecisionSettings {
            listen,
            trusted: loopback.into_iter().flatten().collect(),
        }
    }
}

/// `off`, an address, a list of addresses, or a map with `listen` and `trusted`. By default the
/// loopback networks are trusted. `None` for `off`, and after a mistake.
pub fn decode_decisions(node: NodeReader<'_>) -> Option<DecisionSettings> {
    if !node.is_map() {
        return super::values::decode_or_off(|node| {
            Some(DecisionSettings::local(decode_addresses(node)))
        })(node)?;
    }
    node.decode_map("a map: listen, trusted", |fields| {
        let listen = fields.get("listen", |node| Some(decode_addresses(node)));
        let trusted = fields.get("trusted", |node| {
            Some(crate::crawlers::decode_networks(node))
        });
        fields.report_unknown();
        fields.required_field(
            "listen",
            "\"decisions\" needs \"listen\", like 127.0.0.1:9180",
            None,
        );
        let settings = DecisionSettings::local(listen?);
        Some(DecisionSettings {
            trusted: trusted.unwrap_or(settings.trusted),
            ..settings
        })
    })?
}

/// One address to listen on, or a list. Reports and leaves out mistakes.
fn decode_addresses(node: NodeReader<'_>) -> Vec<ListenAddress> {
    let mut addresses = Vec::new();
    for item in node.one_or_many("an address and port, like 127.0.0.1:9180") {
        let Some(text) = item.text("an address and port, or \"unix:\" and a path") else {
            continue;
        };
        match text.parse::<ListenAddress>() {
            Ok(Unix(path)) => {
                addresses.push(Unix(node.decoder.directory.join(path)));
            }
            Ok(address) => addresses.push(address),
            Err(error) => item.error("bad-address", error.to_string()),
        }
    }
    addresses
}
