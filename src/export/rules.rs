//! [`ExportedPolicy`]: the part of a policy that nginx, HAProxy, Caddy and Apache can all enforce,
//! in one form for all four. [`ExportedPolicy::left_out`] lists the rest in words. `conversion`
//! makes an `ExportedPolicy` from a site.

use super::regex::{marker_regex, media_type_regex};
use crate::printable::join;

/// The part of a policy that the configuration of a web server can express.
#[derive(Clone, Default)]
pub struct ExportedPolicy {
    /// The name of the policy.
    pub site: String,
    /// Files that the server serves to everybody, robots.txt first.
    pub files: Vec<ExportedFile>,
    /// Each class has at least one marker.
    pub classes: Vec<CrawlerClass>,
    /// Lists of path rules. In a list the first match counts.
    pub lists: Vec<Vec<PathRule>>,
    /// The answers to blocked requests.
    pub answers: Vec<ExportedAnswer>,
    /// The answer during the pause.
    pub pause: Option<ExportedAnswer>,
    /// Whether people get the pause, too.
    pub pauses_everyone: bool,
    /// X-Robots-Tag.
    pub tags: Vec<TagRule>,
    /// Header fields about the use of pages. Those of the application have precedence.
    pub signals: Vec<SignalRule>,
    /// Whether the application's X-Robots-Tag is removed.
    pub strips_tags: bool,
    /// The parts of the policy that cannot be expressed, in words.
    pub left_out: Vec<String>,
}

/// Crawlers that are treated alike.
#[derive(Clone)]
pub struct CrawlerClass {
    /// Markers as in the registry, each with its rank: the lowest rank counts first.
    pub markers: Vec<(u32, String)>,
    /// The index of their list of path rules.
    pub list: Option<usize>,
    /// Whether the list disallows everything.
    pub is_closed: bool,
    /// The index of the answer to disallowed requests.
    pub answer: usize,
    /// Whether the pause applies to them.
    pub is_pausable: bool,
}

/// A rule of robots.txt for paths.
#[derive(Clone, PartialEq)]
pub struct PathRule {
    /// Allow, or Disallow.
    pub allow: bool,
    pub pattern: String,
}

/// An answer in place of the page.
#[derive(Clone, PartialEq)]
pub struct ExportedAnswer {
    pub status: u16,
    /// Retry-After in seconds.
    pub retry_after: Option<u64>,
    pub body: String,
}

/// Values of X-Robots-Tag, and the responses that get them.
#[derive(Clone)]
pub struct TagRule {
    /// What must hold.
    pub when: TagCondition,
    /// What must not hold.
    pub unless: Option<TagCondition>,
    /// The values.
    pub lines: Vec<String>,
}

/// A condition on a request and its response. One item of each nonempty list must match.
#[derive(Clone, Default, PartialEq)]
pub struct TagCondition {
    pub paths: Vec<String>,
    /// Types like `application/pdf` or `image/*`.
    pub types: Vec<String>,
    /// Inclusive ranges.
    pub status: Vec<(u16, u16)>,
}

impl TagCondition {
    /// A regular expression for the types.
    pub fn type_regex(&self) -> String {
        join(self.types.iter().map(|kind| media_type_regex(kind)), "|")
    }
}

impl TagRule {
    /// Both conditions.
    pub fn conditions(&self) -> impl Iterator<Item = &TagCondition> {
        std::iter::once(&self.when).chain(&self.unless)
    }

    /// Whether every response gets the lines.
    pub fn is_unconditional(&self) -> bool {
        self.when == TagCondition::default() && self.unless.is_none()
    }
}

/// A file that the server serves in place of the application.
#[derive(Clone)]
pub struct ExportedFile {
    pub path: &'static str,
    pub media: &'static str,
    pub cache_control: String,
    pub body: Vec<u8>,
}

/// A header field whose value depends on the path.
#[derive(Clone)]
pub struct SignalRule {
    pub name: &'static str,
    /// The fields of the application beside which it is not sent.
    pub unless: &'static [&'static str],
    /// With an empty value the field is not sent.
    pub values: Vec<String>,
    /// Patterns with the index of their value. The first match counts.
    pub paths: Vec<(String, usize)>,
    /// The index of the value for all other paths.
    pub otherwise: Option<usize>,
}

impl ExportedFile {
    /// Its file name in the directory of the configuration.
    pub fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

impl ExportedPolicy {
    /// The indexes of classes with regular expressions for user agents. The first match counts.
    pub fn agent_regexes(&self) -> Vec<(usize, String)> {
        self.ordered_markers()
            .into_iter()
            .map(|(place, marker)| (place, marker_regex(marker)))
            .collect()
    }

    /// The indexes of classes with their markers, by rank.
    pub fn ordered_markers(&self) -> Vec<(usize, &str)> {
        let mut all = Vec::new();
        for (place, class) in self.classes.iter().enumerate() {
            for (rank, marker) in &class.markers {
                all.push((*rank, place, marker.as_str()));
            }
        }
        all.sort_unstable();
        all.into_iter()
            .map(|(_, place, marker)| (place, marker))
            .collect()
    }
}
