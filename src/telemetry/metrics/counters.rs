//! [`LabelledCounter`]: a metric that counts by several labels, one of which is `crawler` or
//! `service`. All such metrics together are limited to [`MAX_SERIES`] time series; beyond that
//! crawlgate counts under the crawler or service `overflow`. The history for the dashboard takes
//! only what is new since its last copy. Prometheus gets a copy of all counts for each scrape.

use super::collectors::{IntCounterVec, MetricRegistrar};
use crate::bounded::PrehashedKeys;
use crate::locks::{read, write};
use crate::record::{MAX_SERIES, OVERFLOW, truncate_label};
use ahash::RandomState;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

/// One counter with `N` labels.
pub struct LabelledCounter<const N: usize> {
    exported: IntCounterVec,
    /// By the hash of the labels.
    known: RwLock<HashMap<u64, CounterSeries<N>, PrehashedKeys>>,
    hasher: RandomState,
    /// The position of the label that becomes `overflow`.
    bounded: Option<usize>,
    /// The number of series of all counters that share the cap.
    series: Arc<AtomicUsize>,
}

struct CounterSeries<const N: usize> {
    labels: [Box<str>; N],
    count: AtomicU64,
    /// The count when it was last taken for the history.
    taken: AtomicU64,
}

impl<const N: usize> LabelledCounter<N> {
    /// Registers a counter. `labels` are the names of its labels and must contain `crawler`
    /// or `service`; `series` is shared by all counters that are limited together.
    pub fn new(
        register: MetricRegistrar<'_>,
        series: &Arc<AtomicUsize>,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Self {
        let mut names = labels.iter();
        let bounded = names.position(|label| matches!(*label, "crawler" | "service"));
        LabelledCounter {
            exported: register.counters(name, help, &labels),
            known: RwLock::default(),
            hasher: RandomState::new(),
            bounded,
            series: series.clone(),
        }
    }

    /// Counts one for these label values, which are cut to 64 bytes in the metric. Returns `false`
    /// if it was counted under `overflow` instead, because the series is new and
    /// [`MAX_SERIES`] exist already.
    pub fn count(&self, labels: [&str; N]) -> bool {
        let hash = self.hasher.hash_one(labels);
        if let Some(series) = read(&self.known).get(&hash) {
            series.count.fetch_add(1, Relaxed);
            return true;
        }
        let mut known = write(&self.known);
        let mut cut = labels.map(truncate_label);
        let (hash, by_name) = if known.contains_key(&hash) || self.series.load(Relaxed) < MAX_SERIES
        {
            (hash, true)
        } else {
            if let Some(bounded) = self.bounded {
                cut[bounded] = OVERFLOW;
            }
            (self.hasher.hash_one(cut), false)
        };
        let series = known.entry(hash).or_insert_with(|| {
            self.series.fetch_add(1, Relaxed);
            CounterSeries {
                labels: cut.map(Into::into),
                count: AtomicU64::new(0),
                taken: AtomicU64::new(0),
            }
        });
        series.count.fetch_add(1, Relaxed);
        by_name
    }

    /// Calls `take` with the labels of every series that was counted since the last call, and the
    /// difference. Only the history calls this.
    pub fn for_each_new(&self, mut take: impl FnMut(&[Box<str>; N], u64)) {
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

    /// Replaces the series that Prometheus gets. Several series here may be one there, because
    /// labels are truncated.
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
