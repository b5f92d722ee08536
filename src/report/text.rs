//! [`render_text`] renders a report about crawlers for a terminal of 80 columns, with at most five
//! lines a section, or eight crawlers. [`render_table`] renders every crawler with all its counts,
//! in wide lines.

use super::about_log::about_log_sentences;
use super::urls::{MORE_ENTRIES, TopUrlParts};
use super::{
    CrawlerRow, MAX_NAMED, OperatorTraffic, Report, ReportSection, ReportSource, join_first,
    join_words,
};
use crate::numbers::{byte_size, percent, plural_thousands, thousands};
use crate::printable::printable;
use crate::verdict::Kind;
use askama::Template;

/// The lines of a section.
const MAX_LINES: usize = 5;
/// The crawlers or operators of a section.
const MAX_ROWS: usize = 8;
/// The width of a line.
const COLUMNS: usize = 80;
/// The width of a list of URLs, which is indented more.
const URL_COLUMNS: usize = COLUMNS - 4;
/// The same without the sign that there are more.
const SHORT_COLUMNS: usize = URL_COLUMNS - 5;
/// The columns of a crawler's name in a table.
const NAME_COLUMNS: usize = 42;
/// The fewest columns of a name in a list of URLs.
const MIN_NAME_COLUMNS: usize = 12;
/// The columns of a crawler's name in the list of those that take most.
const TAKER_COLUMNS: usize = 37;

/// Renders the report in lines of at most 80 columns.
///
/// # Errors
/// Never because of the report.
pub fn render_text(report: &Report) -> Result<String, askama::Error> {
    // A number stays on one line with its sign, and so does what is in braces with the last one.
    let text = ReportText { report }.render()?;
    let text = text.replace(" %", "\u{a0}%").replace(" }", "\u{a0}}");
    Ok(wrap_lines(&text).replace('\u{a0}', " "))
}

/// Renders every crawler and site with all counts, in wide lines.
///
/// # Errors
/// Never because of the report.
pub fn render_table(report: &Report) -> Result<String, askama::Error> {
    ReportTable { report }.render()
}

#[derive(Template)]
#[template(path = "report.txt")]
struct ReportText<'a> {
    report: &'a Report,
}

impl ReportText<'_> {
    /// The rows of a section that are shown, and how many more there are.
    fn shown_rows(&self, part: ReportSection) -> (Vec<&CrawlerRow>, usize) {
        let mut rows: Vec<&CrawlerRow> = self.report.rows_in(part).collect();
        let shown = shown_count(rows.len());
        let more = rows.len() - shown;
        rows.truncate(shown);
        (rows, more)
    }

    /// The operators that are shown, and how many more there are.
    fn shown_operators(&self) -> (&[OperatorTraffic], usize) {
        let traffic = self.report.traffic.as_ref();
        let operators = traffic.map_or(&[][..], |traffic| &traffic.operators);
        let shown = shown_count(operators.len());
        (&operators[..shown], operators.len() - shown)
    }

    /// The title and as many entries of a list as one line has space for, or all that were asked for.
    /// The end says that there are more. Long names are cut, their numbers are not.
    fn url_line(&self, list: &TopUrlParts<'_>) -> String {
        let mut line = list.title.clone();
        for (place, mut entry) in list.entry_words().enumerate() {
            let separator = if place == 0 { ": " } else { ", " };
            if place == 0
                && self.report.top.is_none()
                && let Some((name, numbers)) = entry.split_once(' ')
            {
                let taken = line.chars().count() + numbers.chars().count() + 3;
                let space = SHORT_COLUMNS.saturating_sub(taken).max(MIN_NAME_COLUMNS);
                entry = format!("{} {numbers}", truncate_text(name, space));
            }
            let length = line.chars().count() + separator.len() + entry.chars().count();
            line.push_str(separator);
            if place > 0 && self.report.top.is_none() && length > SHORT_COLUMNS {
                line.push_str(MORE_ENTRIES);
                break;
            }
            line.push_str(&entry);
        }
        line
    }
}

/// How many of the rows of a section are shown, so that there is space to say how many more.
fn shown_count(rows: usize) -> usize {
    if rows > MAX_ROWS { MAX_ROWS - 1 } else { rows }
}

/// The name of a row with its identity and purpose.
fn name_and_identity(row: &CrawlerRow) -> String {
    let words = join_words([row.identity_words(), row.purpose_words()]);
    truncated_name(&row.name, &words, URL_COLUMNS)
}

/// The names of rows in a column. All have their purposes if these fit into `width`, else none has.
fn name_column(rows: &[&CrawlerRow], width: usize) -> Vec<String> {
    let names: Vec<String> = rows.iter().map(|row| name_and_identity(row)).collect();
    if names.iter().all(|name| name.chars().count() <= width) {
        return names;
    }
    let names = rows.iter().map(|row| name_without_purpose(row));
    names.collect()
}

fn name_without_purpose(row: &CrawlerRow) -> String {
    truncated_name(&row.name, row.identity_words(), NAME_COLUMNS)
}

/// A name, with words in brackets if there are any.
pub(super) fn name_with_words(name: &str, words: &str) -> String {
    match words {
        "" => name.to_owned(),
        words => format!("{name} ({words})"),
    }
}

/// The same in `width` columns: a long name is cut, its words are not.
fn truncated_name(name: &str, words: &str, width: usize) -> String {
    let rest = width - name_with_words("", words).len();
    name_with_words(&truncate_text(name, rest), words)
}

fn truncate_text(text: impl AsRef<str>, width: usize) -> String {
    let text = text.as_ref();
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width - 3).collect();
    short.push_str("...");
    short
}

/// The first names with their requests in one line, and how many more there are.
pub fn names_with_requests<'a>(rows: impl Iterator<Item = &'a CrawlerRow>) -> String {
    let parts = rows.map(|row| {
        let requests = plural_thousands(row.counts.requests(), "request");
        let mut words = Vec::new();
        for (number, what) in [
            (
                row.counts.requests_of_kind(Kind::Exempt),
                "disallowed but exempt",
            ),
            (row.counts.requests_of_kind(Kind::NotBound), "not bound"),
            (row.counts.without_license(), "of them without a licence"),
        ] {
            if number > 0 {
                words.push(format!("{} {what}", thousands(number)));
            }
        }
        let words = join_words([row.identity_words(), &words.join(", ")]);
        name_with_words(&format!("{}: {requests}", row.name), &words)
    });
    join_first(parts, MAX_NAMED)
}

#[derive(Template)]
#[template(path = "crawlers.txt")]
struct ReportTable<'a> {
    report: &'a Report,
}

/// Breaks lines at spaces. The continuation of an indented line is indented two columns deeper. A
/// word longer than a line stays whole, so that a URL can be copied.
fn wrap_lines(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let deeper = if indent > 0 { indent + 2 } else { 0 };
        let mut width = 0;
        // Columns of a table are aligned by spaces. A command or an option is pasted as one line.
        let is_pasted = line.starts_with("  crawlgate ") || line.starts_with("  --");
        if is_pasted || line.chars().count() <= COLUMNS {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        for word in line.split(' ').filter(|word| !word.is_empty()) {
            let length = word.chars().count();
            if width == 0 {
                out.push_str(&" ".repeat(indent));
                width = indent;
            } else if width + 1 + length > COLUMNS {
                out.push('\n');
                out.push_str(&" ".repeat(deeper));
                width = deeper;
            } else {
                out.push(' ');
                width += 1;
            }
            out.push_str(word);
            width += length;
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out
}

/// [`printable`] for templates.
pub fn printable_text(text: &str) -> String {
    printable(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, wrap_lines};

    #[test]
    fn lines_wrap_between_words_and_keep_indent() {
        let text = format!("  {}\nshort", "word ".repeat(50));
        let lines = wrap_lines(&text);
        assert!(lines.lines().all(|line| line.chars().count() <= COLUMNS));
        assert_eq!(lines.matches("word").count(), 50);
        assert!(lines.starts_with("  word") && lines.contains("\n    word"));
        assert!(lines.ends_with("\nshort"));
    }
}
