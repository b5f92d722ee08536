//! [`HistoryBatch`]: what waits to be written to the history tables of the state database, which
//! the dashboard shows. It holds
//!
//! - requests of each crawler ([`RequestCounts`]), by kind (such as `allowed` or `violation`) and
//!   by what crawlgate did,
//! - requests of each crawler, by what was proven of its name,
//! - requests that break the rules, one [`RecordRow`] each (a sample),
//! - requests of bots that no list knows, by the name that each bot gives itself,
//! - visits, by the service that sent them,
//! - the paths that each crawler requested most ([`DayPaths`]).
//!
//! Nothing is judged by the history.

use super::PeriodLength;
use crate::record::{DayPaths, PathOwner, RecordRow, RequestCounts};
use crate::sketch::CountedKey;
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, IdentityStatus};
use std::collections::BTreeMap;

/// The most rows of counts that wait.
const MAX_COUNTS: usize = 200_000;
/// The most samples that wait.
const MAX_SAMPLES: usize = 10_000;
/// The most names of unknown bots that wait.
const MAX_NAMES: usize = 5_000;

/// The most crawlers whose paths wait, each with at most 256 paths.
const MAX_PATH_OWNERS: usize = 1_000;

/// Additions to the history that wait to be written. What does not fit is dropped, because nothing
/// depends on the history.
#[derive(Debug, Default)]
pub struct HistoryBatch {
    /// By the beginning of the hour, site, crawler and identity.
    pub(super) counts: BTreeMap<(Timestamp, String, String, Option<IdentityStatus>), RequestCounts>,
    /// By the beginning of the day, crawler and outcome.
    pub(super) identity: BTreeMap<(Timestamp, String, IdentityOutcome), u64>,
    /// By the beginning of the day and what the bot calls itself.
    pub(super) unlisted: BTreeMap<(Timestamp, String), u64>,
    /// By the beginning of the day, site and service.
    pub(super) visits: BTreeMap<(Timestamp, String, String), u64>,
    /// By the beginning of the day and the crawler. They replace what is stored.
    pub(super) paths: BTreeMap<(Timestamp, PathOwner), Vec<CountedKey>>,
    /// With the fields of [`SAMPLE_FIELDS`](crate::record::SAMPLE_FIELDS).
    pub(super) samples: Vec<RecordRow>,
}

/// Returns the value of a key, created if it is new. `None` if the key is new and the map is full.
fn bounded_entry<K: Ord, C: Default>(
    map: &mut BTreeMap<K, C>,
    bound: usize,
    key: K,
) -> Option<&mut C> {
    (map.len() < bound || map.contains_key(&key)).then(|| map.entry(key).or_default())
}

impl HistoryBatch {
    /// Adds the counts of a crawler on a site, with an identity, in the hour that `now` is in.
    /// Visitors (the crawler `none`) have no identity.
    /// Dropped if they need a new row and `MAX_COUNTS` rows wait.
    pub fn add_requests(
        &mut self,
        now: Timestamp,
        site: &str,
        crawler: &str,
        identity: Option<IdentityStatus>,
        counts: &RequestCounts,
    ) {
        let key = (
            PeriodLength::Hour.start_of(now),
            site.to_owned(),
            crawler.to_owned(),
            identity,
        );
        if let Some(known) = bounded_entry(&mut self.counts, MAX_COUNTS, key) {
            known.add_all(counts);
        }
    }

    /// Adds requests of a crawler with an outcome of identification (what was proven of its name),
    /// in the day that `now` is in. Dropped if they need a new row and `MAX_COUNTS` rows wait.
    pub fn add_identity(
        &mut self,
        now: Timestamp,
        crawler: &str,
        outcome: IdentityOutcome,
        requests: u64,
    ) {
        let key = (PeriodLength::Day.start_of(now), crawler.to_owned(), outcome);
        if let Some(known) = bounded_entry(&mut self.identity, MAX_COUNTS, key) {
            *known += requests;
        }
    }

    /// Adds requests of unknown bots that call themselves `name`, in the day that `now` is in.
    /// Dropped if they need a new row and `MAX_NAMES` rows wait.
    pub fn add_unlisted(&mut self, now: Timestamp, name: &str, requests: u64) {
        let key = (PeriodLength::Day.start_of(now), name.to_owned());
        if let Some(known) = bounded_entry(&mut self.unlisted, MAX_NAMES, key) {
            *known += requests;
        }
    }

    /// Adds visits from a service to a site, in the day that `now` is in. Dropped if they need a new
    /// row and `MAX_COUNTS` rows wait.
    pub fn add_visits(&mut self, now: Timestamp, site: &str, service: &str, visits: u64) {
        let day = PeriodLength::Day.start_of(now);
        let key = (day, site.to_owned(), service.to_owned());
        if let Some(known) = bounded_entry(&mut self.visits, MAX_COUNTS, key) {
            *known += visits;
        }
    }

    /// Sets the paths of a crawler on a day. Dropped if those of `MAX_PATH_OWNERS` others wait.
    pub fn set_paths(&mut self, paths: DayPaths) {
        let key = (paths.day, paths.owner);
        if let Some(known) = bounded_entry(&mut self.paths, MAX_PATH_OWNERS, key) {
            *known = paths.paths;
        }
    }

    /// Adds a request that breaks the rules. Dropped if `MAX_SAMPLES` wait.
    pub fn add_sample(&mut self, sample: RecordRow) {
        if self.samples.len() < MAX_SAMPLES {
            self.samples.push(sample);
        }
    }

    /// Adds another batch after this one, as far as there is room.
    pub fn append(&mut self, other: HistoryBatch) {
        for ((hour, site, crawler, identity), counts) in other.counts {
            self.add_requests(hour, &site, &crawler, identity, &counts);
        }
        for ((day, crawler, outcome), count) in other.identity {
            self.add_identity(day, &crawler, outcome, count);
        }
        for ((day, name), count) in other.unlisted {
            self.add_unlisted(day, &name, count);
        }
        for ((day, site, service), visits) in other.visits {
            self.add_visits(day, &site, &service, visits);
        }
        for ((day, owner), paths) in other.paths {
            self.set_paths(DayPaths { day, owner, paths });
        }
        for sample in other.samples {
            self.add_sample(sample);
        }
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
            && self.identity.is_empty()
            && self.unlisted.is_empty()
            && self.visits.is_empty()
            && self.paths.is_empty()
            && self.samples.is_empty()
    }
}
