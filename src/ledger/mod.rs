//! The ledger: which robots.txt was served to whom on which host, and what a crawler may therefore hold.
//!
//! `keeping` is what others call; `visits` is the table of what was served; `holdings` is the definition that judges by it; `watch` says since when a host
//! is seen without a gap; `store` keeps it all through a restart. The request path reads the table under a lock that
//! nobody holds for long, and never waits for a file.
//!
//! Must not know how a request came or what is done with it.

mod holdings;
mod keeping;
mod store;
mod visits;
mod watch;

pub use keeping::{CrawlerVisits, Ledger, LedgerOptions};
pub use visits::Visit;

#[cfg(test)]
mod tests;
