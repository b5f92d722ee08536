//! [`Document`]: a robots.txt as data. [`render`](super::render()) writes it, and a
//! [`Matcher`](super::Matcher) judges by it. So the verdicts always agree with the robots.txt that
//! is served.

use super::Pattern;
use std::fmt;
use std::time::Duration;

/// One `Allow` or `Disallow` line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// `Allow` if true, `Disallow` if not.
    pub allow: bool,
    /// The URLs that it is for. An empty pattern is written but matches nothing.
    pub pattern: Pattern,
}

/// As it is written, without a blank where nothing follows it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.allow { "Allow:" } else { "Disallow:" };
        let blank = if self.pattern.is_empty() { "" } else { " " };
        write!(f, "{key}{blank}{}", self.pattern.as_str())
    }
}

impl AsRef<Rule> for Rule {
    fn as_ref(&self) -> &Rule {
        self
    }
}

/// A line such as `Content-Signal: ai-train=no`, which is not a rule and never closes a list of
/// agents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Extension {
    /// The key as it is to be written.
    pub key: String,
    /// The value. A line break or a `#` cannot stand in it.
    pub value: String,
}

/// The agents that share a list of rules. In a document that is to be served a token stands in one
/// group only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Lines written as comments above the group, without `#`.
    pub comments: Vec<String>,
    /// Product tokens as they are to be written, or `*`.
    pub agents: Vec<String>,
    /// Rules in the order they are to be written.
    pub rules: Vec<Rule>,
    /// Written as `Crawl-delay` in seconds; not part of RFC 9309, never closes a list of agents.
    pub crawl_delay: Option<Duration>,
    /// Written last in the group: some parsers take an unknown line for the end of a list of
    /// agents.
    pub extensions: Vec<Extension>,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Lines written as comments at the top, without `#`.
    pub comments: Vec<String>,
    /// Groups in the order they are to be written.
    pub groups: Vec<Group>,
    /// Lines that belong to no group, written before all groups.
    pub extensions: Vec<Extension>,
    /// Absolute URLs of sitemaps, written last.
    pub sitemaps: Vec<String>,
}
