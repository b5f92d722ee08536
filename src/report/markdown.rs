//! [`markdown`] writes a report for an issue, a chat or a job's summary.

use super::text::names;
use super::{Part, Report};
use crate::numbers::{plural, thousands};
use askama::Template;

/// The report as Markdown.
///
/// # Errors
/// None that depends on the report.
pub fn markdown(report: &Report) -> Result<String, askama::Error> {
    Markdown { report }.render()
}

#[derive(Template)]
#[template(path = "report.md", escape = "none")]
struct Markdown<'a> {
    report: &'a Report,
}

/// Text of a client within a cell: nothing of it is markup, and it stays in the cell.
fn cell(text: impl AsRef<str>) -> String {
    let mut cell = String::new();
    for letter in text.as_ref().chars() {
        if letter.is_ascii_punctuation() {
            cell.push('\\');
        }
        cell.push(if letter.is_control() { ' ' } else { letter });
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn text_of_a_client_is_no_markup() {
        assert_eq!(cell("a|b\n<i>"), "a\\|b \\<i\\>");
    }
}
