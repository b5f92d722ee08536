//! tracing: where crawlgate and Pingora say what they do.

use tracing_subscriber::EnvFilter;

/// Pingora logs each failed connection of each client as an error; what matters of these is in the access log and the
/// metrics.
const DEFAULT_FILTER: &str =
    "info,pingora_core=warn,pingora_proxy=off,pingora_core::protocols=error,pingora_core::apps=error";

/// Starts it: text on standard error (JSON with `json`), filtered by `RUST_LOG`, Pingora's `log` lines bridged. Does
/// nothing when it was started before.
pub fn start_tracing(json: bool) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(DEFAULT_FILTER));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let _ = tracing_log::LogTracer::init();
    let _ = if json {
        tracing::subscriber::set_global_default(builder.json().finish())
    } else {
        let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
        tracing::subscriber::set_global_default(builder.with_ansi(colour).with_target(false).finish())
    };
}
