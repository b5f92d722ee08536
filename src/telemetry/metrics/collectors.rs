//! The Prometheus collectors (counters, gauges, histograms). [`MetricRegistrar`] creates a
//! collector and registers it in one call. Names, help texts and buckets are fixed in the code, so
//! a failure here is a mistake in crawlgate and ends the process at start.

#![expect(
    clippy::expect_used,
    reason = "a wrong name in the code must not start"
)]

pub use prometheus::{
    Gauge, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry,
};

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::proto::Metric;
use prometheus::{Encoder, HistogramOpts, Opts, TextEncoder};

const VALID_NAMES: &str = "names, labels and buckets are fixed and valid";

/// Creates collectors in a registry.
#[derive(Clone, Copy)]
pub struct MetricRegistrar<'r>(pub &'r Registry);

impl MetricRegistrar<'_> {
    pub fn register<C: Collector + Clone + 'static>(self, collector: C) -> C {
        self.0
            .register(Box::new(collector.clone()))
            .expect("each metric is registered once");
        collector
    }

    pub fn gauge(self, name: &str, help: &str) -> IntGauge {
        self.register(IntGauge::new(name, help).expect(VALID_NAMES))
    }

    pub fn float_gauge(self, name: &str, help: &str) -> Gauge {
        self.register(Gauge::new(name, help).expect(VALID_NAMES))
    }

    pub fn gauges(self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.register(IntGaugeVec::new(Opts::new(name, help), labels).expect(VALID_NAMES))
    }

    pub fn counter(self, name: &str, help: &str) -> IntCounter {
        self.register(new_counter(name, help))
    }

    pub fn counters(self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, help), labels).expect(VALID_NAMES))
    }

    pub fn histogram(self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        self.register(
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))
                .expect(VALID_NAMES),
        )
    }

    pub fn histograms(self, name: &str, help: &str, labels: &[&str]) -> HistogramVec {
        self.register(HistogramVec::new(HistogramOpts::new(name, help), labels).expect(VALID_NAMES))
    }
}

/// A counter that is not registered yet. The name must be valid.
pub fn new_counter(name: &str, help: &str) -> IntCounter {
    IntCounter::new(name, help).expect(VALID_NAMES)
}

/// Adds the metrics of this process.
#[cfg(target_os = "linux")]
pub fn register_process_metrics(registry: &Registry) {
    let _ = registry.register(Box::new(
        prometheus::process_collector::ProcessCollector::for_self(),
    ));
}

/// All metrics of a registry in the text exposition format of Prometheus.
pub fn render(registry: &Registry) -> String {
    let mut text = Vec::new();
    // Writing into memory does not fail, and all names are valid.
    let _ = TextEncoder::new().encode(&registry.gather(), &mut text);
    String::from_utf8(text).unwrap_or_default()
}

/// Removes the series of a vector whose `site` label is not kept.
pub fn remove_sites<T: MetricVecBuilder>(vector: &MetricVec<T>, keep: &dyn Fn(&str) -> bool) {
    let order: Vec<String> = vector
        .desc()
        .first()
        .map(|desc| desc.variable_labels.clone())
        .unwrap_or_default();
    for metric in vector
        .collect()
        .iter()
        .flat_map(|family| family.get_metric())
    {
        if label(metric, "site").is_some_and(|site| !keep(site)) {
            let labels: Vec<&str> = order
                .iter()
                .filter_map(|name| label(metric, name))
                .collect();
            let _ = vector.remove_label_values(&labels);
        }
    }
}

/// The value of a label of a series.
fn label<'m>(metric: &'m Metric, name: &str) -> Option<&'m str> {
    metric
        .get_label()
        .iter()
        .find(|label| label.name() == name)
        .map(|label| label.value())
}
