//! [`CrawlerCounts`]: the counts of one crawler on one site since the start, which the read API shows.
//! [`Metrics::by_crawler`] sums them up from the counters.

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
    pub all: IdentityCounts,
    pub actions: BTreeMap<String, u64>,
    /// `all` by what is proven of the name.
    pub by_identity: BTreeMap<String, IdentityCounts>,
    /// Requests for robots.txt.
    pub robots_txt: u64,
    /// When it was last served robots.txt, in seconds since 1970.
    pub last_fetch: Option<i64>,
}

impl Metrics {
    /// By crawler, how many of its requests were verified, unverified, suspected, impostors', or of a suspended finding.
    pub fn identities(&self) -> BTreeMap<String, BTreeMap<String, u64>> {
        let mut counts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        self.identity.each(|[crawler, outcome], requests| {
            *counts.entry(crawler.to_string()).or_default().entry(outcome.to_string()).or_default() += requests;
        });
        counts
    }

    /// The counts of each crawler on each site, in the order of their names. Browsers are left out.
    pub fn by_crawler(&self) -> Vec<CrawlerCounts> {
        let mut counts = Counts::new();
        self.requests.each(|[site, crawler, identity, kind, action], requests| {
            let Some(of) = counts_of(&mut counts, site, crawler) else { return };
            *of.actions.entry(action.to_string()).or_default() += requests;
            for counted in [&mut of.all, of.by_identity.entry(identity.to_string()).or_default()] {
                counted.requests += requests;
                *counted.kinds.entry(kind.to_string()).or_default() += requests;
            }
        });
        self.violations.each(|[site, crawler, identity, kind], violations| {
            let Some(of) = counts_of(&mut counts, site, crawler) else { return };
            for counted in [&mut of.all, of.by_identity.entry(identity.to_string()).or_default()] {
                *counted.violations.entry(kind.to_string()).or_default() += violations;
            }
        });
        self.robots_txt.each(|[site, crawler, _], answers| {
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
