//! [`table`] prints the report of an audit as text for a terminal. The template is `table.txt`.

use super::accused::{accusations, nothing_proven, remarks, title};
use super::report::{Crawler, Report};
use crate::numbers::{plural, size, thousands};
use askama::Template;
use std::fmt::Display;
use std::io::{self, Write};

/// Crawlers and other entries that are shown; JSON has all.
const SHOWN: usize = 30;
const SHOWN_OF_LISTS: usize = 10;

/// Prints a report.
///
/// # Errors
/// The stream cannot be written.
pub fn table(out: &mut impl Write, report: &Report) -> io::Result<()> {
    writeln!(out, "{}", Table::new(report))
}

#[derive(Template)]
#[template(path = "table.txt")]
struct Table<'a> {
    report: &'a Report,
    /// The crawlers that robots.txt concerns.
    judged: Vec<&'a Crawler>,
    /// The others.
    tools: Vec<&'a Crawler>,
    /// The widths of the first two columns.
    widths: [usize; 2],
}

impl Table<'_> {
    /// Parts the crawlers of a report into those that robots.txt concerns and the others, and finds
    /// the widths of the first two columns: of the headings and the first `SHOWN` crawlers of the
    /// table.
    fn new(report: &Report) -> Table<'_> {
        let (judged, tools): (Vec<_>, Vec<_>) =
            report.crawlers.iter().partition(|crawler| crawler.judged);
        let mut widths = ["crawler".len(), "identity".len()];
        for crawler in judged.iter().take(SHOWN) {
            widths[0] = widths[0].max(crawler.id.len());
            widths[1] = widths[1].max(crawler.identity_name().len());
        }
        Table {
            report,
            judged,
            tools,
            widths,
        }
    }

    /// The first two columns of a row.
    fn columns(&self, crawler: &str, identity: &str) -> String {
        let [width, identity_width] = self.widths;
        format!("{crawler:<width$}  {identity:<identity_width$}")
    }

    /// Whether unlisted bots requested anything that is disallowed.
    fn has_unlisted(&self) -> bool {
        let mut judged = self.judged.iter();
        judged.any(|crawler| crawler.id == "other" && crawler.counts.disallowed > 0)
    }

    /// How many requests came from clients that robots.txt does not concern.
    fn tool_requests(&self) -> u64 {
        self.tools.iter().map(|tool| tool.counts.requests).sum()
    }
}

/// The numbers of a row, in the order of the columns: requests, those for robots.txt, disallowed
/// ones, of these the certain, stale, unproven and not bound ones, and those that would be blocked.
fn numbers(crawler: &Crawler) -> [u64; 8] {
    let counts = &crawler.counts;
    [
        counts.requests,
        counts.robots_txt,
        counts.disallowed,
        counts.certain,
        counts.stale,
        counts.unproven,
        counts.not_bound,
        crawler.would_block(),
    ]
}

/// A number with separators of thousands, and the word after it in the form that fits: `1 request`,
/// `1,234 requests`.
fn counted(number: impl Display, word: &str) -> String {
    plural(thousands(number), word)
}
