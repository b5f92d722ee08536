//! [`html`] makes a report as one HTML page that needs no server: for `report --html` and
//! `audit --html`. [`Content`] is what that page and the overview of the dashboard have in common.
//! Both are without script, and every text is escaped: names and URLs come from clients.

use super::remarks::remarks;
use super::text::{clean, names};
use super::{ClientIdentity, CrawlerRow, Example, Part, Report, Source};
use crate::numbers::{plural, thousands};
use askama::Template;
use std::fmt::Display;

/// Rows that the first screen shows of a part.
const FIRST: usize = 6;
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
                    link("/crawler", &[("id", &row.id)])
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

    /// Whether unknown bots are to be named apart: they came, and no other part names them.
    fn lists_unknown_bots(&self) -> bool {
        let mut rows = self.report.crawlers.iter();
        let is_named = rows.any(|row| {
            row.is_unknown_bots() && matches!(row.part, Part::BreaksRules | Part::DoesNotCount)
        });
        !self.report.unknown_bots.is_empty() && !is_named
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
        match (
            self.report.totals.against_rules,
            self.report.totals.requests,
        ) {
            (1.., _) => "headline breaks",
            _ => "headline",
        }
    }
}

/// A link within the dashboard. Empty values are left out.
fn link(page: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    format!("{page}?{}", query.finish())
}

/// The link to the violations of a row.
fn examples_link(row: &CrawlerRow, site: &str) -> String {
    let identity = row.identity.map_or("", ClientIdentity::name);
    link(
        "/violations",
        &[("site", site), ("crawler", &row.id), ("identity", identity)],
    )
}

/// A place as people say it: `policies/shop.yaml line 7` for `policies/shop.yaml:7:18`. Other
/// places stay.
fn line(place: &str) -> String {
    let places: Vec<String> = place.split(", ").map(line_of).collect();
    places.join(", ")
}

fn line_of(place: &str) -> String {
    let mut parts: Vec<&str> = place.split(':').collect();
    let numbers = parts.iter().rev().take(2);
    let numbers = numbers
        .take_while(|part| part.parse::<u32>().is_ok())
        .count();
    if numbers == 0 || parts.len() <= numbers {
        return place.to_owned();
    }
    let line = parts[parts.len() - numbers];
    let text = parts
        .drain(..parts.len() - numbers)
        .collect::<Vec<_>>()
        .join(":");
    format!("{text} line {line}")
}

/// As [`line`], with the name of the file alone.
fn short_line(place: &str) -> String {
    let line = line(place);
    line.rsplit('/').next().unwrap_or(&line).to_owned()
}

/// The link to the line of the policy that an example broke, on the page of its site.
fn line_link(example: &Example) -> String {
    let line = line(&example.place);
    let number = line.rsplit(' ').next().unwrap_or_default();
    format!(
        "{}#line-{number}",
        link("/site", &[("name", &example.site)])
    )
}

/// A number with its word in the right form.
fn counted(number: impl Display, word: &str) -> String {
    plural(thousands(number), word)
}
