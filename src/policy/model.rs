//! A policy that was checked: every value validated, every default filled in, every place known.

mod answers;
mod cases;
mod enforcement;
mod indexing;
mod signals;

pub use answers::{AnswerPages, Included, PreviousRobots};
pub use cases::{CachedByTest, Expectation, IdentityByTest, PolicyTest};
pub use enforcement::{
    AnswerPolicy, Audience, BehindCache, Enforcement, EnforcementFields, Mode, PausePolicy, PauseTime, Unverified,
};
pub use indexing::{
    Conditions, HtmlPolicy, IndexingRule, LinkPolicy, LinkRel, OriginTags, RetirePolicy, StatusCondition,
    WrittenDirectives,
};
pub use signals::{
    ContentSignal, ContentUsage, Emission, GroupSignals, LicensePolicy, SignalCategory, SiteSignals, TdmRule,
    USAGE_CATEGORIES, USES, Unlicensed,
};

use crate::crawlers::{Binds, Purpose};
use crate::yaml::{Located, Source, Span};
use std::collections::BTreeMap;
use std::time::Duration;

/// A value that has a default: its place when it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaulted<T> {
    /// The value.
    pub value: T,
    /// Where it was written, if it was.
    pub span: Option<Span>,
}

impl<T> Defaulted<T> {
    /// The default, which stands nowhere.
    pub fn new(value: T) -> Defaulted<T> {
        Defaulted { value, span: None }
    }
}

/// One site's policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The site's name: its file's name without `.yaml`.
    pub name: String,
    /// The file.
    pub source: Source,
    /// Hosts it is for; empty means every host that no other site claims.
    pub hosts: Vec<Located<HostPattern>>,
    /// Production or staging.
    pub environment: Environment,
    /// Under staging, whether crawling is allowed (so that noindex is seen).
    pub staging_crawl: Stance,
    /// What crawlers of a purpose may do; a purpose that is absent inherits.
    pub purposes: BTreeMap<Purpose, Located<Stance>>,
    /// What robots.txt says.
    pub robots: RobotsPolicy,
    /// What X-Robots-Tag says.
    pub indexing: Vec<IndexingRule>,
    /// What becomes of the origin's own X-Robots-Tag.
    pub origin_tags: OriginTags,
    /// What is written into HTML pages.
    pub html: HtmlPolicy,
    /// Paths that go out of search engines by the clock.
    pub retire: Vec<RetirePolicy>,
    /// What is done about requests against the rules.
    pub enforcement: Enforcement,
    /// Planned pauses.
    pub pauses: Vec<PausePolicy>,
    /// Pages of the site's own.
    pub answers: AnswerPages,
    /// Crawlers of the owner's own, and corrections to the registry, for this site.
    pub crawlers: Vec<DescribedCrawler>,
    /// What is reserved of text and data mining.
    pub tdm: Vec<TdmRule>,
    /// What a production site does on purpose.
    pub acknowledge: Vec<Located<Acknowledgement>>,
    /// Cases that must hold before the policy is used.
    pub tests: Vec<PolicyTest>,
}

impl Policy {
    /// The owner's record of the crawler with this token.
    pub fn described_crawler(&self, token: &str) -> Option<&DescribedCrawler> {
        self.crawlers.iter().find(|described| described.token.value.eq_ignore_ascii_case(token))
    }

    /// Where crawlers are asked for a licence: for the site, for purposes, for agents.
    pub fn asks_for_license(&self) -> impl Iterator<Item = &Located<Unlicensed>> {
        let enforcement = &self.enforcement;
        let agents = enforcement.agents.iter().map(|(_, fields)| fields);
        let all = std::iter::once(&enforcement.site).chain(enforcement.purposes.values()).chain(agents);
        all.filter_map(|fields| fields.unlicensed.as_ref()).filter(|said| said.value != Unlicensed::Pass)
    }

    /// Whether the robots.txt that is served depends on the origin's. That of a staging site says one thing only.
    pub fn reads_origin(&self) -> bool {
        self.environment == Environment::Production && self.robots.origin != OriginRobots::Replace
    }
}

/// A host name in ASCII, lower case, with `*.` for its subdomains and an optional port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPattern {
    /// Whether it was written `*.name`: any name below, not the name itself.
    pub wildcard: bool,
    /// The name in punycode, or an address (IPv6 without brackets), without the `*.`.
    pub name: String,
    /// Only this port, when given.
    pub port: Option<u16>,
}

/// As it is written.
impl std::fmt::Display for HostPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.wildcard {
            f.write_str("*.")?;
        }
        if self.name.contains(':') {
            write!(f, "[{}]", self.name)?
        } else {
            f.write_str(&self.name)?
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    #[default]
    Production,
    Staging,
}

/// What crawlers may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stance {
    /// Nothing is said about them: they follow `*`.
    #[default]
    Inherit,
    /// A group that starts from the `*` rules without a blanket one. (For `staging_crawl`: crawling allowed.)
    Allow,
    /// `Disallow: /`.
    Disallow,
}

/// The `robots` section.
#[derive(Clone, Debug)]
pub struct RobotsPolicy {
    /// What becomes of the origin's own robots.txt.
    pub origin: OriginRobots,
    /// What was served before crawlgate, where the operator says so.
    pub previous: Option<PreviousRobots>,
    /// Groups in the order of the file.
    pub groups: Vec<GroupPolicy>,
    /// Absolute URLs.
    pub sitemaps: Vec<Located<String>>,
    /// Keys of lines of the origin's file that are published although crawlgate does not know them.
    pub origin_keys: Vec<Located<String>>,
    /// Cache-Control of robots.txt, at most 24 hours.
    pub max_age: Defaulted<Duration>,
    /// What is said about the use of the content.
    pub signals: SiteSignals,
    /// Where the section stands, when it does.
    pub span: Option<Span>,
}

/// What becomes of the origin's own robots.txt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OriginRobots {
    /// United with the policy, group by group.
    #[default]
    Merge,
    /// Never asked for: the policy alone.
    Replace,
    /// The only rules there are.
    Only,
}

/// One group.
#[derive(Clone, Debug)]
pub struct GroupPolicy {
    /// Tokens, or `*`.
    pub agents: Vec<Located<String>>,
    /// Patterns as written: they start with `/` or `*`.
    pub allow: Vec<Located<String>>,
    /// Patterns as written.
    pub disallow: Vec<Located<String>>,
    /// Crawl-delay.
    pub crawl_delay: Option<Located<Duration>>,
    /// The token of the group whose rules are copied in.
    pub extends: Option<Located<String>>,
    /// What is said to these crawlers about the use of the content.
    pub signals: GroupSignals,
    /// The whole group.
    pub span: Span,
}

/// A crawler of the owner's own, or a correction to the registry. What is absent stays as it is known.
#[derive(Clone, Debug)]
pub struct DescribedCrawler {
    /// Its product token.
    pub token: Located<String>,
    /// What its user agent is known by; the token when nothing is said and no list knows the crawler.
    pub user_agent: Vec<Located<String>>,
    /// What it is for.
    pub purpose: Option<Purpose>,
    /// What binds it.
    pub binds: Option<Binds>,
    /// Whether it honours Crawl-delay.
    pub crawl_delay: Option<bool>,
    /// All of the addresses it comes from.
    pub networks: Vec<ipnet::IpNet>,
}

/// What a production site does on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acknowledgement {
    /// Search engines may not crawl the site.
    SiteDisallowed,
    /// Search engines may not index the site.
    SiteNoindex,
    /// A pause of more than 36 hours.
    LongPause,
}
