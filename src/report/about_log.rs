//! [`about_log_sentences`]: the sentences about the logs in the report of `crawlgate audit`. This
//! command judges the requests in access logs. The sentences say what was read, and how crawlers
//! were identified.

use super::{ClientIdentity, LogSummary, Report, ReportSource};
use crate::numbers::{plural_thousands, thousands};
use crate::printable::printable;
use crate::state::history::DAY;
use askama::Template;

#[derive(Template)]
#[template(path = "about_log.txt")]
struct AboutLogText<'a> {
    log: &'a LogSummary,
    report: &'a Report,
    /// Requests of crawlers and tools.
    requests: u64,
    /// Whether a crawler was verified.
    has_verified: bool,
}

/// The sentences about the logs of a report.
pub fn about_log_sentences(report: &Report, log: &LogSummary) -> Vec<String> {
    let text = AboutLogText {
        log,
        report,
        requests: report
            .crawlers
            .iter()
            .map(|row| row.counts.requests())
            .sum(),
        has_verified: report
            .crawlers
            .iter()
            .any(|row| row.identity == Some(ClientIdentity::Verified)),
    };
    let text = text.to_string();
    text.lines()
        .map(|line| printable(line.as_bytes()))
        .collect()
}
