//! [`text`] prints a report for a terminal of 80 columns, in the order of the page and with at most
//! five lines a part. [`table`] prints every crawler with all its counts, in lines as long as they
//! are.

use super::about_log::about_log;
use super::{CrawlerRow, Part, Report, Source, join_first};
use crate::numbers::{counted, size, thousands};
use crate::printable::printable;
use askama::Template;

/// Lines of a part.
const LINES: usize = 5;
/// Columns of a line.
const COLUMNS: usize = 80;

/// The report in lines of at most 80 columns.
///
/// # Errors
/// None that depends on the report.
pub fn text(report: &Report) -> Result<String, askama::Error> {
    Ok(wrapped(&ReportText { report }.render()?))
}

/// Every crawler, site, rule and URL of the report with all counts, in wide lines.
///
/// # Errors
/// None that depends on the report.
pub fn table(report: &Report) -> Result<String, askama::Error> {
    ReportTable { report }.render()
}

#[derive(Template)]
#[template(path = "report.txt")]
struct ReportText<'a> {
    report: &'a Report,
}

impl ReportText<'_> {
    /// The names and requests of the rows of a part, in one line.
    fn names(&self, part: Part) -> String {
        names(self.report.part(part))
    }

    /// The rows of a part that are shown, and how many more there are.
    fn rows(&self, part: Part) -> (Vec<&CrawlerRow>, usize) {
        let mut rows: Vec<&CrawlerRow> = self.report.part(part).collect();
        let shown = if rows.len() > LINES { LINES - 1 } else { LINES };
        let more = rows.len().saturating_sub(shown);
        rows.truncate(shown);
        (rows, more)
    }
}

/// The name of a row with its identity, and with its purpose where that fits into the width.
fn who(row: &CrawlerRow) -> String {
    const WIDTH: usize = 32;
    let name = &row.name;
    let short = match row.identity_words() {
        "" => name.clone(),
        identity => format!("{name} ({identity})"),
    };
    let purpose = row.purpose_words();
    let long = match (purpose, short.strip_suffix(')')) {
        ("", _) => short.clone(),
        (purpose, Some(short)) => format!("{short}, {purpose})"),
        (purpose, None) => format!("{short} ({purpose})"),
    };
    if long.chars().count() <= WIDTH {
        long
    } else {
        cut(&short, WIDTH)
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width - 3).collect();
    short.push_str("...");
    short
}

/// Names with their requests in one line: the first ten, and how many more there are.
pub(super) fn names<'a>(rows: impl Iterator<Item = &'a CrawlerRow>) -> String {
    const NAMED: usize = 10;
    let parts = rows.map(|row| {
        let requests = thousands(row.counts.requests());
        match row.identity_words() {
            "" => format!("{} {requests}", row.name),
            words => format!("{} {requests} ({words})", row.name),
        }
    });
    join_first(parts.collect(), NAMED)
}

#[derive(Template)]
#[template(path = "crawlers.txt")]
struct ReportTable<'a> {
    report: &'a Report,
}

/// Lines of at most `COLUMNS`, broken at spaces. What is carried over of an indented line is
/// indented two columns deeper. A word that is longer stays whole: nobody can copy half of a URL.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let deeper = if indent > 0 { indent + 2 } else { 0 };
        let mut width = 0;
        // Columns of a table are aligned by spaces.
        if line.chars().count() <= COLUMNS {
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

/// A text of a client on one line, without characters that hide or turn other text.
pub(super) fn clean(text: &str) -> String {
    printable(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{COLUMNS, wrapped};

    #[test]
    fn lines_are_wrapped_between_words_and_keep_their_indent() {
        let text = format!("  {}\nshort", "word ".repeat(50));
        let lines = wrapped(&text);
        assert!(lines.lines().all(|line| line.chars().count() <= COLUMNS));
        assert_eq!(lines.matches("word").count(), 50);
        assert!(lines.starts_with("  word") && lines.contains("\n    word"));
        assert!(lines.ends_with("\nshort"));
    }
}
