//! [`Register`] creates a collector and puts it into the registry, in one call. Names, help texts
//! and buckets are fixed in the code, so a failure here is a mistake in crawlgate and ends the
//! process at start.

#![expect(
    clippy::expect_used,
    reason = "a wrong name in the code must not start"
)]

use prometheus::core::Collector;
use prometheus::{
    Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

const VALID: &str = "names, labels and buckets are fixed and valid";

/// A registry that collectors are made in.
#[derive(Clone, Copy)]
pub struct Register<'r>(pub &'r Registry);

impl Register<'_> {
    pub fn add<C: Collector + Clone + 'static>(self, collector: C) -> C {
        self.0
            .register(Box::new(collector.clone()))
            .expect("each metric is registered once");
        collector
    }

    pub fn gauge(self, name: &str, help: &str) -> IntGauge {
        self.add(IntGauge::new(name, help).expect(VALID))
    }

    pub fn float_gauge(self, name: &str, help: &str) -> Gauge {
        self.add(Gauge::new(name, help).expect(VALID))
    }

    pub fn gauges(self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels).expect(VALID))
    }

    pub fn counter(self, name: &str, help: &str) -> IntCounter {
        self.add(IntCounter::new(name, help).expect(VALID))
    }

    pub fn counters(self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.add(IntCounterVec::new(Opts::new(name, help), labels).expect(VALID))
    }

    pub fn histogram(self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        self.add(
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))
                .expect(VALID),
        )
    }

    pub fn histograms(self, name: &str, help: &str, labels: &[&str]) -> HistogramVec {
        self.add(HistogramVec::new(HistogramOpts::new(name, help), labels).expect(VALID))
    }
}
