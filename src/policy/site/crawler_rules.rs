//! [`CrawlerRules`]: how a site treats one crawler. This includes the group of robots.txt that the
//! crawler follows, how the rules are enforced, and how blocked requests are answered. The compiler
//! computes the rules for every crawler that a user agent can claim to be. It stores them in a
//! [`CrawlerRulesTable`], so that each request needs only a look-up.

use crate::crawlers::{Claim, Crawler, Registry, RobotsObedience};
use crate::policy::model::{EnforcementMode, IdentityStatus, UnverifiedTreatment};
use crate::robots::GroupMatcher;
use Claim::*;
use GroupBinding::*;
use RobotsObedience::*;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// How a site treats one crawler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrawlerRules {
    /// The group of robots.txt that binds it.
    pub binding: GroupBinding,
    /// Whether its requests are also judged by robots.txt as Google's library reads it.
    pub google_parsing: GoogleParsing,
    /// Whether its requests are judged (those of people and unnamed tools are not).
    pub judged: bool,
    /// Whether a group of robots.txt names it.
    pub named: bool,
    /// Whether it follows `*`. A crawler whose operator says that it ignores robots.txt is reported
    /// as not bound even when a group names it.
    pub binds: RobotsObedience,
    pub mode: EnforcementMode,
    /// Whether it is an unknown bot that the policy does not name: it is at most observed.
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
    /// Index of the answer while its claim may still be proven, if crawlers without proof are
    /// blocked.
    pub awaiting_proof: u16,
    /// How long a client that requested a trap stays marked.
    pub trapped_for: Duration,
    /// How it is treated while its claim is not proven.
    pub unverified: UnverifiedTreatment,
    /// Whether it is never blocked, unless it is proven to be an impostor.
    pub exempt: bool,
    /// The crawl delay that it must keep.
    pub crawl_delay: Option<Duration>,
    /// The status for a request without a licence token, for paths that a licence covers.
    pub unlicensed: Option<u16>,
    /// Whether a pause for crawlers stops it (monitoring and tools pass).
    pub pausable: bool,
    /// Whether it crawls for AI training.
    pub trains: bool,
}

impl CrawlerRules {
    /// The mode for a client with this identity: at most observe for one that is not verified, if
    /// the policy says `unverified: observe`; off for one that is not judged.
    pub fn mode_for(&self, identity: IdentityStatus) -> EnforcementMode {
        match self.unverified {
            _ if !self.judged => EnforcementMode::Off,
            UnverifiedTreatment::Observe if identity == IdentityStatus::Unverified => {
                self.mode.min(EnforcementMode::Observe)
            }
            _ => self.mode,
        }
    }
}

/// Which group of robots.txt binds a crawler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GroupBinding {
    /// The group with this index.
    Group(u16),
    /// None, because no group is for it: everything is allowed.
    NoRules,
    /// None, because its operator says that the groups for others do not bind it.
    NotBound,
}

impl GroupBinding {
    /// The index of the group, if there is one.
    pub fn group(self) -> Option<usize> {
        match self {
            Group(group) => Some(usize::from(group)),
            NoRules | NotBound => None,
        }
    }
}

/// Whether a crawler parses robots.txt with Google's library, which reads some rules otherwise than
/// RFC 9309. Then a violation needs both readings to disallow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GoogleParsing {
    /// No: it is judged by RFC 9309 alone.
    Unused,
    /// Yes, and the library reads the same rules.
    SameRules,
    /// Yes, and it reads the rules with this index of
    /// [`Site::google_rules`](super::Site::google_rules).
    OwnRules(u16),
}

/// The answer to a blocked request.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusalAnswer {
    /// The status.
    pub status: u16,
    /// Retry-After in seconds.
    pub retry_after: Option<u32>,
    /// The owner's own body.
    pub body: Option<Arc<str>>,
}

/// The rules of every crawler that a user agent can claim to be.
#[derive(Debug)]
pub struct CrawlerRulesTable {
    /// The crawlers of the registry, by their index.
    pub known: Vec<CrawlerRules>,
    /// The site's own tokens, by their index.
    pub tokens: Vec<CrawlerRules>,
    /// Unknown bots.
    pub other: CrawlerRules,
    /// Tools.
    pub tool: CrawlerRules,
    /// Clients that are no crawlers.
    pub visitor: CrawlerRules,
}

impl CrawlerRulesTable {
    /// The rules of a claim. An index beyond the table counts as an unknown bot.
    pub fn get(&self, claim: Claim) -> CrawlerRules {
        let rules = match claim {
            Visitor => Some(&self.visitor),
            UnknownBot => None,
            Tool => Some(&self.tool),
            Known(index) => self.known.get(usize::from(index.0)),
            PolicyToken(index) => self.tokens.get(usize::from(index)),
        };
        *rules.unwrap_or(&self.other)
    }
}

/// The names by which a policy can name a crawler: its tokens, the most specific first, its id and
/// its name.
pub fn crawler_names(crawler: &Crawler) -> impl Iterator<Item = &str> {
    crawler
        .tokens
        .iter()
        .chain([&crawler.id, &crawler.name])
        .map(String::as_str)
}

/// The tokens that are no crawler of the registry, each once and without `*`. Case does not matter.
pub fn unregistered_tokens<'a>(
    tokens: impl Iterator<Item = &'a str>,
    registry: &Registry,
) -> Vec<String> {
    let names = registry.crawlers().iter().flat_map(crawler_names);
    let mut known: HashSet<String> = names.chain(["*"]).map(str::to_ascii_lowercase).collect();
    tokens
        .filter(|token| known.insert(token.to_ascii_lowercase()))
        .map(str::to_owned)
        .collect()
}

/// The group that binds a crawler with these names: the group of the first name that has one, else
/// that of `*` if the crawler follows it. The second value is whether a group names the crawler.
pub fn find_binding<'a>(
    matcher: &GroupMatcher,
    mut names: impl Iterator<Item = &'a str>,
    binds: RobotsObedience,
) -> (GroupBinding, bool) {
    let binding = match (names.find_map(|name| matcher.named_group(name)), binds) {
        (Some(group), _) => return (group_binding(group), true),
        (None, Star | Unknown) => matcher.star_group().map_or(NoRules, group_binding),
        (None, Named | Never) => NotBound,
    };
    (binding, false)
}

/// Converts an index; a file below 500 KiB never has so many groups that it fails.
fn group_binding(group: usize) -> GroupBinding {
    u16::try_from(group).map_or(NoRules, Group)
}
