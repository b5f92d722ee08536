//! [`Policy`]: one site's policy as data, as `decode` makes it of the file. Every value is
//! validated, and most absent fields have their default. Values that messages point at keep their
//! place in the file.

mod enforcement;
mod indexing;
mod judgement;
mod signals;

pub use enforcement::{
    AnswerPolicy, Audience, BehindCache, Enforcement, EnforcementFields, Mode, PausePolicy,
    PauseTime, Unverified,
};
pub use indexing::{
    Conditions, HtmlPolicy, IndexingRule, OriginTags, RetirePolicy, StatusCondition,
    WrittenDirectives,
};
pub use judgement::{Kind, KnownIdentity, Verdict};
pub use signals::{
    ContentSignal, ContentUsage, Emission, GroupSignals, LicensePolicy, SignalCategory,
    SiteSignals, TdmRule, USAGE_CATEGORIES, USES, Unlicensed,
};

use crate::crawlers::{Binds, Purpose};
use crate::robots::{Authority, Pattern};
use crate::time::Timestamp;
use crate::yaml::{Located, Source, Span};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use strum::{Display, EnumString, VariantNames};

/// A value that has a default: its place when it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaulted<T> {
    /// The value.
    pub value: T,
    /// Where it was written, if it was.
    pub span: Option<Span>,
}

impl<T> Defaulted<T> {
    /// The written value with its place, or the default without one.
    pub fn or(written: Option<Located<T>>, default: T) -> Defaulted<T> {
        match written {
            Some(Located { value, span }) => Defaulted {
                value,
                span: Some(span),
            },
            None => Defaulted {
                value: default,
                span: None,
            },
        }
    }
}

/// The patterns of paths as they are written.
pub fn patterns(paths: &[Located<String>]) -> Vec<Pattern> {
    paths.iter().map(|path| Pattern::new(path)).collect()
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
    /// The section `robots`.
    pub robots: RobotsPolicy,
    /// The rules for X-Robots-Tag.
    pub indexing: Vec<IndexingRule>,
    /// The treatment of the origin's own X-Robots-Tag.
    pub origin_tags: OriginTags,
    /// The changes to HTML pages.
    pub html: HtmlPolicy,
    /// Paths that go out of search engines by the clock.
    pub retire: Vec<RetirePolicy>,
    /// The treatment of requests against the rules.
    pub enforcement: Enforcement,
    /// Planned pauses.
    pub pauses: Vec<PausePolicy>,
    /// Pages of the site's own.
    pub answers: AnswerPages,
    /// Crawlers of the owner's own, and corrections to the registry, for this site.
    pub crawlers: Vec<DescribedCrawler>,
    /// The reservations of text and data mining.
    pub tdm: Vec<TdmRule>,
    /// Findings that the owner accepts for a production site.
    pub acknowledge: Vec<Located<Acknowledgement>>,
    /// Cases that must hold before the policy is used.
    pub tests: Vec<PolicyTest>,
}

impl Policy {
    /// The owner's record of the crawler with this token.
    pub fn described_crawler(&self, token: &str) -> Option<&DescribedCrawler> {
        self.crawlers
            .iter()
            .find(|described| described.token.eq_ignore_ascii_case(token))
    }

    /// The written values of `unlicensed` that demand a licence, that is, all but `pass`: the
    /// site's, then those of purposes, then those of agents.
    pub fn asks_for_license(&self) -> impl Iterator<Item = &Located<Unlicensed>> {
        let enforcement = &self.enforcement;
        let agents = enforcement.agents.iter().map(|(_, fields)| fields);
        let all = std::iter::once(&enforcement.site)
            .chain(enforcement.purposes.values())
            .chain(agents);
        all.filter_map(|fields| fields.unlicensed.as_ref())
            .filter(|said| said.value != Unlicensed::Pass)
    }

    /// Whether one of the site's hosts is exactly this name and port. The name is compared without
    /// regard to case; wildcards do not count. A port of `authority` that equals `default_port`
    /// counts as none, and a host that is written without a port matches only an authority without
    /// one.
    pub(crate) fn has_host(&self, authority: &Authority<'_>, default_port: &[u8]) -> bool {
        let port = authority.port.filter(|port| *port != default_port);
        self.named(authority.name).any(|host| {
            host.port
                .map(|port| port.to_string())
                .as_deref()
                .map(str::as_bytes)
                == port
        })
    }

    /// Whether one of the site's hosts has this name, with any port, without regard to case.
    /// Wildcards do not count.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        self.named(name).next().is_some()
    }

    /// The site's hosts with this name, without regard to case, whatever their ports are. Wildcards
    /// are left out.
    fn named(&self, name: &[u8]) -> impl Iterator<Item = &HostPattern> {
        let hosts = self.hosts.iter().map(|host| &host.value);
        hosts.filter(move |host| !host.wildcard && name.eq_ignore_ascii_case(host.name.as_bytes()))
    }

    /// Whether the robots.txt that is served depends on the origin's. That of a staging site does
    /// not.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Environment {
    #[default]
    Production,
    Staging,
}

/// What crawlers may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Stance {
    /// Nothing is said about them: they follow `*`.
    #[default]
    Inherit,
    /// A group that starts from the `*` rules without a blanket one. (For `staging_crawl`: crawling
    /// allowed.)
    Allow,
    /// `Disallow: /`.
    Disallow,
}

/// The `robots` section.
#[derive(Clone, Debug)]
pub struct RobotsPolicy {
    /// The use of the origin's own robots.txt.
    pub origin: OriginRobots,
    /// The robots.txt from before crawlgate, where the operator says what it was.
    pub previous: Option<PreviousRobots>,
    /// Groups in the order of the file.
    pub groups: Vec<GroupPolicy>,
    /// Absolute URLs.
    pub sitemaps: Vec<Located<String>>,
    /// Keys of lines of the origin's file that are published although crawlgate does not know them.
    pub origin_keys: Vec<Located<String>>,
    /// Cache-Control of robots.txt, at most 24 hours.
    pub max_age: Defaulted<Duration>,
    /// The statements about the use of the content.
    pub signals: SiteSignals,
    /// Where the section stands, when it does.
    pub span: Option<Span>,
}

/// The use of the origin's own robots.txt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum OriginRobots {
    /// United with the policy, group by group.
    #[default]
    Merge,
    /// Not used and not fetched: the policy alone.
    Replace,
    /// It alone: the policy has no groups, sitemaps or purposes.
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
    /// The statements to these crawlers about the use of the content.
    pub signals: GroupSignals,
    /// The whole group.
    pub span: Span,
}

impl GroupPolicy {
    /// Whether one of the group's agents is this token, without regard to case. `*` is a token too.
    pub fn is_for(&self, token: &str) -> bool {
        self.agents
            .iter()
            .any(|agent| agent.eq_ignore_ascii_case(token))
    }
}

/// A crawler of the owner's own, or a correction to the registry. What is absent stays as it is
/// known.
#[derive(Clone, Debug)]
pub struct DescribedCrawler {
    /// Its product token.
    pub token: Located<String>,
    /// Its markers. Without any, the token is the marker of a crawler that the registry does not
    /// know.
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

/// A finding that the owner accepts for a production site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Acknowledgement {
    /// Search engines may not crawl the site.
    SiteDisallowed,
    /// Search engines may not index the site.
    SiteNoindex,
    /// A pause of more than 36 hours.
    LongPause,
    /// A marker of a crawler that stands in the user agents of people.
    BlocksPeople,
}

/// A file that a policy names.
#[derive(Clone, Debug)]
pub struct Included {
    /// Its name, and where the policy says it.
    pub name: Located<String>,
    /// Its contents. `None` until it is found.
    pub bytes: Option<Arc<[u8]>>,
}

/// Pages of the site's own, in place of crawlgate's, for clients that ask for HTML.
#[derive(Clone, Debug, Default)]
pub struct AnswerPages {
    /// During a pause.
    pub pause: Option<Included>,
    /// Where the origin does not answer: 502 and 504.
    pub failure: Option<Included>,
    /// For a crawler that is refused.
    pub refusal: Option<Included>,
}

/// The robots.txt that all hosts of the site served, through every cache, before crawlgate did.
#[derive(Clone, Debug)]
pub enum PreviousRobots {
    /// This file.
    File(Included),
    /// The origin's own file, as crawlgate first reads it.
    Origin(Span),
}

/// One case of `tests`.
#[derive(Clone, Debug)]
pub struct PolicyTest {
    /// A product token, a crawler's name, or a whole user agent.
    pub agent: Located<String>,
    /// Path and query.
    pub path: Located<String>,
    /// The host asked for; the site's first when absent.
    pub host: Option<Located<String>>,
    /// The content type of the response.
    pub content_type: Option<String>,
    /// The status of the response; 200 when absent.
    pub status: u16,
    /// The moment of the request; outside any pause when absent.
    pub at: Option<Timestamp>,
    /// The address of the client.
    pub ip: Option<IpAddr>,
    /// The identity of the crawler; by the policy's networks and `ip` when absent.
    pub identity: Option<KnownIdentity>,
    /// The copy that the crawler has cached; not known when absent.
    pub held: Option<CachedByTest>,
    /// The expected result.
    pub expect: Expectation,
    /// The whole case.
    pub span: Span,
}

/// The action that a test expects. None expects `slow`: a test is one request, which is never too
/// fast.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[allow(missing_docs)]
pub enum ExpectedAction {
    Pass,
    Block,
    License,
    Pause,
    RobotsTxt,
    #[strum(serialize = "tdmrep")]
    TdmRep,
}

/// The copy of robots.txt that the crawler of a test has cached.
#[derive(Clone, Debug)]
pub enum CachedByTest {
    /// Nothing: it never fetched robots.txt, on a host that was observed all the time.
    Nothing,
    /// The version in force alone.
    InForce,
    /// This robots.txt, which was in force before.
    Superseded(String),
}

/// What a test expects; absent fields are not compared.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    /// The verdict of the rules.
    pub verdict: Option<Located<Verdict>>,
    /// The kind of the request.
    pub kind: Option<Located<Kind>>,
    /// Whether a violation is one of a crawler that never fetched robots.txt.
    pub never_fetched: Option<Located<bool>>,
    /// What is done.
    pub action: Option<Located<ExpectedAction>>,
    /// The status of an answer that is made here.
    pub answer_status: Option<Located<u16>>,
    /// The X-Robots-Tag lines, in order; an empty list means none.
    pub tag: Option<Vec<Located<String>>>,
    /// The header lines about the use of the content, in order; an empty list means none.
    pub signals: Option<Vec<Located<String>>>,
}
