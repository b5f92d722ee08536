//! The first sentences of a report about a site's crawlers. [`headline_sentence`] is about crawlers
//! that break the rules, [`enforcement_sentence`] about blocked requests.

use super::{ClientIdentity, Report, ReportSection, ReportSource, ReportTotals};
use crate::numbers::{plural, plural_thousands, thousands};
use askama::Template;

/// How many crawlers break the rules, and in how many requests.
pub(super) fn headline_sentence(report: &Report) -> String {
    let totals = &report.totals;
    if totals.requests == 0 {
        return "No crawler requests in this period.".to_owned();
    }
    let requests = plural(thousands(totals.requests), "crawler request");
    let whose = match report.source {
        ReportSource::History => "break your rules",
        ReportSource::Logs => "broke the rules of robots.txt",
        ReportSource::LogsByPolicies => "would have broken the rules of the policies",
    };
    let mut verified = 0;
    let mut unverified = 0;
    let mut has_unknown_bots = false;
    for row in report.rows_in(ReportSection::BreaksRules) {
        match row.identity {
            Some(ClientIdentity::Verified) => verified += 1,
            Some(_) => unverified += 1,
            None => has_unknown_bots = true,
        }
    }
    let mut who = Vec::new();
    if verified > 0 {
        who.push(plural(verified, "verified crawler"));
    }
    if unverified > 0 {
        who.push(match verified {
            0 => plural(unverified, "unverified crawler"),
            _ => format!("{unverified} unverified"),
        });
    }
    if has_unknown_bots {
        who.push(match report.unknown_bots.len() {
            1 => "1 unknown bot".to_owned(),
            _ => "unknown bots".to_owned(),
        });
    }
    let who = match who.split_last() {
        None if totals.not_counted == 0 => {
            return format!("No crawler broke the rules in {requests}.");
        }
        None => {
            let disallowed = thousands(totals.not_counted);
            return match report.source {
                ReportSource::History => format!(
                    "No violation counts yet: {disallowed} of {requests} were for disallowed pages."
                ),
                ReportSource::Logs | ReportSource::LogsByPolicies => format!(
                    "No violation is certain: {disallowed} of {requests} were for disallowed pages."
                ),
            };
        }
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    };
    let is_one = verified + unverified == 1 && !has_unknown_bots;
    let verb = if is_one {
        whose.replacen("break ", "breaks ", 1)
    } else {
        whose.to_owned()
    };
    format!(
        "{who} {verb}: {} of {requests}.",
        thousands(totals.against_rules)
    )
}

/// What was blocked, and what enforcement would block; empty if neither.
pub(super) fn enforcement_sentence(report: &Report) -> String {
    let text = EnforcementText {
        totals: &report.totals,
        is_of_logs: report.log.is_some(),
    };
    text.to_string().trim_end().to_owned()
}

#[derive(Template)]
#[template(path = "enforcement.txt")]
struct EnforcementText<'a> {
    totals: &'a ReportTotals,
    /// A log does not have blocked requests.
    is_of_logs: bool,
}
