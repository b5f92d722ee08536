//! Shows and controls a running crawlgate. The HTTP listener ([`AdminApp`]) only shows: a
//! dashboard, metrics and a JSON API. The control socket ([`control`]) takes commands from the
//! command line. Both use [`Operations`], which answers questions about the running crawlgate, and
//! carries out actions such as reloading the policies. The module `status` collects the problems
//! that need attention.

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
    StoreMonitor, StoreStatus, hindrance_words, last_report_words, member_state_words,
};
pub use operations::{
    CertificateStatusFn, ExplainRequest, ExplainResponse, Operations, OptionalServices,
    UpgradeReport, UpgradeRequest,
};
pub use status::{InstanceStatus, active_policy_words};

#[cfg(test)]
mod tests;
