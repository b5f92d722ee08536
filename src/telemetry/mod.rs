//! What operators see of a running crawlgate: [`Metrics`], the [`AccessLog`], the log of
//! [`Events`], counts of the last minutes ([`Traffic`]), and tracing.

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

#[cfg(feature = "internals")]
pub use access::ACCESS_FIELDS;
pub use access::AccessLog;
pub use certificates::{
    CertificateFault, CertificateProblem, CertificateStatus, FailedOrder, FailureKind, OrderStatus,
    RefusedRenewal,
};
#[cfg(feature = "internals")]
pub use events::EVENT_FIELDS;
pub use events::{Events, ServerEvent};
pub use metrics::{
    Metrics, OpenConnection, OriginMetrics, ServerPlace, SiteGauges, StoreMetrics, UNCLAIMED,
    counter,
};
pub use recent::{Recent, RecentByName, Throttle};
pub use request_metrics::RequestMetrics;
#[cfg(feature = "proxy")]
pub use tracing_setup::start_tracing;
pub use traffic::{Traffic, TrafficStatus};

#[cfg(test)]
mod tests;
