//! [`RequestSeries`]: the Prometheus metrics of requests, violations, bytes and responses. During a
//! request only a [`CountTable`] is updated; for each scrape the table is copied into the metrics.

use super::collectors::{IntCounterVec, MetricRegistrar};
use crate::record::{CountTable, identity_label};

/// The series of requests, violations, bytes and responses.
pub struct RequestSeries {
    requests: IntCounterVec,
    violations: IntCounterVec,
    sent_bytes: IntCounterVec,
    responses: IntCounterVec,
}

impl RequestSeries {
    pub fn new(register: MetricRegistrar<'_>) -> RequestSeries {
        RequestSeries {
            requests: register.counters(
                "crawlgate_requests_total",
                "Requests, by crawler, identity, kind and the action that crawlgate took.",
                &["site", "crawler", "identity", "kind", "action"],
            ),
            violations: register.counters(
                "crawlgate_violations_total",
                "Requests that crawlgate blocked for breaking the rules, or that enforcement would block, by kind and \
                 identity. The kinds ambiguous, not_bound and unverified are not counted.",
                &["site", "crawler", "identity", "kind"],
            ),
            sent_bytes: register.counters(
                "crawlgate_sent_bytes_total",
                "Bytes of the bodies that were sent, by crawler and identity.",
                &["site", "crawler", "identity"],
            ),
            responses: register.counters(
                "crawlgate_responses_total",
                "Responses of the origin, by status: 2xx, 3xx (without 304), 304, 4xx, 5xx.",
                &["site", "crawler", "identity", "status"],
            ),
        }
    }

    /// Replaces the series by those of a table.
    pub fn export(&self, counts: &CountTable) {
        self.requests.reset();
        self.violations.reset();
        self.sent_bytes.reset();
        self.responses.reset();
        counts.for_each(|site, crawler, identity, cells| {
            let identity = identity_label(identity);
            for (kind, action, requests) in cells.requests() {
                self.requests
                    .with_label_values(&[site, crawler, identity, kind.name(), action.name()])
                    .inc_by(requests);
            }
            for (kind, violations) in cells.violations() {
                self.violations
                    .with_label_values(&[site, crawler, identity, kind.name()])
                    .inc_by(violations);
            }
            if cells.bytes() > 0 {
                self.sent_bytes
                    .with_label_values(&[site, crawler, identity])
                    .inc_by(cells.bytes());
            }
            for (status, responses) in cells.responses() {
                self.responses
                    .with_label_values(&[site, crawler, identity, status])
                    .inc_by(responses);
            }
        });
    }
}
