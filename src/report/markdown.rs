//! [`render_markdown`] renders a report as Markdown for an issue, a chat or the summary of a CI
//! job. Texts from clients are escaped, so that they cannot add markup.

use super::about_log::about_log_sentences;
use super::text::{names_with_requests, printable_text};
use super::{Report, ReportSection};
use crate::numbers::{plural, plural_thousands, thousands};
use askama::Template;

/// Renders the report as Markdown.
///
/// # Errors
/// Never because of the report.
pub fn render_markdown(report: &Report) -> Result<String, askama::Error> {
    MarkdownReport { report }.render()
}

#[derive(Template)]
#[template(path = "report.md", escape = "none")]
struct MarkdownReport<'a> {
    report: &'a Report,
}

/// Signs that are markup, or make a name of GitHub.
const MARKUP: &str = "\\`*_[]<>|#~!&@";

/// Escapes a text of a client for a table cell, so that it is no markup and no link.
fn escape_cell(text: impl AsRef<str>) -> String {
    let mut cell = String::new();
    for letter in text.as_ref().chars() {
        let is_of_link =
            letter == '/' && cell.ends_with(':') || letter == '.' && cell.ends_with("www");
        if is_of_link || MARKUP.contains(letter) {
            cell.push('\\');
        }
        cell.push(if letter.is_control() { ' ' } else { letter });
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::escape_cell;

    #[test]
    fn client_text_is_escaped() {
        assert_eq!(escape_cell("a|b\n<i>"), "a\\|b \\<i\\>");
    }
}
