//! [`Queue`]: the records that wait to be written to the evidence log. It accepts 200 records a
//! second, and beyond them one a second for each hash chain (of one site and crawler). Records that
//! it drops are counted for each chain. [`Shared`]: the queue, the counts and the problems of a
//! log.

use super::{ChainName, Record};
use crate::locks::lock;
use crate::telemetry::counter;
use prometheus::IntCounter;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

/// Records that are taken in a second. Beyond them each chain has one.
const RATE: u64 = 200;
/// Records that wait at most.
const MAX_WAITING: usize = 20_000;
/// Publications that wait at most while nothing can be written.
const MAX_PUBLICATIONS: usize = 1_000;

/// The records that wait, and the number of those that were left out.
#[derive(Default)]
pub struct Queue {
    waiting: Vec<(ChainName, Record)>,
    hasher: RandomState,
    second: u64,
    taken: u64,
    /// Which chains had a record in this second, by their hash: 64 bits under a random key do not
    /// collide in practice.
    served: HashSet<u64>,
    left_out: HashMap<u64, (ChainName, u64)>,
}

/// What is to be written.
#[derive(Default)]
pub struct Batch {
    /// Records, in their order.
    pub records: Vec<(ChainName, Record)>,
    /// How many records a chain lacks.
    pub left_out: Vec<(ChainName, u64)>,
}

impl Batch {
    /// How many records all chains lack.
    pub fn left_out(&self) -> u64 {
        self.left_out.iter().map(|(_, number)| number).sum()
    }

    /// Copies of the publications in it (records of chains without a crawler). If the batch cannot
    /// be written, these wait again: there are few, and a case without them would be misread.
    pub fn publications(&self) -> Vec<(ChainName, Record)> {
        self.records
            .iter()
            .filter(|(chain, _)| chain.crawler.is_empty())
            .cloned()
            .collect()
    }
}

impl Queue {
    /// Whether one more record of a chain is taken in this second (since 1970): the first 200 are,
    /// and beyond them the first of each chain, unless 20,000 wait. One that is not is counted as
    /// left out.
    pub fn admits(&mut self, site: &str, crawler: &str, second: u64) -> bool {
        if self.second != second {
            self.second = second;
            self.taken = 0;
            self.served.clear();
        }
        let chain = self.hasher.hash_one((site, crawler));
        let is_full = self.waiting.len() >= MAX_WAITING;
        if !is_full && (self.taken < RATE || !self.served.contains(&chain)) {
            self.taken += 1;
            self.served.insert(chain);
            return true;
        }
        self.left_out
            .entry(chain)
            .or_insert_with(|| (ChainName::of_crawler(site, crawler), 0))
            .1 += 1;
        false
    }

    /// Adds a record that was admitted, or a publication, which needs no admission.
    pub fn add(&mut self, chain: ChainName, record: Record) {
        self.waiting.push((chain, record));
    }

    /// Puts publications that could not be written back before all that waits: the latest 1,000 of
    /// them. Returns how many were put back; older ones are dropped.
    pub fn wait_again(&mut self, publications: Vec<(ChainName, Record)>) -> u64 {
        let forgotten = publications.len().saturating_sub(MAX_PUBLICATIONS);
        let kept = publications.len() - forgotten;
        self.waiting
            .splice(0..0, publications.into_iter().skip(forgotten));
        kept as u64
    }

    /// Takes out all records that wait and all counts of those left out.
    pub fn take(&mut self) -> Batch {
        let left_out = std::mem::take(&mut self.left_out).into_values();
        Batch {
            records: std::mem::take(&mut self.waiting),
            left_out: left_out.collect(),
        }
    }
}

/// The queue, the counts and the problems of the log.
pub struct Shared {
    /// What waits to be written.
    pub queue: Mutex<Queue>,
    /// Why evidence is being lost.
    pub problem: Mutex<Option<String>>,
    /// Why checkpoints get no timestamps.
    pub stamp_problem: Mutex<Option<String>>,
    /// Entries that were written.
    pub entries: IntCounter,
    /// Entries that were left out.
    pub lost: IntCounter,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared {
            queue: Mutex::default(),
            problem: Mutex::default(),
            stamp_problem: Mutex::default(),
            entries: counter(
                "crawlgate_evidence_entries_total",
                "Entries that crawlgate wrote to the evidence log.",
            ),
            lost: counter(
                "crawlgate_evidence_left_out_total",
                "Entries that the evidence log lacks, because there were too many or they could not be written.",
            ),
        }
    }
}

impl Shared {
    /// Counts entries that were left out.
    pub fn lose(&self, entries: u64) {
        self.lost.inc_by(entries);
    }

    /// Takes out what waits, and adds the records that were left out to the count of lost ones.
    pub fn take(&self) -> Batch {
        let batch = lock(&self.queue).take();
        self.lose(batch.left_out());
        batch
    }

    /// Counts so many entries as written. If there was a problem, it is over, and the log says so.
    pub fn wrote(&self, entries: u64) {
        self.entries.inc_by(entries);
        if lock(&self.problem).take().is_some() {
            tracing::warn!("evidence is written again; the log says how many entries it lacks");
        }
    }

    /// Counts so many entries as lost, and sets the problem. Logs it, unless there was one already.
    pub fn failed(&self, lost: u64, why: &dyn std::fmt::Display) {
        self.lose(lost);
        if lock(&self.problem).replace(why.to_string()).is_none() {
            tracing::error!("evidence cannot be written: {why}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_chain_is_counted_and_hides_no_other() {
        let mut queue = Queue::default();
        for _ in 0..RATE + 50 {
            if queue.admits("shop", "loud", 1) {
                queue.add(ChainName::of_crawler("shop", "loud"), Record::default());
            }
        }
        assert!(
            queue.admits("shop", "quiet", 1)
                && !queue.admits("shop", "quiet", 1)
                && queue.admits("shop", "loud", 2)
        );
        let batch = queue.take();
        assert_eq!(batch.records.len() as u64, RATE);
        let mut left_out = batch.left_out;
        left_out.sort();
        assert_eq!(
            left_out,
            [
                (ChainName::of_crawler("shop", "loud"), 50),
                (ChainName::of_crawler("shop", "quiet"), 1)
            ]
        );
        assert!(queue.take().left_out.is_empty());
    }

    #[test]
    fn records_that_wait_too_long_are_bounded() {
        let mut queue = Queue::default();
        for second in 0..MAX_WAITING as u64 + 5 {
            if queue.admits("shop", "gptbot", second) {
                queue.add(ChainName::of_crawler("shop", "gptbot"), Record::default());
            }
        }
        let batch = queue.take();
        assert_eq!((batch.records.len(), batch.left_out[0].1), (MAX_WAITING, 5));
    }
}
