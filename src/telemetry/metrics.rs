//! Prometheus metrics. Labels are registry ids, site names, policy tokens and fixed words: never a path, a user agent
//! or an address. Series are made on first use, capped, and removed with their site.

mod by_crawler;

pub use by_crawler::CrawlerCounts;

use ahash::RandomState;
use prometheus::{
    Encoder, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Series of all counters with a crawler together: some MiB, and a scrape of some tens of milliseconds. Beyond it there
/// are those with `overflow` for a crawler, which are few.
const MAX_SERIES: usize = 20_000;
/// Longer labels are cut: a policy may name tokens of 100 characters.
const MAX_LABEL: usize = 64;
/// The crawler label of what came after the cap.
const OVERFLOW: &str = "overflow";

/// The site's label for hosts that no site claims, and for requests that were refused unjudged.
pub const UNCLAIMED: &str = "unclaimed";

/// Counters by label values, remembered by the hash of these.
struct Counters {
    vector: IntCounterVec,
    known: RwLock<HashMap<u64, Series>>,
    hasher: RandomState,
    /// Which label is the crawler.
    crawler: usize,
    /// Series of all counters that share it.
    series: Arc<AtomicUsize>,
}

struct Series {
    labels: Vec<Box<str>>,
    counter: IntCounter,
}

impl Counters {
    fn new(registry: &Registry, series: &Arc<AtomicUsize>, name: &str, help: &str, labels: &[&str]) -> Counters {
        let vector = IntCounterVec::new(Opts::new(name, help), labels).expect("names are fixed and valid");
        register(registry, vector.clone());
        let crawler = labels.iter().position(|label| *label == "crawler").expect("each of them counts crawlers");
        Counters { vector, known: RwLock::default(), hasher: RandomState::new(), crawler, series: series.clone() }
    }

    /// Counts one. Beyond the cap the crawler becomes `overflow`, and the answer `false`.
    fn count(&self, labels: &[&str]) -> bool {
        let hash = self.hasher.hash_one(labels);
        if let Some(series) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(&hash) {
            series.counter.inc();
            return true;
        }
        // Made and counted under the lock, lest it be removed in between and come back with nobody to remove it.
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut cut: Vec<&str> = labels.iter().map(|label| cut_label(label)).collect();
        let (hash, by_name) = match known.contains_key(&hash) || self.series.load(Ordering::Relaxed) < MAX_SERIES {
            true => (hash, true),
            false => {
                cut[self.crawler] = OVERFLOW;
                (self.hasher.hash_one(cut.as_slice()), false)
            }
        };
        let series = known.entry(hash).or_insert_with(|| {
            self.series.fetch_add(1, Ordering::Relaxed);
            Series {
                labels: cut.iter().map(|label| (*label).into()).collect(),
                counter: self.vector.with_label_values(&cut),
            }
        });
        series.counter.inc();
        by_name
    }

    /// Every series with its labels and its count.
    fn each(&self, mut take: impl FnMut(&[Box<str>], u64)) {
        for series in self.known.read().unwrap_or_else(PoisonError::into_inner).values() {
            take(&series.labels, series.counter.get());
        }
    }

    /// For counters whose first label is the site.
    fn remove_sites(&self, keep: &dyn Fn(&str) -> bool) {
        if self.known.read().unwrap_or_else(PoisonError::into_inner).values().all(|series| keep(&series.labels[0])) {
            return;
        }
        // Nobody may count into a handle whose series is gone.
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, series| {
            let kept = keep(&series.labels[0]);
            if !kept {
                self.series.fetch_sub(1, Ordering::Relaxed);
                // Another key may have led to the same series: labels are cut.
                let _ = self.vector.remove_label_values(&series.labels);
            }
            kept
        });
    }
}

/// Removes the series whose `site` label is not kept.
fn remove(
    vector: &impl prometheus::core::Collector,
    keep: &dyn Fn(&str) -> bool,
    mut drop_series: impl FnMut(&[&str]) -> bool,
) {
    let order: Vec<String> = vector.desc().first().map(|desc| desc.variable_labels.clone()).unwrap_or_default();
    for family in vector.collect() {
        for metric in family.get_metric() {
            let value = |name: &str| {
                metric.get_label().iter().find(|label| label.name() == name).map(|label| label.value().to_owned())
            };
            if value("site").is_none_or(|site| keep(&site)) {
                continue;
            }
            let values: Vec<String> = order.iter().filter_map(|name| value(name)).collect();
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            drop_series(&values);
        }
    }
}

fn register(registry: &Registry, collector: impl prometheus::core::Collector + 'static) {
    registry.register(Box::new(collector)).expect("each metric is registered once");
}

fn cut_label(label: &str) -> &str {
    let mut end = label.len().min(MAX_LABEL);
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    &label[..end]
}

/// The classes of an origin's answers; the last is for what is none of the others.
const STATUS_CLASSES: [&str; 5] = ["2xx", "3xx", "4xx", "5xx", "other"];

/// The answers of one class, found without looking labels up: every forwarded request comes here.
struct Upstream {
    requests: IntCounter,
    seconds: Histogram,
}

/// All metrics, in a registry of their own.
pub struct Metrics {
    registry: Registry,
    requests: Counters,
    robots_txt: Counters,
    violations: Counters,
    /// Without a site: whether a crawler is who it says it is does not depend on whom it visits.
    identity: Counters,
    last_fetch: IntGaugeVec,
    suspended: IntGaugeVec,
    indexable: IntGaugeVec,
    front_page: IntGaugeVec,
    retire: IntGaugeVec,
    paused: IntGaugeVec,
    policy_info: IntGaugeVec,
    reload_success: IntGaugeVec,
    origin_robots: IntGaugeVec,
    origin_robots_last_success: IntGaugeVec,
    reload_timestamp: Gauge,
    decision: Histogram,
    /// By class of status, in the order of [`STATUS_CLASSES`].
    upstream: [Upstream; STATUS_CLASSES.len()],
    upstream_failures: IntCounterVec,
    /// Its labels are names of sites and fixed words.
    pages: IntCounterVec,
    connections: IntGauge,
    access_log_dropped: IntCounter,
    events_left_out: IntCounter,
    events_dropped: IntCounter,
    trapped: IntGauge,
    warnings: IntGauge,
    /// The gauges of the sites are set by one at a time.
    setting: Mutex<()>,
}

/// What is known of a site when its policy changes.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct SiteGauges {
    pub site: String,
    /// Empty when no policy of it is in force.
    pub version: String,
    pub indexable: bool,
    /// In seconds since 1970.
    pub front_page_seen: Option<i64>,
    /// How many paths are at each stage; empty where none is retired.
    pub retire: [(&'static str, usize); 3],
    pub paused: bool,
    pub reload_success: bool,
}

impl Metrics {
    /// With nothing counted yet.
    pub fn new() -> Arc<Metrics> {
        let registry = Registry::new();
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), labels).expect("names are fixed and valid");
            register(&registry, gauges.clone());
            gauges
        };
        let counters = |name: &str, help: &str, labels: &[&str]| {
            let counters = IntCounterVec::new(Opts::new(name, help), labels).expect("names are fixed and valid");
            register(&registry, counters.clone());
            counters
        };
        let last_fetch = gauges(
            "crawlgate_robots_last_fetch_timestamp_seconds",
            "When a crawler was last served a site's robots.txt.",
            &["site", "crawler"],
        );
        let suspended = gauges(
            "crawlgate_identity_suspended",
            "Whether a crawler's networks, as a site's policy lists them, verified nobody for 7 days while others used its name.",
            &["site", "crawler"],
        );
        let indexable = gauges(
            "crawlgate_site_indexable",
            "Whether Googlebot may fetch / and index it, by what is served: as / was last sent; by the policy while it was not.",
            &["site"],
        );
        let front_page = gauges(
            "crawlgate_site_front_page_timestamp_seconds",
            "When / was last sent, by which crawlgate_site_indexable goes; 0 while it goes by the policy alone.",
            &["site"],
        );
        let retire = gauges(
            "crawlgate_retire_paths",
            "Paths that are being retired, by stage: planned, noindex, disallowed.",
            &["site", "stage"],
        );
        let paused = gauges("crawlgate_paused", "Whether crawling of the site is paused.", &["site"]);
        let policy_info = gauges("crawlgate_policy_info", "The version of robots.txt in force.", &["site", "version"]);
        let reload_success =
            gauges("crawlgate_policy_reload_success", "Whether the site's file as it stands is in force.", &["site"]);
        let origin_robots = gauges(
            "crawlgate_origin_robots_state",
            "How it stands with the origin's own robots.txt: 1 for the state that it is in.",
            &["site", "state"],
        );
        let origin_robots_last_success = gauges(
            "crawlgate_origin_robots_last_success_timestamp_seconds",
            "When the origin last said which robots.txt it has, or that it has none.",
            &["site"],
        );
        let upstream_requests =
            counters("crawlgate_upstream_requests_total", "Answers of the origin, by class of status.", &["status"]);
        let upstream_failures =
            counters("crawlgate_upstream_failures_total", "Requests that the origin did not answer.", &["reason"]);
        let pages = counters(
            "crawlgate_html_pages_total",
            "Pages that html of the policy asks to be rewritten, by what came of it.",
            &["site", "outcome"],
        );
        let build = gauges("crawlgate_build_info", "The version of crawlgate.", &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        let reload_timestamp =
            Gauge::new("crawlgate_policy_reload_timestamp_seconds", "When policies were last loaded.")
                .expect("the name is valid");
        register(&registry, reload_timestamp.clone());
        let decision = Histogram::with_opts(
            HistogramOpts::new("crawlgate_decision_seconds", "Time to judge a request.")
                .buckets(vec![1e-7, 2.5e-7, 5e-7, 1e-6, 2.5e-6, 5e-6, 1e-5, 1e-4, 1e-3]),
        )
        .expect("the name is valid");
        register(&registry, decision.clone());
        let upstream_seconds = HistogramVec::new(
            HistogramOpts::new("crawlgate_upstream_seconds", "Time until the origin's answer was passed on whole."),
            &["status"],
        )
        .expect("the name is valid");
        register(&registry, upstream_seconds.clone());
        let upstream = STATUS_CLASSES.map(|class| Upstream {
            requests: upstream_requests.with_label_values(&[class]),
            seconds: upstream_seconds.with_label_values(&[class]),
        });
        let connections = IntGauge::new("crawlgate_connections", "Requests in flight.").expect("the name is valid");
        register(&registry, connections.clone());
        let access_log_dropped =
            IntCounter::new("crawlgate_access_log_dropped_total", "Lines of the access log that were not written.")
                .expect("the name is valid");
        register(&registry, access_log_dropped.clone());
        let counter = |name: &str, help: &str| {
            let counter = IntCounter::new(name, help).expect("the name is valid");
            register(&registry, counter.clone());
            counter
        };
        let events_left_out =
            counter("crawlgate_events_left_out_total", "Events that were not recorded, because there were too many.");
        let events_dropped = counter("crawlgate_events_dropped_total", "Lines of the event log that were not written.");
        let trapped =
            IntGauge::new("crawlgate_trapped", "Addresses that are marked for a trap.").expect("the name is valid");
        register(&registry, trapped.clone());
        let warnings = IntGauge::new(
            "crawlgate_warnings",
            "What is wrong with the policy directory or the state directory; `crawlgate status` says what.",
        )
        .expect("the name is valid");
        register(&registry, warnings.clone());
        #[cfg(target_os = "linux")]
        register(&registry, prometheus::process_collector::ProcessCollector::for_self());
        let series = Arc::default();
        let count = |name: &str, help: &str, labels: &[&str]| Counters::new(&registry, &series, name, help, labels);
        Arc::new(Metrics {
            requests: count(
                "crawlgate_requests_total",
                "Requests, by what they were and what was done.",
                &["site", "crawler", "verdict", "action"],
            ),
            robots_txt: count(
                "crawlgate_robots_txt_total",
                "Answers to requests for robots.txt.",
                &["site", "crawler", "status"],
            ),
            violations: count(
                "crawlgate_violations_total",
                "Requests against the rules, by kind.",
                &["site", "crawler", "kind"],
            ),
            identity: count(
                "crawlgate_identity_total",
                "Requests of crawlers, by what is proven about who they say they are.",
                &["crawler", "outcome"],
            ),
            last_fetch,
            suspended,
            indexable,
            front_page,
            retire,
            paused,
            policy_info,
            reload_success,
            origin_robots,
            origin_robots_last_success,
            reload_timestamp,
            decision,
            upstream,
            upstream_failures,
            pages,
            connections,
            access_log_dropped,
            events_left_out,
            events_dropped,
            trapped,
            warnings,
            setting: Mutex::default(),
            registry,
        })
    }

    /// `crawlgate_requests_total{site,crawler,verdict,action}`.
    pub fn request(&self, site: &str, crawler: &str, verdict: &'static str, action: &'static str) {
        self.requests.count(&[site, crawler, verdict, action]);
    }

    /// `crawlgate_robots_txt_total{site,crawler,status}`, and when it is a 200 or 304
    /// `crawlgate_robots_last_fetch_timestamp_seconds{site,crawler}`. `now` is in seconds since 1970.
    pub fn robots_txt(&self, site: &str, crawler: &str, status: u16, now: i64) {
        let mut digits = [0; 3];
        let by_name = self.robots_txt.count(&[site, crawler, status_label(status, &mut digits)]);
        // A crawler that is not counted by name is not timed by name.
        if by_name && matches!(status, 200 | 304) {
            self.last_fetch.with_label_values(&[cut_label(site), cut_label(crawler)]).set(now);
        }
    }

    /// `crawlgate_violations_total{site,crawler,kind}`.
    pub fn violation(&self, site: &str, crawler: &str, kind: &'static str) {
        self.violations.count(&[site, crawler, kind]);
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

    /// `crawlgate_upstream_requests_total{status}` and `crawlgate_upstream_seconds{status}`, by class of status: `2xx`.
    pub fn upstream(&self, status: u16, seconds: f64) {
        let class = usize::from(status / 100).wrapping_sub(2).min(STATUS_CLASSES.len() - 1);
        let upstream = &self.upstream[class];
        upstream.requests.inc();
        upstream.seconds.observe(seconds);
    }

    /// `crawlgate_upstream_failures_total{reason}`.
    pub fn upstream_failure(&self, reason: &'static str) {
        self.upstream_failures.with_label_values(&[reason]).inc();
    }

    /// `crawlgate_html_pages_total{site,outcome}`.
    pub fn page(&self, site: &str, outcome: &'static str) {
        self.pages.with_label_values(&[cut_label(site), outcome]).inc();
    }

    /// `crawlgate_connections`: requests in flight, plus or minus some.
    pub fn in_flight(&self, change: i64) {
        self.connections.add(change);
    }

    /// `crawlgate_access_log_dropped_total`: lines since the start. Never goes back.
    pub fn access_log_dropped(&self, lines: u64) {
        let _one = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        self.access_log_dropped.inc_by(lines.saturating_sub(self.access_log_dropped.get()));
    }

    /// `crawlgate_events_left_out_total` and `crawlgate_events_dropped_total`, since the start. Never go back.
    pub fn events(&self, left_out: u64, dropped: u64) {
        let _one = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        self.events_left_out.inc_by(left_out.saturating_sub(self.events_left_out.get()));
        self.events_dropped.inc_by(dropped.saturating_sub(self.events_dropped.get()));
    }

    /// `crawlgate_trapped`.
    pub fn trapped(&self, marks: usize) {
        self.trapped.set(i64::try_from(marks).unwrap_or(i64::MAX));
    }

    /// `crawlgate_warnings`.
    pub fn warnings(&self, warnings: usize) {
        self.warnings.set(i64::try_from(warnings).unwrap_or(i64::MAX));
    }

    /// Sets the gauges of all sites, and removes every series of sites that are gone.
    pub fn set_sites(&self, sites: &[SiteGauges], reload_timestamp: i64) {
        let _one = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        self.reload_timestamp.set(reload_timestamp as f64);
        let names: HashSet<&str> = sites.iter().map(|site| cut_label(&site.site)).collect();
        let keep = |site: &str| site == UNCLAIMED || names.contains(site);
        for gauges in
            [&self.indexable, &self.front_page, &self.retire, &self.paused, &self.reload_success, &self.last_fetch]
        {
            remove(gauges, &keep, |labels| gauges.remove_label_values(labels).is_ok());
        }
        remove(&self.pages, &keep, |labels| self.pages.remove_label_values(labels).is_ok());
        for counters in [&self.requests, &self.robots_txt, &self.violations] {
            counters.remove_sites(&keep);
        }
        self.policy_info.reset();
        for site in sites {
            let name = cut_label(&site.site);
            self.indexable.with_label_values(&[name]).set(site.indexable.into());
            self.front_page.with_label_values(&[name]).set(site.front_page_seen.unwrap_or(0));
            let retires = site.retire.iter().any(|(_, paths)| *paths > 0);
            for (stage, paths) in site.retire {
                match retires {
                    true => self.retire.with_label_values(&[name, stage]).set(paths as i64),
                    false => drop(self.retire.remove_label_values(&[name, stage])),
                }
            }
            self.paused.with_label_values(&[name]).set(site.paused.into());
            self.reload_success.with_label_values(&[name]).set(site.reload_success.into());
            if !site.version.is_empty() {
                self.policy_info.with_label_values(&[name, &site.version]).set(1);
            }
        }
    }

    /// `crawlgate_identity_suspended{site,crawler}` of the lists that had anything to say.
    pub fn set_suspended(&self, lists: &[(String, String, bool)]) {
        let _one = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        self.suspended.reset();
        for (site, crawler, suspended) in lists.iter().take(MAX_SERIES) {
            let gauge = self.suspended.with_label_values(&[cut_label(site), cut_label(crawler)]);
            gauge.set((*suspended).into());
        }
    }

    /// `crawlgate_origin_robots_state{site,state}` and `crawlgate_origin_robots_last_success_timestamp_seconds{site}`
    /// of the sites whose policies ask for it: site, the name of the state, the moment.
    pub fn set_origin_robots(&self, sites: &[(String, String, Option<i64>)]) {
        let _one = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        self.origin_robots.reset();
        self.origin_robots_last_success.reset();
        for (site, state, last_success) in sites {
            self.origin_robots.with_label_values(&[cut_label(site), state]).set(1);
            if let Some(moment) = last_success {
                self.origin_robots_last_success.with_label_values(&[cut_label(site)]).set(*moment);
            }
        }
    }

    /// The text exposition format.
    pub fn render(&self) -> String {
        let mut text = Vec::new();
        // Writing into memory does not fail, and all names are valid.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        String::from_utf8(text).unwrap_or_default()
    }
}

fn status_label(status: u16, digits: &mut [u8; 3]) -> &str {
    let status = status.clamp(100, 999);
    *digits = [b'0' + (status / 100) as u8, b'0' + (status / 10 % 10) as u8, b'0' + (status % 10) as u8];
    std::str::from_utf8(digits).unwrap_or("000")
}
