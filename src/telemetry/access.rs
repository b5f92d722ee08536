//! The access log: one JSON line a request, written by a thread of its own. A full queue drops lines and counts them;
//! a request never waits for a disk.

use serde::Serialize;
use std::sync::Arc;

/// One line.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct AccessRecord {
    /// RFC 3339 with milliseconds, UTC.
    pub time: String,
    pub client: Option<String>,
    pub method: String,
    pub host: String,
    pub target: String,
    pub http: &'static str,
    pub status: u16,
    pub bytes: u64,
    pub milliseconds: f64,
    pub user_agent: Option<String>,
    pub referer: Option<String>,
    pub site: Option<String>,
    /// The registry's id, the policy's token, or `other`; absent for a person.
    pub crawler: Option<String>,
    pub verdict: Option<&'static str>,
    pub kind: Option<&'static str>,
    /// `file:line:column` of the rule that decided.
    pub rule: Option<String>,
    pub action: &'static str,
    /// What enforce would have done.
    pub would: Option<&'static str>,
    /// The version of robots.txt it was judged by.
    pub version: Option<String>,
    pub error: Option<String>,
}

/// The log; cheap to clone.
#[derive(Clone)]
pub struct AccessLog {}

impl AccessLog {
    /// Opens the destination and starts the writer.
    ///
    /// # Errors
    /// The file cannot be opened for appending.
    pub fn open(destination: &crate::settings::AccessDestination) -> std::io::Result<AccessLog> {
        let _ = destination;
        todo!()
    }

    /// Whether lines go anywhere, so that nobody builds a record for nothing.
    pub fn enabled(&self) -> bool {
        todo!()
    }

    /// Queues a line.
    pub fn write(&self, record: AccessRecord) {
        let _ = record;
        todo!()
    }

    /// Lines dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        todo!()
    }

    /// Waits until everything queued is written, for at most `limit`.
    pub fn flush(&self, limit: std::time::Duration) {
        let _ = limit;
        todo!()
    }

    /// Opens the file again (after rotation, on SIGHUP).
    pub fn reopen(&self) {}

    /// Nowhere, for tests.
    pub fn off() -> Arc<AccessLog> {
        todo!()
    }
}
