//! [`RequestHistoryBatch`]: new counts and samples that wait to be written to the state database,
//! for the history that the dashboard shows. The batch contains
//!
//! - requests of each crawler ([`RequestCounts`]), by kind (such as `allowed` or `violation`) and
//!   by what crawlgate did,
//! - requests of each crawler, by whether the client was proven to be that crawler,
//! - samples of the requests that break the rules (one [`RecordRow`] for a request),
//! - requests of unknown bots, by the name that each bot gives itself,
//! - visits, by the AI assistant or search engine that sent the visitor,
//! - the paths that each crawler requested most ([`DayPaths`]).

use super::PeriodLength;
use crate::record::{DayPaths, RecordRow, RequestCounts, TopPathsKey};
use crate::sketch::CountedKey;
use crate::time::Timestamp;
use crate::verdict::IdentityStatus;
use std::collections::BTreeMap;
use strum::VariantArray;

/// The most rows of counts that wait.
const MAX_COUNTS: usize = 200_000;
/// The most samples that wait.
const MAX_SAMPLES: usize = 10_000;
/// The most names of unknown bots that wait.
const MAX_NAMES: usize = 5_000;

/// The most crawlers whose paths wait, each with at most 256 paths.
const MAX_PATH_OWNERS: usize = 1_000;

/// A number of each day and two names.
#[derive(Clone, Copy, VariantArray)]
pub enum DailyCountKind {
    /// Requests by crawler and [`IdentityOutcome`](crate::verdict::IdentityOutcome): what was proven
    /// of its name.
    Identity,
    /// Requests of unknown bots by what they call themselves. The second name is empty.
    Unlisted,
    /// Visits by site and service.
    Visits,
}

/// Additions to the history that wait to be written. What does not fit is dropped, because nothing
/// depends on the history.
#[derive(Default)]
pub struct RequestHistoryBatch {
    /// By the beginning of the hour, site, crawler and identity.
    pub counts: BTreeMap<(Timestamp, String, String, Option<IdentityStatus>), RequestCounts>,
    /// By [`DailyCountKind`], and by the beginning of the day and the names.
    pub daily: [BTreeMap<(Timestamp, [String; 2]), u64>; DailyCountKind::VARIANTS.len()],
    /// By the beginning of the day and the crawler. They replace what is stored.
    pub paths: BTreeMap<(Timestamp, TopPathsKey), Vec<CountedKey>>,
    /// With the fields of [`SAMPLE_FIELDS`](crate::record::SAMPLE_FIELDS).
    pub samples: Vec<RecordRow>,
}

/// Returns the value of a key, created if it is new. `None` if the key is new and the map is full.
fn bounded_entry<K: Ord, C: Default>(
    map: &mut BTreeMap<K, C>,
    bound: usize,
    key: K,
) -> Option<&mut C> {
    (map.len() < bound || map.contains_key(&key)).then(|| map.entry(key).or_default())
}

impl RequestHistoryBatch {
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

    /// Adds to a number of the day that `now` is in. Dropped if it needs a new row and too many rows
    /// wait.
    pub fn add_daily(
        &mut self,
        count: DailyCountKind,
        now: Timestamp,
        names: [&str; 2],
        number: u64,
    ) {
        let key = (PeriodLength::Day.start_of(now), names.map(str::to_owned));
        let max = match count {
            DailyCountKind::Unlisted => MAX_NAMES,
            _ => MAX_COUNTS,
        };
        if let Some(known) = bounded_entry(&mut self.daily[count as usize], max, key) {
            *known += number;
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
    pub fn append(&mut self, other: RequestHistoryBatch) {
        for ((hour, site, crawler, identity), counts) in other.counts {
            self.add_requests(hour, &site, &crawler, identity, &counts);
        }
        for (count, theirs) in DailyCountKind::VARIANTS.iter().zip(other.daily) {
            for ((day, [first, second]), number) in theirs {
                self.add_daily(*count, day, [&first, &second], number);
            }
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
            && self.daily.iter().all(BTreeMap::is_empty)
            && self.paths.is_empty()
            && self.samples.is_empty()
    }
}
