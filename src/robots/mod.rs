//! RFC 9309: request targets, path patterns, rule sets, and the rendering of a robots.txt.
//!
//! This room knows bytes only: no policy, no crawler, no request.

mod document;
mod matcher;
mod normal;
mod pattern;
mod render;
mod rules;
mod target;
mod windows;

pub use document::{Document, Group, Rule};
pub use matcher::Matcher;
pub use pattern::Pattern;
pub use render::{MAX_BYTES, render};
pub use rules::RuleSet;
pub use target::{Target, TargetScratch};

#[cfg(test)]
mod tests;
