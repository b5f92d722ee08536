//! What the request path sees: policies compiled, nothing left to parse or to allocate.

use super::host_history::{HostHistories, HostHistory};
use super::model::{Audience, HostPattern, Mode, OriginTags, Policy, Unverified};
use super::origin::{Origin, OriginFile};
use crate::crawlers::{Binds, Claim, TokenMarks};
use crate::robots::{Document, Matcher, Pattern, RuleSet};
use crate::time::Timestamp;
use crate::yaml::Span;
use sha2::{Digest, Sha256};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

pub use super::compile::combine::{Sent, combine};
pub use super::compile::front_page::FrontPage;
pub use super::compile::hosts::{HostIndex, name_and_port};
pub use super::compile::html::HtmlRules;
pub use super::compile::signals::{PathSignals, ServedFile, SignalPlan};
pub use super::compile::tags::{PathRule, PathRules, TagLines, TagPlan};
pub use super::former::Former;

/// The identity of the bytes of a robots.txt: the first 8 bytes of their SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub [u8; 8]);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

impl Version {
    /// The version that these bytes are.
    pub fn of(body: &[u8]) -> Version {
        let mut first = [0; 8];
        first.copy_from_slice(&Sha256::digest(body)[..8]);
        Version(first)
    }

    /// Reads what `Display` writes.
    pub fn parse(written: &str) -> Option<Version> {
        let mut version = [0; 8];
        if written.len() != 16 || !written.is_ascii() {
            return None;
        }
        for (place, byte) in version.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&written[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(Version(version))
    }
}

/// An Allow of the origin that is not in the file: no few rules would keep it and the policy's Disallow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeftOut {
    /// What it allows.
    pub allow: Pattern,
    /// Where it stands in the origin's file.
    pub line: usize,
    /// The Disallow that it could defeat.
    pub disallow: Span,
    /// Whether the two were compared: of a file with very many rules, not all are.
    pub compared: bool,
}

/// One site, compiled.
#[derive(Debug)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// What it was compiled from; explanations point into it.
    pub policy: Arc<Policy>,
    /// The origin's robots.txt that it was compiled from, too.
    pub origin: Option<Arc<OriginFile>>,
    /// Allow lines of it that could not be kept beside the policy's Disallow.
    pub left_out: Vec<LeftOut>,
    /// The robots.txt that is served.
    pub robots_txt: RobotsTxt,
    /// The same as data; group and rule indexes of decisions point into it.
    pub document: Document,
    /// The same ready for verdicts.
    pub matcher: Matcher,
    /// Where each rule came from: `[group][rule]`, aligned with `document`.
    pub rule_sources: Vec<Vec<RuleSource>>,
    /// Where each group came from, aligned with `document.groups`.
    pub group_sources: Vec<RuleSource>,
    /// Tokens that the policy names and the registry does not know.
    pub tokens: TokenMarks,
    /// The answers that a decision may point at.
    pub answers: Vec<Answer>,
    /// X-Robots-Tag.
    pub tags: TagPlan,
    /// What is said about the use of the content.
    pub signals: SignalPlan,
    /// What becomes of the origin's X-Robots-Tag.
    pub origin_tags: OriginTags,
    /// What is written into HTML pages.
    pub html: Option<HtmlRules>,
    /// The moment that it was compiled for.
    pub at: Timestamp,
    /// When it must be compiled again, because something in it goes by the clock.
    pub next_switch: Option<Timestamp>,
    /// What was last sent for `/`.
    pub front_page: FrontPage,
    /// How long a superseded version may still be held by a crawler.
    pub grace: Duration,
    /// Paths that nobody is to ask for.
    pub traps: RuleSet,
    /// The addresses of crawlers that the owner vouches for. See [`Site::holds_address`].
    pub(super) networks: super::compile::registry_overrides::Networks,
    /// How much longer a cache before us may hand it out, when there is one.
    pub behind_cache: Option<Duration>,
    /// How each claim is treated. See [`Site::standing`].
    pub(super) standings: super::compile::crawler_rules::CrawlerRulesTable,
}

impl Site {
    /// What was known of the origin's own robots.txt when it was compiled.
    pub fn origin_known(&self) -> Origin {
        match (&self.origin, self.robots_txt.awaits_origin_until) {
            (Some(file), _) => Origin::Read(file.clone()),
            (None, Some(until)) => Origin::Awaited { until },
            (None, None) => Origin::Unknown,
        }
    }

    /// How the policy treats a claim: which group binds it, how far it is enforced, with which answers.
    pub fn crawler_rules(&self, claim: Claim) -> CrawlerRules {
        self.standings.get(claim)
    }

    /// Whether the policy lists addresses of any crawler.
    pub fn lists_addresses(&self) -> bool {
        !self.networks.is_empty()
    }

    /// The crawlers whose addresses the policy lists, and these.
    pub fn listed_addresses(&self) -> impl Iterator<Item = (Claim, &[ipnet::IpNet])> {
        self.networks.each()
    }

    /// Whether an address is among those that the policy lists for a crawler; nothing where it lists none of its kind.
    pub fn holds_address(&self, claim: Claim, address: IpAddr) -> Option<bool> {
        self.networks.hold(claim, address)
    }
}

/// The file as it is served.
#[derive(Debug)]
pub struct RobotsTxt {
    /// The bytes.
    pub body: Arc<[u8]>,
    /// Their identity.
    pub version: Version,
    /// The strong entity tag, with its quotes.
    pub etag: String,
    /// The Cache-Control value.
    pub cache_control: String,
    /// The origin's file is still awaited: until this moment these bytes are not served.
    pub awaits_origin_until: Option<Timestamp>,
}

impl RobotsTxt {
    /// For how many seconds the origin's file is still waited for; `None` when these bytes are served.
    pub fn awaits_origin(&self, now: Timestamp) -> Option<u64> {
        self.awaits_origin_until.filter(|until| now < *until).map(|until| until.since(now).as_secs())
    }
}

/// Where a rule of the served file came from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RuleSource {
    /// Written in the policy, here.
    Policy(Span),
    /// Follows from the stance towards a purpose, here.
    Purpose(Span),
    /// Follows from `environment: staging`.
    Staging,
    /// Written in the origin's own robots.txt, in the line of this number.
    Origin(usize),
}

/// How a policy treats a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrawlerRules {
    /// Which rules apply.
    pub binding: Binding,
    /// Whether requests are judged at all (people and unnamed tools are not).
    pub judged: bool,
    /// Whether a group of the served file names it.
    pub named: bool,
    /// What binds it besides a group of its own.
    pub binds: Binds,
    /// Whether its operator says that robots.txt is ignored: reported as not bound even when named.
    pub never_bound: bool,
    /// How far it is enforced.
    pub mode: Mode,
    /// Index of the answer to what is disallowed.
    pub disallowed: u16,
    /// Index of the answer to what is ambiguous.
    pub ambiguous: u16,
    /// Index of the answer to what is too fast.
    pub too_fast: u16,
    /// Index of the answer to an impostor.
    pub impostor: u16,
    /// Index of the answer to who stepped into a trap.
    pub trapped: u16,
    /// For how long that is remembered.
    pub trapped_for: Duration,
    /// What becomes of it while its claim is not proven.
    pub unverified: Unverified,
    /// Whether it is never refused, unless it is proven to be somebody else.
    pub exempt: bool,
    /// The crawl delay that it is held to.
    pub pace: Option<Duration>,
    /// The status that a request without a licence token gets where a licence covers the path.
    pub unlicensed: Option<u16>,
    /// Whether a pause for crawlers stops it (people, monitoring and tools pass).
    pub pausable: bool,
}

/// Which rules apply to a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// This group of the document.
    Group(u16),
    /// Bound, but nothing is said: everything is allowed.
    NoRules,
    /// Its operator says that what is there does not bind it.
    NotBound,
}

/// An answer in place of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Retry-After in seconds.
    pub retry_after: Option<u32>,
    /// The owner's own body.
    pub body: Option<Arc<str>>,
}

/// A version that was in force and may still be held.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its bytes.
    pub former: Arc<Former>,
    /// Since when it was in force.
    pub since: Timestamp,
    /// When another took its place.
    pub superseded_at: Timestamp,
}

/// A pause with its bounds settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivePause {
    /// Whom it stops.
    pub audience: Audience,
    /// First second.
    pub from: Timestamp,
    /// One past the last second.
    pub until: Timestamp,
    /// Retry-After in seconds, before it is cut to the time left.
    pub retry_after: u32,
    /// Until when robots.txt is answered 503 as well, when it is.
    pub robots_txt_until: Option<Timestamp>,
    /// Switched at run time, not by the file.
    pub at_run_time: bool,
}

/// One site as it stands now.
#[derive(Clone, Debug)]
pub struct SiteEntry {
    /// The policy in force.
    pub site: Arc<Site>,
    /// Since when these bytes are in force: Last-Modified.
    pub since: Timestamp,
    /// Versions that came before it, newest first, at most [`SiteEntry::MAX_HELD`].
    pub held: Vec<Held>,
    /// When the last of those that had to be dropped was superseded: whoever may hold one may hold permission for
    /// anything.
    pub forgotten: Option<Timestamp>,
    /// Since when crawlers are told apart as they are now, by the registry and by the tokens of the policy.
    pub identity_epoch: Timestamp,
    /// Since when the rules of the tag plan are in force.
    pub tag_ages: TagAges,
    /// The planned or switched pauses; the first whose time it is counts.
    pub pauses: Vec<ActivePause>,
}

/// Since when what is said about pages is said. A 304 hides a new noindex from a crawler that has the page already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagAges {
    /// By the index of the rule in the plan.
    pub since: Vec<Timestamp>,
    /// When that last changed on every page: a rule was taken away, and what it said may be remembered for any; or
    /// something is written into pages, or the origin's tags are taken away, that was not.
    pub everywhere: Option<Timestamp>,
}

impl SiteEntry {
    /// Superseded versions kept per site.
    pub const MAX_HELD: usize = 64;

    /// How long crawlers are sent a whole page where what is said about it changed: they come back within weeks.
    pub const TAGS_NEW_FOR: Duration = Duration::from_secs(30 * 86_400);

    /// A site that has no past.
    pub fn new(site: Arc<Site>, since: Timestamp) -> SiteEntry {
        let (held, pauses) = (Vec::new(), Vec::new());
        SiteEntry { site, since, held, forgotten: None, identity_epoch: since, tag_ages: TagAges::default(), pauses }
    }

    /// The pause that counts now.
    pub fn pause(&self, now: Timestamp) -> Option<&ActivePause> {
        self.pauses.iter().find(|pause| pause.from <= now && now < pause.until)
    }

    /// Whether robots.txt is answered 503 to a crawler that asks for it now.
    pub fn withholds_robots_txt(&self, now: Timestamp) -> bool {
        let paused_until = self.pause(now).and_then(|pause| pause.robots_txt_until);
        paused_until.is_some_and(|until| now < until) || self.site.robots_txt.awaits_origin(now).is_some()
    }

    /// When robots.txt begins or ceases to be answered 503, as far as that is planned.
    fn robots_txt_switches(&self) -> impl Iterator<Item = Timestamp> {
        let of_pause = |pause: &ActivePause| {
            let (from, until) = (pause.from, pause.robots_txt_until.map(|until| until.min(pause.until)));
            until.into_iter().flat_map(move |until| [from, until])
        };
        self.pauses.iter().flat_map(of_pause).chain(self.site.robots_txt.awaits_origin_until)
    }

    /// Whether Last-Modified tells the version in force from every other that was in force before it: not where two
    /// were saved within a second, or after the clock was set back to the same second, or where not all are known any
    /// more.
    pub fn is_told_by_its_date(&self) -> bool {
        self.forgotten.is_none() && self.held.iter().all(|held| held.since != self.since)
    }

    /// Whether what is said about pages of a path changed so lately that crawlers must see the page whole.
    pub fn tags_are_new(&self, rules: &PathRules, now: Timestamp) -> bool {
        let lately = |moment: Timestamp| now.since(moment) < SiteEntry::TAGS_NEW_FOR;
        let since = |rule: u16| self.tag_ages.since.get(usize::from(rule)).copied();
        self.tag_ages.everywhere.is_some_and(lately)
            || rules.iter().any(|selected| since(selected.rule).is_some_and(lately))
    }
}

/// Everything the request path needs, replaced whole on every change.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    sites: Vec<SiteEntry>,
    hosts: HostIndex,
    histories: HostHistories,
    /// The moment that it was made for.
    made_at: Timestamp,
    /// Counts replacements.
    pub generation: u64,
}

impl Snapshot {
    /// Indexes sites by host. Of two sites that claim one host the first wins; loading refuses such policies earlier.
    pub fn new(sites: Vec<SiteEntry>, generation: u64) -> Snapshot {
        let hosts = HostIndex::new(sites.iter().map(|entry| entry.site.policy.hosts.iter().map(|host| &host.value)));
        Snapshot { sites, hosts, histories: HostHistories::default(), made_at: Timestamp::default(), generation }
    }

    /// With what the hosts published before this moment.
    pub fn with_histories(self, histories: HostHistories, made_at: Timestamp) -> Snapshot {
        Snapshot { histories, made_at, ..self }
    }

    /// When something in it goes by the clock next: the bytes of a site, or whether its robots.txt is answered 503.
    pub fn next_switch(&self) -> Option<Timestamp> {
        let of_sites = self.sites.iter().filter_map(|entry| entry.site.next_switch);
        of_sites.chain(self.next_switch_of_robots_txt()).min()
    }

    /// When robots.txt of a site begins or ceases next to be answered 503.
    pub fn next_switch_of_robots_txt(&self) -> Option<Timestamp> {
        let moments = self.sites.iter().flat_map(SiteEntry::robots_txt_switches);
        moments.filter(|moment| *moment > self.made_at).min()
    }

    /// What the host of a `Host` field value published before. Does not allocate.
    pub fn history(&self, host: &[u8]) -> &HostHistory {
        self.histories.of(host)
    }

    /// All sites.
    pub fn sites(&self) -> &[SiteEntry] {
        &self.sites
    }

    /// The index of the site for a `Host` field value (name with optional port, any case). Does not allocate.
    pub fn site_for_host(&self, host: &[u8]) -> Option<usize> {
        self.hosts.find(host)
    }

    /// The site of this name.
    pub fn site_named(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|entry| entry.site.name == name)
    }
}

/// The first pattern that two policies share, for the error that names both.
pub fn shared_host<'a>(one: &'a Policy, other: &'a Policy) -> Option<&'a HostPattern> {
    one.hosts.iter().map(|host| &host.value).find(|host| other.hosts.iter().any(|theirs| theirs.value == **host))
}
