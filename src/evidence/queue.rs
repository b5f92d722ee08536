//! [`EntryQueue`]: the entries that wait to be written to the evidence log. It admits 200 entries a
//! second. In the rest of that second, it admits only the first entry about each crawler on each
//! site. It drops and counts all other entries. Requests that simply passed get half of that, and none
//! of a log that is half full: they leave room for violations. [`EvidenceWriterShared`] is what the
//! writing thread shares with other threads: the queue, counters and problems.

use super::database::LogDamage;
use super::{ChainName, NewEntry};
use crate::locks::lock;
use crate::telemetry::new_counter;
use prometheus::IntCounter;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

/// Entries that are admitted in a second. Beyond them each chain has one.
const MAX_PER_SECOND: u64 = 200;
/// The most entries that wait.
const MAX_WAITING: usize = 20_000;
/// The most publications that wait while nothing can be written.
const MAX_PUBLICATIONS: usize = 1_000;

/// The waiting entries, and the numbers of dropped ones.
#[derive(Default)]
pub struct EntryQueue {
    batch: EntryBatch,
    /// The present second since 1970.
    second: u64,
    admitted: u64,
    /// The chains with an entry in this second, other than of a request that simply passed.
    chains: HashSet<ChainName>,
    /// Whether the log has half of the size that the settings permit.
    pub is_log_half_full: bool,
}

/// The content of the queue, for one transaction.
#[derive(Default)]
pub struct EntryBatch {
    /// In their order.
    pub entries: Vec<(ChainName, NewEntry)>,
    /// The number of dropped entries by chain.
    pub left_out: HashMap<ChainName, u64>,
    /// The number of requests that simply passed and were dropped because the log was half full.
    pub left_out_half_full: u64,
}

impl EntryQueue {
    /// Admits an entry of a chain in this second, or counts it as dropped. The first 200 of a second
    /// are admitted, and beyond them the first of each chain, unless 20,000 wait. A request that
    /// simply passed (`is_passed`) must be among the first 100 and find less than 10,000 waiting, and
    /// the log less than half full. It does not use up what its chain is admitted beyond the 200.
    pub fn try_admit(&mut self, chain: &ChainName, second: u64, is_passed: bool) -> bool {
        if self.second != second {
            self.second = second;
            self.admitted = 0;
            self.chains.clear();
        }
        if is_passed && self.is_log_half_full {
            self.batch.left_out_half_full += 1;
            return false;
        }
        let waiting = self.batch.entries.len();
        let is_half_full = self.admitted >= MAX_PER_SECOND / 2 || waiting >= MAX_WAITING / 2;
        let is_full = waiting >= MAX_WAITING || is_passed && is_half_full;
        if !is_full && (self.admitted < MAX_PER_SECOND || !self.chains.contains(chain)) {
            self.admitted += 1;
            if !is_passed {
                self.chains.insert(chain.clone());
            }
            return true;
        }
        *self.batch.left_out.entry(chain.clone()).or_default() += 1;
        false
    }

    /// Adds an admitted entry, or a publication, which needs no admission.
    pub fn push(&mut self, chain: ChainName, record: NewEntry) {
        self.batch.entries.push((chain, record));
    }

    /// Puts back the latest 1,000 publications that could not be written, before all that waits.
    /// Returns how many were put back.
    pub fn requeue(&mut self, publications: Vec<(ChainName, NewEntry)>) -> u64 {
        let forgotten = publications.len().saturating_sub(MAX_PUBLICATIONS);
        let kept = publications.len() - forgotten;
        self.batch
            .entries
            .splice(0..0, publications.into_iter().skip(forgotten));
        kept as u64
    }

    /// Takes out all entries and counts.
    pub fn drain(&mut self) -> EntryBatch {
        std::mem::take(&mut self.batch)
    }
}

/// The queue, counters and problems of the log.
pub struct EvidenceWriterShared {
    pub queue: Mutex<EntryQueue>,
    /// Why entries are being lost.
    pub problem: Mutex<Option<String>>,
    /// Why checkpoints get no timestamps.
    pub timestamp_problem: Mutex<Option<String>>,
    /// Why this process began a new log in place of a former one.
    pub former_damage: Mutex<Option<LogDamage>>,
    /// Entries that were written.
    pub entries: IntCounter,
    /// Entries that were dropped, or could not be written.
    pub lost: IntCounter,
}

impl Default for EvidenceWriterShared {
    fn default() -> EvidenceWriterShared {
        EvidenceWriterShared {
            queue: Mutex::default(),
            problem: Mutex::default(),
            timestamp_problem: Mutex::default(),
            former_damage: Mutex::default(),
            entries: new_counter(
                "crawlgate_evidence_entries_total",
                "Entries that crawlgate wrote to the evidence log.",
            ),
            lost: new_counter(
                "crawlgate_evidence_left_out_total",
                "Entries that the evidence log lacks: there were too many, it was half full, or they could not be written.",
            ),
        }
    }
}

impl EvidenceWriterShared {
    /// Counts entries as written, and clears the problem.
    pub fn record_written(&self, entries: u64) {
        self.entries.inc_by(entries);
        if lock(&self.problem).take().is_some() {
            tracing::warn!("evidence is written again; the log says how many entries it lacks");
        }
    }

    /// Counts entries as lost, and sets the problem. Logs it unless there was one already.
    pub fn record_failure(&self, lost: u64, why: &dyn std::fmt::Display) {
        self.lost.inc_by(lost);
        if lock(&self.problem).replace(why.to_string()).is_none() {
            tracing::error!("evidence cannot be written: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_of_one_chain_is_counted_and_hides_no_other() {
        let mut queue = EntryQueue::default();
        let [loud, quiet] = ["loud", "quiet"].map(|name| ChainName::of_crawler("shop", name));
        for _ in 0..MAX_PER_SECOND + 50 {
            if queue.try_admit(&loud, 1, false) {
                queue.push(loud.clone(), NewEntry::default());
            }
        }
        assert!(
            queue.try_admit(&quiet, 1, false)
                && !queue.try_admit(&quiet, 1, false)
                && queue.try_admit(&loud, 2, false)
        );
        let batch = queue.drain();
        assert_eq!(batch.entries.len() as u64, MAX_PER_SECOND);
        assert_eq!(batch.left_out, [(loud, 50), (quiet, 1)].into());
        assert!(queue.drain().left_out.is_empty());
    }

    #[test]
    fn passed_requests_leave_half_of_the_log_to_others() {
        let mut queue = EntryQueue::default();
        let [passing, breaking] =
            ["passing", "breaking"].map(|name| ChainName::of_crawler("shop", name));
        let mut admitted = 0;
        for _ in 0..MAX_PER_SECOND {
            admitted += u64::from(queue.try_admit(&passing, 1, true));
        }
        assert_eq!(admitted, MAX_PER_SECOND / 2);
        assert!((0..MAX_PER_SECOND / 2).all(|_| queue.try_admit(&breaking, 1, false)));
        // The second is full. A violation still has the place of its chain.
        assert!(queue.try_admit(&passing, 1, false) && !queue.try_admit(&passing, 1, false));
        queue.is_log_half_full = true;
        assert!(!queue.try_admit(&passing, 2, true) && queue.try_admit(&breaking, 2, false));
        let batch = queue.drain();
        assert_eq!(batch.left_out, [(passing, MAX_PER_SECOND / 2 + 1)].into());
        assert_eq!(batch.left_out_half_full, 1);
    }

    #[test]
    fn waiting_entries_are_bounded() {
        let mut queue = EntryQueue::default();
        let [chain, passing] =
            ["gptbot", "passing"].map(|name| ChainName::of_crawler("shop", name));
        for second in 0..MAX_WAITING as u64 + 5 {
            let waiting = queue.batch.entries.len();
            if waiting >= MAX_WAITING / 2 {
                assert!(!queue.try_admit(&passing, second, true));
            }
            if queue.try_admit(&chain, second, false) {
                queue.push(chain.clone(), NewEntry::default());
            }
        }
        let batch = queue.drain();
        assert_eq!(
            (batch.entries.len(), batch.left_out[&chain]),
            (MAX_WAITING, 5)
        );
    }
}
