//! robots.txt (RFC 9309): parsing, matching and rendering. [`RobotsFile`] is any robots.txt, split
//! into lines with the issues of each. [`DialectRules`] says whether such a file allows a crawler
//! to fetch a URL, as RFC 9309 or Google's parser reads the file.
//! `RobotsDocument` is a file that crawlgate writes itself.

mod absolute_url;
mod blanket_disallow;
pub(crate) mod dialect;
mod dialect_rules;
mod document;
mod file;
mod google_rules;
mod group_matcher;
pub(crate) mod normalise;
mod overlap;
mod pattern;
mod render;
pub(crate) mod rule_set;
mod step_counter;
pub(crate) mod target;
mod window_index;

pub use dialect::Dialect;
pub use dialect_rules::{AgentLine, DialectRules, FileGroup, FileVerdict, GroupMatch, RuleLine};
pub use document::Rule;
pub use file::{
    FileFormat, KeySpelling, KeyValue, LineIssue, MAX_LINE_BYTES, MAX_ROBOTS_BYTES, RobotsFile,
    RobotsKey, RobotsLine,
};
pub use pattern::PathPattern;

pub(crate) use absolute_url::{AbsoluteUrl, Authority};
pub(crate) use blanket_disallow::{BlanketDisallow, DisallowedPart, blanket_disallow};
pub(crate) use dialect::{AgentName, url_path};
pub(crate) use document::{ExtensionLine, RobotsDocument, RuleGroup};
pub(crate) use google_rules::{GoogleRules, differs_for_google};
pub(crate) use group_matcher::GroupMatcher;
pub(crate) use normalise::{LITERAL_STAR, escape_url, parse_escape};
pub(crate) use render::{format_seconds, render_robots_txt};
pub(crate) use rule_set::RuleSet;
pub(crate) use target::{RequestTarget, TargetScratch, reaches_robots_txt, without_query};

#[cfg(test)]
mod tests;
