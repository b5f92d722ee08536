//! [`about_log_sentences`]: the sentences about the logs in the report of `crawlgate audit`. This
//! command judges the requests in access logs. The sentences say what was read, and how crawlers
//! were identified.

use super::{ClientIdentity, LogSummary, Report, ReportSource};
use crate::numbers::{plural_thousands, thousands};
use crate::printable::printable;
use askama::Template;

#[derive(Template)]
#[template(path = "about_log.txt")]
struct AboutLogText<'a> {
    log: &'a LogSummary,
    source: ReportSource,
    /// Whether the log has a request that was judged or left to visitors.
    has_requests: bool,
    /// Requests of crawlers by identity.
    verified: u64,
    suspected: u64,
}

/// The sentences about the logs of a report.
pub fn about_log_sentences(report: &Report, log: &LogSummary) -> Vec<String> {
    let text = AboutLogText {
        log,
        source: report.source,
        has_requests: report.from.is_some(),
        verified: count_requests(report, ClientIdentity::Verified),
        suspected: count_requests(report, ClientIdentity::SuspectedImpostor),
    };
    let text = text.to_string();
    text.lines()
        .map(|line| printable(line.as_bytes()))
        .collect()
}

/// The requests of the crawlers with this identity.
fn count_requests(report: &Report, identity: ClientIdentity) -> u64 {
    let rows = report.crawlers.iter();
    let rows = rows.filter(|row| row.identity == Some(identity));
    rows.map(|row| row.counts.requests()).sum()
}
