//! What operators use to see and control a running crawlgate: the read-only HTTP listener
//! ([`AdminApp`]) with dashboard, metrics and read API, and the control socket that the command
//! line uses ([`control`]). Both call [`Operations`], and so does `server` on SIGHUP and when files
//! change. `status` collects the problems that need attention.

pub mod control;
pub mod dashboard;
mod http;
mod instances;
mod operations;
mod problem;
mod query;
mod status;
mod violations;

pub use self::http::AdminApp;
pub use instances::{Instances, StoreStatus, hindrance, reported, stands};
pub use operations::{
    CertificatesSource, LiveAnswer, LiveQuestion, Operations, Sources, UpgradeReport,
    UpgradeRequest,
};
pub use status::{InstanceStatus, runs_on};

#[cfg(test)]
mod tests;
