//! [`render_html`] renders a report about crawlers as one HTML page that needs no server, for
//! `report --html` and `audit --html`. [`ReportFragment`] is the part that this page shares with
//! the overview of the dashboard. The HTML has no script, and every text is escaped, because names
//! and URLs come from clients.

use super::about_log::about_log_sentences;
use super::links::{crawler_link, place_words, policy_line_link, site_link, violations_link};
use super::text::{names_with_requests, printable_text};
use super::traffic::{service_kind_words, service_name};
use super::{ClientIdentity, CrawlerRow, Report, ReportSection, ReportSource};
use crate::numbers::{plural_thousands, thousands};
use askama::Template;

/// Rows of the table of all crawlers.
const MAX_ROWS: usize = 200;
const STYLE: &str = concat!(include_str!("../look.css"), include_str!("report.css"));

/// The part of a page that shows a report.
#[derive(Template)]
#[template(path = "content.html")]
pub struct ReportFragment<'a> {
    /// The report that is shown.
    pub report: &'a Report,
    /// Whether the page can link to pages of crawlers and sites, as the dashboard can.
    pub has_links: bool,
    /// The level of its first headings.
    pub heading_level: u8,
}

/// A row of a table of counts.
pub struct NumbersRow {
    /// The first cell.
    pub label: String,
    /// The link of the label; may be empty.
    pub href: String,
    /// The numbers.
    pub row: CrawlerRow,
}

impl NumbersRow {
    /// The share of requests that obeyed the rules; `-` where it is not known.
    pub fn obeyed_percent(&self) -> String {
        let share = self
            .row
            .counts
            .compliance()
            .filter(|_| !self.row.is_pretender());
        share.map_or_else(|| "-".to_owned(), |share| format!("{share:.0} %"))
    }
}

#[derive(Template)]
#[template(path = "report.html")]
struct HtmlPage<'a> {
    report: &'a Report,
    content: ReportFragment<'a>,
}

/// Renders the report as one HTML page.
///
/// # Errors
/// Never because of the report.
pub fn render_html(report: &Report) -> Result<String, askama::Error> {
    let content = ReportFragment {
        report,
        has_links: false,
        heading_level: if report.title.is_empty() { 1 } else { 2 },
    };
    HtmlPage { report, content }.render()
}

impl ReportFragment<'_> {
    /// The rows of the table of all crawlers.
    fn numbers_rows(&self) -> Vec<NumbersRow> {
        let mut numbers = Vec::new();
        for row in self.report.crawlers.iter().take(MAX_ROWS) {
            numbers.push(NumbersRow {
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
}

/// The link to the samples of a row.
fn examples_link(row: &CrawlerRow, site: &str) -> String {
    let identity = row.identity.map_or("", ClientIdentity::name);
    violations_link(&[("site", site), ("crawler", &row.id), ("identity", identity)])
}

/// A file name and line without the directory.
fn without_directory(line: &str) -> &str {
    line.rsplit('/').next().unwrap_or(line)
}
