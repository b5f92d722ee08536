//! What operators see of a running crawlgate: [`Metrics`], the [`AccessLog`], the log of [`Events`], and tracing.
//!
//! The room knows names and numbers. It must not know requests, policies, sites or the ledger: the rooms that use it give
//! it ready labels and records.

mod access;
mod access_record;
mod certificates;
mod combined;
mod events;
mod log_file;
mod log_writer;
mod metrics;
mod recent;
mod trace;
mod traffic;

pub use access::AccessLog;
pub use access_record::{AccessRecord, Octets};
pub use certificates::{CertificateStatus, FailedOrder, OrderStatus, RefusedRenewal};
pub use events::{Event, Events, ServerEvent};
pub use log_writer::LogWriter;
pub use metrics::{
    CrawlerCounts, IdentityCounts, ListGauges, Metrics, NewCount, OpenConnection, ServerGauges, ServerPlace,
    SiteGauges, StoreGauges, UNCLAIMED,
};
pub use recent::{Recent, RecentByName, Throttle};
pub use trace::start_tracing;
pub use traffic::{Traffic, TrafficStatus};

#[cfg(test)]
mod tests;
