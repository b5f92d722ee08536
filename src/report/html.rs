//! [`html`] makes a report as one HTML page that needs no server: for `report --html` and
//! `audit --html`. [`Content`] is what that page and the overview of the dashboard have in common.
//! Both are without script, and every text is escaped: names and URLs come from clients.

use super::about_log::about_log;
use super::links::{crawler_link, line, policy_line, samples_link, site_link};
use super::text::{clean, names};
use super::{ClientIdentity, CrawlerRow, Part, Report, Source};
use crate::numbers::{counted, thousands};
use askama::Template;

/// Rows of the table of all crawlers.
const ROWS: usize = 200;
const STYLE: &str = concat!(include_str!("../look.css"), include_str!("report.css"));

/// The content of a page about a report.
#[derive(Template)]
#[template(path = "content.html")]
pub struct Content<'a> {
    report: &'a Report,
    /// Whether there are pages of crawlers and sites to link to.
    has_links: bool,
    /// The level of its heading.
    level: u8,
}

/// A row of numbers of a table.
pub struct Numbers {
    /// What the row is called.
    pub label: String,
    /// Where that leads; empty if nowhere.
    pub href: String,
    /// The numbers.
    pub row: CrawlerRow,
}

impl Numbers {
    /// The share of requests that obeyed the rules, where it says something.
    pub fn obeyed(&self) -> String {
        let share = self
            .row
            .counts
            .compliance()
            .filter(|_| !self.row.pretends());
        share.map_or_else(|| "-".to_owned(), |share| format!("{share:.0} %"))
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
    content: Content<'a>,
}

/// The report as one HTML page.
///
/// # Errors
/// None that depends on the report.
pub fn html(report: &Report) -> Result<String, askama::Error> {
    let content = Content::new(report, false);
    Page { report, content }.render()
}

impl<'a> Content<'a> {
    /// The content for a page. `has_links` says that the page is one of the dashboard, which has
    /// pages of crawlers and sites.
    pub fn new(report: &'a Report, has_links: bool) -> Content<'a> {
        Content {
            report,
            has_links,
            level: 1,
        }
    }

    /// The same within a page that has a title of its own.
    pub fn below_title(self) -> Content<'a> {
        Content { level: 2, ..self }
    }

    /// The rows of the table of all crawlers.
    fn numbers(&self) -> Vec<Numbers> {
        let mut numbers = Vec::new();
        for row in self.report.crawlers.iter().take(ROWS) {
            numbers.push(Numbers {
                label: row.name.clone(),
                href: if self.has_links {
                    crawler_link(&row.id)
                } else {
                    String::new()
                },
                row: row.clone(),
            });
        }
        numbers
    }

    fn rows(&self, part: Part) -> Vec<&CrawlerRow> {
        self.report.part(part).collect()
    }

    fn names(&self, part: Part) -> String {
        names(self.report.part(part))
    }

    /// What an example is: a log has the rule alone.
    fn example_heading(&self) -> &'static str {
        match self.report.source {
            Source::History => "Latest example",
            Source::Logs | Source::LogsByPolicies => "Rule it broke most",
        }
    }

    /// The class of the headline.
    fn mood(&self) -> &'static str {
        match self.report.totals.against_rules {
            0 => "headline",
            _ => "headline breaks",
        }
    }
}

/// The link to the violations of a row.
fn examples_link(row: &CrawlerRow, site: &str) -> String {
    let identity = row.identity.map_or("", ClientIdentity::name);
    samples_link(&[("site", site), ("crawler", &row.id), ("identity", identity)])
}

/// The name of the file in a place alone, with the line.
fn short(line: &str) -> &str {
    line.rsplit('/').next().unwrap_or(line)
}
