//! Prometheus metrics. Labels are registry ids, site names and fixed words: never a path, a user agent or an address.

use std::sync::Arc;

/// All metrics, in a registry of their own.
pub struct Metrics {}

/// What is known of a site when its policy changes.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct SiteGauges {
    pub site: String,
    pub version: String,
    pub indexable: bool,
    pub paused: bool,
    pub reload_success: bool,
}

impl Metrics {
    /// With nothing counted yet.
    pub fn new() -> Arc<Metrics> {
        todo!()
    }

    /// `crawlgate_requests_total{site,crawler,verdict,action}`.
    pub fn request(&self, site: &str, crawler: &str, verdict: &'static str, action: &'static str) {
        let _ = (site, crawler, verdict, action);
        todo!()
    }

    /// `crawlgate_robots_txt_total{site,crawler,status}`, and when it is a 200 or 304
    /// `crawlgate_robots_last_fetch_timestamp_seconds{site,crawler}`.
    pub fn robots_txt(&self, site: &str, crawler: &str, status: u16, now: i64) {
        let _ = (site, crawler, status, now);
        todo!()
    }

    /// `crawlgate_violations_total{site,crawler,kind}`.
    pub fn violation(&self, site: &str, crawler: &str, kind: &'static str) {
        let _ = (site, crawler, kind);
        todo!()
    }

    /// `crawlgate_decision_seconds`.
    pub fn decision(&self, seconds: f64) {
        let _ = seconds;
        todo!()
    }

    /// `crawlgate_upstream_requests_total{status_class}` and `crawlgate_upstream_seconds`.
    pub fn upstream(&self, status_class: &'static str, seconds: f64) {
        let _ = (status_class, seconds);
        todo!()
    }

    /// `crawlgate_upstream_failures_total{reason}`.
    pub fn upstream_failure(&self, reason: &'static str) {
        let _ = reason;
        todo!()
    }

    /// `crawlgate_connections` in flight (requests), plus or minus one.
    pub fn in_flight(&self, change: i64) {
        let _ = change;
        todo!()
    }

    /// Sets the gauges of all sites, and removes every series of sites that are gone.
    pub fn set_sites(&self, sites: &[SiteGauges], reload_timestamp: i64) {
        let _ = (sites, reload_timestamp);
        todo!()
    }

    /// The text exposition format.
    pub fn render(&self) -> String {
        todo!()
    }
}
