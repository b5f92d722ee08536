//! [`ClientNews`]: news about clients for the other instances of crawlgate in front of the same
//! sites: a client was marked for requesting a trap, or an operator released marks. `Traps` reports
//! such news.

use crate::time::{Timestamp, rfc3339};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// One piece of news about clients.
#[derive(Debug)]
pub enum ClientNews {
    /// A client requested a trap.
    Marked(Mark),
    /// An operator released the marks of a network.
    Released {
        /// The network.
        network: IpNet,
        /// When that happened.
        at: Timestamp,
    },
}

/// The mark of a client, by the wall clock as it is now: for lists, and for the state store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// The site whose trap it was.
    pub site: String,
    /// The claimed identity: the registry's id, the policy's token, or what a bot that no list
    /// knows calls itself.
    pub crawler: String,
    /// The address; of IPv6 the /64, since that is what one machine has.
    pub address: IpAddr,
    /// When the client last requested a trap.
    #[serde(serialize_with = "rfc3339")]
    pub since: Timestamp,
    /// When the mark ends.
    #[serde(serialize_with = "rfc3339")]
    pub until: Timestamp,
}

/// Tells other instances of clients.
pub type Tell = Box<dyn Fn(ClientNews) + Send + Sync>;
