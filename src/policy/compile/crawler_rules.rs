//! [`compile_crawler_rules`] computes how a site treats each crawler: which group of robots.txt the
//! crawler follows, how the rules are enforced, and how blocked requests are answered. Some
//! user-agent tokens are missing in crawlgate's table of known crawlers. [`unlisted_tokens`]
//! collects such tokens from the policy and from the origin's robots.txt.

use super::registry_overrides::CrawlerFacts;
use crate::crawlers::{Crawler, Purpose, Registry, RobotsObedience, SiteMarkers};
use crate::policy::decode::is_token;
use crate::policy::model::{
    AnswerPolicy, EnforcementFields, EnforcementMode, Policy, UnlicensedAnswer, UnverifiedTreatment,
};
use crate::policy::site::{
    CrawlerRules, CrawlerRulesTable, GoogleParsing, GroupBinding, RefusalAnswer, crawler_names,
    find_binding, unregistered_tokens,
};
use crate::robots::{
    AgentName, Dialect, GoogleRules, GroupMatcher, RobotsDocument, differs_for_google,
};
use crate::yaml::saturating_u32;
use Purpose::*;
use std::collections::HashMap;
use std::time::Duration;

/// How long a client that requested a trap stays marked, unless the policy says otherwise.
const DEFAULT_TRAPPED: Duration = Duration::from_secs(3_600);
/// Retry-After in seconds while the proof of a claim may still come.
const AWAITING_PROOF: u32 = 60;

/// The most tokens that the origin's file may add. Tokens that are known anyway do not count.
const MAX_ORIGIN_TOKENS: usize = 1_000;
const MIN_ORIGIN_TOKEN: usize = 3;

/// The tokens that the policy or the origin's file names and the registry does not know. User agents
/// are searched for them, too. The origin's file is not checked: what is no token, or too short, is
/// left out.
pub fn unlisted_tokens(policy: &Policy, origin: &[String], registry: &Registry) -> Vec<String> {
    let groups = policy.robots.groups.iter().flat_map(|group| &group.agents);
    let agents = groups
        .chain(policy.enforcement.named_crawlers())
        .chain(policy.crawlers.iter().map(|described| &described.token))
        .map(|agent| agent.as_str());
    let origin = origin
        .iter()
        .map(String::as_str)
        .filter(|token| token.len() >= MIN_ORIGIN_TOKEN && is_token(token));
    let max = agents.clone().count() + MAX_ORIGIN_TOKENS;
    let mut tokens = unregistered_tokens(agents.chain(origin), registry);
    tokens.truncate(max);
    tokens
}

/// Computes the rules of every crawler that a user agent can claim to be, with the answers and Google
/// rules that they have indexes of.
pub fn compile_crawler_rules(
    policy: &Policy,
    registry: &Registry,
    document: &RobotsDocument,
    matcher: &GroupMatcher,
    tokens: &SiteMarkers,
) -> (CrawlerRulesTable, Vec<RefusalAnswer>, Vec<GoogleRules>) {
    let mut builder = RulesBuilder {
        policy,
        registry,
        matcher,
        google: GoogleDocument::new(document),
        answers: Vec::new(),
    };
    let known = registry
        .crawlers()
        .iter()
        .map(|crawler| builder.registered_crawler(crawler))
        .collect();
    let tokens = tokens
        .tokens()
        .iter()
        .map(|token| builder.crawler_rules(&[token], &CrawlerFacts::from_token(policy, token)))
        .collect();
    let other = builder.crawler_rules(&[], &CrawlerFacts::unknown(Other));
    let tool = builder.crawler_rules(&[], &CrawlerFacts::unknown(Tool));
    let visitor = CrawlerRules {
        judged: false,
        unlisted: false,
        pausable: false,
        unlicensed: None,
        binding: GroupBinding::NoRules,
        crawl_delay: None,
        ..other
    };
    let crawler_rules = CrawlerRulesTable {
        known,
        tokens,
        other,
        tool,
        visitor,
    };
    (crawler_rules, builder.answers, builder.google.rules)
}

struct RulesBuilder<'a> {
    policy: &'a Policy,
    registry: &'a Registry,
    matcher: &'a GroupMatcher,
    google: GoogleDocument<'a>,
    answers: Vec<RefusalAnswer>,
}

impl RulesBuilder<'_> {
    /// The rules of a crawler of the registry.
    fn registered_crawler(&mut self, crawler: &Crawler) -> CrawlerRules {
        let facts = CrawlerFacts::from_registry(self.policy, crawler);
        let names: Vec<&str> = crawler_names(crawler).collect();
        let mut rules = self.crawler_rules(&names, &facts);
        if let (Dialect::Google, Some(group)) = (crawler.reading, rules.binding.group()) {
            rules.google_parsing = self.google.parse_as_google(crawler, rules.binds, group);
        }
        // Applebot obeys Googlebot's group, but is not exempt with Googlebot.
        rules.exempt = names.iter().any(|name| {
            self.policy.enforcement.is_exempt(name)
                && self
                    .registry
                    .find_crawler(name)
                    .is_none_or(|named| named.operator == crawler.operator)
        });
        // No request has a token that only controls use of content (Google-Extended).
        let has_markers = !crawler.markers.is_empty()
            || facts
                .described
                .is_some_and(|described| !described.user_agent.is_empty());
        if !has_markers {
            rules.mode = EnforcementMode::Off;
        }
        rules
    }

    /// The rules of a crawler with these names. A tool is not judged, and a bot of purpose `Other`
    /// is at most observed, unless the policy addresses it: by a group, an entry of `crawlers`, or
    /// enforcement for the crawler or its purpose.
    fn crawler_rules(&mut self, names: &[&str], facts: &CrawlerFacts<'_>) -> CrawlerRules {
        let &CrawlerFacts {
            purpose,
            binds,
            honours_crawl_delay,
            described,
        } = facts;
        let (binding, named) = find_binding(self.matcher, names.iter().copied(), binds);
        let enforcement = &self.policy.enforcement;
        let agent = names.iter().find_map(|name| enforcement.agent_fields(name));
        let by_purpose = enforcement.purposes.get(&purpose);
        // The narrowest first.
        let sections = [agent, by_purpose, Some(&enforcement.site)];
        let is_addressed = named || agent.is_some() || by_purpose.is_some() || described.is_some();
        let judged = purpose != Tool || is_addressed;
        let mode = narrowest_value(sections, |fields| fields.mode).unwrap_or_default();
        let unlisted = purpose == Other && !is_addressed;
        let unverified =
            narrowest_value(sections, |fields| Some(fields.unverified?.value)).unwrap_or_default();
        let unlicensed = narrowest_value(sections, |fields| Some(fields.unlicensed?.value));
        // Other crawlers never said that they honour Crawl-delay.
        let keeps_delay = honours_crawl_delay || named || agent.is_some();
        let disallowed = self.answer_index(403, sections, |fields| &fields.disallowed);
        CrawlerRules {
            binding,
            google_parsing: GoogleParsing::Unused,
            judged,
            named,
            binds,
            mode: if unlisted {
                mode.min(EnforcementMode::Observe)
            } else {
                mode
            },
            unlisted,
            disallowed,
            ambiguous: self.answer_index(403, sections, |fields| &fields.ambiguous),
            too_fast: self.answer_index(429, sections, |fields| &fields.too_fast),
            impostor: self.answer_index(403, sections, |fields| &fields.impostor),
            trapped: self.answer_index(403, sections, |fields| &fields.trapped),
            trapped_for: narrowest_value(sections, |fields| fields.trapped_for)
                .unwrap_or(DEFAULT_TRAPPED),
            // After a 403 a search engine would drop the page, after a 503 it comes back.
            awaiting_proof: match unverified {
                UnverifiedTreatment::Refuse => self.intern_answer(RefusalAnswer {
                    status: 503,
                    retry_after: Some(AWAITING_PROOF),
                    body: None,
                }),
                UnverifiedTreatment::AsClaimed | UnverifiedTreatment::Observe => disallowed,
            },
            unverified,
            exempt: names.iter().any(|name| enforcement.is_exempt(name)),
            crawl_delay: binding
                .group()
                .and_then(|group| self.google.document.groups.get(group)?.crawl_delay)
                .filter(|delay| keeps_delay && !delay.is_zero()),
            unlicensed: match unlicensed {
                Some(UnlicensedAnswer::Refuse(status)) if judged => Some(status),
                _ => None,
            },
            pausable: !matches!(purpose, Monitoring | Tool),
            trains: purpose == Training,
        }
    }

    /// The index of an answer whose fields come from the first section that has them. `status` is
    /// the default.
    fn answer_index(
        &mut self,
        status: u16,
        sections: [Option<&EnforcementFields>; 3],
        get: fn(&EnforcementFields) -> &Option<AnswerPolicy>,
    ) -> u16 {
        let answers = sections
            .into_iter()
            .flatten()
            .filter_map(|fields| get(fields).as_ref());
        self.intern_answer(RefusalAnswer {
            status: answers
                .clone()
                .find_map(|answer| answer.status)
                .unwrap_or(status),
            retry_after: answers
                .clone()
                .find_map(|answer| answer.retry_after)
                .map(|delay| saturating_u32(delay.as_secs())),
            body: answers
                .clone()
                .find_map(|answer| answer.body.as_deref())
                .map(Into::into),
        })
    }

    /// The index of an answer in `answers`, where it is added if it is new.
    fn intern_answer(&mut self, answer: RefusalAnswer) -> u16 {
        let index = self
            .answers
            .iter()
            .position(|present| *present == answer)
            .unwrap_or_else(|| {
                self.answers.push(answer);
                self.answers.len() - 1
            });
        u16::try_from(index).unwrap_or(0)
    }
}

/// The served robots.txt as Google's library reads it.
struct GoogleDocument<'a> {
    document: &'a RobotsDocument,
    /// The groups of each token, which is in lower case as the library cuts it, and of `*`.
    named: HashMap<Vec<u8>, Vec<usize>>,
    /// The rules that differ from RFC 9309.
    rules: Vec<GoogleRules>,
    /// The results so far, by the groups that Google finds and the group that RFC 9309 finds.
    known: Vec<((Vec<usize>, usize), GoogleParsing)>,
}

impl<'a> GoogleDocument<'a> {
    fn new(document: &'a RobotsDocument) -> GoogleDocument<'a> {
        let mut named: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
        for (index, group) in document.groups.iter().enumerate() {
            for agent in &group.agents {
                let name = match Dialect::Google.parse_agent(agent.as_bytes(), &[]) {
                    AgentName::Star => b"*",
                    AgentName::Token(token) => token,
                };
                let groups = named.entry(name.to_ascii_lowercase()).or_default();
                if groups.last() != Some(&index) {
                    groups.push(index);
                }
            }
        }
        GoogleDocument {
            document,
            named,
            rules: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Which rules Google's library reads for a crawler that `group` binds by RFC 9309. If it finds
    /// other groups, or reads a rule otherwise, its rules are added to `rules`.
    fn parse_as_google(
        &mut self,
        crawler: &Crawler,
        binds: RobotsObedience,
        group: usize,
    ) -> GoogleParsing {
        let found = (self.groups_for(crawler, binds), group);
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == found) {
            return *known;
        }
        let groups = &found.0;
        let is_same = *groups == [group]
            && !self.document.groups[group]
                .rules
                .iter()
                .any(differs_for_google);
        let reading = match u16::try_from(self.rules.len()) {
            Ok(place) if !is_same => {
                self.rules.push(GoogleRules::new(self.document, groups));
                GoogleParsing::OwnRules(place)
            }
            _ => GoogleParsing::SameRules,
        };
        self.known.push((found, reading));
        reading
    }

    /// The indexes of the groups that Google's library unites for a crawler: those of the first of
    /// its names that has any, else those for `*` if the crawler follows it.
    fn groups_for(&self, crawler: &Crawler, binds: RobotsObedience) -> Vec<usize> {
        let star = self.named.get(b"*".as_slice());
        crawler_names(crawler)
            .find_map(|name| self.named.get(name.to_ascii_lowercase().as_bytes()))
            .or(star.filter(|_| binds.follows_star()))
            .cloned()
            .unwrap_or_default()
    }
}

/// The value of a field in the first section that has it.
fn narrowest_value<T>(
    sections: [Option<&EnforcementFields>; 3],
    get: fn(&EnforcementFields) -> Option<T>,
) -> Option<T> {
    sections.into_iter().flatten().find_map(get)
}
