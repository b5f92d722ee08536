//! The flags `--sitemap` and `--fetch` of the command `check`. `--sitemap` names a sitemap whose
//! URLs are checked against the policies and the robots.txt file on the same command line.
//! `--fetch` also requests each of these URLs, within `--fetch-time`.

use crate::audit::{AuditRules, DatedRobotsTxt};
use crate::cli::origin_copy::{MAX_COMPILED_BYTES, truncate_file};
use crate::cli::policies::{self, LoadedPolicy};
use crate::cli::{Result, file_failure, now};
use crate::crawlers::Registry;
use crate::policy::{SiteEntry, Snapshot};
use crate::sitemap::{
    FetchLimits, PageCheck, SitemapChecker, SitemapFindings, SitemapLocation, check_sitemap,
};
use crate::yaml::parse_duration;
use std::time::{Duration, Instant};

/// The sitemaps to check.
#[derive(Default, clap::Args)]
pub struct SitemapFlags {
    /// Check the URLs of this sitemap, or sitemap index, against the rules; may be repeated
    #[arg(long = "sitemap", value_name = "URL|FILE")]
    pub sitemaps: Vec<String>,
    /// Request each URL of the sitemaps, and report those that redirect, fail, are missing,
    /// or have a noindex or another canonical URL
    #[arg(long, requires = "sitemaps")]
    fetch: bool,
    /// How long --fetch may take, for all sitemaps together
    #[arg(long, value_name = "DURATION", default_value = "15m", requires = "fetch", value_parser = parse_duration)]
    fetch_time: Duration,
    /// How many URLs --fetch requests at a time (1 to 32)
    #[arg(long, value_name = "NUMBER", default_value_t = 4, requires = "fetch", value_parser = clap::value_parser!(u8).range(1..=32))]
    connections: u8,
}

impl SitemapFlags {
    /// Checks the sitemaps. Checks none while a policy has errors. Fails if one cannot be opened,
    /// or if there are several robots.txt.
    pub fn check(
        &self,
        loaded: &[LoadedPolicy],
        robots_files: Vec<DatedRobotsTxt>,
    ) -> Result<Vec<SitemapFindings>> {
        if self.sitemaps.is_empty() {
            return Ok(Vec::new());
        }
        if loaded.iter().any(|file| file.site.is_none()) {
            print_message!("note: a policy has errors; sitemaps are checked when it has none");
            return Ok(Vec::new());
        }
        if robots_files.len() > 1 {
            fail!(
                Usage,
                "give one robots.txt with --sitemap: it says nothing about another site"
            );
        }
        let mut only_host = None;
        if let ([], [file]) = (loaded, &*robots_files) {
            only_host = crate::cli::url_host(&file.name);
            if only_host.is_none() {
                print_message!(
                    "note: a robots.txt file does not name its host, so {} is applied to URLs of all hosts. To find \
                     URLs of other hosts, give the site in place of the file, like https://shop.example",
                    file.name
                );
            }
        }
        let snapshot = rules_in_force(loaded, robots_files)?;
        let fetch = self.fetch.then(|| FetchLimits {
            until: Instant::now() + self.fetch_time,
            connections: self.connections,
        });
        let mut checker = SitemapChecker::new(&snapshot, now(), only_host, fetch);
        let mut checked = Vec::new();
        for written in &self.sitemaps {
            checked.extend(read_sitemap(written, &mut |pages| checker.check(pages))?);
        }
        Ok(checked)
    }
}

/// Reads a sitemap, or those of an index, and returns the findings of `check`. Fails if it cannot be
/// opened.
pub fn read_sitemap(written: &str, check: &mut PageCheck<'_>) -> Result<Vec<SitemapFindings>> {
    let location = SitemapLocation::new(written);
    if let SitemapLocation::File(path) = &location {
        if path.is_dir() || written.ends_with(".csv") {
            fail!(
                Usage,
                "--sitemap: {written} is a directory or CSV; give a sitemap, or a list of URLs, one a line"
            );
        }
        policies::check_no_link_out(path)?;
    }
    check_sitemap(&location, check).map_err(file_failure("read", written.as_ref()))
}

/// The sites of the policies without their pauses. A robots.txt is for every other host.
fn rules_in_force(loaded: &[LoadedPolicy], robots_files: Vec<DatedRobotsTxt>) -> Result<Snapshot> {
    let mut entries: Vec<_> = loaded
        .iter()
        .filter_map(|file| Some(SiteEntry::new(file.site.clone()?, now())))
        .collect();
    for mut file in robots_files {
        truncate_file(&file.name, &mut file.bytes, MAX_COMPILED_BYTES);
        let rules = AuditRules::from_files(vec![file], Duration::ZERO, Registry::builtin())?;
        entries.extend(rules.site_entries().cloned());
    }
    Ok(Snapshot::new(entries, 0))
}
