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
};
pub use recent::{Recent, RecentByName, Throttle};
pub use request_metrics::RequestMetrics;
pub use traffic::{Traffic, TrafficStatus};

use crate::printable::{Printer, Style};
use tracing_log::AsLog;
use tracing_subscriber::EnvFilter;

/// Logs to standard error from now on, as text, or as JSON with `json`. `RUST_LOG` or else
/// `default_filter` filters the lines. Lines of the crate `log` come, too: the feature
/// `tracing-log` leaves out their `log.file`, a path of the machine that built crawlgate. A second
/// call does nothing.
pub fn start_tracing(default_filter: &str, json: bool) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    // What the filter drops is not handed over: Pingora logs a lot about every request.
    let loudest = filter
        .max_level_hint()
        .unwrap_or(tracing::level_filters::LevelFilter::TRACE)
        .as_log();
    let colours = !json && std::io::IsTerminal::is_terminal(&std::io::stderr());
    let style = if json {
        Style::Json
    } else {
        Style::Text { colours }
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Printer::new(std::io::stderr(), style));
    let _ = tracing_log::LogTracer::builder()
        .with_max_level(loudest)
        .init();
    let _ = if json {
        tracing::subscriber::set_global_default(builder.json().finish())
    } else {
        tracing::subscriber::set_global_default(
            builder.with_ansi(colours).with_target(false).finish(),
        )
    };
}

#[cfg(test)]
mod tests;
