//! What is counted of the origins: [`UpstreamMetrics`]. Origins and servers are places in the settings, so there are few
//! series. An origin is called by its first host. Must not know how a request is sent.

use super::counters::cut_label;
use super::register::Register;
use prometheus::{Histogram, IntCounter, IntCounterVec};
use std::sync::OnceLock;

/// The classes of an origin's response status; the last is for every other status.
const STATUS_CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "5xx", "other"];
/// The labels of a request for a host that no origin is for.
const NO_ORIGIN: &str = "none";

/// A server by its place in the settings, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPlace {
    /// The place of its origin.
    pub origin: usize,
    /// Its place among the servers of the origin.
    pub server: usize,
}

/// Responses and failures.
pub(super) struct UpstreamMetrics {
    requests: IntCounterVec,
    failures: IntCounterVec,
    /// In the order of [`STATUS_CLASSES`].
    seconds: [Histogram; STATUS_CLASSES.len()],
    origins: OnceLock<Vec<OriginCounters>>,
}

/// The counters of one origin. Found without looking labels up, because every forwarded request comes here.
struct OriginCounters {
    name: String,
    /// In the order of [`STATUS_CLASSES`].
    requests: [IntCounter; STATUS_CLASSES.len()],
}

impl UpstreamMetrics {
    pub fn new(register: Register<'_>) -> UpstreamMetrics {
        let seconds = register.histograms(
            "crawlgate_upstream_seconds",
            "Time until the origin sent the head of its response, by class of status. It includes connecting and a \
             second try. It does not include the body.",
            &["status"],
        );
        UpstreamMetrics {
            requests: register.counters(
                "crawlgate_upstream_requests_total",
                "Responses of the origin, by class of status.",
                &["origin", "status"],
            ),
            failures: register.counters(
                "crawlgate_upstream_failures_total",
                "Requests that the origin did not answer, by reason. The label server is that of the last try.",
                &["origin", "server", "reason"],
            ),
            seconds: STATUS_CLASSES.map(|class| seconds.with_label_values(&[class])),
            origins: OnceLock::new(),
        }
    }

    pub fn set_origins(&self, names: impl Iterator<Item = String>) {
        let counters = |name: String| {
            let requests = STATUS_CLASSES.map(|class| self.requests.with_label_values(&[cut_label(&name), class]));
            OriginCounters { name, requests }
        };
        let _ = self.origins.set(names.map(counters).collect());
    }

    fn origin(&self, place: ServerPlace) -> Option<&OriginCounters> {
        self.origins.get()?.get(place.origin)
    }

    pub fn answered(&self, place: ServerPlace, status: u16, seconds: f64) {
        let class = usize::from(status / 100).wrapping_sub(2).min(STATUS_CLASSES.len() - 1);
        self.seconds[class].observe(seconds);
        if let Some(origin) = self.origin(place) {
            origin.requests[class].inc();
        }
    }

    pub fn failed(&self, place: Option<ServerPlace>, reason: &'static str) {
        let server = place.map(|place| (place.server + 1).to_string());
        let origin = place.and_then(|place| self.origin(place)).map(|origin| cut_label(&origin.name));
        let labels = [origin.unwrap_or(NO_ORIGIN), server.as_deref().unwrap_or(NO_ORIGIN), reason];
        self.failures.with_label_values(&labels).inc();
    }
}
