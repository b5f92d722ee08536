//! [`EntryQueue`]: the entries that wait to be written to the evidence log. It admits 200 entries a
//! second, and beyond them one a second for each hash chain (of one site and crawler). It counts
//! the dropped entries of each chain. [`WriterState`] is shared by the writer thread and the
//! recorder: the queue, counters and problems.

use super::{ChainName, NewEntry};
use crate::locks::lock;
use crate::telemetry::new_counter;
use prometheus::IntCounter;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
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
    waiting: Vec<(ChainName, NewEntry)>,
    hasher: RandomState,
    /// The present second since 1970.
    second: u64,
    admitted: u64,
    /// The hashes of the chains with an entry in this second: 64 bits under a random key do not
    /// collide in practice.
    chains: HashSet<u64>,
    left_out: HashMap<u64, (ChainName, u64)>,
}

/// The content of the queue, for one transaction.
#[derive(Default)]
pub struct EntryBatch {
    /// In their order.
    pub entries: Vec<(ChainName, NewEntry)>,
    /// The number of dropped entries by chain.
    pub left_out: Vec<(ChainName, u64)>,
}

impl EntryQueue {
    /// Admits an entry of a chain in this second, or counts it as dropped. The first 200 of a second
    /// are admitted, and beyond them the first of each chain, unless 20,000 wait.
    pub fn try_admit(&mut self, site: &str, crawler: &str, second: u64) -> bool {
        if self.second != second {
            self.second = second;
            self.admitted = 0;
            self.chains.clear();
        }
        let chain = self.hasher.hash_one((site, crawler));
        let is_full = self.waiting.len() >= MAX_WAITING;
        if !is_full && (self.admitted < MAX_PER_SECOND || !self.chains.contains(&chain)) {
            self.admitted += 1;
            self.chains.insert(chain);
            return true;
        }
        self.left_out
            .entry(chain)
            .or_insert_with(|| (ChainName::of_crawler(site, crawler), 0))
            .1 += 1;
        false
    }

    /// Adds an admitted entry, or a publication, which needs no admission.
    pub fn push(&mut self, chain: ChainName, record: NewEntry) {
        self.waiting.push((chain, record));
    }

    /// Puts back the latest 1,000 publications that could not be written, before all that waits.
    /// Returns how many were put back.
    pub fn requeue(&mut self, publications: Vec<(ChainName, NewEntry)>) -> u64 {
        let forgotten = publications.len().saturating_sub(MAX_PUBLICATIONS);
        let kept = publications.len() - forgotten;
        self.waiting
            .splice(0..0, publications.into_iter().skip(forgotten));
        kept as u64
    }

    /// Takes out all entries and counts.
    pub fn drain(&mut self) -> EntryBatch {
        let left_out = std::mem::take(&mut self.left_out).into_values();
        EntryBatch {
            entries: std::mem::take(&mut self.waiting),
            left_out: left_out.collect(),
        }
    }
}

/// The queue, counters and problems of the log.
pub struct WriterState {
    pub queue: Mutex<EntryQueue>,
    /// Why entries are being lost.
    pub problem: Mutex<Option<String>>,
    /// Why checkpoints get no timestamps.
    pub timestamp_problem: Mutex<Option<String>>,
    /// Entries that were written.
    pub entries: IntCounter,
    /// Entries that were dropped, or could not be written.
    pub lost: IntCounter,
}

impl Default for WriterState {
    fn default() -> WriterState {
        WriterState {
            queue: Mutex::default(),
            problem: Mutex::default(),
            timestamp_problem: Mutex::default(),
            entries: new_counter(
                "crawlgate_evidence_entries_total",
                "Entries that crawlgate wrote to the evidence log.",
            ),
            lost: new_counter(
                "crawlgate_evidence_left_out_total",
                "Entries that the evidence log lacks, because there were too many or they could not be written.",
            ),
        }
    }
}

impl WriterState {
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
        for _ in 0..MAX_PER_SECOND + 50 {
            if queue.try_admit("shop", "loud", 1) {
                queue.push(ChainName::of_crawler("shop", "loud"), NewEntry::default());
            }
        }
        assert!(
            queue.try_admit("shop", "quiet", 1)
                && !queue.try_admit("shop", "quiet", 1)
                && queue.try_admit("shop", "loud", 2)
        );
        let batch = queue.drain();
        assert_eq!(batch.entries.len() as u64, MAX_PER_SECOND);
        let mut left_out = batch.left_out;
        left_out.sort();
        assert_eq!(
            left_out,
            [
                (ChainName::of_crawler("shop", "loud"), 50),
                (ChainName::of_crawler("shop", "quiet"), 1)
            ]
        );
        assert!(queue.drain().left_out.is_empty());
    }

    #[test]
    fn waiting_entries_are_bounded() {
        let mut queue = EntryQueue::default();
        for second in 0..MAX_WAITING as u64 + 5 {
            if queue.try_admit("shop", "gptbot", second) {
                queue.push(ChainName::of_crawler("shop", "gptbot"), NewEntry::default());
            }
        }
        let batch = queue.drain();
        assert_eq!((batch.entries.len(), batch.left_out[0].1), (MAX_WAITING, 5));
    }
}
