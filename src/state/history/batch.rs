//! [`HistoryBatch`]: what waits to be written to the history, which the dashboard shows. It holds
//!
//! - requests of each crawler ([`Counts`]), by kind (such as `allowed` or `violation`) and by what
//!   crawlgate did,
//! - requests of each crawler, by what was proven of its name,
//! - requests that break the rules, one [`Row`] each (a sample),
//! - requests of bots that no list knows, by the name that each bot gives itself.
//!
//! Nothing is judged by the history.

use super::Step;
use crate::record::{Counts, Row};
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, KnownIdentity};
use std::collections::BTreeMap;

/// Counts that wait to be written.
const MAX_COUNTS: usize = 200_000;
/// Samples that wait to be written.
const MAX_SAMPLES: usize = 10_000;
/// Names of unlisted bots that wait to be written.
const MAX_NAMES: usize = 5_000;

/// What waits to be written. Adding more than there is room for drops it: the history is for
/// looking at.
#[derive(Debug, Default)]
pub struct HistoryBatch {
    /// By the beginning of the hour, site, crawler and identity.
    pub(super) counts: BTreeMap<(Timestamp, String, String, Option<KnownIdentity>), Counts>,
    /// By the beginning of the day, crawler and outcome.
    pub(super) identity: BTreeMap<(Timestamp, String, IdentityOutcome), u64>,
    /// By the beginning of the day and what the bot calls itself.
    pub(super) unlisted: BTreeMap<(Timestamp, String), u64>,
    /// With the fields of [`SAMPLE_FIELDS`](crate::record::SAMPLE_FIELDS).
    pub(super) samples: Vec<Row>,
}

/// The value of a key, to be changed; made if the key is new. `None` if the key is new and the map
/// has `bound` keys already.
fn bounded<K: Ord, C: Default>(map: &mut BTreeMap<K, C>, bound: usize, key: K) -> Option<&mut C> {
    (map.len() < bound || map.contains_key(&key)).then(|| map.entry(key).or_default())
}

impl HistoryBatch {
    /// Adds the counts of a crawler on a site, with an identity, in the hour that `now` is in.
    /// Visitors (the crawler `none`) have no identity.
    /// Dropped if they need a new row and `MAX_COUNTS` rows wait.
    pub fn requests(
        &mut self,
        now: Timestamp,
        site: &str,
        crawler: &str,
        identity: Option<KnownIdentity>,
        counts: &Counts,
    ) {
        let key = (
            Step::Hour.begin(now),
            site.to_owned(),
            crawler.to_owned(),
            identity,
        );
        if let Some(known) = bounded(&mut self.counts, MAX_COUNTS, key) {
            known.add_all(counts);
        }
    }

    /// Adds requests of a crawler with an outcome of identification (what was proven of its name),
    /// in the day that `now` is in. Dropped if they need a new row and `MAX_COUNTS` rows wait.
    pub fn identity(
        &mut self,
        now: Timestamp,
        crawler: &str,
        outcome: IdentityOutcome,
        requests: u64,
    ) {
        let key = (Step::Day.begin(now), crawler.to_owned(), outcome);
        if let Some(known) = bounded(&mut self.identity, MAX_COUNTS, key) {
            *known += requests;
        }
    }

    /// Adds requests of unknown bots that call themselves `name`, in the day that `now` is in.
    /// Dropped if they need a new row and `MAX_NAMES` rows wait.
    pub fn unlisted(&mut self, now: Timestamp, name: &str, requests: u64) {
        let key = (Step::Day.begin(now), name.to_owned());
        if let Some(known) = bounded(&mut self.unlisted, MAX_NAMES, key) {
            *known += requests;
        }
    }

    /// Adds a request that breaks the rules. Dropped if `MAX_SAMPLES` wait.
    pub fn sample(&mut self, sample: Row) {
        if self.samples.len() < MAX_SAMPLES {
            self.samples.push(sample);
        }
    }

    /// Adds what another batch holds, after what is here, as far as there is room.
    pub fn append(&mut self, other: HistoryBatch) {
        for ((hour, site, crawler, identity), counts) in other.counts {
            self.requests(hour, &site, &crawler, identity, &counts);
        }
        for ((day, crawler, outcome), count) in other.identity {
            self.identity(day, &crawler, outcome, count);
        }
        for ((day, name), count) in other.unlisted {
            self.unlisted(day, &name, count);
        }
        for sample in other.samples {
            self.sample(sample);
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
            && self.identity.is_empty()
            && self.unlisted.is_empty()
            && self.samples.is_empty()
    }
}
