//! The first sentences of a report about a site's crawlers. [`headline_sentence`] is about crawlers
//! that break the rules, [`enforcement_sentence`] about blocked requests.

use super::{ClientIdentity, Report, ReportSection, ReportSource, ReportTotals};
use crate::numbers::{plural, plural_thousands, thousands};
use crate::verdict::Kind;
use askama::Template;

#[derive(Template)]
#[template(path = "headline.txt")]
struct HeadlineText<'a> {
    totals: &'a ReportTotals,
    source: ReportSource,
    /// Crawlers that break the rules.
    verified: usize,
    unverified: usize,
    has_unknown_bots: bool,
    /// The names of unknown bots.
    unknown_names: usize,
    /// Requests in lines without a user agent.
    no_user_agent: u64,
}

/// How many crawlers break the rules, and in how many requests.
pub fn headline_sentence(report: &Report) -> String {
    if let Some(log) = &report.log
        && let [Some(from), Some(to)] = log.outside_span
        && report.from.is_none()
    {
        return format!(
            "No request in the log is of this period. The log has requests from {} to {}.",
            from.human_readable(),
            to.human_readable()
        );
    }
    let mut text = HeadlineText {
        totals: &report.totals,
        source: report.source,
        verified: 0,
        unverified: 0,
        has_unknown_bots: false,
        unknown_names: report.unknown_bots.len(),
        no_user_agent: report
            .log
            .as_ref()
            .map_or(0, |log| log.counts.no_user_agent),
    };
    for row in report.rows_in(ReportSection::BreaksRules) {
        match row.identity {
            Some(ClientIdentity::Verified) => text.verified += 1,
            Some(_) => text.unverified += 1,
            None => text.has_unknown_bots = true,
        }
    }
    text.to_string()
}

/// What was blocked, and what enforcement would block; empty if neither.
pub fn enforcement_sentence(report: &Report) -> String {
    let mut text = EnforcementText {
        totals: &report.totals,
        not_counted: 0,
        has_blocked_not_counted: false,
        is_of_logs: report.log.is_some(),
        is_of_robots_txt: report.source == ReportSource::Logs,
    };
    for row in report.crawlers.iter().filter(|row| row.is_of_crawler()) {
        let blocked_kinds = [Kind::Unproven, Kind::Ambiguous];
        let uncounted = blocked_kinds.map(|kind| row.counts.requests_of_kind(kind));
        let uncounted = uncounted.iter().sum();
        text.has_blocked_not_counted |= row.counts.refused().min(uncounted) > 0;
        if !row.is_unknown_bots() {
            text.not_counted += row.counts.would_refuse().min(uncounted);
        }
    }
    text.to_string().trim_end().to_owned()
}

#[derive(Template)]
#[template(path = "enforcement.txt")]
struct EnforcementText<'a> {
    totals: &'a ReportTotals,
    /// Requests that enforcement would block although they do not count.
    not_counted: u64,
    /// Whether such requests were blocked.
    has_blocked_not_counted: bool,
    /// A log does not have blocked requests.
    is_of_logs: bool,
    /// Without a policy, nobody asks what one could say.
    is_of_robots_txt: bool,
}
