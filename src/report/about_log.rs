//! [`about_log`]: what was read of access logs, what the identities in their report rest on, and
//! how more could be verified.

use super::{ClientIdentity, LogFacts, Report};
use crate::numbers::{counted, thousands};
use crate::printable::printable;
use askama::Template;

#[derive(Template)]
#[template(path = "about_log.txt")]
struct AboutLog<'a> {
    log: &'a LogFacts,
    /// Requests of crawlers by what is known of their identity.
    verified: u64,
    unverified: u64,
    suspected: u64,
}

/// Sentences about the logs of a report, one for each line of the text.
pub(super) fn about_log(report: &Report, log: &LogFacts) -> Vec<String> {
    let text = AboutLog {
        log,
        verified: requests(report, ClientIdentity::Verified),
        unverified: requests(report, ClientIdentity::Unverified),
        suspected: requests(report, ClientIdentity::SuspectedImpostor),
    };
    let text = text.to_string();
    let lines = text.lines().map(|line| printable(line.as_bytes()));
    lines.collect()
}

/// The requests of the crawlers with this identity.
fn requests(report: &Report, identity: ClientIdentity) -> u64 {
    let rows = report.crawlers.iter();
    let rows = rows.filter(|row| row.identity == Some(identity));
    rows.map(|row| row.counts.requests()).sum()
}
