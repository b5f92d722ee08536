//! Request counts for the pages of the dashboard. [`period_history`] reads them from the history
//! (the request counts that crawlgate stores). If several instances of crawlgate share a store
//! (Redis or Valkey), the counts are sums over all instances, and the page says how many instances
//! there are.

use crate::admin::Operations;
use crate::numbers::plural;
use crate::record::{CountsByIdentity, NO_CRAWLER};
use crate::report::ReportPeriod;
use crate::state::history::{PeerPeriodCounts, RequestHistoryError, RequestHistoryReader};
use std::collections::{BTreeMap, BTreeSet};

/// The history of a period, and the sentence about the included instances. With a store the history
/// has the counts of all instances. Without a store it is that of this instance, and the sentence is
/// empty. If the store does not answer, it is that of this instance, and the sentence says why.
pub fn period_history(
    operations: &Operations,
    period: &ReportPeriod,
) -> Result<(RequestHistoryReader, String), RequestHistoryError> {
    operations.upkeep.flush_history();
    let own = operations.upkeep.history();
    let Some(instances) = &operations.sources.instances else {
        return Ok((own, String::new()));
    };
    let peer_counts = match instances.peers.status().away {
        Some(away) => Err(away.error.into()),
        None => instances.peers.counts(period.step, period.from),
    };
    match peer_counts {
        Ok(peer_counts) => {
            let history = own.with_peers(period.step, period.from, &peer_counts)?;
            Ok((history, included_instances(&peer_counts, period)))
        }
        Err(error) => Ok((own, format!("Counts of this instance only: {error}."))),
    }
}

/// The counts of each crawler on a site, or on all sites if `site` is empty, without visitors.
pub fn counts_by_crawler(
    history: &RequestHistoryReader,
    site: &str,
    period: &ReportPeriod,
) -> Result<BTreeMap<String, CountsByIdentity>, RequestHistoryError> {
    let mut counts: BTreeMap<String, CountsByIdentity> = BTreeMap::new();
    history.for_each_row(
        site,
        period.from,
        period.to,
        period.step,
        |_, crawler, identity, of_period| {
            if !matches!(crawler, "" | NO_CRAWLER) {
                counts
                    .entry(crawler.to_owned())
                    .or_default()
                    .add(identity, of_period);
            }
        },
    )?;
    Ok(counts)
}

/// How many instances the counts of the period are from. `peer_counts` are of the other instances.
fn included_instances(peer_counts: &[PeerPeriodCounts], period: &ReportPeriod) -> String {
    let others: BTreeSet<&str> = peer_counts
        .iter()
        .filter(|peer_counts| (period.from..=period.to).contains(&peer_counts.start))
        .map(|peer_counts| peer_counts.instance.as_str())
        .collect();
    format!(
        "Sums of {}. Each reports every 5 seconds. Examples, names of unknown bots, and suspected or suspended requests \
         are from this instance only.",
        plural(others.len() + 1, "instance")
    )
}
