//! Metrics of proof: published lists and reverse DNS. The main type is [`IdentityMetrics`]. Must not know how crawlers are
//! proven.

use super::Metrics;
use super::register::Register;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

/// A published list that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListGauges {
    /// Where it is published, without the scheme.
    pub list: String,
    /// How many networks it has.
    pub networks: usize,
    /// When its server last said that it is so, in seconds since 1970.
    pub checked: i64,
}

pub(super) struct IdentityMetrics {
    networks: IntGaugeVec,
    checked: IntGaugeVec,
    addresses: IntGauge,
    lookups: IntCounterVec,
    left_out: IntCounter,
}

impl IdentityMetrics {
    pub(super) fn new(register: Register<'_>) -> IdentityMetrics {
        IdentityMetrics {
            networks: register.gauges(
                "crawlgate_identity_list_networks",
                "Networks of a published list, or keys of a key directory, by its URL.",
                &["list"],
            ),
            checked: register.gauges(
                "crawlgate_identity_list_checked_timestamp_seconds",
                "When the server of a published list last said that the list is as crawlgate has it.",
                &["list"],
            ),
            addresses: register.gauge(
                "crawlgate_identity_addresses",
                "Addresses of claimed crawlers whose reverse DNS is known or asked for.",
            ),
            lookups: register.counters(
                "crawlgate_identity_lookups_total",
                "Addresses that reverse DNS was asked about, by outcome: answered, failed.",
                &["outcome"],
            ),
            left_out: register.counter(
                "crawlgate_identity_left_out_total",
                "Addresses that reverse DNS was not asked about, because too many waited.",
            ),
        }
    }
}

impl Metrics {
    /// `crawlgate_identity_list_networks{list}` and `crawlgate_identity_list_checked_timestamp_seconds{list}`.
    pub fn set_lists(&self, lists: &[ListGauges]) {
        let _one = self.setting();
        for ListGauges { list, networks, checked } in lists {
            let networks = i64::try_from(*networks).unwrap_or(i64::MAX);
            self.proofs.networks.with_label_values(&[list]).set(networks);
            self.proofs.checked.with_label_values(&[list]).set(*checked);
        }
    }

    /// `crawlgate_identity_addresses` and `crawlgate_identity_left_out_total`, which never goes back.
    pub fn set_reverse_dns(&self, addresses: usize, left_out: u64) {
        self.proofs.addresses.set(i64::try_from(addresses).unwrap_or(i64::MAX));
        self.raise(&self.proofs.left_out, left_out);
    }

    /// `crawlgate_identity_lookups_total{outcome}`.
    pub fn looked_up(&self, outcome: &'static str) {
        self.proofs.lookups.with_label_values(&[outcome]).inc();
    }
}
