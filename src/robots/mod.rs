//! robots.txt (RFC 9309). [`File`] is a file as it was found, with the oddities of each line.
//! [`Reading`] is the file as a dialect reads it, with its verdict on a URL and the line that
//! decided. Also rule sets, and the rendering of a file.

mod absolute_url;
mod closed;
pub(crate) mod dialect;
mod document;
mod file;
mod google;
mod matcher;
pub(crate) mod normal;
mod overlap;
mod pattern;
mod reading;
mod render;
pub(crate) mod rules;
mod steps;
pub(crate) mod target;
mod windows;

pub use dialect::{Agent, Dialect};
pub use document::Rule;
pub use file::{File, Key, Line, LineEnd, MAX_BYTES, MAX_LINE, Oddity, Record, Shape, Spelling};
pub use pattern::Pattern;
pub use reading::{AgentLine, Bound, FileGroup, FileVerdict, Reading, RuleLine};

pub(crate) use absolute_url::{AbsoluteUrl, Authority};
pub(crate) use closed::{Closed, Extent, closed};
pub(crate) use dialect::path_of_url;
pub(crate) use document::{Document, Extension, Group};
pub(crate) use google::{GoogleRules, is_read_otherwise};
pub(crate) use matcher::Matcher;
pub(crate) use normal::LITERAL_STAR;
pub(crate) use render::{render, seconds};
pub(crate) use rules::RuleSet;
pub(crate) use target::{Target, TargetScratch, path_of, reaches_robots_txt};

#[cfg(test)]
mod tests;
