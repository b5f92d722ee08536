//! Prometheus metrics. [`Metrics`] holds them all, in a registry of their own, and has a method for each event that is
//! counted. Labels are registry ids, site names, policy tokens and fixed words: never a path, a user agent or an
//! address. Series are made on first use, capped, and removed with their site.

mod by_crawler;
mod connections;
mod counters;
mod edge;
mod identity;
mod register;
mod sites;
mod store;
mod upstream;

pub use by_crawler::{CrawlerCounts, IdentityCounts, NewCount};
pub use connections::OpenConnection;
pub use identity::ListGauges;
pub use sites::SiteGauges;
pub use store::StoreGauges;
pub use upstream::{ServerGauges, ServerPlace};

use counters::{Counters, cut_label};
use edge::EdgeMetrics;
use identity::IdentityMetrics;
use prometheus::{Encoder, Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder};
use register::Register;
use sites::SiteMetrics;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use store::StoreMetrics;
use upstream::UpstreamMetrics;

/// The site label of requests for hosts that no site claims, and of requests that were refused before they were judged.
pub const UNCLAIMED: &str = "unclaimed";

/// The upper bounds of `crawlgate_decision_seconds`.
const DECISION_BUCKETS: [f64; 9] = [1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 1e-4, 1e-3];

/// All metrics, in a registry of their own.
pub struct Metrics {
    registry: Registry,
    /// The counters with a crawler share one cap.
    requests: Counters,
    robots_txt: Counters,
    violations: Counters,
    /// Without a site: whether a crawler is the one that it claims to be does not depend on the site.
    identity: Counters,
    proofs: IdentityMetrics,
    sites: SiteMetrics,
    decision: Histogram,
    upstream: UpstreamMetrics,
    /// Its labels are names of sites and fixed words.
    pages: IntCounterVec,
    undeclared_proxy: IntCounter,
    in_flight: IntGauge,
    /// Of idle and of active connections.
    connections: [IntGauge; 2],
    edge: EdgeMetrics,
    access_log_dropped: IntCounter,
    events_left_out: IntCounter,
    events_dropped: IntCounter,
    evidence_entries: IntCounter,
    evidence_left_out: IntCounter,
    trapped: IntGauge,
    problems: IntGaugeVec,
    /// Made with the first status of a store.
    store: OnceLock<StoreMetrics>,
    /// Held while gauges are set, so that two settings do not mix, and while they are read.
    setting: Mutex<()>,
}

impl Metrics {
    /// With nothing counted yet.
    pub fn new() -> Arc<Metrics> {
        let registry = Registry::new();
        let register = Register(&registry);
        register
            .gauges("crawlgate_build_info", "Always 1. The label version is that of crawlgate.", &["version"])
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        #[cfg(target_os = "linux")]
        let _ = registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()));
        let [requests, robots_txt, violations, identity] = by_crawler(register);
        Arc::new(Metrics {
            requests,
            robots_txt,
            violations,
            identity,
            proofs: IdentityMetrics::new(register),
            sites: SiteMetrics::new(register),
            decision: register.histogram(
                "crawlgate_decision_seconds",
                "Time that crawlgate took to judge a request. One request in 16 is timed.",
                &DECISION_BUCKETS,
            ),
            upstream: UpstreamMetrics::new(register),
            pages: register.counters(
                "crawlgate_html_pages_total",
                "Pages that the policy's html section applies to, by outcome.",
                &["site", "outcome"],
            ),
            undeclared_proxy: undeclared_proxy(register),
            problems: register.gauges(
                "crawlgate_problems",
                "Problems that need a person, by problem. `crawlgate status` lists them.",
                &["problem"],
            ),
            in_flight: register.gauge(
                "crawlgate_requests_in_flight",
                "Requests that were received and are not yet answered completely.",
            ),
            connections: connections::gauges(register),
            edge: EdgeMetrics::new(register),
            access_log_dropped: register
                .counter("crawlgate_access_log_dropped_total", "Access log lines that crawlgate could not write."),
            events_left_out: register.counter(
                "crawlgate_events_left_out_total",
                "Events that crawlgate did not record because there were more than logs.events.rate a second.",
            ),
            events_dropped: register
                .counter("crawlgate_events_dropped_total", "Event log lines that crawlgate could not write."),
            evidence_entries: register
                .counter("crawlgate_evidence_entries_total", "Entries that crawlgate wrote to the evidence log."),
            evidence_left_out: register.counter(
                "crawlgate_evidence_left_out_total",
                "Entries that the evidence log lacks, because there were too many or they could not be written.",
            ),
            trapped: register.gauge("crawlgate_trapped", "Client addresses that are marked because of a trap."),
            store: OnceLock::new(),
            setting: Mutex::default(),
            registry,
        })
    }

    /// `crawlgate_requests_total{site,crawler,identity,kind,action}`. The crawler comes with its identity.
    pub fn request(
        &self,
        site: &str,
        (crawler, identity): (&str, &'static str),
        kind: &'static str,
        action: &'static str,
    ) {
        self.requests.count(&[site, crawler, identity, kind, action]);
    }

    /// `crawlgate_robots_txt_total{site,crawler,status}`, and when it is a 200 or 304
    /// `crawlgate_robots_last_fetch_timestamp_seconds{site,crawler}`. `now` is in seconds since 1970.
    pub fn robots_txt(&self, site: &str, crawler: &str, status: u16, now: i64) {
        let mut digits = [0; 3];
        let by_name = self.robots_txt.count(&[site, crawler, status_label(status, &mut digits)]);
        // A crawler that is not counted by name is not timed by name.
        if by_name && matches!(status, 200 | 304) {
            self.sites.last_fetch.with_label_values(&[cut_label(site), cut_label(crawler)]).set(now);
        }
    }

    /// `crawlgate_violations_total{site,crawler,identity,kind}`. The crawler comes with its identity.
    pub fn violation(&self, site: &str, (crawler, identity): (&str, &'static str), kind: &'static str) {
        self.violations.count(&[site, crawler, identity, kind]);
    }

    /// `crawlgate_identity_total{crawler,outcome}`. The crawler is one of the registry or `other`: these series stay
    /// when sites go, so they must be few.
    pub fn identity(&self, crawler: &str, outcome: &'static str) {
        self.identity.count(&[crawler, outcome]);
    }

    /// `crawlgate_decision_seconds`.
    pub fn decision(&self, seconds: f64) {
        self.decision.observe(seconds);
    }

    /// Names the origins in the order of the settings, each with the number of its servers. To be called once, before anything is counted of them.
    pub fn set_origins(&self, origins: impl Iterator<Item = (String, usize)>) {
        self.upstream.set_origins(origins);
    }

    /// `crawlgate_upstream_requests_total{origin,server,status}` and `crawlgate_upstream_seconds{status}`, by class of
    /// status: `2xx`.
    pub fn upstream(&self, server: ServerPlace, status: u16, seconds: f64) {
        self.upstream.answered(server, status, seconds);
    }

    /// `crawlgate_upstream_failures_total{origin,server,reason}`. `None` where no origin is for the host.
    pub fn upstream_failure(&self, server: Option<ServerPlace>, reason: &'static str) {
        self.upstream.failed(server, reason);
    }

    /// `crawlgate_upstream_retries_total{origin,reason}`.
    pub fn upstream_retry(&self, server: ServerPlace, reason: &'static str) {
        self.upstream.retried(server, reason);
    }

    /// `crawlgate_turned_away_total{origin,reason}`.
    pub fn turned_away(&self, origin: ServerPlace, reason: &'static str) {
        self.upstream.turned_away(origin, reason);
    }

    /// `crawlgate_upstream_ejections_total{origin,server}`.
    pub fn upstream_ejected(&self, server: ServerPlace) {
        self.upstream.ejected(server);
    }

    /// `crawlgate_upstream_checks_total{origin,server,result}`: `ok`, or why the check failed.
    pub fn upstream_checked(&self, server: ServerPlace, result: &'static str) {
        self.upstream.checked(server, result);
    }

    /// `crawlgate_upstream_servers{origin,server,state}`, `crawlgate_upstream_in_flight{origin,server}` and
    /// `crawlgate_queue_waiting{origin}`; the last one for each origin that has a queue, in the order of the settings.
    pub fn set_servers(&self, servers: &[ServerGauges], queues: &[Option<usize>]) {
        let _one = self.setting();
        self.upstream.set_servers(servers, queues);
    }

    /// `crawlgate_queue_seconds`.
    pub fn queue_waited(&self, seconds: f64) {
        self.upstream.waited(seconds);
    }

    /// `crawlgate_html_pages_total{site,outcome}`.
    pub fn page(&self, site: &str, outcome: &'static str) {
        self.pages.with_label_values(&[cut_label(site), outcome]).inc();
    }

    /// `crawlgate_undeclared_proxy_requests_total`.
    pub fn undeclared_proxy(&self) {
        self.undeclared_proxy.inc();
    }

    /// `crawlgate_problems{problem}`.
    pub fn problems(&self, problem: &'static str, count: usize) {
        self.problems.with_label_values(&[problem]).set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// `crawlgate_requests_in_flight`: changes the number of requests in flight.
    pub fn in_flight(&self, change: i64) {
        self.in_flight.add(change);
    }

    /// `crawlgate_access_log_dropped_total`: lines since the start. Never goes back.
    pub fn access_log_dropped(&self, lines: u64) {
        self.raise(&self.access_log_dropped, lines);
    }

    /// `crawlgate_events_left_out_total` and `crawlgate_events_dropped_total`, since the start. Never go back.
    pub fn events(&self, left_out: u64, dropped: u64) {
        self.raise(&self.events_left_out, left_out);
        self.raise(&self.events_dropped, dropped);
    }

    /// `crawlgate_evidence_entries_total` and `crawlgate_evidence_left_out_total`, since the start. Never go back.
    pub fn evidence(&self, entries: u64, left_out: u64) {
        self.raise(&self.evidence_entries, entries);
        self.raise(&self.evidence_left_out, left_out);
    }

    fn raise(&self, counter: &IntCounter, to: u64) {
        let _one = self.setting();
        counter.inc_by(to.saturating_sub(counter.get()));
    }

    fn setting(&self) -> MutexGuard<'_, ()> {
        self.setting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `crawlgate_trapped`.
    pub fn trapped(&self, marks: usize) {
        self.trapped.set(i64::try_from(marks).unwrap_or(i64::MAX));
    }

    /// The text exposition format.
    pub fn render(&self) -> String {
        let _one = self.setting();
        let mut text = Vec::new();
        // Writing into memory does not fail, and all names are valid.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }
}

/// Requests, requests for robots.txt, violations and identities.
fn by_crawler(register: Register<'_>) -> [Counters; 4] {
    let series = Arc::default();
    let count = |name: &str, help: &str, labels: &[&str]| Counters::new(register, &series, name, help, labels);
    [
        count(
            "crawlgate_requests_total",
            "Requests, by what is proven of the crawler's name, by kind and by the action that crawlgate took.",
            &["site", "crawler", "identity", "kind", "action"],
        ),
        count(
            "crawlgate_robots_txt_total",
            "Responses to requests for robots.txt, by status.",
            &["site", "crawler", "status"],
        ),
        count(
            "crawlgate_violations_total",
            "Requests that crawlgate refused as against the rules, or would have under enforcement, by kind and by what \
             is proven of the crawler's name. Without ambiguous, not_bound and unverified.",
            &["site", "crawler", "identity", "kind"],
        ),
        count(
            "crawlgate_identity_total",
            "Requests of crawlers, by what crawlgate could prove about the claimed name.",
            &["crawler", "outcome"],
        ),
    ]
}

fn undeclared_proxy(register: Register<'_>) -> IntCounter {
    register.counter(
        "crawlgate_undeclared_proxy_requests_total",
        "Requests with forwarding fields (X-Forwarded-For, Via, ...) from a peer that trusted_proxies does not name. \
         crawlgate replaced X-Forwarded-For, -Proto and -Host.",
    )
}

fn status_label(status: u16, digits: &mut [u8; 3]) -> &str {
    let status = status.clamp(100, 999);
    *digits = [b'0' + (status / 100) as u8, b'0' + (status / 10 % 10) as u8, b'0' + (status % 10) as u8];
    std::str::from_utf8(digits).unwrap_or("000")
}
