//! [`Metrics`]: all Prometheus metrics of crawlgate, in a registry of their own. Labels never come
//! from the path, the user agent or the address of a request, and the number of series with a
//! `crawler` label is limited. When a site is removed, its series are removed. Without the feature
//! `metrics` nothing is exported; requests are still counted for the dashboard's history.

#[cfg(feature = "metrics")]
mod collectors;
mod counters;
mod edge;
#[cfg(not(feature = "metrics"))]
mod no_collectors;
mod requests;
mod sites;
mod upstream;

pub use collectors::new_counter;
pub use edge::{ConnectionGaugeGuard, EdgeMetrics};
pub use sites::SiteGaugeValues;
pub use upstream::{OriginMetrics, ServerId};

use crate::locks::lock;
use crate::record::{CountTable, TopPaths, truncate_label};
use collectors::{
    Gauge, Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, MetricRegistrar, Registry,
};
use counters::LabelledCounter;
use http::StatusCode;
#[cfg(not(feature = "metrics"))]
use no_collectors as collectors;
use requests::RequestSeries;
use sites::SiteMetrics;
use std::sync::{Arc, Mutex, MutexGuard};
use upstream::UpstreamMetrics;

/// The site label of requests for hosts that no site claims, and of requests that were refused
/// before they were judged.
pub const UNCLAIMED: &str = "unclaimed";

/// The upper bounds of `crawlgate_decision_seconds`.
const DECISION_BUCKETS: [f64; 9] = [1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 1e-4, 1e-3];

/// All metrics, in a registry of their own. The help text of each says what it is.
#[allow(missing_docs)]
pub struct Metrics {
    registry: Registry,
    /// All counters with a `crawler` label share one cap.
    pub counts: CountTable,
    requests: RequestSeries,
    robots_txt: LabelledCounter<3>,
    /// By crawler and outcome, without a site, because an identity does not depend on the site. The
    /// crawler is one of the registry or `other`: these series are not removed with a site, so they
    /// must be few.
    pub identity: LabelledCounter<2>,
    /// Visits, by site and referring service.
    pub visits: LabelledCounter<2>,
    /// The paths that crawlers request most. No metric shows them.
    pub paths: TopPaths,
    pub proofs: IdentityMetrics,
    sites: SiteMetrics,
    pub decision: Histogram,
    upstream: Arc<UpstreamMetrics>,
    /// Its labels are names of sites and fixed words.
    pages: IntCounterVec,
    pub in_flight: IntGauge,
    pub edge: EdgeMetrics,
    pub access_log_dropped: IntCounter,
    pub events_dropped: IntCounter,
    pub trapped: IntGauge,
    pub problems: IntGaugeVec,
    /// Locked while gauges are replaced or read, so that no reader sees a part of them.
    setting: Mutex<()>,
}

impl Metrics {
    /// Registers all metrics but those of the store.
    pub fn new() -> Arc<Metrics> {
        let registry = Registry::default();
        let register = MetricRegistrar(&registry);
        // Nothing but a proxy fills these.
        let unseen = Registry::default();
        let of_proxy = if cfg!(feature = "proxy") {
            register
        } else {
            MetricRegistrar(&unseen)
        };
        register_process(register);
        let series = &Arc::default();
        Arc::new(Metrics {
            counts: CountTable::new(series),
            requests: RequestSeries::new(register),
            robots_txt: LabelledCounter::new(
                register,
                series,
                "crawlgate_robots_txt_total",
                "Responses to requests for robots.txt, by status.",
                ["site", "crawler", "status"],
            ),
            identity: LabelledCounter::new(
                register,
                series,
                "crawlgate_identity_total",
                "Requests under a crawler's name (other: unknown bots), by identity: verified, unverified, impostor.",
                ["crawler", "outcome"],
            ),
            visits: LabelledCounter::new(
                register,
                series,
                "crawlgate_visits_total",
                "Visits that AI assistants and search engines sent, by service.",
                ["site", "service"],
            ),
            paths: TopPaths::default(),
            proofs: IdentityMetrics::new(of_proxy),
            sites: SiteMetrics::new(register),
            decision: register.histogram(
                "crawlgate_decision_seconds",
                "Time that crawlgate took to judge a request. One request in 16 is timed.",
                &DECISION_BUCKETS,
            ),
            upstream: Arc::new(UpstreamMetrics::new(of_proxy)),
            pages: register.counters(
                "crawlgate_html_pages_total",
                "Pages that the policy's html section applies to, by outcome.",
                &["site", "outcome"],
            ),
            problems: register.gauges(
                "crawlgate_problems",
                "Problems that need attention, by problem. crawlgate status (in an application: GateLayer::problems) lists them.",
                &["problem"],
            ),
            in_flight: register.gauge(
                "crawlgate_requests_in_flight",
                "Requests that were received and are not yet answered completely.",
            ),
            edge: EdgeMetrics::new(register, of_proxy),
            access_log_dropped: register
                .counter("crawlgate_access_log_dropped_total", "Access log lines that crawlgate could not write."),
            events_dropped: register
                .counter("crawlgate_events_dropped_total", "Event log lines that crawlgate could not write."),
            trapped: register.gauge("crawlgate_trapped", "Client addresses that are marked because of a trap."),
            setting: Mutex::default(),
            registry,
        })
    }

    /// Counts one in `crawlgate_robots_txt_total{site,crawler,status}`. `served` is the time of a
    /// request that got the whole answer, in seconds since 1970. With it, and a status 200 or 304,
    /// also sets `crawlgate_robots_last_fetch_timestamp_seconds{site,crawler}`, unless the crawler
    /// is counted under `overflow`.
    pub fn count_robots_txt(&self, site: &str, crawler: &str, status: u16, served: Option<i64>) {
        let code = StatusCode::from_u16(status.clamp(100, 999)).unwrap_or_default();
        let by_name = self.robots_txt.count([site, crawler, code.as_str()]);
        // A crawler that is counted under `overflow` has no gauge of its own.
        if let Some(now) = served.filter(|_| by_name && matches!(status, 200 | 304)) {
            self.sites
                .last_fetch
                .with_label_values(&[truncate_label(site), truncate_label(crawler)])
                .set(now);
        }
    }

    /// `crawlgate_html_pages_total{site,outcome}`.
    pub fn count_rewrite_outcome(&self, site: &str, outcome: &'static str) {
        self.pages
            .with_label_values(&[truncate_label(site), outcome])
            .inc();
    }

    /// Raises a counter to a number that was counted elsewhere since the start. A smaller number
    /// changes nothing.
    pub fn raise_counter(&self, counter: &IntCounter, to: u64) {
        let _one = self.lock_gauges();
        counter.inc_by(to.saturating_sub(counter.get()));
    }

    /// Registers a counter that was made elsewhere. To be called once for each.
    pub fn register_counter(&self, counter: IntCounter) {
        MetricRegistrar(&self.registry).register(counter);
    }

    /// Registers the metrics of the store. To be called once.
    pub fn register_store(&self) -> StoreMetrics {
        StoreMetrics::new(MetricRegistrar(&self.registry))
    }

    /// Locks the gauges, for replacing or reading them.
    fn lock_gauges(&self) -> MutexGuard<'_, ()> {
        lock(&self.setting)
    }

    /// All metrics in the text exposition format of Prometheus.
    #[cfg(feature = "metrics")]
    pub fn render(&self) -> String {
        let _one = self.lock_gauges();
        self.requests.export(&self.counts);
        self.robots_txt.export();
        self.identity.export();
        self.visits.export();
        collectors::render(&self.registry)
    }
}

/// Adds the version of crawlgate, and the metrics of this process.
fn register_process(register: MetricRegistrar<'_>) {
    register
        .gauges(
            "crawlgate_build_info",
            "Always 1. The label version is that of crawlgate.",
            &["version"],
        )
        .with_label_values(&[env!("CARGO_PKG_VERSION")])
        .set(1);
    #[cfg(all(feature = "metrics", target_os = "linux"))]
    collectors::register_process_metrics(register.0);
}

/// The metrics of published lists and reverse DNS, which prove crawlers.
#[allow(missing_docs)]
pub struct IdentityMetrics {
    pub networks: IntGaugeVec,
    pub checked: IntGaugeVec,
    pub addresses: IntGauge,
    pub lookups: IntCounterVec,
    pub left_out: IntCounter,
}

impl IdentityMetrics {
    fn new(register: MetricRegistrar<'_>) -> IdentityMetrics {
        IdentityMetrics {
            networks: register.gauges(
                "crawlgate_identity_list_networks",
                "Networks of a published list, or keys of a key directory, by its URL.",
                &["list"],
            ),
            checked: register.gauges(
                "crawlgate_identity_list_checked_timestamp_seconds",
                "When the server of a published list last confirmed crawlgate's copy of it.",
                &["list"],
            ),
            addresses: register.gauge(
                "crawlgate_identity_addresses",
                "Addresses of crawlers whose reverse DNS crawlgate knows or asks for now.",
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

/// The metrics of the store that several instances share. A crawlgate without `store` does not
/// export them.
#[allow(missing_docs)]
pub struct StoreMetrics {
    pub up: IntGauge,
    pub instances: IntGaugeVec,
    pub differing: IntGauge,
    pub clock_ahead: Gauge,
    pub accuses: IntGauge,
}

impl StoreMetrics {
    fn new(register: MetricRegistrar<'_>) -> StoreMetrics {
        StoreMetrics {
            up: register.gauge(
                "crawlgate_store_up",
                "1 while the store where instances meet answers, else 0.",
            ),
            instances: register.gauges(
                "crawlgate_instances",
                "Instances in the store, this one included, by standing: present, silent.",
                &["standing"],
            ),
            differing: register.gauge(
                "crawlgate_instances_differing",
                "Instances that report and have other policies than this one.",
            ),
            clock_ahead: register.float_gauge(
                "crawlgate_store_clock_ahead_seconds",
                "Seconds by which the clock of this machine is ahead of the store's.",
            ),
            accuses: register.gauge(
                "crawlgate_accuses",
                "1 while requests can be called violations, else 0.",
            ),
        }
    }
}
