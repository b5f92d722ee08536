//! RFC 9309: request targets, path patterns, rule sets; files as they are found, read in two dialects; and the
//! rendering of a robots.txt.
//!
//! This room knows bytes only: no policy, no crawler, no request.

mod dialect;
mod document;
mod file;
mod matcher;
mod normal;
mod overlap;
mod pattern;
mod reading;
mod render;
mod rules;
mod steps;
mod target;
mod windows;

pub use dialect::{Agent, Dialect, path_of_url};
pub use document::{Document, Extension, Group, Rule};
pub use file::{File, Key, Line, LineEnd, MAX_LINE, Oddity, Record, Shape, Spelling};
pub use matcher::Matcher;
pub use normal::LITERAL_STAR;
pub use pattern::Pattern;
pub use reading::{AgentLine, Bound, FileGroup, FileVerdict, Reading, RuleLine};
pub use render::{MAX_BYTES, render, seconds};
pub use rules::RuleSet;
pub use target::{Resolved, Target, TargetScratch, reaches_robots_txt};

#[cfg(test)]
mod tests;
