//! [`NoCollector`] replaces every Prometheus collector in a build without the feature `metrics`. It
//! counts nothing, so that the code that counts is the same in all builds.

/// A counter, gauge or histogram that keeps nothing.
#[derive(Clone, Debug)]
pub struct NoCollector;

pub type Gauge = NoCollector;
pub type Histogram = NoCollector;
pub type HistogramVec = NoCollector;
pub type IntCounter = NoCollector;
pub type IntCounterVec = NoCollector;
pub type IntGauge = NoCollector;
pub type IntGaugeVec = NoCollector;

impl NoCollector {
    pub fn with_label_values<L: AsRef<str>>(&self, _labels: &[L]) -> NoCollector {
        NoCollector
    }

    /// Always 0.
    pub fn get<V: Default>(&self) -> V {
        V::default()
    }

    pub fn add(&self, _by: i64) {}
    pub fn dec(&self) {}
    pub fn inc(&self) {}
    pub fn inc_by(&self, _by: u64) {}
    pub fn observe(&self, _value: f64) {}
    pub fn reset(&self) {}
    pub fn set<V>(&self, _value: V) {}
    pub fn sub(&self, _by: i64) {}
}

/// See `collectors::new_counter`.
pub fn new_counter(_name: &str, _help: &str) -> IntCounter {
    NoCollector
}

/// A registry of nothing.
#[derive(Debug, Default)]
pub struct Registry {}

/// Creates collectors that keep nothing.
#[derive(Clone, Copy)]
pub struct MetricRegistrar<'r>(pub &'r Registry);

impl MetricRegistrar<'_> {
    pub fn register(self, _collector: NoCollector) {}

    pub fn gauge(self, _name: &str, _help: &str) -> IntGauge {
        NoCollector
    }

    pub fn float_gauge(self, _name: &str, _help: &str) -> Gauge {
        NoCollector
    }

    pub fn gauges(self, _name: &str, _help: &str, _labels: &[&str]) -> IntGaugeVec {
        NoCollector
    }

    pub fn counter(self, _name: &str, _help: &str) -> IntCounter {
        NoCollector
    }

    pub fn counters(self, _name: &str, _help: &str, _labels: &[&str]) -> IntCounterVec {
        NoCollector
    }

    pub fn histogram(self, _name: &str, _help: &str, _buckets: &[f64]) -> Histogram {
        NoCollector
    }

    pub fn histograms(self, _name: &str, _help: &str, _labels: &[&str]) -> HistogramVec {
        NoCollector
    }
}

pub fn remove_sites(_vector: &NoCollector, _keep: &dyn Fn(&str) -> bool) {}
