//! [`StoreMetrics`]: metrics of the store that several instances share. They are registered at their first use, so a
//! crawlgate without `store` does not export them.

use super::Metrics;
use super::register::Register;
use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

/// The metrics. The help text of each says what it is.
#[allow(missing_docs)]
pub struct StoreMetrics {
    pub up: IntGauge,
    pub instances: IntGaugeVec,
    pub differing: IntGauge,
    pub lag: Gauge,
    pub clock_ahead: Gauge,
    pub accuses: IntGauge,
    pub waiting: IntGaugeVec,
    pub facts: IntCounterVec,
    pub confirmations: IntCounterVec,
    pub failures: IntCounter,
    pub started_over: IntCounter,
}

impl StoreMetrics {
    fn new(register: Register<'_>) -> StoreMetrics {
        StoreMetrics {
            up: register.gauge("crawlgate_store_up", "1 while the store where instances meet answers, else 0."),
            instances: register.gauges(
                "crawlgate_instances",
                "Instances in the store, this one included, by standing: present, silent.",
                &["standing"],
            ),
            differing: register.gauge(
                "crawlgate_instances_differing",
                "Instances that report and have other policies than this one.",
            ),
            lag: register.float_gauge(
                "crawlgate_instances_lag_seconds",
                "Seconds since the instance that is furthest behind has reported; silent instances do not count.",
            ),
            clock_ahead: register.float_gauge(
                "crawlgate_store_clock_ahead_seconds",
                "Seconds by which the clock of this machine is ahead of the store's.",
            ),
            accuses: register.gauge("crawlgate_accuses", "1 while requests can be called violations, else 0."),
            waiting: register.gauges(
                "crawlgate_store_waiting",
                "What waits for the store, by kind: facts to be written, records of violations to be confirmed.",
                &["kind"],
            ),
            facts: register.counters(
                "crawlgate_store_facts_total",
                "Facts that this instance wrote to the store, and read of other instances, by direction.",
                &["direction"],
            ),
            confirmations: register.counters(
                "crawlgate_confirmations_total",
                "Violations that were held until the other instances reported, by outcome: confirmed, refuted, unconfirmed.",
                &["outcome"],
            ),
            failures: register.counter("crawlgate_store_failures_total", "Attempts in which the store did not answer."),
            started_over: register.counter(
                "crawlgate_store_started_over_total",
                "How often the store was another one or had lost facts, so that every instance wrote its own again.",
            ),
        }
    }
}

impl Metrics {
    /// The metrics of the store. The first call registers them.
    pub fn store(&self) -> &StoreMetrics {
        self.store.get_or_init(|| StoreMetrics::new(Register(&self.registry)))
    }
}
