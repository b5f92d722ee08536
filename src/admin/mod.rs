//! Shows and controls a running crawlgate: the read-only HTTP listener ([`AdminApp`]) with
//! dashboard, metrics and a JSON API, and the control socket of the command line ([`control`]). The
//! listener and the socket do their work through [`Operations`]. The server calls [`Operations`] as
//! well, on SIGHUP and when files change. The module `status` collects the problems that need
//! attention.

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
pub use instances::{
    StoreMonitor, StoreStatus, hindrance_words, last_report_words, standing_words,
};
pub use operations::{
    CertificateStatusFn, ExplainRequest, ExplainResponse, Operations, OptionalServices,
    UpgradeReport, UpgradeRequest,
};
pub use status::{InstanceStatus, active_policy_words};

#[cfg(test)]
mod tests;
