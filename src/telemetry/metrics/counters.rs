//! [`Counters`]: one counter with a `crawler` label. It finds a series by the hash of its labels,
//! and makes it on first use. All such counters share one limit: beyond [`MAX_SERIES`] crawlgate
//! counts under the crawler `overflow`. The history reads these counts too, so they are kept here,
//! and Prometheus gets a copy for each scrape.

use super::collectors::{IntCounterVec, Register};
use crate::bounded::Prehashed;
use crate::locks::{read, write};
use crate::record::{MAX_SERIES, OVERFLOW, cut_label};
use ahash::RandomState;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

/// One counter by the values of its `N` labels.
pub struct Counters<const N: usize> {
    exported: IntCounterVec,
    /// By the hash of the labels.
    known: RwLock<HashMap<u64, Series<N>, Prehashed>>,
    hasher: RandomState,
    /// The position of the `crawler` label.
    crawler: Option<usize>,
    /// The number of series of all counters that share the cap.
    series: Arc<AtomicUsize>,
}

struct Series<const N: usize> {
    labels: [Box<str>; N],
    count: AtomicU64,
    /// The count when it was last taken for the history.
    taken: AtomicU64,
}

impl<const N: usize> Counters<N> {
    /// Registers a counter. `labels` are the names of its labels and must contain `crawler`;
    /// `series` is shared by all counters that are limited together.
    ///
    /// # Panics
    /// No label is called `crawler`.
    pub fn new(
        register: Register<'_>,
        series: &Arc<AtomicUsize>,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Self {
        let crawler = labels.iter().position(|label| *label == "crawler");
        Counters {
            exported: register.counters(name, help, &labels),
            known: RwLock::default(),
            hasher: RandomState::new(),
            crawler,
            series: series.clone(),
        }
    }

    /// Counts one for these label values, which are cut to 64 octets in the metric. Returns `false`
    /// if it was counted under the crawler `overflow` instead, because the series is new and
    /// [`MAX_SERIES`] exist already.
    pub fn count(&self, labels: [&str; N]) -> bool {
        let hash = self.hasher.hash_one(labels);
        if let Some(series) = read(&self.known).get(&hash) {
            series.count.fetch_add(1, Relaxed);
            return true;
        }
        let mut known = write(&self.known);
        let mut cut = labels.map(cut_label);
        let (hash, by_name) = if known.contains_key(&hash) || self.series.load(Relaxed) < MAX_SERIES
        {
            (hash, true)
        } else {
            if let Some(crawler) = self.crawler {
                cut[crawler] = OVERFLOW;
            }
            (self.hasher.hash_one(cut), false)
        };
        let series = known.entry(hash).or_insert_with(|| {
            self.series.fetch_add(1, Relaxed);
            Series {
                labels: cut.map(Into::into),
                count: AtomicU64::new(0),
                taken: AtomicU64::new(0),
            }
        });
        series.count.fetch_add(1, Relaxed);
        by_name
    }

    /// Calls `take` with the labels of every series that was counted since the last call, and by
    /// how much. Only the history calls this.
    pub fn each_new(&self, mut take: impl FnMut(&[Box<str>; N], u64)) {
        for series in read(&self.known).values() {
            let count = series.count.load(Relaxed);
            let new = count.saturating_sub(series.taken.swap(count, Relaxed));
            if new > 0 {
                take(&series.labels, new);
            }
        }
    }

    /// Removes the series of sites that are not kept. The first label must be the site.
    pub fn remove_sites(&self, keep: &dyn Fn(&str) -> bool) {
        if read(&self.known)
            .values()
            .all(|series| keep(&series.labels[0]))
        {
            return;
        }
        write(&self.known).retain(|_, series| {
            let kept = keep(&series.labels[0]);
            if !kept {
                self.series.fetch_sub(1, Relaxed);
            }
            kept
        });
    }

    /// Replaces the series that Prometheus gets. Labels are cut, so that several series here may be
    /// one there.
    #[cfg(feature = "metrics")]
    pub fn export(&self) {
        self.exported.reset();
        for series in read(&self.known).values() {
            self.exported
                .with_label_values(&series.labels)
                .inc_by(series.count.load(Relaxed));
        }
    }
}
