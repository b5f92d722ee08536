//! tracing: where crawlgate and Pingora say what they do.

/// Starts it: text on standard error (JSON with `json`), filtered by `RUST_LOG` (default `info`), Pingora's `log`
/// lines bridged. Does nothing when it was started before.
pub fn start_tracing(json: bool) {
    let _ = json;
    todo!()
}
