//! Request counts for the pages of the dashboard. [`period_history`] reads them from the history
//! (the request counts that crawlgate stores). If several instances of crawlgate share a store
//! (Redis or Valkey), the counts are sums over all instances, and a sentence says which instances
//! are missing.

use crate::admin::Operations;
use crate::admin::instances::StoreStatus;
use crate::peers::{MemberState, MemberStatus};
use crate::record::{CountsByIdentity, NO_CRAWLER};
use crate::report::ReportPeriod;
use crate::state::history::{HistoryError, HistoryReader, PeerCounts};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// An instance without new counts for longer is missing. Instances write every five seconds.
const OVERDUE_SECONDS: i64 = 60;

/// The history of a period, and the sentence about the included instances. With a store the history
/// has the counts of all instances. Without a store it is that of this instance, and the sentence is
/// empty. If the store does not answer, it is that of this instance, and the sentence says why.
pub fn period_history(
    operations: &Operations,
    period: &ReportPeriod,
) -> Result<(HistoryReader, String), HistoryError> {
    operations.upkeep.flush_history();
    let own = operations.upkeep.history();
    let Some(instances) = &operations.sources.instances else {
        return Ok((own, String::new()));
    };
    let store = instances.status();
    let peer_counts = match &store.exchange.away {
        Some(away) => Err(away.error.clone().into()),
        None => instances.peers.counts(period.step, period.from),
    };
    match peer_counts {
        Ok(peer_counts) => {
            let history = own.with_peers(period.step, period.from, &peer_counts)?;
            Ok((history, included_instances(&store, &peer_counts, period)))
        }
        Err(error) => Ok((own, format!("Counts of this instance only: {error}."))),
    }
}

/// The counts of each crawler on a site, or on all sites if `site` is empty, without visitors.
pub fn counts_by_crawler(
    history: &HistoryReader,
    site: &str,
    period: &ReportPeriod,
) -> Result<BTreeMap<String, CountsByIdentity>, HistoryError> {
    let mut counts: BTreeMap<String, CountsByIdentity> = BTreeMap::new();
    history.for_each_row(
        site,
        period.from,
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

/// The sentence about the included instances. It names instances that are present and reported no
/// counts of this period, or none for a minute. `peer_counts` are of the other instances.
fn included_instances(
    store: &StoreStatus,
    peer_counts: &[PeerCounts],
    period: &ReportPeriod,
) -> String {
    let mut last: BTreeMap<&str, i64> = BTreeMap::new();
    for PeerCounts {
        instance, counted, ..
    } in peer_counts
        .iter()
        .filter(|peer_counts| peer_counts.start >= period.from)
    {
        let last = last.entry(instance).or_insert(counted.at);
        *last = counted.at.max(*last);
    }
    let mut missing = Vec::new();
    for MemberStatus {
        member, standing, ..
    } in &store.exchange.members
    {
        if matches!(standing, MemberState::Left | MemberState::Gone)
            || member.id == store.exchange.id
        {
            continue;
        }
        let name = format!("{} on {}", member.id, member.host);
        match last.get(member.id.as_str()) {
            None => missing.push(format!("{name} has reported no counts")),
            Some(at) if period.to.0 - at > OVERDUE_SECONDS => {
                missing.push(format!(
                    "{name} has reported no counts since {} UTC",
                    Timestamp(*at).format_minute()
                ));
            }
            Some(_) => {}
        }
    }
    let instances: BTreeSet<&str> = last.into_keys().collect();
    let mut sentence = match instances.len() {
        0 => "Counts of this instance only: no other instance has reported any for this period."
            .to_owned(),
        others => format!(
            "Sums of {} instances. Each reports its counts every 5 seconds.",
            others + 1
        ),
    };
    if !missing.is_empty() {
        sentence.push_str(&format!(" Missing: {}.", missing.join("; ")));
    }
    sentence.push_str(
        " Examples, names of unknown bots, and suspected or suspended requests are from this instance only.",
    );
    sentence
}
