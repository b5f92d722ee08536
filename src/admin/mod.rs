//! What operators reach: the read-only HTTP listener ([`AdminApp`]), and the control socket of the command line
//! ([`control`]). Both call [`Operations`], as `server` does on SIGHUP and when files change.

pub mod control;
mod crawlers;
pub mod dashboard;
mod http;
mod instances;
mod operations;
mod query;
mod status;

pub use self::http::AdminApp;
pub use crawlers::CrawlerIdentity;
pub use instances::{Instances, StoreStatus, hindrance, reported, stands};
pub use operations::{LiveAnswer, LiveQuestion, Operations, UpgradeReport, UpgradeRequest};
pub use status::{InstanceStatus, runs_on};

/// Why the running crawlgate does not do what an operator asks.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

#[cfg(test)]
mod tests;
