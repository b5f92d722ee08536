//! The ledger: which robots.txt was served to whom on which host, and what a crawler may therefore hold; and how
//! crawlers behaviour themselves from request to request: their pace, and who stepped into a trap.
//!
//! `keeping` is what others call; `visits` is the table of what was served; `holdings` is the definition that judges by
//! it; `watch` says since when a host is seen without a gap; `store` keeps it all through a restart. `proofs` says what
//! the lists of networks are worth. `behaviour` asks `pace`, `traps` and `shown` for one request; their tables are
//! `bounded`. The request path reads tables under locks that nobody holds for long, and never waits for a file.
//!
//! Knows sites, claims and addresses; must not know how a request came or what is done with it. Every table is bounded,
//! and no clock is read here: `now` is an argument.

mod behaviour;
mod bounded;
mod crawl_rate;
mod holdings;
mod keeping;
mod network_list_health;
mod proven_fetches;
mod store;
mod traps;
mod visits;
mod watch;

pub use behaviour::Behaviours;
pub use crawl_rate::{CrawlRate, RateKey, gcra};
pub use keeping::{CrawlerVisits, Ledger, LedgerOptions};
pub use network_list_health::ListHealth;
pub use traps::{Mark, Traps};
pub use visits::Visit;

#[cfg(test)]
mod behaviour_tests;
#[cfg(test)]
mod tests;
