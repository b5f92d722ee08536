//! The ledger: the versions of robots.txt that each crawler was served on each host, and the recent
//! behaviour of clients (crawl rate and traps).
//!
//! - [`Ledger`] is what other modules call. `observations` is its table of hosts, `host` is one
//!   host and its records in the state store. `cached_versions` computes what a crawler may have
//!   cached, and `clock_steps` notices a clock that was set. `proxies` decides whether a cache in
//!   front may have answered crawlers.
//! - `network_list_health` decides which lists of networks may prove an impostor.
//! - [`Behaviours`] asks `crawl_rate`, `traps` and `proven_fetches` for one request; their tables
//!   are `bounded`.
//!
//! The request path reads tables under locks that are held briefly, and never waits for a file.
//! Every table is bounded.

mod behaviour;
mod cached_versions;
mod clock_steps;
mod crawl_rate;
mod host;
#[expect(
    clippy::module_inception,
    reason = "the room has the name of its main type"
)]
mod ledger;
mod network_list_health;
mod observations;
mod proven_fetches;
mod proxies;
mod traps;

pub use behaviour::{Behaviours, PassedBehaviours, RateStep};
#[cfg(feature = "internals")]
pub use crawl_rate::gcra;
pub use crawl_rate::{CrawlRate, RateKey};
pub use ledger::{HostNews, Ledger, ProxyFetch};
pub use network_list_health::{EVERY_SITE, ListHealth, list_of};
pub use traps::Traps;

#[cfg(test)]
mod behaviour_tests;
#[cfg(test)]
mod tests;
