//! [`Site`]: a policy, compiled for judging requests. The module `compile` makes it when a policy
//! is loaded, so that no policy is parsed while a request waits. [`Snapshot`] holds all sites at
//! one moment, with the earlier robots.txt files of each host.

use super::model::{OriginTags, Policy};
use super::origin::{Origin, OriginFile};
use crate::crawlers::{Claim, Registry, SiteMarkers};
use crate::robots::{Document, GoogleRules, Matcher, Rule, RuleSet};
use crate::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

mod crawler_rules;
mod entry;
mod front_page;
mod hosts;
mod html;
mod networks;
mod pages;
mod robots_txt;
mod signals;
mod snapshot;
mod tags;
mod version;

pub use super::parsed_version::ParsedVersion;
pub use crawler_rules::{Binding, CrawlerRules, CrawlerRulesTable, RefusalAnswer, SecondReading};
pub use entry::{ActivePause, RobotsTxtAnswer, SiteEntry, SupersededVersion, TagAges};
pub use front_page::{FrontPage, SEARCH_ENGINES};
pub use hosts::{HostIndex, name_and_port};
pub use html::HtmlRules;
pub use networks::Networks;
pub use pages::{PagePart, PageTemplate, SitePages};
pub use robots_txt::{DeclaredPrevious, LeftOut, RobotsTxt, RuleSource};
pub use signals::{License, PathSignals, ServedFile, SignalField, SignalPlan};
pub use snapshot::Snapshot;
pub use tags::{PathRules, Sent, TagLines, TagPlan, combine};
pub use version::Version;

pub(in crate::policy) use crawler_rules::{binding, names, unlisted};
pub(in crate::policy) use signals::Tdm;
pub(in crate::policy) use tags::{TagConditions, TagRule};

/// One site, compiled.
#[derive(Debug)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// The policy that it was compiled from; explanations point into it.
    pub policy: Arc<Policy>,
    /// The origin's robots.txt that it was compiled from, too.
    pub origin: Option<Arc<OriginFile>>,
    /// Allow lines of the origin's robots.txt that could not be kept beside the policy's Disallow.
    pub left_out: Vec<LeftOut>,
    /// Lines of the origin's robots.txt that are left out because they name a host that crawlers
    /// cannot reach.
    pub unpublished_lines: Vec<usize>,
    /// The robots.txt that is served.
    pub robots_txt: RobotsTxt,
    /// robots.txt as data; group and rule indexes of decisions point into it.
    pub document: Document,
    /// robots.txt ready for verdicts.
    pub matcher: Matcher,
    /// Rules that Google's library reads otherwise than RFC 9309 says. See
    /// [`CrawlerRules::second_reading`].
    pub google_rules: Vec<GoogleRules>,
    /// The source of each rule: `[group][rule]`, aligned with `document`.
    pub rule_sources: Vec<Vec<RuleSource>>,
    /// The source of each group, aligned with `document.groups`.
    pub group_sources: Vec<RuleSource>,
    /// Tokens that the policy names and the registry does not know.
    pub tokens: SiteMarkers,
    /// The answers that a decision may point at.
    pub answers: Vec<RefusalAnswer>,
    /// Pages of the site's own, in place of crawlgate's.
    pub pages: SitePages,
    /// The robots.txt from before crawlgate, where the operator says what it was.
    pub previous: Option<DeclaredPrevious>,
    /// The lines of X-Robots-Tag.
    pub tags: TagPlan,
    /// The header lines about the use of the content.
    pub signals: SignalPlan,
    /// The treatment of the origin's X-Robots-Tag.
    pub origin_tags: OriginTags,
    /// The changes to HTML pages.
    pub html: Option<HtmlRules>,
    /// The moment that it was compiled for.
    pub at: Timestamp,
    /// When it must be compiled again, because a retirement moves on.
    pub next_switch: Option<Timestamp>,
    /// The last answer to `/`.
    pub front_page: FrontPage,
    /// How long a crawler may use a superseded version.
    pub grace: Duration,
    /// Paths that no crawler is to request.
    pub traps: RuleSet,
    /// The addresses of crawlers that the owner vouches for.
    pub networks: Networks,
    /// How much longer a cache before crawlgate may answer with a superseded version, when there is
    /// one.
    pub behind_cache: Option<Duration>,
    /// Whether the policy leaves open whether there is a cache.
    pub perhaps_behind_cache: bool,
    /// The rules of each claim. See [`Site::crawler_rules`].
    pub(super) crawler_rules: CrawlerRulesTable,
}

impl Site {
    /// A rule with its source, by the places of its group and in it.
    pub fn rule(&self, group: u16, rule: u32) -> Option<(&Rule, &RuleSource)> {
        let group = usize::from(group);
        let place = usize::try_from(rule).ok()?;
        let rule = self.document.groups.get(group)?.rules.get(place)?;
        Some((rule, self.rule_sources.get(group)?.get(place)?))
    }
    /// For how long a crawler may use a copy, the time in a cache before crawlgate included.
    pub fn copy_time(&self) -> Duration {
        self.grace + self.behind_cache.unwrap_or_default()
    }

    /// The knowledge of the origin's own robots.txt that it was compiled with.
    pub fn origin_known(&self) -> Origin {
        match (&self.origin, self.robots_txt.awaits_origin_until) {
            (Some(file), _) => Origin::Read(file.clone()),
            (None, Some(until)) => Origin::Awaited { until },
            (None, None) => Origin::Unknown,
        }
    }

    /// The crawler that a person means by `agent`: a token of the policy, else a token, id or name
    /// of the registry, else what `agent` claims to be as a whole user agent.
    pub fn claim_of(&self, agent: &str, registry: &Registry) -> Claim {
        let claim = self
            .tokens
            .named(agent)
            .or_else(|| registry.find(agent).map(Claim::Known));
        claim.unwrap_or_else(|| registry.identify_with(agent.as_bytes(), &self.tokens))
    }

    /// The claim of requests with `agent` as user agent or as token. Unlike
    /// [`claim_of`](Site::claim_of), a token that only groups or enforcement name means what
    /// requests with it are taken for: a name of a person's app matches none.
    pub fn claim_of_request(&self, agent: &str, registry: &Registry) -> Claim {
        let is_described =
            self.policy.described_crawler(agent).is_some() || registry.find(agent).is_some();
        if is_described {
            self.claim_of(agent, registry)
        } else {
            registry.identify_with(agent.as_bytes(), &self.tokens)
        }
    }

    /// The rules of a second reading that has its own.
    pub fn own_rules(&self, reading: SecondReading) -> Option<&GoogleRules> {
        match reading {
            SecondReading::OwnRules(place) => self.google_rules.get(usize::from(place)),
            SecondReading::None | SecondReading::SameRules => None,
        }
    }

    /// The treatment of a claim by the policy: its group, its enforcement, its answers.
    pub fn crawler_rules(&self, claim: Claim) -> CrawlerRules {
        self.crawler_rules.get(claim)
    }
}
