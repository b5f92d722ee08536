//! [`start_tracing`]: the log of the program, on standard error. An application that has the gate as
//! a layer has a log of its own.

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
