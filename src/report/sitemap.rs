//! [`SitemapSummary`] and [`SitemapCoverage`]: which URLs of a site's sitemaps search crawlers
//! requested in an audited log, and how many of their requests went to other URLs.

use super::TopEntry;
use crate::numbers::{percent, plural_thousands, thousands};
use askama::Template;
use serde::{Deserialize, Serialize};

/// The sitemaps with which requests were compared. Shown as lines about what was not compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Template)]
#[template(path = "sitemap.txt")]
pub struct SitemapSummary {
    /// The files and URLs.
    pub names: Vec<String>,
    /// How many different URLs they list.
    pub urls: u64,
    /// Sitemaps that could not be read, with the reasons.
    pub unread: Vec<String>,
    /// Hosts of URLs to which the log has no requests, without `www.`, at most 20.
    pub other_hosts: Vec<String>,
    /// URLs beyond the most that are compared.
    pub left_out: u64,
}

/// What one crawler requested of the URLs of sitemaps. Shown as a sentence that follows its name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Template)]
#[template(path = "sitemap_coverage.txt")]
pub struct SitemapCoverage {
    /// The URLs that it requested.
    pub requested: u64,
    /// The URLs that it never requested.
    pub never_requested: u64,
    /// Its requests, without those for robots.txt and for parts of pages.
    pub requests: u64,
    /// Those of `requests` for URLs that no sitemap lists.
    pub requests_outside: u64,
    /// The URLs that it requested most of those that no sitemap lists: paths, or sections with the
    /// names of parameters.
    #[serde(default)]
    pub outside: Vec<TopEntry>,
    /// The first directories of the URLs that it never requested.
    pub sections: Vec<TopEntry>,
    /// The first URLs that it never requested.
    pub examples: Vec<String>,
}
