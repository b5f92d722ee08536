//! [`SitemapUrls`]: the URLs of a site's sitemaps, with which an audit compares the requests of
//! crawlers. Two URLs are equal if host, path and query are equal: without the scheme, the port and
//! `www.`, and with percent-encoding in normal form. A request in a log without hosts is compared
//! as one to the host that most URLs of the sitemaps have.

use super::tally::{KeyBudget, MAX_HOSTS, SitemapTally, without_values};
use crate::logs::LogRecord;
use crate::policy::site::split_host_port;
use crate::printable::{printable, truncate};
use crate::record::is_part_of_page;
use crate::report::SitemapSummary;
use crate::robots::{AbsoluteUrl, TargetScratch};
use ahash::{AHashSet, RandomState};
use std::collections::{BTreeMap, BTreeSet};

/// The most URLs that are compared.
const MAX_URLS: usize = 1_000_000;
/// The most bytes of a URL that are shown.
const MAX_SHOWN_BYTES: usize = 300;
/// The most hosts of a sitemap without requests that are named.
const MAX_OTHER_HOSTS: usize = 20;

/// The URLs of some sitemaps.
#[derive(Default)]
pub struct SitemapUrls {
    /// What the report says of the sitemaps.
    pub summary: SitemapSummary,
    hasher: RandomState,
    /// The hashes of what is compared.
    keys: AHashSet<u64>,
    /// The URLs as the sitemaps list them, with their keys.
    urls: Vec<(u64, Box<str>)>,
    /// How many URLs each host has.
    hosts: BTreeMap<String, usize>,
    /// The host with the most URLs.
    main_host: String,
}

impl SitemapUrls {
    /// Adds a URL. Ignores one that is not absolute, as search engines do, and one that is known.
    pub fn insert(&mut self, url: &str) {
        let Some(absolute) = AbsoluteUrl::parse(url.as_bytes()) else {
            return;
        };
        let host = comparable_host(absolute.authority.name);
        let key = self.key(&host, absolute.rest, &mut TargetScratch::default());
        if self.keys.contains(&key) {
            return;
        }
        if self.urls.len() == MAX_URLS {
            self.summary.left_out += 1;
            return;
        }
        self.keys.insert(key);
        self.urls.push((key, truncate(url, MAX_SHOWN_BYTES).into()));
        self.summary.urls += 1;
        let most = self.hosts.get(&self.main_host).copied();
        let urls = self.hosts.entry(host.clone()).or_default();
        *urls += 1;
        if most.is_none_or(|most| *urls > most) {
            self.main_host = host;
        }
    }

    /// Compares requests without a host as those to this host, if a sitemap lists URLs of it.
    pub fn set_main_host(&mut self, host: &str) {
        let host = comparable_host(host.as_bytes());
        if self.hosts.contains_key(&host) {
            self.main_host = host;
        }
    }

    fn key(&self, host: &str, target: &[u8], scratch: &mut TargetScratch) -> u64 {
        self.hasher.hash_one((host, scratch.normalise(target).sent))
    }

    /// Counts a request of a crawler. A part of a page counts only if a sitemap lists it.
    pub fn count(
        &self,
        request: &LogRecord<'_>,
        scratch: &mut TargetScratch,
        tally: &mut SitemapTally,
        section_depth: usize,
        budget: &KeyBudget,
    ) {
        let host = request.host.as_deref().map(comparable_host);
        let host = host.as_ref().unwrap_or(&self.main_host);
        let key = self.key(host, &request.target, scratch);
        if self.keys.contains(&key) {
            tally.inside += 1;
            tally.requested.insert(key);
        } else if !is_part_of_page(&request.target) {
            tally.outside += 1;
            budget.add(
                &mut tally.outside_urls,
                &without_values(&request.target, section_depth),
            );
        }
    }

    /// The URLs that a crawler never requested, in the order of the sitemaps.
    pub fn never_requested(&self, tally: &SitemapTally) -> impl Iterator<Item = &str> {
        self.urls
            .iter()
            .filter(|(key, _)| !tally.requested.contains(key))
            .map(|(_, url)| &**url)
    }

    /// What the report says of the sitemaps if the log has requests to `log_hosts`.
    pub fn summary(&self, log_hosts: &BTreeSet<String>) -> SitemapSummary {
        let mut summary = self.summary.clone();
        if log_hosts.len() < MAX_HOSTS {
            let mut compared: BTreeSet<String> = log_hosts
                .iter()
                .map(|host| comparable_host(host.as_bytes()))
                .collect();
            if compared.is_empty() {
                compared.insert(self.main_host.clone());
            }
            summary.other_hosts = self
                .hosts
                .keys()
                .filter(|host| !compared.contains(*host))
                .take(MAX_OTHER_HOSTS)
                .cloned()
                .collect();
        }
        summary
    }
}

/// A host in lower case, without its port.
pub fn host_name(host: &[u8]) -> String {
    printable(split_host_port(host).0).to_lowercase()
}

/// The same without `www.`.
fn comparable_host(host: &[u8]) -> String {
    let name = host_name(host);
    name.strip_prefix("www.").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{KeyBudget, LogRecord, MAX_URLS, SitemapTally, SitemapUrls, TargetScratch};
    use std::collections::BTreeSet;

    /// Of one URL of another host, the log says nothing.
    #[test]
    fn log_without_hosts_is_of_the_host_with_most_urls() {
        let mut urls = SitemapUrls::default();
        for url in [
            "https://a.example/x",
            "https://shop.example/1",
            "https://www.shop.example/2",
        ] {
            urls.insert(url);
        }
        let mut tally = SitemapTally::default();
        let request = LogRecord {
            target: b"/1".as_slice().into(),
            ..LogRecord::default()
        };
        let mut scratch = TargetScratch::default();
        urls.count(&request, &mut scratch, &mut tally, 1, &KeyBudget::default());
        assert_eq!((tally.inside, tally.outside), (1, 0));
        assert_eq!(urls.summary(&BTreeSet::new()).other_hosts, ["a.example"]);
    }

    #[test]
    fn urls_beyond_the_bound_are_counted() {
        let mut urls = SitemapUrls::default();
        for number in 0..MAX_URLS + 2 {
            urls.insert(&format!("https://shop.example/{number}"));
        }
        urls.insert("https://shop.example/0#part");
        let summary = urls.summary(&BTreeSet::new());
        assert_eq!((summary.urls, summary.left_out), (MAX_URLS as u64, 2));
        let mut tally = SitemapTally::default();
        for target in ["/7", "/7?a", "/999999", "/1000000"] {
            let request = LogRecord {
                target: target.as_bytes().into(),
                ..LogRecord::default()
            };
            let mut scratch = TargetScratch::default();
            urls.count(&request, &mut scratch, &mut tally, 1, &KeyBudget::default());
        }
        assert_eq!((tally.inside, tally.outside), (2, 2));
        let missed: BTreeSet<&str> = urls.never_requested(&tally).collect();
        assert_eq!(missed.len(), MAX_URLS - 2);
        assert!(!missed.contains("https://shop.example/999999"));
    }
}
