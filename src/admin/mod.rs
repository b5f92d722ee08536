//! The operator's side: the read-only HTTP listener, and the control socket of the command line.
//!
//! [`Operations`] is what both do; `server.rs` does the same on SIGHUP and when files change. Knows no request of the
//! site.

pub mod control;
mod crawlers;
pub mod dashboard;
mod http;
mod instances;
mod names;
mod operations;
mod query;
mod status;
mod upgrade;

pub use self::http::AdminApp;
pub use crawlers::{CrawlerIdentity, ProofHealth};
pub use instances::{Forget, ForgetRefused, Instances, StoreStatus, hindrance, stands};
pub use operations::{LiveAnswer, LiveQuestion, Operations};
pub use status::{CertificatesStatus, InstanceStatus, Problem, ProblemKind};
pub use upgrade::{Upgrade, UpgradeRefused, UpgradeReport, UpgradeRequest};

#[cfg(test)]
mod tests;
