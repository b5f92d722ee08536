//! Small text helpers for the pages of the dashboard. [`thousands`] formats numbers,
//! [`spaced_words`] turns identifiers into words, and [`split_at_quotes`] splits a message so that
//! the text in quotes is shown as code.

pub use crate::numbers::thousands;

use crate::printable::without_error_numbers;
use std::fmt::Display;

/// A kind, an action or a verdict in words: `_` becomes a blank.
pub fn spaced_words(name: &str) -> String {
    name.replace('_', " ")
}

/// Splits a message at its double quotes, so that every second part is code. A quote without a second
/// one begins none: it may be from a client. Drops `(os error N)`.
pub fn split_at_quotes(text: impl Display) -> Vec<String> {
    let text = text.to_string();
    let text = without_error_numbers(&text);
    let mut parts: Vec<String> = text.split('"').map(str::to_owned).collect();
    if parts.len().is_multiple_of(2)
        && let Some(last) = parts.pop()
        && let Some(before) = parts.last_mut()
    {
        *before += "\"";
        *before += &last;
    }
    parts
}
