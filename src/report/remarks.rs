//! [`remarks`]: what the identities in a report of logs rest on, and how more could be verified.

use super::{ClientIdentity, Report};
use crate::numbers::{plural, thousands};

/// Sentences on the identities of a report of logs; none for one of the history.
pub(super) fn remarks(report: &Report) -> Vec<String> {
    let Some(log) = &report.log else {
        return Vec::new();
    };
    let requests = |identity| {
        let rows = report.crawlers.iter();
        let rows = rows.filter(|row| row.identity == Some(identity));
        rows.map(|row| row.counts.requests()).sum::<u64>()
    };
    let verified = requests(ClientIdentity::Verified);
    let unverified = requests(ClientIdentity::Unverified);
    let suspected = requests(ClientIdentity::SuspectedImpostor);
    let mut remarks = Vec::new();
    match log.lists {
        None if log.policy_networks => {}
        None => remarks.push(
            "Names could not be verified: no lists of crawler networks were available. --lists yes fetches them from \
             the operators."
                .to_owned(),
        ),
        Some(lists) => {
            let checked = lists
                .checked
                .map_or_else(String::new, |at| format!(", last checked {}", at.for_people()));
            remarks.push(format!(
                "Verified crawlers came from the networks that their operators publish ({}{checked}).",
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
    if log.policy_networks {
        remarks.push("Crawlers with networks in a policy were verified by these.".to_owned());
    }
    if suspected > 0 {
        remarks.push(
            "Clients that probably pretend came from outside of the crawler's networks. That is no proof: reverse DNS was \
             not asked, and networks may have changed since."
                .to_owned(),
        );
        if verified == 0 {
            remarks.push(
                "No request came from the networks of a crawler. If the log has the addresses of a proxy, the suspicion \
                 is wrong."
                    .to_owned(),
            );
        }
    }
    if unverified + suspected > 0 {
        remarks.push(
            "To check an address: crawlgate crawlers --verify ADDRESS --as CRAWLER".to_owned(),
        );
    }
    remarks
}
