//! What operators see of a running crawlgate: [`Metrics`], the [`AccessLog`], the log of [`Events`], counts of the last
//! minutes ([`Traffic`]), and tracing. Other rooms give finished labels and records to it.

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
pub use metrics::{
    CrawlerCounts, IdentityCounts, Metrics, NewCount, OpenConnection, ServerPlace, SiteGauges, UNCLAIMED,
};
pub use recent::{Recent, RecentByName, Throttle};
pub use trace::start_tracing;
pub use traffic::{Traffic, TrafficStatus};

#[cfg(test)]
mod tests;
