//! [`ClientNews`]: news about clients for the other instances of crawlgate in front of the same
//! sites: a client was marked for requesting a trap, an operator released marks, or a client was
//! certainly served a version of robots.txt. The tables of `ledger` report such news through
//! [`Teller`].

use crate::policy::Version;
use crate::time::{Timestamp, rfc3339};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

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
    /// A client was served the version in force, which is proven for its address.
    Fetched(FetchNews),
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

/// A proven fetch.
#[derive(Debug)]
pub struct FetchNews {
    /// The site.
    pub site: String,
    /// The host, as the ledger has it.
    pub host: String,
    /// The name of the crawler's cache.
    pub crawler: String,
    /// The version.
    pub version: Version,
    /// The address; of IPv6 the /64. `None` for a verified crawler: it counts at every address.
    pub address: Option<IpAddr>,
    /// When that happened.
    pub at: Timestamp,
}

/// Tells other instances of clients.
pub type Tell = Arc<dyn Fn(ClientNews) + Send + Sync>;

/// Tells other instances, where there are any.
#[derive(Default)]
pub struct Teller(OnceLock<Tell>);

impl Teller {
    /// From now on other instances are told. To be called once; a second call changes nothing.
    pub fn begin(&self, tell: Tell) {
        let _ = self.0.set(tell);
    }

    /// Makes the news and tells other instances, if there are any. `None` is not told.
    pub fn tell(&self, news: impl FnOnce() -> Option<ClientNews>) {
        if let Some(tell) = self.0.get()
            && let Some(news) = news()
        {
            tell(news);
        }
    }
}
