//! [`CrawlerRules`]: how a site treats one crawler: its group of robots.txt, its enforcement, and
//! the answers to refused requests. Compilation fills a [`CrawlerRulesTable`] with the rules for
//! every crawler that a user agent may claim to be. A request only looks them up.

use crate::crawlers::{Binds, Claim, Crawler, Registry};
use crate::policy::model::{Mode, Unverified};
use crate::robots::Matcher;
use std::sync::Arc;
use std::time::Duration;

/// The treatment of a claim by a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrawlerRules {
    /// The group that binds it.
    pub binding: Binding,
    /// The second reading of robots.txt by which it is judged.
    pub second_reading: SecondReading,
    /// Whether requests are judged at all (people and unnamed tools are not).
    pub judged: bool,
    /// Whether a group of the served file names the crawler.
    pub named: bool,
    /// What binds it besides a group of its own. A crawler whose operator says that it ignores
    /// robots.txt is reported as not bound even when a group names it.
    pub binds: Binds,
    /// The mode of enforcement.
    pub mode: Mode,
    /// Whether it is a bot without a known purpose that no line of the policy names: never more
    /// than observed.
    pub unlisted: bool,
    /// Index of the answer to a disallowed request.
    pub disallowed: u16,
    /// Index of the answer to an ambiguous request.
    pub ambiguous: u16,
    /// Index of the answer to a request that is too fast.
    pub too_fast: u16,
    /// Index of the answer to an impostor.
    pub impostor: u16,
    /// Index of the answer to a client that requested a trap.
    pub trapped: u16,
    /// Index of the answer while its claim may still be proven, where a claim without proof is
    /// refused.
    pub awaiting_proof: u16,
    /// How long a client that requested a trap stays marked.
    pub trapped_for: Duration,
    /// The treatment of the crawler while its claim is not proven.
    pub unverified: Unverified,
    /// Whether it is never refused, unless its name is proven to be false.
    pub exempt: bool,
    /// The crawl delay that it is held to.
    pub crawl_delay: Option<Duration>,
    /// The status that a request without a licence token gets where a licence covers the path.
    pub unlicensed: Option<u16>,
    /// Whether a pause for crawlers stops it (people, monitoring and tools pass).
    pub pausable: bool,
}

/// The rules that apply to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// This group of the document.
    Group(u16),
    /// Bound, but no group is for it: everything is allowed.
    NoRules,
    /// Its operator says that the groups that are there do not bind it.
    NotBound,
}

impl Binding {
    /// The group, if there is one.
    pub fn group(self) -> Option<u16> {
        match self {
            Binding::Group(group) => Some(group),
            Binding::NoRules | Binding::NotBound => None,
        }
    }
}

/// The second reading of robots.txt by which a crawler is judged, where its operator publishes its
/// parser. A violation needs both to disallow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecondReading {
    /// None: RFC 9309 is the only reading.
    None,
    /// Google's, with the same rules.
    SameRules,
    /// Google's, with these of [`Site::google_rules`](super::Site::google_rules).
    OwnRules(u16),
}

/// An answer in place of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalAnswer {
    /// The status.
    pub status: u16,
    /// Retry-After in seconds.
    pub retry_after: Option<u32>,
    /// The owner's own body.
    pub body: Option<Arc<str>>,
}

/// The rules of every claim.
#[derive(Debug)]
pub struct CrawlerRulesTable {
    /// Those of the crawlers of the registry, by their index.
    pub known: Vec<CrawlerRules>,
    /// Those of the site's own tokens, by their index.
    pub tokens: Vec<CrawlerRules>,
    /// Those of bots that no list knows.
    pub other: CrawlerRules,
    /// Those of tools.
    pub tool: CrawlerRules,
    /// Those of who is no crawler.
    pub nobody: CrawlerRules,
}

impl CrawlerRulesTable {
    /// The rules of a claim. An index that is not in the table has those of other bots.
    pub fn get(&self, claim: Claim) -> CrawlerRules {
        match claim {
            Claim::Nobody => self.nobody,
            Claim::Other => self.other,
            Claim::Tool => self.tool,
            Claim::Known(index) => self
                .known
                .get(usize::from(index.0))
                .copied()
                .unwrap_or(self.other),
            Claim::Token(index) => self
                .tokens
                .get(usize::from(index))
                .copied()
                .unwrap_or(self.other),
        }
    }
}

/// The names of a crawler in a policy: its tokens, the most specific first, its id, its name.
pub fn names(crawler: &Crawler) -> impl Iterator<Item = &str> {
    crawler
        .tokens
        .iter()
        .map(String::as_str)
        .chain([crawler.id.as_str(), crawler.name.as_str()])
}

/// The product tokens that no record of the registry has as token, id or name, each once, in their
/// order and without `*`. Case does not matter.
pub fn unlisted<'a>(tokens: impl Iterator<Item = &'a str>, registry: &Registry) -> Vec<String> {
    let mut unlisted: Vec<String> = Vec::new();
    for token in tokens.filter(|token| *token != "*") {
        if !registry
            .crawlers()
            .iter()
            .flat_map(names)
            .chain(unlisted.iter().map(String::as_str))
            .any(|name| name.eq_ignore_ascii_case(token))
        {
            unlisted.push(token.to_owned());
        }
    }
    unlisted
}

/// The group that binds a crawler with these names: the group of the first name that has one, else
/// the one for `*` if `binds` lets the crawler follow it. Without a group it is `NoRules`, and
/// `NotBound` where `*` does not bind the crawler. The flag tells whether a group names it.
pub fn binding<'a>(
    matcher: &Matcher,
    mut names: impl Iterator<Item = &'a str>,
    binds: Binds,
) -> (Binding, bool) {
    let binding = match (names.find_map(|name| matcher.named(name)), binds) {
        (Some(group), _) => return (group_binding(group), true),
        (None, Binds::Star | Binds::Unknown) => {
            matcher.star().map_or(Binding::NoRules, group_binding)
        }
        (None, Binds::Named | Binds::Never) => Binding::NotBound,
    };
    (binding, false)
}

/// The binding to the group with this index. An index that does not fit into 16 bits is `NoRules`,
/// so that no crawler is refused; a file below 500 KiB has far fewer groups.
pub fn group_binding(group: usize) -> Binding {
    u16::try_from(group).map_or(Binding::NoRules, Binding::Group)
}
