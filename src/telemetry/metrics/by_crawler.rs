//! [`CrawlerCounts`]: the counts of one crawler on one site since the start, which the read API shows.
//! [`Metrics::by_crawler`] sums them up from the counters. [`Metrics::each_new`] gives the history what is new.

use super::sites::label;
use super::{Metrics, UNCLAIMED};
use prometheus::core::Collector as _;
use std::collections::BTreeMap;

/// Requests under a crawler's name with one identity: `verified`, `unverified` or `impostor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct IdentityCounts {
    pub requests: u64,
    pub kinds: BTreeMap<String, u64>,
    pub violations: BTreeMap<String, u64>,
}

/// The counts of a crawler on a site since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CrawlerCounts {
    pub site: String,
    pub crawler: String,
    pub requests: u64,
    pub kinds: BTreeMap<String, u64>,
    pub actions: BTreeMap<String, u64>,
    pub violations: BTreeMap<String, u64>,
    /// Requests, kinds and violations by what is proven of the name.
    pub by_identity: BTreeMap<String, IdentityCounts>,
    /// Requests for robots.txt.
    pub robots_txt: u64,
    /// When it was last served robots.txt, in seconds since 1970.
    pub last_fetch: Option<i64>,
}

/// Requests that were counted since the last call, for the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewCount<'a> {
    /// Requests of a crawler on a site, with an identity, of a kind, with an action.
    Requests {
        /// The site.
        site: &'a str,
        /// The crawler.
        crawler: &'a str,
        /// What is proven of its name.
        identity: &'a str,
        /// The kind of the requests.
        kind: &'a str,
        /// The action that crawlgate took.
        action: &'a str,
        /// The number of requests.
        requests: u64,
    },
    /// Requests of a crawler by what was proven.
    Identity {
        /// The crawler.
        crawler: &'a str,
        /// What was proven.
        outcome: &'a str,
        /// The number of requests.
        requests: u64,
    },
}

impl Metrics {
    /// Calls `take` with what was counted since the last call. Only the history calls this.
    pub fn each_new(&self, mut take: impl FnMut(NewCount<'_>)) {
        self.requests.each_new(|labels, requests| {
            if let [site, crawler, identity, kind, action] = labels {
                take(NewCount::Requests { site, crawler, identity, kind, action, requests });
            }
        });
        self.identity.each_new(|labels, requests| {
            if let [crawler, outcome] = labels {
                take(NewCount::Identity { crawler, outcome, requests });
            }
        });
    }

    /// By crawler, how many of its requests were verified, unverified, suspected, impostors', or of a suspended finding.
    pub fn identities(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        self.identity.each(|labels, requests| {
            let [crawler, outcome] = labels else { return };
            *counts.entry(crawler.to_string()).or_default().entry(outcome.to_string()).or_default() += requests;
        });
        counts
    }

    /// The counts of each crawler on each site, in the order of their names. Browsers are left out.
    pub fn by_crawler(&self) -> Vec<CrawlerCounts> {
        let mut counts = Counts::new();
        self.requests.each(|labels, requests| {
            let [site, crawler, identity, kind, action] = labels else { return };
            let Some(of) = counts_of(&mut counts, site, crawler) else { return };
            let by_identity = of.by_identity.entry(identity.to_string()).or_default();
            for (by_name, name) in [(&mut by_identity.kinds, kind), (&mut of.kinds, kind), (&mut of.actions, action)] {
                *by_name.entry(name.to_string()).or_default() += requests;
            }
            by_identity.requests += requests;
            of.requests += requests;
        });
        self.violations.each(|labels, violations| {
            let [site, crawler, identity, kind] = labels else { return };
            let Some(of) = counts_of(&mut counts, site, crawler) else { return };
            let by_identity = of.by_identity.entry(identity.to_string()).or_default();
            for by_kind in [&mut by_identity.violations, &mut of.violations] {
                *by_kind.entry(kind.to_string()).or_default() += violations;
            }
        });
        self.robots_txt.each(|labels, answers| {
            let [site, crawler, _] = labels else { return };
            counts_of(&mut counts, site, crawler).into_iter().for_each(|of| of.robots_txt += answers);
        });
        for family in self.sites.last_fetch.collect() {
            for metric in family.get_metric() {
                let (Some(site), Some(crawler)) = (label(metric, "site"), label(metric, "crawler")) else { continue };
                let at = metric.get_gauge().get_value() as i64;
                counts_of(&mut counts, site, crawler).into_iter().for_each(|of| of.last_fetch = Some(at));
            }
        }
        counts.into_values().collect()
    }
}

/// The counts by site and crawler.
type Counts = BTreeMap<(String, String), CrawlerCounts>;

/// The counts of a crawler on a site. Browsers, and hosts that no site claims, have none.
fn counts_of<'c>(counts: &'c mut Counts, site: &str, crawler: &str) -> Option<&'c mut CrawlerCounts> {
    if crawler == "none" || site == UNCLAIMED {
        return None;
    }
    let new = || CrawlerCounts { site: site.into(), crawler: crawler.into(), ..CrawlerCounts::default() };
    Some(counts.entry((site.to_owned(), crawler.to_owned())).or_insert_with(new))
}
