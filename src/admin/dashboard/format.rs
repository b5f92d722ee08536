//! Formats numbers, times and words for the pages of the dashboard: [`percent`], [`minute`] and
//! [`words`].

pub use crate::numbers::thousands;

use std::borrow::Borrow;
use std::fmt::Display;

/// A share of a hundred, with one digit after the point unless it is whole. A share above 0 is
/// shown as 0.1 % at least, and one below 100 as 99.9 % at most.
pub fn percent(share: impl Borrow<f64>) -> String {
    match *share.borrow() {
        share if share > 99.9 && share < 100.0 => "99.9 %".to_owned(),
        share if share > 0.0 && share < 0.1 => "0.1 %".to_owned(),
        share if share == share.trunc() => format!("{share:.0} %"),
        share => format!("{share:.1} %"),
    }
}

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
