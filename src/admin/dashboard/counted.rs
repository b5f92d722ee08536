//! [`Dashboard::counts`]: the counts that the pages show. Where several instances of crawlgate
//! share a store, the counts are the sums over these instances. A sentence says how many instances
//! are included and which are missing.

use crate::admin::Operations;
use crate::admin::instances::StoreStatus;
use crate::peers::{MemberStatus, Standing};
use crate::record::{ByIdentity, NO_CRAWLER};
use crate::report::Period;
use crate::state::history::{HistoryError, HistoryReader, Told};
use crate::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// An instance that has written no counts for so many seconds is missing. Instances write every
/// five seconds.
const OVERDUE: i64 = 60;

/// The history to count by, and the sentence that says whose counts it has. With a store the
/// history has the counts of all instances. Without a store it is that of this instance, and
/// the sentence is empty. If the store does not answer, it is also that of this instance, and
/// the sentence says why. All that this instance recorded before is in it.
pub fn counts(
    operations: &Operations,
    period: &Period,
) -> Result<(HistoryReader, String), HistoryError> {
    operations.upkeep.flush_history();
    let own = operations.upkeep.history();
    let Some(instances) = &operations.sources.instances else {
        return Ok((own, String::new()));
    };
    let store = instances.status();
    let told = match &store.exchange.away {
        Some(away) => Err(away.error.clone().into()),
        None => instances.peers.counts(period.step, period.from),
    };
    match told {
        Ok(told) => {
            let history = own.with_others(period.step, period.from, &told)?;
            Ok((history, sentence(&store, &told, period)))
        }
        Err(error) => {
            let alone = format!("Counts of this instance alone: {error}.");
            Ok((own, alone))
        }
    }
}

/// The counts of each crawler on a site, or on all sites if `site` is empty. Visitors are left out.
pub(super) fn by_crawler(
    history: &HistoryReader,
    site: &str,
    period: &Period,
) -> Result<BTreeMap<String, ByIdentity>, HistoryError> {
    let mut counts: BTreeMap<String, ByIdentity> = BTreeMap::new();
    history.each(
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

/// The sentence that says of how many instances the counts are sums. It names the instances that
/// are there and reported no counts of this period, or none for a minute. `told` are the counts of
/// the other instances.
fn sentence(store: &StoreStatus, told: &[Told], period: &Period) -> String {
    let mut last: BTreeMap<&str, i64> = BTreeMap::new();
    for Told {
        instance, counted, ..
    } in told.iter().filter(|told| told.start >= period.from)
    {
        let last = last.entry(instance).or_insert(counted.at);
        *last = counted.at.max(*last);
    }
    let mut missing = Vec::new();
    for MemberStatus {
        member, standing, ..
    } in &store.exchange.members
    {
        if matches!(standing, Standing::Left | Standing::Gone) || member.id == store.exchange.id {
            continue;
        }
        let name = format!("{} on {}", member.id, member.host);
        match last.get(member.id.as_str()) {
            None => missing.push(format!("{name} has reported no counts")),
            Some(at) if period.to.0 - at > OVERDUE => {
                missing.push(format!(
                    "{name} has reported no counts since {} UTC",
                    super::format::minute(Timestamp(*at))
                ));
            }
            Some(_) => {}
        }
    }
    let instances: BTreeSet<&str> = last.into_keys().collect();
    let mut says = match instances.len() {
        0 => "Counts of this instance: no other one has reported counts of this period.".to_owned(),
        others => format!(
            "Sums of {} instances; each reports its counts every 5 seconds.",
            others + 1
        ),
    };
    if !missing.is_empty() {
        says.push_str(&format!(" Missing: {}.", missing.join("; ")));
    }
    says.push_str(
        " Examples, names of unknown bots, and suspected or suspended requests are of this instance alone.",
    );
    says
}
