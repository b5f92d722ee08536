//! [`RobotsDocument`]: the content of the robots.txt that crawlgate makes from a policy.
//! [`render_robots_txt`](super::render_robots_txt) writes a document as the file that crawlers get,
//! and a [`GroupMatcher`](super::GroupMatcher) judges requests by the same document. So the
//! verdicts always agree with the robots.txt that is served.

use super::PathPattern;
use std::fmt;
use std::time::Duration;

/// One `Allow` or `Disallow` line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// `Allow` if true, `Disallow` if not.
    pub allow: bool,
    /// The URLs that it applies to. An empty pattern is written but matches nothing.
    pub pattern: PathPattern,
}

impl Rule {
    pub(crate) fn new(allow: bool, pattern: &str) -> Rule {
        Rule {
            allow,
            pattern: PathPattern::new(pattern),
        }
    }
}

/// The line as it is written: `Disallow: /a`. An empty pattern has no blank before it.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = if self.allow { "Allow:" } else { "Disallow:" };
        let blank = if self.pattern.is_empty() { "" } else { " " };
        write!(f, "{key}{blank}{}", self.pattern.as_str())
    }
}

/// A line such as `Content-Signal: ai-train=no`, which is not a rule and never closes a list of
/// agents.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExtensionLine {
    /// The key as it is written.
    pub key: String,
    /// The value. A line break or a `#` cannot stand in it.
    pub value: String,
}

/// Agents and the rules that they share. In a document that is served, each token stands in one
/// group only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleGroup {
    /// Lines written as comments above the group, without `#`.
    pub comments: Vec<String>,
    /// Product tokens as they are written, or `*`.
    pub agents: Vec<String>,
    /// Rules in the order of the file.
    pub rules: Vec<Rule>,
    /// Written as `Crawl-delay` in seconds; not part of RFC 9309, never closes a list of agents.
    pub crawl_delay: Option<Duration>,
    /// Written last in the group: for some parsers an unknown line ends the list of agents.
    pub extensions: Vec<ExtensionLine>,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RobotsDocument {
    /// Lines written as comments at the top, without `#`.
    pub comments: Vec<String>,
    /// Groups in the order of the file.
    pub groups: Vec<RuleGroup>,
    /// Lines that belong to no group, written before all groups.
    pub extensions: Vec<ExtensionLine>,
    /// Absolute URLs of sitemaps, written last.
    pub sitemaps: Vec<String>,
}
