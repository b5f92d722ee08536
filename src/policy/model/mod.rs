//! [`Policy`]: one site's policy file, decoded. Every value is validated, and most absent fields
//! have their default. Values keep their position in the file ([`Located`]) if messages point
//! there.

mod enforcement;
mod indexing;
mod judgement;
mod signals;

pub use enforcement::*;
pub use indexing::*;
pub use judgement::*;
pub use signals::*;

use crate::crawlers::{Purpose, RobotsObedience};
use crate::robots::{Authority, PathPattern};
use crate::time::Timestamp;
use crate::yaml::{DefaultsStart, Located, SourceFile, SourceSpan};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use strum::{Display, EnumString, VariantNames};

/// Parses path patterns.
pub fn patterns(paths: &[Located<String>]) -> Vec<PathPattern> {
    paths.iter().map(|path| PathPattern::new(path)).collect()
}

/// What stands for each host of the policy in the URL of a sitemap.
pub const HOST_PLACEHOLDER: &str = "{host}";

/// One site's policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The site's name: its file's name without `.yaml`.
    pub name: String,
    /// The file.
    pub source: SourceFile,
    /// Where the defaults of its directory begin in the text of `source`.
    pub defaults: Option<DefaultsStart>,
    /// The hosts of the site; empty means every host that no other site claims.
    pub hosts: Vec<Located<HostPattern>>,
    pub environment: Environment,
    /// Whether a staging site may be crawled, so that its noindex is seen.
    pub staging_crawl: CrawlStance,
    /// What the crawlers of each purpose may do; an absent purpose inherits.
    pub purposes: BTreeMap<Purpose, Located<CrawlStance>>,
    pub robots: RobotsPolicy,
    pub indexing: Vec<IndexingRule>,
    /// How the origin's own X-Robots-Tag is treated.
    pub origin_tags: OriginTagsMode,
    pub html: HtmlPolicy,
    /// Paths that are taken out of search engines.
    pub retire: Vec<RetirePolicy>,
    pub enforcement: Enforcement,
    pub pauses: Vec<PausePolicy>,
    pub answers: AnswerPages,
    /// The owner's own crawlers, and corrections to the registry.
    pub crawlers: Vec<CrawlerDescription>,
    /// The reservations of text and data mining (TDMRep).
    pub tdm: Vec<TdmRule>,
    /// Findings that the owner accepts for a production site.
    pub acknowledge: Vec<Located<Acknowledgement>>,
    /// Tests that must pass before the policy is used.
    pub tests: Vec<PolicyTest>,
}

impl Policy {
    /// The entry of `crawlers` with this token.
    pub fn crawler_description(&self, token: &str) -> Option<&CrawlerDescription> {
        self.crawlers
            .iter()
            .find(|described| described.token.eq_ignore_ascii_case(token))
    }

    /// Whether the policy says that a finding is meant.
    pub fn acknowledges(&self, finding: Acknowledgement) -> bool {
        self.acknowledge.iter().any(|item| item.value == finding)
    }

    /// The URLs of the sitemaps. One with [`HOST_PLACEHOLDER`] stands for one of each host. All hosts
    /// have the same robots.txt, so it names them all.
    pub fn sitemaps(&self) -> Vec<Located<String>> {
        let mut sitemaps = Vec::new();
        for sitemap in &self.robots.sitemaps {
            if !sitemap.contains(HOST_PLACEHOLDER) {
                sitemaps.push(sitemap.clone());
                continue;
            }
            sitemaps.extend(self.hosts.iter().map(|host| Located {
                value: sitemap.replace(HOST_PLACEHOLDER, &host.to_string()),
                span: sitemap.span,
            }));
        }
        sitemaps
    }

    /// The values of `unlicensed` that demand a licence (all but `pass`): of the site, then of
    /// purposes, then of agents.
    pub fn license_demands(&self) -> impl Iterator<Item = &Located<UnlicensedAnswer>> {
        let enforcement = &self.enforcement;
        std::iter::once(&enforcement.site)
            .chain(enforcement.purposes.values())
            .chain(enforcement.agents.iter().map(|(_, fields)| fields))
            .filter_map(|fields| fields.unlicensed.as_ref())
            .filter(|demand| demand.value != UnlicensedAnswer::Pass)
    }

    /// The place of the site's first reservation: of `tdm`, or of a signal that denies a use.
    pub fn reservation(&self) -> Option<SourceSpan> {
        let signals = &self.robots.signals;
        let tdm = self.tdm.iter().find(|rule| rule.reserved);
        let signal = signals
            .content_signal
            .as_ref()
            .filter(|signal| signal.values.values().any(|granted| !granted.value));
        let usage = signals
            .content_usage
            .iter()
            .find(|rule| rule.values.iter().any(|(_, granted)| !granted));
        tdm.map(|rule| rule.span)
            .or(signal.map(|signal| signal.span))
            .or(usage.map(|rule| rule.span))
    }

    /// Whether one of the site's hosts is exactly this name and port. The name is compared without
    /// regard to case; wildcards do not count. A port of `authority` that equals `default_port`
    /// counts as none, and a host that is written without a port matches only an authority without
    /// one.
    pub(crate) fn has_host(&self, authority: &Authority<'_>, default_port: &[u8]) -> bool {
        let port = authority.port.filter(|port| *port != default_port);
        self.hosts_named(authority.name).any(|host| {
            host.port
                .map(|port| port.to_string().into_bytes())
                .as_deref()
                == port
        })
    }

    /// Whether one of the site's hosts has this name, with any port, without regard to case.
    /// Wildcards do not count.
    pub(crate) fn has_name(&self, name: &[u8]) -> bool {
        self.hosts_named(name).next().is_some()
    }

    /// The site's hosts with this name, without regard to case, whatever their ports are. Wildcards
    /// are left out.
    fn hosts_named(&self, name: &[u8]) -> impl Iterator<Item = &HostPattern> {
        self.hosts
            .iter()
            .map(|host| &host.value)
            .filter(move |host| !host.wildcard && name.eq_ignore_ascii_case(host.name.as_bytes()))
    }

    /// Whether the robots.txt that is served depends on the origin's. That of a staging site does
    /// not.
    pub fn reads_origin(&self) -> bool {
        self.environment == Environment::Production
            && self.robots.origin != OriginRobotsMode::Replace
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

#[derive(Clone, Copy, Debug, Default, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum Environment {
    #[default]
    Production,
    Staging,
}

/// What crawlers of a purpose may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum CrawlStance {
    /// They follow `*`.
    #[default]
    Inherit,
    /// They get a group with the rules of `*`, without its `Disallow: /`. (For `staging_crawl`:
    /// crawling is allowed.)
    Allow,
    /// `Disallow: /`.
    Disallow,
}

/// The `robots` section.
#[derive(Clone, Debug)]
pub struct RobotsPolicy {
    /// How the origin's own robots.txt is used.
    pub origin: OriginRobotsMode,
    /// The robots.txt that the site served before crawlgate, if the policy declares it.
    pub previous: Option<PreviousRobots>,
    /// Groups in the order of the file.
    pub groups: Vec<GroupPolicy>,
    /// Absolute URLs, which may hold [`HOST_PLACEHOLDER`]. See [`Policy::sitemaps`].
    pub sitemaps: Vec<Located<String>>,
    /// Keys that crawlgate does not know: the origin's lines with them are published all the same.
    pub origin_keys: Vec<Located<String>>,
    /// The site's own text for the top of robots.txt.
    pub comment: Option<String>,
    /// Cache-Control of robots.txt, at most 24 hours.
    pub max_age: Located<Duration>,
    /// The site's statements about the use of its content.
    pub signals: SiteSignals,
    /// The place of the section, if there is one.
    pub span: Option<SourceSpan>,
}

/// How the origin's own robots.txt is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum OriginRobotsMode {
    /// United with the policy, group by group.
    #[default]
    Merge,
    /// Not used and not fetched: the policy alone.
    Replace,
    /// Published alone: the policy has no groups, sitemaps or purposes.
    Only,
}

/// One entry of `robots.groups`.
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
    pub span: SourceSpan,
}

impl GroupPolicy {
    /// Whether the group names this token (or `*`), without regard to case.
    pub fn names_agent(&self, token: &str) -> bool {
        self.agents
            .iter()
            .any(|agent| agent.eq_ignore_ascii_case(token))
    }
}

/// One entry of `crawlers`: the owner's own crawler, or a correction to the registry. An absent
/// field leaves what the registry knows.
#[derive(Clone, Debug)]
pub struct CrawlerDescription {
    /// The product token.
    pub token: Located<String>,
    /// The markers of its user agent. A crawler that the registry does not know has its token as
    /// marker where there are none.
    pub user_agent: Vec<Located<String>>,
    pub purpose: Option<Purpose>,
    pub binds: Option<RobotsObedience>,
    /// Whether it honours Crawl-delay.
    pub crawl_delay: Option<bool>,
    /// All networks that it comes from.
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
    /// A crawler's marker that is found in the user agents of people.
    BlocksPeople,
}

/// A file beside the policy that the policy names.
#[derive(Clone, Debug)]
pub struct IncludedFile {
    /// Its name.
    pub name: Located<String>,
    /// Its contents; `None` until they are loaded, and where there is no such file.
    pub bytes: Option<Arc<[u8]>>,
}

/// The site's own HTML pages, sent in place of crawlgate's.
#[derive(Clone, Debug)]
pub struct AnswerPages {
    /// During a pause.
    pub pause: Option<IncludedFile>,
    /// For 502 and 504: the origin does not answer.
    pub failure: Option<IncludedFile>,
    /// For a blocked crawler.
    pub refusal: Option<IncludedFile>,
}

/// What all hosts of the site served as robots.txt, through every cache, before crawlgate.
#[derive(Clone, Debug)]
pub enum PreviousRobots {
    /// This file.
    File(IncludedFile),
    /// The origin's own file, as crawlgate first fetches it.
    Origin(SourceSpan),
}

/// One entry of `tests`.
#[derive(Clone, Debug)]
pub struct PolicyTest {
    /// A product token, a crawler's name, or a whole user agent.
    pub agent: Located<String>,
    pub path: Located<String>,
    /// The requested host; the site's first when absent.
    pub host: Option<Located<String>>,
    pub content_type: Option<String>,
    /// The status of the response; 200 when absent.
    pub status: u16,
    /// The time of the request; outside any pause when absent.
    pub at: Option<Timestamp>,
    /// The client's address.
    pub ip: Option<IpAddr>,
    /// The proven identity; when absent, it follows from `ip` and the policy's networks.
    pub identity: Option<IdentityStatus>,
    /// The copy that the crawler has cached; unknown when absent.
    pub cached: Option<TestCachedRobotsTxt>,
    pub expect: Expectation,
    /// The whole entry.
    pub span: SourceSpan,
}

/// The action that a test expects. There is no `slow`: a single request is never too fast.
#[derive(Clone, Copy, Debug, Display, PartialEq, EnumString, VariantNames)]
#[strum(serialize_all = "snake_case")]
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
pub enum TestCachedRobotsTxt {
    /// Nothing: it never fetched robots.txt, on a host that was observed all the time.
    Nothing,
    /// Only the version in force.
    InForce,
    /// This text, which was in force before.
    Superseded(String),
}

/// The expected result of a test; absent fields are not compared.
#[derive(Clone, Debug, Default)]
pub struct Expectation {
    pub verdict: Option<Located<Verdict>>,
    pub kind: Option<Located<Kind>>,
    /// Whether the request is a violation by a crawler that never fetched robots.txt.
    pub never_fetched: Option<Located<bool>>,
    /// The action under `mode: enforce`, whatever the mode is.
    pub action: Option<Located<ExpectedAction>>,
    /// The mode that applies to the crawler.
    pub mode: Option<Located<EnforcementMode>>,
    /// The status of crawlgate's own answer.
    pub answer_status: Option<Located<u16>>,
    /// The X-Robots-Tag lines, in order; an empty list means none.
    pub tag: Option<Vec<Located<String>>>,
    /// The header lines about the use of the content, in order; an empty list means none.
    pub signals: Option<Vec<Located<String>>>,
}
