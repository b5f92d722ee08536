//! A policy that was checked: every value validated, every default filled in, every place known.

mod signals;

pub use signals::{
    ContentSignal, ContentUsage, Emission, GroupSignals, LicensePolicy, SignalCategory, SiteSignals, TdmRule,
    USAGE_CATEGORIES, USES, Unlicensed,
};

use crate::crawlers::{Binds, Purpose};
use crate::indexing::{Scope, Tags};
use crate::time::Timestamp;
use crate::yaml::{Located, Source, Span};
use std::collections::BTreeMap;
use std::net::IpAddr;
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
    /// A planned pause.
    pub pause: Option<PausePolicy>,
    /// Crawlers of the owner's own, and corrections to the registry, for this site.
    pub crawlers: Vec<OwnCrawler>,
    /// What is reserved of text and data mining.
    pub tdm: Vec<TdmRule>,
    /// What a production site does on purpose.
    pub acknowledge: Vec<Located<Acknowledgement>>,
    /// Cases that must hold before the policy is used.
    pub tests: Vec<PolicyTest>,
}

impl Policy {
    /// The owner's record of the crawler with this token.
    pub fn own_crawler(&self, token: &str) -> Option<&OwnCrawler> {
        self.crawlers.iter().find(|own| own.token.value.eq_ignore_ascii_case(token))
    }

    /// Whether the robots.txt that is served depends on the origin's. That of a staging site says one thing only.
    pub fn reads_origin(&self) -> bool {
        self.environment == Environment::Production && self.robots.origin != OriginRobots::Replace
    }
}

/// A host name in ASCII, lower case, with `*.` for its subdomains and an optional port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    /// Groups in the order of the file.
    pub groups: Vec<GroupPolicy>,
    /// Absolute URLs.
    pub sitemaps: Vec<Located<String>>,
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

/// One rule of `indexing`: conditions that must all hold, and what is then said.
#[derive(Clone, Debug)]
pub struct IndexingRule {
    /// The conditions.
    pub when: Conditions,
    /// None of these may hold: `not` excludes a response for which all of its own conditions hold.
    pub unless: Option<Conditions>,
    /// What is said.
    pub tags: Tags,
    /// The same as it was written, for lints.
    pub written: Vec<WrittenDirectives>,
    /// What becomes of the origin's own where this rule matches; as for the site when absent.
    pub origin_tags: Option<OriginTags>,
    /// The whole rule.
    pub span: Span,
}

/// Directives as somebody wrote them, to whom, and where.
#[derive(Clone, Debug)]
pub struct WrittenDirectives {
    /// To whom.
    pub scope: Scope,
    /// The text.
    pub text: Located<String>,
}

/// Paths that are first to be crawled with noindex, and later not to be crawled. See [`RetirePolicy::stage`].
#[derive(Clone, Debug)]
pub struct RetirePolicy {
    /// robots patterns.
    pub paths: Vec<Located<String>>,
    /// From when they are noindex.
    pub noindex_from: Located<Timestamp>,
    /// How long after that they are disallowed.
    pub disallow_after: Defaulted<Duration>,
    /// The whole entry.
    pub span: Span,
}

/// Conditions on a response; an empty list does not restrict.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// robots patterns on path and query; one must match.
    pub paths: Vec<Located<String>>,
    /// A regular expression on the path without the query, already known to compile.
    pub path_regex: Option<Located<String>>,
    /// Media types, lower case: `application/pdf`, `image/*`.
    pub types: Vec<Located<String>>,
    /// Status codes.
    pub status: Vec<Located<StatusCondition>>,
}

/// A status, or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusCondition {
    /// `404`.
    Code(u16),
    /// `4xx`.
    Class(u8),
}

/// What becomes of the origin's own X-Robots-Tag, the one that passes most of it on first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OriginTags {
    /// Its lines stay as they are, ours are added.
    Keep,
    /// United with ours; per scope the most restrictive value wins.
    #[default]
    Merge,
    /// Ours stand in its place where a rule of ours matches.
    Replace,
    /// Never passed on.
    Strip,
}

/// What is written into HTML pages; nothing unless it is asked for.
#[derive(Clone, Debug, Default)]
pub struct HtmlPolicy {
    /// Whether robots metas say what the X-Robots-Tag field says.
    pub meta: bool,
    /// What links are said to be.
    pub links: Vec<LinkPolicy>,
    /// Selectors of elements that are not to be quoted.
    pub nosnippet: Vec<Located<String>>,
    /// Only pages of these paths, where there are any: robots patterns.
    pub paths: Vec<Located<String>>,
    /// No page of these.
    pub not_paths: Vec<Located<String>>,
}

/// What some links are said to be.
#[derive(Clone, Debug)]
pub struct LinkPolicy {
    /// CSS selectors of the links.
    pub select: Vec<Located<String>>,
    /// Words that are added to their `rel`.
    pub rel: Vec<LinkRel>,
}

/// A word of `rel` that is meant for search engines. Others would change what a browser does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkRel {
    /// Not vouched for.
    Nofollow,
    /// Written by visitors.
    Ugc,
    /// Paid for.
    Sponsored,
}

impl LinkRel {
    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            LinkRel::Nofollow => "nofollow",
            LinkRel::Ugc => "ugc",
            LinkRel::Sponsored => "sponsored",
        }
    }
}

/// What is done about requests against the rules.
#[derive(Clone, Debug)]
pub struct Enforcement {
    /// For the site.
    pub site: EnforcementFields,
    /// Per purpose.
    pub purposes: BTreeMap<Purpose, EnforcementFields>,
    /// Per crawler (token, id or name as written); these outrank the purpose, per field.
    pub agents: Vec<(Located<String>, EnforcementFields)>,
    /// How long a fetched robots.txt may be held.
    pub grace: Defaulted<Duration>,
    /// Patterns that nobody is to ask for: published as Disallow in every group.
    pub traps: Vec<Located<String>>,
    /// Crawlers (token, id or name as written) that are never refused.
    pub exempt: Vec<Located<String>>,
    /// Whether a cache answers robots.txt for us, so that nobody knows who fetched which version.
    pub behind_cache: Option<BehindCache>,
}

/// How long a cache before us may go on answering with a robots.txt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BehindCache {
    /// As long as `max_age` lets it.
    AsLongAsMaxAge,
    /// This long, whatever we say.
    For(Duration),
}

/// Fields that can be said per site, purpose and agent; absent ones fall to the next wider.
#[derive(Clone, Debug, Default)]
pub struct EnforcementFields {
    /// Off, observe or enforce.
    pub mode: Option<Mode>,
    /// The answer to what is disallowed.
    pub disallowed: Option<AnswerPolicy>,
    /// The answer to what only the resolved path disallows.
    pub ambiguous: Option<AnswerPolicy>,
    /// The answer to what comes faster than the crawl delay; its Retry-After is computed.
    pub too_fast: Option<AnswerPolicy>,
    /// The answer to who is proven not to be the crawler it says it is.
    pub impostor: Option<AnswerPolicy>,
    /// The answer to who stepped into a trap.
    pub trapped: Option<AnswerPolicy>,
    /// For how long it is remembered.
    pub trapped_for: Option<Duration>,
    /// What becomes of crawlers whose claim is not proven.
    pub unverified: Option<(Unverified, Span)>,
    /// The answer to a request without a licence token.
    pub unlicensed: Option<Located<Unlicensed>>,
}

/// What becomes of crawlers whose claim is neither proven nor disproven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unverified {
    /// They are treated as what they say they are.
    #[default]
    AsClaimed,
    /// They are observed, whatever the mode is.
    Observe,
    /// They are refused.
    Refuse,
}

/// A crawler of the owner's own, or a correction to the registry. What is absent stays as it is known.
#[derive(Clone, Debug)]
pub struct OwnCrawler {
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

/// How far enforcement goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Nothing is judged.
    Off,
    /// What would be done is recorded.
    #[default]
    Observe,
    /// It is done.
    Enforce,
}

impl Mode {
    /// Its name in policies and reports.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::Observe => "observe",
            Mode::Enforce => "enforce",
        }
    }
}

/// An answer in place of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerPolicy {
    /// 4xx or 5xx.
    pub status: u16,
    /// Retry-After.
    pub retry_after: Option<Duration>,
    /// The body; our own when absent.
    pub body: Option<String>,
}

/// A planned pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PausePolicy {
    /// Whom it stops.
    pub audience: Audience,
    /// When it begins; at once when absent.
    pub from: Option<Timestamp>,
    /// When it ends; 12 hours after it came into force when absent.
    pub until: Option<Timestamp>,
    /// Retry-After.
    pub retry_after: Duration,
    /// Whether robots.txt is answered 503 as well.
    pub pause_robots_txt: bool,
    /// The whole section.
    pub span: Span,
}

/// Whom a pause stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Audience {
    /// Crawlers; people, monitoring and tools pass.
    #[default]
    Crawlers,
    /// Everyone.
    Everyone,
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
    /// Where it comes from.
    pub ip: Option<IpAddr>,
    /// `unverified`, `verified` or `impostor`; what the policy's networks say of `ip` when absent.
    pub identity: Option<String>,
    /// What the crawler holds; not known when absent.
    pub held: Option<HeldByTest>,
    /// What must come of it.
    pub expect: Expectation,
    /// The whole case.
    pub span: Span,
}

/// What the crawler of a test holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldByTest {
    /// Nothing: it never fetched robots.txt, on a host that was watched all the time.
    Nothing,
    /// The version in force alone.
    InForce,
    /// This robots.txt, which was in force before.
    Former(String),
}

/// What a test expects; absent fields are not compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// `allowed`, `disallowed`, `not_bound`, `not_a_crawler`.
    pub verdict: Option<Located<String>>,
    /// `allowed`, `violation`, `unproven`, `ambiguous`, `not_bound`, ...
    pub kind: Option<Located<String>>,
    /// Whether a violation is one of a crawler that never fetched robots.txt.
    pub never_fetched: Option<Located<bool>>,
    /// `pass`, `block`, `license`, `pause`, `robots_txt`, `tdmrep`.
    pub action: Option<Located<String>>,
    /// The status of an answer that is made here.
    pub answer_status: Option<Located<u16>>,
    /// The X-Robots-Tag lines, in order; an empty list means none.
    pub tag: Option<Vec<Located<String>>>,
    /// The header lines about the use of the content, in order; an empty list means none.
    pub signals: Option<Vec<Located<String>>>,
}
