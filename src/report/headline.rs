//! The first sentences of a report about a site's crawlers. [`headline_sentence`] is about crawlers
//! that break the rules, [`enforcement_sentence`] about blocked requests.

use super::{ClientIdentity, MAX_FILES, Report, ReportSection, ReportSource, join_first};
use crate::numbers::{plural, plural_thousands, thousands};
use askama::Template;

#[derive(Template)]
#[template(path = "headline.txt")]
struct HeadlineText<'a> {
    report: &'a Report,
    /// Crawlers that break the rules.
    verified: usize,
    unverified: usize,
    has_unknown_bots: bool,
}

/// How many crawlers break the rules, and in how many requests.
pub fn headline_sentence(report: &Report) -> String {
    if let Some(log) = &report.log
        && report.from.is_none()
    {
        if let [Some(from), Some(to)] = log.outside_span {
            return format!(
                "No request in the log is of this period. The log has requests from {} to {}.",
                from.human_readable(),
                to.human_readable()
            );
        }
        if !log.unjudged_hosts.is_empty() {
            return other_hosts_sentence(&report.site, &log.unjudged_hosts);
        }
    }
    let mut text = HeadlineText {
        report,
        verified: 0,
        unverified: 0,
        has_unknown_bots: false,
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

/// The hosts of a log that has no request to the site, which may differ by `www.` alone.
fn other_hosts_sentence(site: &str, hosts: &[String]) -> String {
    let bare = site.trim_start_matches("www.");
    let mut near = hosts.iter();
    let near = near.find(|host| host.trim_start_matches("www.") == bare);
    let near = near.map(|host| format!(" Do you mean {host}?"));
    format!(
        "No request in the log is to {site}. The log has requests to {}.{}",
        join_first(hosts, MAX_FILES),
        near.unwrap_or_default()
    )
}

/// What was blocked, and what enforcement would have blocked; empty if neither. The first sentences are
/// about the requests that broke the rules, which the headline counts.
pub fn enforcement_sentence(report: &Report) -> String {
    let text = EnforcementText { report }.to_string();
    text.trim_end().to_owned()
}

#[derive(Template)]
#[template(path = "enforcement.txt")]
struct EnforcementText<'a> {
    report: &'a Report,
}
