//! [`IdentityMetrics`]: metrics of published lists and reverse DNS, by which crawlgate proves crawlers.

use super::register::Register;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec};

/// The metrics. The help text of each says what it is.
#[allow(missing_docs)]
pub struct IdentityMetrics {
    pub networks: IntGaugeVec,
    pub checked: IntGaugeVec,
    pub addresses: IntGauge,
    pub lookups: IntCounterVec,
    pub left_out: IntCounter,
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
