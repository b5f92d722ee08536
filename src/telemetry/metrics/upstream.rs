//! [`OriginMetrics`]: the Prometheus metrics of origins (the web servers behind crawlgate), their
//! servers and their queues. [`UpstreamMetrics`] registers them. An origin's label is its first
//! host with its path, and a server's label is its position in the settings. So there are few time
//! series.

use super::Metrics;
use super::collectors::{
    Histogram, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, MetricRegistrar,
};
use crate::record::truncate_label;
use std::sync::Arc;

/// The classes of response statuses; the last is for every other status.
const STATUS_CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "5xx", "other"];
/// The label of a request for a host without an origin.
const NO_ORIGIN: &str = "none";

/// A server by its index in the settings.
#[derive(Clone, Copy)]
pub struct ServerId {
    /// The index of its origin.
    pub origin: usize,
    /// Its index among the servers of the origin.
    pub server: usize,
}

impl ServerId {
    /// The `server` label: the position among the servers of the origin, from 1.
    fn label(self) -> String {
        (self.server + 1).to_string()
    }
}

/// The registered metrics. The help text of each says what it is.
pub struct UpstreamMetrics {
    requests: IntCounterVec,
    failures: IntCounterVec,
    retries: IntCounterVec,
    checks: IntCounterVec,
    queue_seconds: HistogramVec,
    turned_away: IntCounterVec,
    servers: IntGaugeVec,
    in_flight: IntGaugeVec,
    waiting: IntGaugeVec,
    seconds: HistogramVec,
}

/// The metrics of the origins of these settings.
pub struct OriginMetrics {
    registered: Arc<UpstreamMetrics>,
    origins: Vec<OriginResponseCounters>,
}

/// The counters of one origin, kept because looking up labels for every forwarded request would be
/// slow.
struct OriginResponseCounters {
    name: String,
    /// The counters of each server, in the order of [`STATUS_CLASSES`].
    requests: Vec<[IntCounter; STATUS_CLASSES.len()]>,
    /// In the order of [`STATUS_CLASSES`].
    seconds: [Histogram; STATUS_CLASSES.len()],
}

impl UpstreamMetrics {
    pub fn new(register: MetricRegistrar<'_>) -> UpstreamMetrics {
        UpstreamMetrics {
            requests: register.counters(
                "crawlgate_upstream_requests_total",
                "Responses of the origin, by server and by class of status.",
                &["origin", "server", "status"],
            ),
            failures: register.counters(
                "crawlgate_upstream_failures_total",
                "Requests that a server of the origin did not answer, by reason, even if another server then answered them.",
                &["origin", "server", "reason"],
            ),
            retries: register.counters(
                "crawlgate_upstream_retries_total",
                "Requests that were sent once more, by the reason why the first try failed.",
                &["origin", "reason"],
            ),
            checks: register.counters(
                "crawlgate_upstream_checks_total",
                "Health checks of a server, by result: ok, or why the check failed.",
                &["origin", "server", "result"],
            ),
            turned_away: register.counters(
                "crawlgate_turned_away_total",
                "Requests for which no server of the origin was free: of crawlers (turned_away), and of visitors, \
                 because the queue was full (queue_full) or the wait too long (queue_timeout).",
                &["origin", "reason"],
            ),
            servers: register.gauges(
                "crawlgate_upstream_servers",
                "Addresses of a server, by state: up, ejected after failures, or down by health checks.",
                &["origin", "server", "state"],
            ),
            in_flight: register.gauges(
                "crawlgate_upstream_in_flight",
                "Requests that a server is handling now.",
                &["origin", "server"],
            ),
            waiting: register.gauges(
                "crawlgate_queue_waiting",
                "Visitors who wait for a server of the origin.",
                &["origin"],
            ),
            queue_seconds: register.histograms(
                "crawlgate_queue_seconds",
                "How long visitors waited for a server of the origin.",
                &["origin"],
            ),
            seconds: register.histograms(
                "crawlgate_upstream_seconds",
                "Time until the origin sent the head of its response, by class of status. It includes connecting and a \
                 second try. It does not include the body.",
                &["origin", "status"],
            ),
        }
    }
}

impl OriginMetrics {
    /// The metrics of origins with these names, in the order of the settings, each with the number
    /// of its servers. Their request counters begin at 0.
    pub fn new(metrics: &Metrics, origins: impl Iterator<Item = (String, usize)>) -> OriginMetrics {
        let mut counters = Vec::new();
        for (name, servers) in origins {
            let mut requests = Vec::new();
            for server in 0..servers {
                let server = ServerId { origin: 0, server }.label();
                requests.push(STATUS_CLASSES.map(|class| {
                    let labels = [truncate_label(&name), &server, class];
                    metrics.upstream.requests.with_label_values(&labels)
                }));
            }
            metrics
                .upstream
                .queue_seconds
                .with_label_values(&[truncate_label(&name)]);
            let seconds = STATUS_CLASSES.map(|class| {
                metrics
                    .upstream
                    .seconds
                    .with_label_values(&[truncate_label(&name), class])
            });
            counters.push(OriginResponseCounters {
                name,
                requests,
                seconds,
            });
        }
        OriginMetrics {
            registered: metrics.upstream.clone(),
            origins: counters,
        }
    }

    fn origin(&self, place: ServerId) -> Option<&OriginResponseCounters> {
        self.origins.get(place.origin)
    }

    /// Counts a response in `crawlgate_upstream_requests_total{origin,server,status}` and its
    /// `seconds` (until the head came) in `crawlgate_upstream_seconds{origin,status}`, by class of
    /// status: `2xx` to `5xx`, else `other`. A server that the settings do not have counts nowhere.
    pub fn record_response(&self, place: ServerId, status: u16, seconds: f64) {
        let class = usize::from(status / 100)
            .wrapping_sub(2)
            .min(STATUS_CLASSES.len() - 1);
        if let Some(origin) = self.origin(place)
            && let Some(requests) = origin.requests.get(place.server)
        {
            origin.seconds[class].observe(seconds);
            requests[class].inc();
        }
    }

    /// The time that a person waited in a queue, in `crawlgate_queue_seconds{origin}`.
    pub fn record_queue_wait(&self, place: ServerId, seconds: f64) {
        self.registered
            .queue_seconds
            .with_label_values(&[self.origin_label(place)])
            .observe(seconds);
    }

    /// The `origin` label of a server; `none` if the settings have no such origin.
    fn origin_label(&self, place: ServerId) -> &str {
        self.origin(place)
            .map_or(NO_ORIGIN, |origin| truncate_label(&origin.name))
    }

    /// `crawlgate_upstream_retries_total{origin,reason}`.
    pub fn record_retry(&self, place: ServerId, reason: &'static str) {
        self.registered
            .retries
            .with_label_values(&[self.origin_label(place), reason])
            .inc();
    }

    /// `crawlgate_turned_away_total{origin,reason}`.
    pub fn record_turned_away(&self, place: ServerId, reason: &'static str) {
        self.registered
            .turned_away
            .with_label_values(&[self.origin_label(place), reason])
            .inc();
    }

    /// `crawlgate_upstream_checks_total{origin,server,result}`: `ok`, or why the check failed.
    pub fn record_health_check(&self, place: ServerId, result: &'static str) {
        self.registered
            .checks
            .with_label_values(&[self.origin_label(place), &place.label(), result])
            .inc();
    }

    /// `crawlgate_upstream_servers{origin,server,state}` by the number of addresses in each state,
    /// and `crawlgate_upstream_in_flight{origin,server}`.
    pub fn set_server(
        &self,
        place: ServerId,
        states: [(&'static str, usize); 3],
        in_flight: usize,
    ) {
        let origin = self.origin_label(place);
        let server = place.label();
        for (state, count) in states {
            self.registered
                .servers
                .with_label_values(&[origin, &server, state])
                .set(count as i64);
        }
        self.registered
            .in_flight
            .with_label_values(&[origin, &server])
            .set(in_flight as i64);
    }

    /// Sets `crawlgate_queue_waiting{origin}`, and creates the origin's
    /// `crawlgate_turned_away_total` with 0 for each reason if they do not exist yet. The server in
    /// `place` plays no role.
    pub fn set_waiting(&self, place: ServerId, waiting: usize) {
        let origin = self.origin_label(place);
        // A rate needs a series that begins at 0.
        for reason in ["turned_away", "queue_full", "queue_timeout"] {
            self.registered
                .turned_away
                .with_label_values(&[origin, reason]);
        }
        self.registered
            .waiting
            .with_label_values(&[origin])
            .set(waiting as i64);
    }

    /// Counts one in `crawlgate_upstream_failures_total{origin,server,reason}`. With `None` (no
    /// origin is for the host) both origin and server are `none`.
    pub fn record_failure(&self, place: Option<ServerId>, reason: &'static str) {
        let server = place.map(ServerId::label);
        let origin = place.map_or(NO_ORIGIN, |place| self.origin_label(place));
        let labels = [origin, server.as_deref().unwrap_or(NO_ORIGIN), reason];
        self.registered.failures.with_label_values(&labels).inc();
    }
}
