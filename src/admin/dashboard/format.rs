//! Small text helpers for the pages of the dashboard. [`thousands`] formats numbers,
//! [`spaced_words`] turns identifiers into words, and [`split_code_spans`] splits a message so that
//! the text in backticks is shown as code.

pub use crate::numbers::thousands;

use std::fmt::Display;

/// A kind, an action or a verdict in words: `_` becomes a blank.
pub fn spaced_words(name: &str) -> String {
    name.replace('_', " ")
}

/// Splits a message at its backticks, so that every second part is code. Drops `(os error N)`.
pub fn split_code_spans(text: impl Display) -> Vec<String> {
    let mut text = text.to_string();
    while let Some((before, rest)) = text.split_once(" (os error ")
        && let Some((_, after)) = rest.split_once(')')
    {
        text = format!("{before}{after}");
    }
    text.split('`').map(str::to_owned).collect()
}
