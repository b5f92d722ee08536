//! [`render_csv`] renders the crawlers of a report with their counts as CSV (RFC 4180), one row for
//! each crawler and identity. In an audit, a row for each of its most frequent sections, parameters
//! and paths comes after it, also by status, and one for each URL of a sitemap that it never
//! requested. Cells are written in such a way that a spreadsheet program takes none
//! for a formula.

use super::Report;
use crate::printable::printable;
use askama::Template;

#[derive(Template)]
#[template(path = "crawlers.csv", escape = "none")]
struct CrawlersCsv<'a> {
    report: &'a Report,
}

/// Renders the report as CSV.
///
/// # Errors
/// Never because of the report.
pub fn render_csv(report: &Report) -> Result<String, askama::Error> {
    Ok(CrawlersCsv { report }.render()?.replace('\n', "\r\n"))
}

/// Quotes a text where it must be, and puts an apostrophe before one that a spreadsheet would
/// compute. Control characters are replaced.
pub fn text_cell(text: &str) -> String {
    let text = printable(text.as_bytes());
    let apostrophe = if text.starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    if text.contains([',', '"']) {
        format!("\"{apostrophe}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{apostrophe}{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::text_cell;

    #[test]
    fn cell_is_quoted_and_no_formula() {
        for (text, cell) in [
            ("GPTBot", "GPTBot"),
            ("", ""),
            ("a, \"b\"", "\"a, \"\"b\"\"\""),
            ("\r\n", "\u{fffd}\u{fffd}"),
            ("=1+1", "'=1+1"),
            ("@x,y", "\"'@x,y\""),
            ("-", "'-"),
            ("+49", "'+49"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(text_cell(text), cell);
        }
    }
}
