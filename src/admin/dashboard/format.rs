//! Formats numbers, times and texts for the pages of the dashboard: [`minute`], [`words`] and
//! [`message`].

pub use crate::numbers::thousands;

use std::fmt::Display;

/// The day and the minute of a moment: `2026-11-22 10:00`.
pub fn minute(moment: impl Display) -> String {
    moment
        .to_string()
        .chars()
        .take(16)
        .map(|sign| if sign == 'T' { ' ' } else { sign })
        .collect()
}

/// A kind, an action or a verdict in words: metrics write `_` between them.
pub fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// The parts of a message between its backticks, so that every second one is code. The numbers that
/// the system gives its errors are left out.
pub fn message(text: impl Display) -> Vec<String> {
    let mut text = text.to_string();
    while let Some((before, rest)) = text.split_once(" (os error ")
        && let Some((_, after)) = rest.split_once(')')
    {
        text = format!("{before}{after}");
    }
    text.split('`').map(str::to_owned).collect()
}
