//! Texts about the clients that broke the rules, which the table and the HTML page of an audit
//! share: [`title`], [`accusations`], [`nothing_proven`], and [`remarks`] on the proof of
//! identities. A user agent is a claim. So verified crawlers, unverified clients and suspected
//! impostors of one name are listed separately.

use super::report::{Crawler, Report};
use super::tally::ClientIdentity;
use crate::numbers::{plural, thousands};

/// The heading of the accusations.
pub fn title(report: &Report) -> &'static str {
    if report.by_policies {
        "Who would have broken the rules of the policies"
    } else {
        "Who broke the rules"
    }
}

/// The number of requests that are certainly against the rules, and the text about their clients,
/// for each crawler and identity that has such requests. Verified crawlers come first, then
/// unverified clients, suspected impostors, and bots that claim no known name; within these, the
/// most requests first.
pub fn accusations(report: &Report) -> Vec<(u64, String)> {
    let mut accused: Vec<&Crawler> = report
        .crawlers
        .iter()
        .filter(|crawler| crawler.judged && crawler.counts.certain > 0)
        .collect();
    accused.sort_by_key(|crawler| {
        (
            crawler.identity.is_none(),
            crawler.identity,
            u64::MAX - crawler.counts.certain,
        )
    });
    accused
        .into_iter()
        .map(|crawler| (crawler.counts.certain, text(report, crawler)))
        .collect()
}

/// The text about the clients of one row. If they are not verified, and the verified crawler of the
/// same name has requests and none of them is disallowed, the text says that as well.
fn text(report: &Report, crawler: &Crawler) -> String {
    let name = &crawler.name;
    let claim = match crawler.identity {
        Some(ClientIdentity::Verified) => return format!("{name}, verified"),
        Some(ClientIdentity::Unverified) => format!("claims to be {name}; nothing is proven"),
        Some(ClientIdentity::SuspectedImpostor) => {
            format!("suspected impostors of {name}, from outside of its networks")
        }
        None => return name.clone(),
    };
    let obedient = report.crawlers.iter().find(|other| {
        other.id == crawler.id
            && other.identity == Some(ClientIdentity::Verified)
            && other.counts.disallowed == 0
    });
    let Some(obedient) = obedient else {
        return claim;
    };
    let requests = plural(thousands(obedient.counts.requests), "verified request");
    format!("{claim}. {name} itself broke no rule: {requests}")
}

/// The remark where no verified crawler is accused; `None` if a verified one has certain requests
/// against the rules.
pub fn nothing_proven(report: &Report) -> Option<&'static str> {
    let identities = &report.identities;
    match (identities.verified.certain, identities.verified.requests) {
        (1.., _) => None,
        (0, 0) => Some("No request of this log is proven to be of the crawler that it names."),
        (0, _) => Some("No verified crawler is among them."),
    }
}

/// What the identities rest on, and how more could be proven.
pub fn remarks(report: &Report) -> Vec<String> {
    let identities = &report.identities;
    let mut remarks = Vec::new();
    match report.lists {
        None if report.policy_networks => {}
        None => remarks.push(
            "No published networks of crawlers were at hand, so no name is proven. To prove names, give `--lists yes`, \
             which fetches the networks from the operators. A running crawlgate keeps them in its state directory \
             (--state DIR); `crawlgate crawlers --update` makes it fetch them."
                .to_owned(),
        ),
        Some(lists) => {
            let checked = lists.checked.map_or_else(String::new, |at| format!(", last checked {at}"));
            remarks.push(format!(
                "Verified requests came from the networks that the crawler's operator publishes ({}{checked}).",
                plural(thousands(lists.known), "list")
            ));
            if lists.fresh < lists.known {
                remarks.push(format!(
                    "{} of the lists were last checked more than seven days ago. They raise no suspicion.",
                    lists.known - lists.fresh
                ));
            }
        }
    }
    if report.policy_networks {
        remarks.push(
            "Crawlers with `networks` in a policy are verified from these, and suspected impostors from elsewhere."
                .to_owned(),
        );
    }
    if identities.suspected_impostor.requests > 0 {
        remarks.push(
            "Suspected impostors came from outside of the crawler's networks: another client uses the crawler's name. That is no \
             proof, because reverse DNS was not asked, and networks may have changed since."
                .to_owned(),
        );
        if identities.verified.requests == 0 {
            remarks.push(
                "No request at all came from the networks of a crawler. If the log has the addresses of a proxy instead of those \
                 of the clients, the suspicion is wrong."
                    .to_owned(),
            );
        }
    }
    if identities.unverified.requests + identities.suspected_impostor.requests > 0 {
        remarks.push(
            "To prove who an address is, run `crawlgate crawlers --verify ADDRESS --as CRAWLER`: it asks the operator's \
             lists and reverse DNS. Some operators publish neither; `crawlgate crawlers CRAWLER` shows what there is."
                .to_owned(),
        );
    }
    remarks
}
