//! Renders the result of `crawlgate diff` ([`Difference`]): [`render_text`] for a terminal,
//! [`render_markdown`] for a pull request, [`render_csv`] for a spreadsheet. URLs and lines of
//! robots.txt are escaped, because they may come from anybody's pull request.

use super::{
    AccessChange, AccessEffect, ComparisonBasis, Difference, HeaderChange, SiteDifference,
};
use crate::numbers::{plural_thousands, thousands};
use crate::printable::{clip, join, printable};
use askama::Template;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// Further crawlers are only counted.
const MAX_NAMED: usize = 6;
/// Further crawlers whose requests change are only counted.
const MAX_CRAWLERS: usize = 10;
/// Further rows of a table are only counted.
const MAX_ROWS: usize = 200;
/// Sites that do not fit are only counted: a comment on GitHub holds 65,536 characters.
const MAX_COMMENT_BYTES: usize = 60_000;
/// A longer cell is cut.
const MAX_CELL_CHARS: usize = 300;

/// Renders the difference as plain text.
pub fn render_text(difference: &Difference) -> String {
    format!("{}\n", DifferenceText { difference })
}

#[derive(Template)]
#[template(path = "difference.txt")]
struct DifferenceText<'a> {
    difference: &'a Difference,
}

/// Renders the difference as CSV, row by row while it is printed.
pub fn render_csv(difference: &Difference) -> impl Display {
    DifferenceCsv { difference }
}

#[derive(Template)]
#[template(path = "difference.csv", escape = "none")]
struct DifferenceCsv<'a> {
    difference: &'a Difference,
}

/// The changes of access that are shown, grouped by crawlers.
fn shown_access_groups(site: &SiteDifference) -> impl Iterator<Item = &[AccessChange]> {
    let shown = site.access.len().min(MAX_ROWS);
    site.access[..shown].chunk_by(|change, next| change.crawlers == next.crawlers)
}

/// A site of the difference as Markdown.
#[derive(Template)]
#[template(path = "site.md", escape = "none")]
struct SiteMarkdown<'a> {
    site: &'a SiteDifference,
    basis: ComparisonBasis,
    /// Further rows of a table are only counted.
    max_rows: usize,
}

impl SiteMarkdown<'_> {
    /// The changes of access, by their effect.
    fn access_tables(&self) -> BTreeMap<AccessEffect, Vec<&AccessChange>> {
        let mut tables: BTreeMap<AccessEffect, Vec<&AccessChange>> = BTreeMap::new();
        for change in &self.site.access {
            tables.entry(change.effect).or_default().push(change);
        }
        tables
    }
}

/// The text of a comment: as many sites as fit.
#[derive(Template)]
#[template(path = "difference.md", escape = "none")]
struct DifferenceMarkdown<'a> {
    difference: &'a Difference,
    sites: Vec<String>,
}

/// Renders the difference as Markdown. A site has fewer rows where all of them do not fit.
pub fn render_markdown(difference: &Difference) -> String {
    let mut sites = Vec::new();
    let mut length = 0;
    for site in &difference.sites {
        let mut texts = [MAX_ROWS, 50, 10, 2].into_iter().map(|max_rows| {
            SiteMarkdown {
                site,
                basis: difference.basis,
                max_rows,
            }
            .to_string()
        });
        let Some(text) = texts.find(|text| length + text.len() < MAX_COMMENT_BYTES) else {
            break;
        };
        length += text.len() + 1;
        sites.push(text);
    }
    format!("{}\n", DifferenceMarkdown { difference, sites })
}

/// How many crawlers and settings change.
fn site_counts(site: &SiteDifference) -> String {
    let mut crawlers: BTreeMap<AccessEffect, BTreeSet<&String>> = BTreeMap::new();
    for change in &site.access {
        crawlers
            .entry(change.effect)
            .or_default()
            .extend(&change.crawlers);
    }
    let mut counts = Vec::new();
    for (effect, crawlers) in crawlers {
        let crawlers = plural_thousands(crawlers.len(), "crawler");
        counts.push(format!("{}: {crawlers}", effect.words()));
    }
    for (number, what) in [
        (site.responses.len(), "header"),
        (site.settings.len(), "setting"),
    ] {
        if number > 0 {
            counts.push(format!("change: {}", plural_thousands(number, what)));
        }
    }
    join(counts, ", ")
}

/// The files of both sides: `old -> new`.
fn side_names(site: &SiteDifference) -> String {
    let [old, new] = [&site.old, &site.new]
        .map(|name| name.as_deref().unwrap_or("no policy (allows everything)"));
    format!("{old} -> {new}")
}

/// An action in words: `blocked with 403` for `block 403`, `asked for a licence with 401` for
/// `license 401`, `robots txt` for `robots_txt`.
fn action_words(action: &str) -> String {
    match action.split_once(' ') {
        Some(("license", status)) => format!("asked for a licence with {status}"),
        Some((_, status)) => format!("blocked with {status}"),
        None => action.replace('_', " "),
    }
}

/// The heading of changed header lines: the field, the type and the status. Leaves out status 200,
/// and the type of a page (`text/html`) with status 200.
fn header_change_heading(change: &HeaderChange) -> String {
    match (change.field, change.content_type.as_str(), change.status) {
        (field, "text/html", 200) => field.to_owned(),
        (field, kind, 200) => format!("{field} of {kind}"),
        (field, kind, status) => format!("{field} of {kind} with status {status}"),
    }
}

/// Header lines in one line.
fn join_header_lines(lines: &[String]) -> String {
    if lines.is_empty() {
        "none".to_owned()
    } else {
        lines.join("; ")
    }
}

/// The names of crawlers. Of more than six, the first six and how many they are of `all` crawlers of
/// the site, or `all N crawlers`.
fn crawler_names(crawlers: &[String], all: usize) -> String {
    let named = join(crawlers.iter().take(MAX_NAMED), ", ");
    match crawlers.len() {
        ..=MAX_NAMED => named,
        number if number == all => format!("all {all} crawlers"),
        number => format!("{number} of {all} crawlers: {named}, ..."),
    }
}

/// [`printable`] for templates.
fn printable_text(text: impl AsRef<str>) -> String {
    printable(text.as_ref().as_bytes())
}

/// Escapes a text for a cell of a Markdown table.
fn markdown_cell(text: impl AsRef<str>) -> String {
    let mut out = String::new();
    for sign in clip(&printable_text(text), MAX_CELL_CHARS).chars() {
        match sign {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', sign]),
            sign => out.push(sign),
        }
    }
    out
}

/// Makes a code span for a cell of a Markdown table, whatever the text has.
fn markdown_code(text: impl AsRef<str>) -> String {
    let text = clip(&printable_text(text), MAX_CELL_CHARS).replace('|', "\\|");
    let ticks = "`".repeat(
        text.split(|sign| sign != '`')
            .map(str::len)
            .max()
            .unwrap_or(0)
            + 1,
    );
    let blank = if text.contains('`') { " " } else { "" };
    format!("{ticks}{blank}{text}{blank}{ticks}")
}
