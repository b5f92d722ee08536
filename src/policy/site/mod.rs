//! [`Site`]: a policy, compiled for judging requests. The module `compile` makes it when a policy
//! is loaded, so that handling a request needs only look-ups. A [`Snapshot`] holds all sites at one
//! moment, with the history of each host.

use super::model::{OriginTagsMode, Policy};
use super::origin::{OriginRobotsAvailability, OriginRobotsTxt};
use crate::crawlers::{Claim, Registry, SiteMarkers};
use crate::robots::{GoogleRules, GroupMatcher, RobotsDocument, Rule, RuleSet};
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

pub use super::parsed_robots_version::ParsedRobotsVersion;
pub use crawler_rules::{
    CrawlerRules, CrawlerRulesTable, GoogleParsing, GroupBinding, RefusalAnswer,
};
pub use entry::{PauseWindow, RobotsTxtAnswer, SiteEntry, SupersededVersion, TagChangeTimes};
pub use front_page::{FrontPageStatus, SEARCH_ENGINES};
pub use hosts::{HostIndex, split_host_port};
pub use html::RobotsMetaPaths;
pub use networks::CrawlerNetworks;
pub use pages::{PageTemplate, PageTemplatePart, SiteAnswerPages};
pub use robots_txt::{DroppedRule, PreviousRobotsTxt, RobotsTxt, RuleSource};
pub use signals::{CompiledSignals, License, PathSignals, SignalField, TdmRepFile};
pub use snapshot::Snapshot;
pub use tags::{SelectedRules, TagHeaderEdit, TagLines, TagRules, combine_with_origin};
pub use version::RobotsVersionId;

pub(in crate::policy) use crawler_rules::{crawler_names, find_binding, unregistered_tokens};
pub(in crate::policy) use signals::{TdmStatement, TrainingStatements};
pub(in crate::policy) use tags::{TagConditions, TagRule};

/// One compiled site.
#[derive(Debug)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// The policy that it was compiled from.
    pub policy: Arc<Policy>,
    /// The origin's robots.txt that it was compiled with.
    pub origin: Option<Arc<OriginRobotsTxt>>,
    /// Rules of the origin's robots.txt that the merge left out.
    pub dropped_rules: Vec<DroppedRule>,
    /// Lines of the origin's robots.txt that were left out because they name a host that crawlers
    /// cannot reach.
    pub unpublished_lines: Vec<usize>,
    /// The robots.txt that is served.
    pub robots_txt: RobotsTxt,
    /// robots.txt as data; the group and rule indexes of decisions are indexes of it.
    pub document: RobotsDocument,
    /// robots.txt, ready for verdicts.
    pub matcher: GroupMatcher,
    /// The rules of groups that Google's library reads otherwise. See [`GoogleParsing::OwnRules`].
    pub google_rules: Vec<GoogleRules>,
    /// The source of each rule, `[group][rule]` as in `document`.
    pub rule_sources: Vec<Vec<RuleSource>>,
    /// The source of each group, as in `document.groups`.
    pub group_sources: Vec<RuleSource>,
    /// The source of the Crawl-delay of each group, as in `document.groups`.
    pub delay_sources: Vec<Option<RuleSource>>,
    /// The tokens and markers that the site knows beside the registry.
    pub tokens: SiteMarkers,
    /// The answers to blocked requests; [`CrawlerRules`] has indexes of them.
    pub answers: Vec<RefusalAnswer>,
    /// The site's own HTML pages.
    pub pages: SiteAnswerPages,
    /// The robots.txt from before crawlgate, if the policy declares it.
    pub previous: Option<PreviousRobotsTxt>,
    /// The X-Robots-Tag rules.
    pub tags: TagRules,
    /// The header lines about the use of the content.
    pub signals: CompiledSignals,
    /// How the origin's X-Robots-Tag is treated.
    pub origin_tags: OriginTagsMode,
    /// Which HTML pages get robots metas.
    pub html: Option<RobotsMetaPaths>,
    /// The time that it was compiled for.
    pub at: Timestamp,
    /// When it must be compiled again, because a retirement moves to its next stage.
    pub next_switch: Option<Timestamp>,
    /// What is known of the last response for `/`.
    pub front_page: FrontPageStatus,
    /// How long a crawler may use a superseded version.
    pub grace: Duration,
    /// The patterns of traps.
    pub traps: RuleSet,
    /// The networks of crawlers that the policy lists.
    pub networks: CrawlerNetworks,
    /// How long a cache in front of crawlgate may answer with a superseded version, if there is a
    /// cache.
    pub behind_cache: Option<Duration>,
    /// Whether the policy does not say if there is such a cache.
    pub perhaps_behind_cache: bool,
    pub(super) crawler_rules: CrawlerRulesTable,
}

impl Site {
    /// A rule with its source, by the index of its group and its index in the group.
    pub fn rule(&self, group: usize, rule: usize) -> Option<(&Rule, &RuleSource)> {
        let source = self.rule_sources.get(group)?.get(rule)?;
        Some((self.document.groups.get(group)?.rules.get(rule)?, source))
    }

    /// How long a crawler may use a copy, with the time in a cache in front of crawlgate.
    pub fn copy_lifetime(&self) -> Duration {
        self.grace + self.behind_cache.unwrap_or_default()
    }

    /// Whether the origin's X-Robots-Tag is removed from every response. Any other treatment applies
    /// only where a rule matches.
    pub fn strips_origin_tags(&self) -> bool {
        self.origin_tags == OriginTagsMode::Strip
    }

    /// The origin's robots.txt that it was compiled with, for another compilation.
    pub fn origin_availability(&self) -> OriginRobotsAvailability {
        match (&self.origin, self.robots_txt.awaits_origin_until) {
            (Some(file), _) => OriginRobotsAvailability::Available(file.clone()),
            (None, Some(until)) => OriginRobotsAvailability::Awaited { until },
            (None, None) => OriginRobotsAvailability::Missing,
        }
    }

    /// The crawler that a person means by `agent`: a token of the policy, else a token, id or name
    /// of the registry, else what `agent` claims as a user agent.
    pub fn claim_of(&self, agent: &str, registry: &Registry) -> Claim {
        self.tokens
            .token_claim(agent)
            .or_else(|| registry.find(agent).map(Claim::Known))
            .unwrap_or_else(|| registry.identify_on_site(agent.as_bytes(), &self.tokens))
    }

    /// Like [`claim_of`](Site::claim_of), but a token that only groups or enforcement name counts
    /// as a user agent: the name of an app for people matches no crawler.
    pub fn claim_for_request(&self, agent: &str, registry: &Registry) -> Claim {
        let is_described =
            self.policy.crawler_description(agent).is_some() || registry.find(agent).is_some();
        if is_described {
            self.claim_of(agent, registry)
        } else {
            registry.identify_on_site(agent.as_bytes(), &self.tokens)
        }
    }

    /// The rules that Google's library reads, if they differ.
    pub fn own_google_rules(&self, reading: GoogleParsing) -> Option<&GoogleRules> {
        match reading {
            GoogleParsing::OwnRules(place) => self.google_rules.get(usize::from(place)),
            GoogleParsing::Unused | GoogleParsing::SameRules => None,
        }
    }

    /// How the site treats a claimed crawler.
    pub fn crawler_rules(&self, claim: Claim) -> CrawlerRules {
        self.crawler_rules.get(claim)
    }
}
