//! [`Event`]: something that happened at one instance and that the others must know. Only the last
//! time of an event counts, so in the shared store it is a key without a value. Any number of
//! instances may write it, and the store keeps the latest time (`ZADD GT`).
//!
//! | key | what happened |
//! |---|---|
//! | `s HOST CRAWLER VERSION` | the crawler was served the version |
//! | `w SITE PAUSE` | an operator paused the site (the pause as JSON), or ended its pauses (nothing) |
//! | `u NETWORK` | an operator released the marks of a network |
//! | `M SITE CRAWLER ADDRESS SECONDS` | the client requested a trap, and is marked for so long |

use super::SharedFact;
use super::records::json;
use crate::policy::Version;
use crate::policy::model::Audience;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Names of clients that are longer are not told.
const MAX_NAME: usize = 256;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A crawler was served a version.
    Served(ServedVersion),
    /// A client requested a trap.
    Marked(MarkedClient),
    /// An operator released the marks of a network.
    Released(IpNet),
    /// An operator paused a site, or ended its pauses.
    Paused(PausedSite),
}

/// A version was served to a crawler.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServedVersion {
    /// The host, as the ledger has it.
    pub host: String,
    /// The name of the crawler's cache.
    pub crawler: String,
    /// The version.
    pub version: [u8; 8],
}

/// A client that requested a trap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkedClient {
    /// The site of the trap.
    pub site: String,
    /// The claimed identity.
    pub crawler: String,
    /// The address; of IPv6 the /64.
    pub address: IpAddr,
    /// For how many seconds it is marked.
    pub seconds: u64,
}

/// What an operator did with the pauses of a site.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PausedSite {
    /// The site.
    pub site: String,
    /// The pause that began then; `None` where all ended.
    pub pause: Option<PauseTerms>,
}

/// A pause that an operator switched on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PauseTerms {
    /// For how many seconds.
    pub seconds: u64,
    /// Retry-After in seconds.
    pub retry_after: u32,
    /// Whether it stops people too.
    pub everyone: bool,
    /// Whether robots.txt is answered 503 as well.
    pub robots_txt: bool,
}

impl PauseTerms {
    /// Which clients it stops.
    pub fn audience(&self) -> Audience {
        if self.everyone {
            Audience::Everyone
        } else {
            Audience::Crawlers
        }
    }
}

impl PausedSite {
    /// The pause as JSON; empty where all pauses ended.
    pub(super) fn said(&self) -> String {
        self.pause.as_ref().map(json).unwrap_or_default()
    }

    /// Reads what [`PausedSite::said`] wrote of a site. `None` if it is no pause.
    pub(super) fn of(site: &str, said: &str) -> Option<PausedSite> {
        let pause = if said.is_empty() {
            None
        } else {
            Some(serde_json::from_str(said).ok()?)
        };
        Some(PausedSite {
            site: site.to_owned(),
            pause,
        })
    }
}

impl Event {
    /// The event as a fact at a time of the store's clock, in seconds. `None` where a name in it is
    /// longer than `LONGEST_NAME` or has a line feed, so that it cannot stand in a key.
    pub fn fact(&self, at: i64) -> Option<SharedFact> {
        let key = match self {
            Event::Served(ServedVersion {
                host,
                crawler,
                version,
            }) => format!("s\n{host}\n{crawler}\n{}", Version(*version)),
            Event::Paused(paused) => format!("w\n{}\n{}", paused.site, paused.said()),
            Event::Released(network) => format!("u\n{network}"),
            Event::Marked(MarkedClient {
                site,
                crawler,
                address,
                seconds,
            }) => format!("M\n{site}\n{crawler}\n{address}\n{seconds}"),
        };
        // A line feed in a name would make another event of it.
        let is_sound = Event::of(&key).as_ref() == Some(self)
            && key.split('\n').all(|part| part.len() <= MAX_NAME);
        is_sound.then(|| SharedFact {
            key,
            at,
            value: String::new(),
        })
    }

    /// Reads the key of a fact. `None` where it is no event.
    pub fn of(key: &str) -> Option<Event> {
        let (kind, rest) = key.split_once('\n')?;
        let parts: Vec<&str> = rest.split('\n').collect();
        Some(match (kind, parts.as_slice()) {
            ("s", [host, crawler, id]) => Event::Served(ServedVersion {
                host: host.to_string(),
                crawler: crawler.to_string(),
                version: Version::parse(id)?.0,
            }),
            ("w", [site, said]) => Event::Paused(PausedSite::of(site, said)?),
            ("u", [network]) => Event::Released(network.parse().ok()?),
            ("M", [site, crawler, address, seconds]) => Event::Marked(MarkedClient {
                site: site.to_string(),
                crawler: crawler.to_string(),
                address: address.parse().ok()?,
                seconds: seconds.parse().ok()?,
            }),
            _ => return None,
        })
    }
}

/// Whether a key is of an event that clients make, one for each of their addresses (`M`).
/// Of these the store keeps the latest `store::MOST_OF_CLIENTS`.
pub fn is_of_clients(key: &str) -> bool {
    key.starts_with('M')
}
