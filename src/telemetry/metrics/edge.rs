//! [`EdgeMetrics`]: metrics of connections, rejected requests, certificates and
//! buffers. Labels are fixed words and names of certificates. A [`ConnectionGaugeGuard`] counts one
//! connection of a client until the guard is dropped. The connection is in one of these states:
//!
//! - `idle`: no request is being received or answered. A connection begins in this state, and
//!   returns to it when its last open request is answered.
//! - `active`: a request is being received or answered. Over HTTP/1.1 this state begins with the
//!   first byte of the request, over HTTP/2 with the complete head.

use super::Metrics;
use super::collectors::{IntCounterVec, IntGauge, IntGaugeVec, MetricRegistrar};
use crate::record::truncate_label;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The metrics. The help text of each says what it is.
pub struct EdgeMetrics {
    /// The gauges of idle and of active connections.
    connections: [IntGauge; 2],
    pub closed: IntCounterVec,
    rejected: IntCounterVec,
    not_after: IntGaugeVec,
    pub refused_renewals: IntGauge,
    orders: IntCounterVec,
    pub buffers: IntGauge,
}

impl EdgeMetrics {
    pub fn new(of_requests: MetricRegistrar<'_>, register: MetricRegistrar<'_>) -> EdgeMetrics {
        let closed = register.counters(
            "crawlgate_connections_closed_total",
            "Connections of clients that crawlgate ended for a reason of its own.",
            &["reason"],
        );
        // An alert on their first increase needs a value before it.
        for reason in ["too_many", "accept"] {
            closed.with_label_values(&[reason]);
        }
        let orders = register.counters(
            "crawlgate_certificate_orders_total",
            "Attempts to get a certificate from an authority, by result.",
            &["result"],
        );
        for result in ["obtained", "elsewhere", "away", "refused", "limited", "own"] {
            orders.with_label_values(&[result]);
        }
        let connections = register.gauges(
            "crawlgate_connections",
            "Open connections of clients: active while a request is being received or answered, idle otherwise.",
            &["state"],
        );
        EdgeMetrics {
            connections: ["idle", "active"].map(|state| connections.with_label_values(&[state])),
            closed,
            rejected: of_requests.counters(
                "crawlgate_requests_rejected_total",
                "Requests that crawlgate rejected before it judged them, by reason.",
                &["reason"],
            ),
            not_after: register.gauges(
                "crawlgate_certificate_not_after_timestamp_seconds",
                "When the certificate in use expires. The label name is the first name in the certificate.",
                &["name"],
            ),
            buffers: of_requests.gauge(
                "crawlgate_buffers_bytes",
                "Bytes of limits.buffers that are reserved for open requests and responses.",
            ),
            orders,
            refused_renewals: register.gauge(
                "crawlgate_certificates_refused",
                "Certificates of listeners, and files in tls of origins, that changed and cannot be used. The former ones stay in use.",
            ),
        }
    }
}

impl Metrics {
    /// `crawlgate_connections{state}`: one more connection, idle at first.
    pub fn open_connection(&self) -> ConnectionGaugeGuard {
        self.edge.connections[0].inc();
        ConnectionGaugeGuard {
            gauges: self.edge.connections.clone(),
            active: AtomicBool::new(false),
        }
    }

    /// `crawlgate_requests_rejected_total{reason}`.
    pub fn count_rejected_request(&self, reason: &'static str) {
        self.edge.rejected.with_label_values(&[reason]).inc();
    }

    /// `crawlgate_certificate_orders_total{result}`.
    pub fn count_certificate_order(&self, result: &'static str) {
        self.edge.orders.with_label_values(&[result]).inc();
    }

    /// Sets `crawlgate_certificate_not_after_timestamp_seconds{name}` of all certificates in use,
    /// in seconds since 1970, and removes it for all other names.
    pub fn set_certificates(&self, not_after: &[(String, i64)]) {
        let _one = self.lock_gauges();
        self.edge.not_after.reset();
        for (name, moment) in not_after {
            let gauge = self
                .edge
                .not_after
                .with_label_values(&[truncate_label(name)]);
            let first: i64 = gauge.get();
            // Of two certificates with one name, the one that expires first matters.
            if first == 0 || *moment < first {
                gauge.set(*moment);
            }
        }
    }
}

/// Counts one open connection until this is dropped.
#[derive(Debug)]
pub struct ConnectionGaugeGuard {
    /// The gauges of idle and of active connections.
    gauges: [IntGauge; 2],
    active: AtomicBool,
}

impl ConnectionGaugeGuard {
    /// Sets whether a request is being received or answered.
    pub fn set_active(&self, active: bool) {
        // Read first: it is called for every piece of a request.
        if self.active.load(Relaxed) != active && self.active.swap(active, Relaxed) != active {
            self.gauges[usize::from(!active)].dec();
            self.gauges[usize::from(active)].inc();
        }
    }
}

impl Drop for ConnectionGaugeGuard {
    fn drop(&mut self) {
        self.gauges[usize::from(*self.active.get_mut())].dec();
    }
}
