//! The ledger: which robots.txt was served to which crawler on which host, and what a crawler may therefore have cached;
//! and what clients did from request to request: crawl rate and traps.
//!
//! - [`Ledger`] is what other rooms call. `observations` is its table of hosts, `host` one of them, `stored` the same as
//!   facts of the state store. `cached_versions` judges by it, and `clock_steps` notices a clock that was set.
//! - `network_list_health` says what the lists of networks are worth.
//! - [`Behaviours`] asks `crawl_rate`, `traps` and `proven_fetches` for one request; their tables are `bounded`.
//!   `client_news` is what other instances are told of them.
//!
//! The request path reads tables under locks that are held briefly, and never waits for a file. Every table is bounded.

mod behaviour;
mod cached_versions;
mod client_news;
mod clock_steps;
mod crawl_rate;
mod host;
#[expect(clippy::module_inception, reason = "the room has the name of its main type")]
mod ledger;
mod network_list_health;
mod observations;
mod proven_fetches;
mod stored;
mod traps;

pub use behaviour::{Behaviours, PassedBehaviours, RateStep};
pub use client_news::{ClientNews, FetchNews, Mark};
#[cfg(feature = "internals")]
pub use crawl_rate::gcra;
pub use crawl_rate::{CrawlRate, RateKey};
pub use ledger::{CrawlerCopies, HostNews, Ledger, ServedCopy};
pub use network_list_health::{EVERY_SITE, ListHealth};
pub use traps::Traps;

#[cfg(test)]
mod behaviour_tests;
#[cfg(test)]
mod tests;
