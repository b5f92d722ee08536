//! What operators can observe of a running crawlgate: [`Metrics`], the [`AccessLog`], the
//! [`EventLog`], the traffic of the last minutes ([`RecentTraffic`]), and the program's own log.

mod access;
mod certificates;
mod events;
mod log_file;
mod log_writer;
mod metrics;
mod recent;
mod request_metrics;
#[cfg(feature = "proxy")]
mod tracing_setup;
mod traffic;

pub use access::{ACCESS_FIELDS, AccessLog};
pub use certificates::{
    AcmeHostStatus, CertificateFault, CertificateProblem, CertificateStatus, FailedOrder,
    OrderFailureKind, RejectedCertificateFiles,
};
#[cfg(feature = "internals")]
pub use events::EVENT_FIELDS;
pub use events::EventLog;
pub use metrics::{
    ConnectionGaugeGuard, Metrics, OriginMetrics, ServerId, SiteGaugeValues, StoreMetrics,
    UNCLAIMED, new_counter,
};
pub use recent::{LogThrottle, RecentCount, RecentCountByName};
pub use request_metrics::RequestMetrics;
#[cfg(feature = "proxy")]
pub use tracing_setup::init_tracing;
pub use traffic::{RecentTraffic, TrafficDiagnostics};

#[cfg(test)]
mod tests;
