//! [`SiteMetrics`]: the Prometheus gauges of all sites. They show, for example, whether the policy
//! of a site is in force, whether crawling is paused, and the state of crawlgate's copy of the
//! origin's own robots.txt. [`SiteGaugeValues`] has the values of one site. When a site is removed,
//! its time series are removed.

use super::collectors::{IntGauge, IntGaugeVec, MetricRegistrar, remove_sites};
use super::{Metrics, UNCLAIMED};
use crate::record::{MAX_SERIES, truncate_label};
use std::collections::HashSet;

/// The values of the gauges of one site.
pub struct SiteGaugeValues {
    /// The name of the site.
    pub site: String,
    /// Empty when no policy of the site is in force.
    pub version: String,
    /// Whether Googlebot may fetch and index the front page.
    pub indexable: bool,
    /// When the response for `/` that `indexable` is based on was sent, in seconds since 1970; 0 if
    /// it is based on the policy alone.
    pub front_page_seen: i64,
    /// How many paths are at each stage; all 0 if no path is being retired.
    pub retire: [(&'static str, usize); 3],
    /// Whether crawling of the site is paused.
    pub paused: bool,
    /// How many hosts have no violation that counts yet.
    pub unproven: i64,
    /// Whether the policy file is in force, or is gone.
    pub reload_success: bool,
}

/// The series of all sites.
pub struct SiteMetrics {
    pub last_fetch: IntGaugeVec,
    suspended: IntGaugeVec,
    indexable: IntGaugeVec,
    front_page: IntGaugeVec,
    retire: IntGaugeVec,
    paused: IntGaugeVec,
    unproven: IntGaugeVec,
    policy_info: IntGaugeVec,
    reload_success: IntGaugeVec,
    reload_timestamp: IntGauge,
    origin_robots: IntGaugeVec,
    origin_robots_last_success: IntGaugeVec,
}

impl SiteMetrics {
    pub fn new(register: MetricRegistrar<'_>) -> SiteMetrics {
        SiteMetrics {
            last_fetch: register.gauges(
                "crawlgate_robots_last_fetch_timestamp_seconds",
                "When crawlgate last served the site's robots.txt to the crawler (status 200 or 304).",
                &["site", "crawler"],
            ),
            suspended: register.gauges(
                "crawlgate_identity_suspended",
                "1 while the crawler's networks in the site's policy verified no visit for 7 days although others \
                 used its name. Until one is verified, the networks prove no impostor.",
                &["site", "crawler"],
            ),
            indexable: register.gauges(
                "crawlgate_site_indexable",
                "1 if Googlebot may fetch and index the site's front page, else 0. It rests on the last response for /. Before \
                 the first one it rests on the policy alone.",
                &["site"],
            ),
            front_page: register.gauges(
                "crawlgate_site_front_page_timestamp_seconds",
                "When the response for / was sent on which crawlgate_site_indexable rests. 0 if none was sent yet.",
                &["site"],
            ),
            retire: register.gauges(
                "crawlgate_retire_paths",
                "Number of paths that are being retired, by stage: planned, noindex, disallowed.",
                &["site", "stage"],
            ),
            paused: register.gauges("crawlgate_paused", "1 while crawling of the site is paused.", &["site"]),
            unproven: register.gauges(
                "crawlgate_site_unproven_hosts",
                "Number of hosts of the site where no violation counts yet, for example on the first day.",
                &["site"],
            ),
            policy_info: register.gauges(
                "crawlgate_policy_info",
                "Always 1. The label version is the robots.txt version in force.",
                &["site", "version"],
            ),
            reload_success: register.gauges(
                "crawlgate_policy_reload_success",
                "1 if the site's policy file on disk is in force, or is gone (problem policy_removed).",
                &["site"],
            ),
            reload_timestamp: register
                .gauge("crawlgate_policy_reload_timestamp_seconds", "When crawlgate last loaded the policies."),
            origin_robots: register.gauges(
                "crawlgate_origin_robots_state",
                "State of the copy of the origin's own robots.txt: 1 for the state that it is in.",
                &["site", "state"],
            ),
            origin_robots_last_success: register.gauges(
                "crawlgate_origin_robots_last_success_timestamp_seconds",
                "When the origin last answered the request for its own robots.txt with a file, or with a status that \
                 means that there is none.",
                &["site"],
            ),
        }
    }
}

impl Metrics {
    /// Sets the gauges of all sites, and removes the series of sites that are not in `sites` (but
    /// keeps `unclaimed`) from all metrics but those of [`Metrics::set_suspended_lists`] and
    /// [`Metrics::set_origin_robots`]. A site has `crawlgate_retire_paths` only while a path is
    /// retired, and `crawlgate_policy_info` only with a version. `reload_timestamp` is in seconds
    /// since 1970.
    pub fn set_sites(&self, sites: &[SiteGaugeValues], reload_timestamp: i64) {
        let _one = self.lock_gauges();
        let names: HashSet<&str> = sites
            .iter()
            .map(|site| truncate_label(&site.site))
            .collect();
        let keep = |site: &str| site == UNCLAIMED || names.contains(site);
        self.counts.remove_sites(&keep);
        self.robots_txt.remove_sites(&keep);
        self.visits.remove_sites(&keep);
        self.paths.remove_sites(&keep);
        remove_sites(&self.pages, &keep);
        let SiteMetrics {
            last_fetch,
            indexable,
            front_page,
            retire,
            paused,
            unproven,
            policy_info,
            reload_success,
            ..
        } = &self.sites;
        remove_sites(last_fetch, &keep);
        self.sites.reload_timestamp.set(reload_timestamp);
        for gauges in [
            indexable,
            front_page,
            retire,
            paused,
            unproven,
            policy_info,
            reload_success,
        ] {
            gauges.reset();
        }
        for site in sites {
            let name = truncate_label(&site.site);
            for (gauge, value) in [
                (indexable, i64::from(site.indexable)),
                (front_page, site.front_page_seen),
                (paused, i64::from(site.paused)),
                (unproven, site.unproven),
                (reload_success, i64::from(site.reload_success)),
            ] {
                gauge.with_label_values(&[name]).set(value);
            }
            if site.retire.iter().any(|(_, paths)| *paths > 0) {
                for (stage, paths) in site.retire {
                    retire.with_label_values(&[name, stage]).set(paths as i64);
                }
            }
            if !site.version.is_empty() {
                policy_info.with_label_values(&[name, &site.version]).set(1);
            }
        }
    }

    /// Replaces `crawlgate_identity_suspended{site,crawler}` by those of `lists`: each list that
    /// verified or accused a client, as site, crawler, and whether the list is suspended. Lists
    /// beyond the first `MAX_SERIES` are left out.
    pub fn set_suspended_lists(&self, lists: impl Iterator<Item = (String, String, bool)>) {
        let _one = self.lock_gauges();
        self.sites.suspended.reset();
        for (site, crawler, suspended) in lists.take(MAX_SERIES) {
            self.sites
                .suspended
                .with_label_values(&[truncate_label(&site), truncate_label(&crawler)])
                .set(i64::from(suspended));
        }
    }

    /// Replaces `crawlgate_origin_robots_state{site,state}` and
    /// `crawlgate_origin_robots_last_success_timestamp_seconds{site}` by those of `sites`, whose
    /// policies ask for the origin's file: site, name of the state, and the last success in seconds
    /// since 1970 if there was one.
    pub fn set_origin_robots<'s>(
        &self,
        sites: impl Iterator<Item = (&'s str, &'static str, Option<i64>)>,
    ) {
        let _one = self.lock_gauges();
        let SiteMetrics {
            origin_robots,
            origin_robots_last_success,
            ..
        } = &self.sites;
        origin_robots.reset();
        origin_robots_last_success.reset();
        for (site, state, last_success) in sites {
            origin_robots
                .with_label_values(&[truncate_label(site), state])
                .set(1);
            if let Some(moment) = last_success {
                origin_robots_last_success
                    .with_label_values(&[truncate_label(site)])
                    .set(moment);
            }
        }
    }
}
