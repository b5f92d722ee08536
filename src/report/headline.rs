//! The first sentences of a report: [`headline`] says who breaks the rules, [`enforcement`] what
//! was blocked and what would be.

use super::{ClientIdentity, Part, Report, Source};
use crate::numbers::{plural, thousands};

/// Who breaks the rules, and in how many requests.
pub(super) fn headline(report: &Report) -> String {
    let totals = &report.totals;
    if totals.requests == 0 {
        return "No crawler requests in this period.".to_owned();
    }
    let requests = plural(thousands(totals.requests), "crawler request");
    let whose = match report.source {
        Source::History => "break your rules",
        Source::Logs => "broke the rules of robots.txt",
        Source::LogsByPolicies => "would have broken the rules of the policies",
    };
    let mut verified = 0;
    let mut unverified = 0;
    let mut has_unknown_bots = false;
    for row in report.part(Part::BreaksRules) {
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
                Source::History => format!(
                    "No violation counts yet: {disallowed} of {requests} were for disallowed pages."
                ),
                Source::Logs | Source::LogsByPolicies => format!(
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
pub(super) fn enforcement(report: &Report) -> String {
    let totals = &report.totals;
    let mut sentences = Vec::new();
    match totals.blocked {
        // A log does not say what was blocked.
        0 if report.log.is_some() => {}
        0 if totals.would_block + totals.unknown_bots_would_block == 0 => {}
        0 => sentences.push("Nothing was blocked.".to_owned()),
        1 => sentences.push("1 was blocked.".to_owned()),
        blocked => sentences.push(format!("{} were blocked.", thousands(blocked))),
    }
    if totals.would_block > 0 {
        let would = thousands(totals.would_block);
        sentences.push(match totals.blocked {
            0 => format!("Enforcement would block {would}."),
            _ => format!("Enforcement would block {would} more."),
        });
    }
    if totals.unknown_bots_would_block > 0 {
        let requests = plural(thousands(totals.unknown_bots_would_block), "request");
        sentences.push(format!(
            "Unknown bots ({requests}) pass until they are enforced as well."
        ));
    }
    sentences.join(" ")
}
