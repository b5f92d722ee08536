//! What is seen from outside: metrics, the access log, tracing.
//!
//! Knows names and numbers; knows no request and no policy.

mod access;
mod events;
mod log_file;
mod metrics;
mod trace;

pub use access::{AccessLog, AccessRecord};
pub use events::{Event, Events};
pub use metrics::{CrawlerCounts, Metrics, OpenConnection, SiteGauges, UNCLAIMED};
pub use trace::start_tracing;

#[cfg(test)]
mod tests;
