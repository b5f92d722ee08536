//! [`TopUrlParts`]: what a report shows about the URLs that a crawler requested most. It lists
//! sections of the site (first parts of the path), names of query parameters, and paths that got a
//! certain status.

use super::{CrawlerRow, Report, TopEntry};
use crate::numbers::{percent, plural_thousands};
use askama::Template;
use std::cmp::Reverse;

/// An entry with its share of the requests, the different URLs, and the response time on average.
#[derive(Template)]
#[template(path = "url_entry.txt")]
struct EntryText<'a> {
    entry: &'a TopEntry,
    requests: u64,
}

/// Parts of the URLs that a crawler requested most.
pub(super) struct TopUrlParts<'a> {
    /// What they are, for people.
    pub title: String,
    /// The requests that they are a part of.
    requests: u64,
    entries: &'a [TopEntry],
    /// Whether there are more entries.
    has_more: bool,
}

/// Stands for the entries that are left out.
pub(super) const MORE_ENTRIES: &str = "...";

impl TopUrlParts<'_> {
    /// Each entry with its requests and their share: `/cart/ 120 (12 %)`. The last says that there are
    /// more.
    pub fn entry_words(&self) -> impl Iterator<Item = String> {
        let entries = self.entries.iter().map(|entry| {
            let requests = self.requests;
            EntryText { entry, requests }.to_string()
        });
        entries.chain(self.has_more.then(|| MORE_ENTRIES.to_owned()))
    }
}

impl Report {
    /// What a crawler requested most: sections, parameters, and the paths of each status, or all
    /// paths if no status is known. Errors of the server come first, then 4xx, then redirects, then the
    /// most frequent of the other statuses. A status has its sections first if the listed paths got less
    /// than a third of its requests, and of many paths only those with more than one request.
    pub(super) fn url_lists<'a>(&self, row: &'a CrawlerRow) -> Vec<TopUrlParts<'a>> {
        let mut lists = Vec::new();
        let all_paths = ("paths", &row.paths);
        let all_paths = Some(all_paths).filter(|_| row.statuses.is_empty());
        let all = row.counts.requests();
        let with_parameters = percent(row.with_parameters, all);
        let parameters = format!("parameters (in {with_parameters} of requests)");
        let parts = [
            ("devices", &row.devices),
            ("sections", &row.sections),
            (parameters.as_str(), &row.parameters),
            ("URLs with parameters", &row.combinations),
        ];
        for (title, entries) in parts.into_iter().chain(all_paths) {
            if !entries.is_empty() {
                lists.push(self.url_list(title.to_owned(), all, entries));
            }
        }
        let mut statuses: Vec<_> = row.statuses.iter().collect();
        // Stable: equal classes stay in the order of their requests.
        statuses.sort_by_key(|one| Reverse(one.class()));
        for (place, of_status) in statuses.into_iter().enumerate() {
            if place >= self.max_listed() && of_status.class() == 2 {
                break;
            }
            let status = of_status.status;
            let requests = of_status.requests;
            let counted = plural_thousands(requests, "request");
            let title = format!("{status} in {counted}");
            let mut paths = self.url_list(title, requests, &of_status.paths);
            // Of many paths with one request each, a few say nothing.
            if paths.has_more {
                let frequent = paths.entries.partition_point(|path| path.count > 1);
                paths.entries = &paths.entries[..frequent];
            }
            let explained: u64 = paths.entries.iter().map(|entry| entry.count).sum();
            if explained * 3 < requests {
                let title = format!("{}, by section", paths.title);
                lists.push(self.url_list(title, requests, &of_status.sections));
                paths.title = format!("{status} by path");
            }
            if !paths.entries.is_empty() {
                lists.push(paths);
            }
        }
        lists
    }

    pub(super) fn url_list<'a>(
        &self,
        title: String,
        requests: u64,
        entries: &'a [TopEntry],
    ) -> TopUrlParts<'a> {
        TopUrlParts {
            title,
            requests,
            entries: &entries[..entries.len().min(self.max_listed())],
            has_more: entries.len() > self.max_listed()
                || entries.iter().any(|entry| entry.is_of_cut_list),
        }
    }
}
