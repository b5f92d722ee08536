//! [`init_tracing`] sets up the program's own log (by the crate `tracing`), which goes to standard
//! error. Only the program `crawlgate` calls it: an application that uses crawlgate as a library
//! sets up tracing itself.

use crate::printable::{OutputStyle, SanitizingWriter};
use tracing_log::AsLog;
use tracing_subscriber::EnvFilter;

/// Logs to standard error from now on, as text. `RUST_LOG`, or else `default_filter`,
/// filters the lines. Lines of the crate `log` are included. A second call has no effect.
pub fn init_tracing(default_filter: &str) {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default_filter));
    // Pingora logs a lot about every request: lines below the filter's level are not formatted.
    let max_level = filter
        .max_level_hint()
        .unwrap_or(tracing::level_filters::LevelFilter::TRACE)
        .as_log();
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let style = OutputStyle::Text { colours };
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || SanitizingWriter::new(std::io::stderr(), style))
        .with_ansi(colours)
        .with_target(false);
    let _ = tracing_log::LogTracer::builder()
        .with_max_level(max_level)
        .init();
    let _ = tracing::subscriber::set_global_default(log.finish());
}
