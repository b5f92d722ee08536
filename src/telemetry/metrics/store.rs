//! Metrics of the store where several instances meet. The main type is [`StoreMetrics`]. Without a store there are none. Must
//! not know how facts are exchanged.

use super::Metrics;
use super::register::Register;
use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

/// How the store and the instances stand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct StoreGauges {
    pub is_up: bool,
    pub present: usize,
    pub silent: usize,
    /// Present ones with other policies than this one.
    pub differing: usize,
    /// Seconds since the one that is furthest behind has reported.
    pub lag: f64,
    pub clock_ahead_ms: i64,
    /// Whether requests are called violations.
    pub accuses: bool,
    pub facts_waiting: usize,
    pub records_waiting: usize,
    pub written: u64,
    pub read: u64,
    pub confirmed: u64,
    pub refuted: u64,
    pub unconfirmed: u64,
    pub failures: u64,
    pub started_over: u64,
}

pub(super) struct StoreMetrics {
    up: IntGauge,
    instances: IntGaugeVec,
    differing: IntGauge,
    lag: Gauge,
    clock_ahead: Gauge,
    accuses: IntGauge,
    waiting: IntGaugeVec,
    facts: IntCounterVec,
    confirmations: IntCounterVec,
    failures: IntCounter,
    started_over: IntCounter,
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
    /// The metrics of the store; the counters never go back.
    pub fn set_store(&self, gauges: &StoreGauges) {
        let metrics = self.store.get_or_init(|| StoreMetrics::new(Register(&self.registry)));
        let _one = self.setting();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.up.set(gauges.is_up.into());
        metrics.instances.with_label_values(&["present"]).set(number(gauges.present));
        metrics.instances.with_label_values(&["silent"]).set(number(gauges.silent));
        metrics.differing.set(number(gauges.differing));
        metrics.lag.set(gauges.lag);
        metrics.clock_ahead.set(gauges.clock_ahead_ms as f64 / 1_000.0);
        metrics.accuses.set(gauges.accuses.into());
        metrics.waiting.with_label_values(&["facts"]).set(number(gauges.facts_waiting));
        metrics.waiting.with_label_values(&["records"]).set(number(gauges.records_waiting));
        let counted = [
            (metrics.facts.with_label_values(&["written"]), gauges.written),
            (metrics.facts.with_label_values(&["read"]), gauges.read),
            (metrics.confirmations.with_label_values(&["confirmed"]), gauges.confirmed),
            (metrics.confirmations.with_label_values(&["refuted"]), gauges.refuted),
            (metrics.confirmations.with_label_values(&["unconfirmed"]), gauges.unconfirmed),
            (metrics.failures.clone(), gauges.failures),
            (metrics.started_over.clone(), gauges.started_over),
        ];
        for (counter, count) in counted {
            counter.inc_by(count.saturating_sub(counter.get()));
        }
    }
}
