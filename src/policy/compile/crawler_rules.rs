//! [`compile`] computes how a site treats each crawler: its group of robots.txt, its enforcement,
//! and the answers to refused requests. It does so once, when a policy is compiled; a request looks
//! the result up. [`unlisted_tokens`] and [`add_origin_tokens`] collect the crawlers that crawlgate
//! does not know by itself, from the policy and from the origin's robots.txt.

use super::registry_overrides::Nature;
use crate::crawlers::{Binds, Crawler, Purpose, Registry, SiteMarkers};
use crate::policy::decode::is_token;
use crate::policy::model::{AnswerPolicy, EnforcementFields, Mode, Policy, Unlicensed, Unverified};
use crate::policy::site::{
    Binding, CrawlerRules, CrawlerRulesTable, RefusalAnswer, SecondReading, binding, names,
    unlisted,
};
use crate::robots::{Agent, Dialect, Document, GoogleRules, Matcher, is_read_otherwise};

use std::collections::HashSet;
use std::time::Duration;

/// How long a client that requested a trap stays marked, unless the policy says otherwise.
const DEFAULT_TRAPPED: Duration = Duration::from_secs(3_600);
/// Retry-After in seconds while the proof of a claim may still come.
const AWAITING_PROOF: u32 = 60;

/// Tokens that the policy names (in groups, enforcement or `crawlers`) and the registry does not
/// know, each once. Identification searches user agents for them, too.
pub fn unlisted_tokens(policy: &Policy, registry: &Registry) -> Vec<String> {
    let groups = policy.robots.groups.iter().flat_map(|group| &group.agents);
    let described = policy.crawlers.iter().map(|described| &described.token);
    let agents = groups.chain(policy.enforcement.named()).chain(described);
    unlisted(agents.map(|agent| agent.as_str()), registry)
}

/// The most tokens that the origin's file may add. The shortest has three letters.
const MAX_ORIGIN_TOKENS: usize = 1_000;
const MIN_ORIGIN_TOKEN: usize = 3;

/// Adds the tokens of the origin's file that neither `tokens` nor the registry has, without regard
/// to case, up to 1,000. That file is not checked: a token of fewer than three characters, or with
/// characters that tokens do not have, names no crawler and is left out.
pub fn add_origin_tokens(tokens: &mut Vec<String>, origin: &[String], registry: &Registry) {
    let mut known: HashSet<String> = tokens
        .iter()
        .map(|token| token.to_ascii_lowercase())
        .collect();
    known.extend(
        registry
            .crawlers()
            .iter()
            .flat_map(names)
            .map(str::to_ascii_lowercase),
    );
    let new = origin
        .iter()
        .filter(|token| known.insert(token.to_ascii_lowercase()))
        .filter(|token| token.len() >= MIN_ORIGIN_TOKEN && is_token(token));
    tokens.extend(new.take(MAX_ORIGIN_TOKENS).cloned());
}

/// The rules of all claims, and what they point at.
pub struct Compiled {
    pub crawler_rules: CrawlerRulesTable,
    pub answers: Vec<RefusalAnswer>,
    pub google_rules: Vec<GoogleRules>,
}

/// Computes the rules of every claim: of each crawler of the registry, of each of the site's
/// tokens, of other bots, of tools, and of clients that claim nothing (`nobody`), who are bound by
/// nothing.
pub fn compile(
    policy: &Policy,
    registry: &Registry,
    document: &Document,
    matcher: &Matcher,
    tokens: &SiteMarkers,
) -> Compiled {
    let google = GoogleReading::new(document);
    let mut builder = RulesBuilder {
        policy,
        document,
        matcher,
        google,
        answers: Vec::new(),
    };
    let crawlers = registry.crawlers().iter();
    let known = crawlers.map(|crawler| builder.known(crawler)).collect();
    let tokens = tokens.tokens().iter();
    let tokens = tokens
        .map(|token| {
            let nature = Nature::of_token(policy, token);
            builder.crawler_rules(std::iter::once(token.as_str()), &nature)
        })
        .collect();
    let other = builder.crawler_rules(std::iter::empty(), &Nature::unknown(Purpose::Other));
    let tool = builder.crawler_rules(std::iter::empty(), &Nature::unknown(Purpose::Tool));
    let nobody = CrawlerRules {
        judged: false,
        unlisted: false,
        pausable: false,
        unlicensed: None,
        binding: Binding::NoRules,
        crawl_delay: None,
        ..other
    };
    let crawler_rules = CrawlerRulesTable {
        known,
        tokens,
        other,
        tool,
        nobody,
    };
    Compiled {
        crawler_rules,
        answers: builder.answers,
        google_rules: builder.google.rules,
    }
}

struct RulesBuilder<'a> {
    policy: &'a Policy,
    document: &'a Document,
    matcher: &'a Matcher,
    google: GoogleReading<'a>,
    answers: Vec<RefusalAnswer>,
}

impl RulesBuilder<'_> {
    /// The rules of a crawler of the registry. A crawler that reads robots.txt with Google's
    /// library gets its second reading. The mode is off for a crawler without markers: no request
    /// names it.
    fn known(&mut self, crawler: &Crawler) -> CrawlerRules {
        let nature = Nature::of_known(self.policy, crawler);
        let mut rules = self.crawler_rules(names(crawler), &nature);
        if let (Dialect::Google, Some(group)) = (crawler.reading, rules.binding.group()) {
            rules.second_reading =
                self.google
                    .second_reading(crawler, rules.binds, usize::from(group));
        }
        // A policy token (Google-Extended) is published for others to read: no request carries it,
        // so none is refused.
        let seen = !crawler.markers.is_empty()
            || nature
                .described
                .is_some_and(|described| !described.user_agent.is_empty());
        if seen {
            rules
        } else {
            CrawlerRules {
                mode: Mode::Off,
                ..rules
            }
        }
    }

    /// The rules of a crawler with these names; without names, of any crawler of this nature. Each
    /// field of enforcement comes from the section of the crawler, else of its purpose, else of the
    /// site. A tool is not judged, and a bot of purpose `Other` is at most observed, unless the
    /// owner means it: a group, `crawlers`, or enforcement for the crawler or its purpose.
    fn crawler_rules<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
        nature: &Nature<'_>,
    ) -> CrawlerRules {
        let &Nature {
            purpose,
            binds,
            honours_crawl_delay,
            described,
        } = nature;
        let names: Vec<&str> = names.collect();
        let (binding, named) = binding(self.matcher, names.iter().copied(), binds);
        let enforcement = &self.policy.enforcement;
        let agent = names.iter().find_map(|name| enforcement.of_agent(name));
        let by_purpose = enforcement.purposes.get(&purpose);
        // The sections that speak of the crawler, the narrowest first.
        let said = [agent, by_purpose, Some(&enforcement.site)];
        // Tools and unlisted bots are held to the rules only when the owner means them.
        let meant = named || agent.is_some() || by_purpose.is_some() || described.is_some();
        let judged = purpose != Purpose::Tool || meant;
        let mode = first(said, |fields| fields.mode).unwrap_or_default();
        let unlisted = purpose == Purpose::Other && !meant;
        let unverified = first(said, |fields| fields.unverified);
        let unverified = unverified.map(|said| said.value).unwrap_or_default();
        let unlicensed = first(said, |fields| fields.unlicensed).map(|said| said.value);
        // A crawler that never said that it honours Crawl-delay is held to it only when the owner
        // means it.
        let is_held = honours_crawl_delay || named || agent.is_some();
        let group = binding
            .group()
            .and_then(|group| self.document.groups.get(usize::from(group)));
        let disallowed = self.answer(403, said, |fields| &fields.disallowed);
        CrawlerRules {
            binding,
            second_reading: SecondReading::None,
            judged,
            named,
            binds,
            mode: if unlisted {
                mode.min(Mode::Observe)
            } else {
                mode
            },
            unlisted,
            disallowed,
            ambiguous: self.answer(403, said, |fields| &fields.ambiguous),
            too_fast: self.answer(429, said, |fields| &fields.too_fast),
            impostor: self.answer(403, said, |fields| &fields.impostor),
            trapped: self.answer(403, said, |fields| &fields.trapped),
            trapped_for: first(said, |fields| fields.trapped_for).unwrap_or(DEFAULT_TRAPPED),
            // The answer while a proof may still come. A 403 would let a search engine drop the
            // page, a 503 does not.
            awaiting_proof: match unverified {
                Unverified::Refuse => self.place(RefusalAnswer {
                    status: 503,
                    retry_after: Some(AWAITING_PROOF),
                    body: None,
                }),
                Unverified::AsClaimed | Unverified::Observe => disallowed,
            },
            unverified,
            exempt: names.iter().any(|name| enforcement.is_exempt(name)),
            crawl_delay: group
                .and_then(|group| group.crawl_delay)
                .filter(|delay| is_held && !delay.is_zero()),
            // People and unnamed tools are never asked for a licence.
            unlicensed: match unlicensed {
                Some(Unlicensed::Refuse(status)) if judged => Some(status),
                _ => None,
            },
            pausable: !matches!(purpose, Purpose::Monitoring | Purpose::Tool),
        }
    }

    /// The index of one answer in `answers`, where it is added unless it is there. Each field comes
    /// from the first section of `said` that has it. `status` is the default; without a body the
    /// answer has crawlgate's own.
    fn answer(
        &mut self,
        status: u16,
        said: [Option<&EnforcementFields>; 3],
        get: fn(&EnforcementFields) -> &Option<AnswerPolicy>,
    ) -> u16 {
        let said = said.map(|fields| fields.and_then(|fields| get(fields).as_ref()));
        let said = said.iter().flatten();
        let retry_after = said.clone().find_map(|said| said.retry_after);
        let body = said.clone().find_map(|said| said.body.as_deref());
        self.place(RefusalAnswer {
            status: said.clone().find_map(|said| said.status).unwrap_or(status),
            retry_after: retry_after
                .map(|delay| u32::try_from(delay.as_secs()).unwrap_or(u32::MAX)),
            body: body.map(Into::into),
        })
    }

    /// The index of an answer in `answers`. An answer that is not there yet is added. An index that
    /// does not fit into 16 bits becomes 0.
    fn place(&mut self, answer: RefusalAnswer) -> u16 {
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

/// The document as Google's library reads it: which groups it finds for a crawler, and their rules
/// where they differ.
struct GoogleReading<'a> {
    document: &'a Document,
    /// The tokens as the library cuts them, with their groups.
    tokens: Vec<(Agent<'a>, usize)>,
    rules: Vec<GoogleRules>,
    /// The reading by the groups that Google finds and the group that RFC 9309 finds: most crawlers
    /// have the same.
    known: Vec<((Vec<usize>, usize), SecondReading)>,
}

impl<'a> GoogleReading<'a> {
    /// Cuts every agent of the document as Google's library does; no rules are compiled yet.
    fn new(document: &'a Document) -> GoogleReading<'a> {
        let groups = document.groups.iter().enumerate();
        let tokens = groups.flat_map(|(index, group)| {
            group
                .agents
                .iter()
                .map(move |agent| (Dialect::Google.agent(agent.as_bytes(), &[]), index))
        });
        GoogleReading {
            document,
            tokens: tokens.collect(),
            rules: Vec::new(),
            known: Vec::new(),
        }
    }

    /// How Google's library reads the rules of a crawler that `group` binds by RFC 9309. Where it
    /// finds other groups, or reads a rule otherwise, its rules are added to `rules`, and the
    /// result has their index. Otherwise, and beyond 65,536 such sets, it is `SameRules`. Crawlers
    /// with the same groups share a result.
    fn second_reading(&mut self, crawler: &Crawler, binds: Binds, group: usize) -> SecondReading {
        let found = (self.groups_for(crawler, binds), group);
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == found) {
            return *known;
        }
        let groups = &found.0;
        let is_same = *groups == [group]
            && !self.document.groups[group]
                .rules
                .iter()
                .any(is_read_otherwise);
        let reading = match u16::try_from(self.rules.len()) {
            Ok(place) if !is_same => {
                self.rules.push(GoogleRules::new(self.document, groups));
                SecondReading::OwnRules(place)
            }
            _ => SecondReading::SameRules,
        };
        self.known.push((found, reading));
        reading
    }

    /// Indexes of all groups that Google's library unites for a crawler: those for the first of its
    /// names that any group has, else those for `*` if `binds` lets the crawler follow `*`. May be
    /// empty.
    fn groups_for(&self, crawler: &Crawler, binds: Binds) -> Vec<usize> {
        let mut groups: Vec<usize> = names(crawler)
            .map(|name| {
                self.groups_of(
                    |agent| matches!(agent, Agent::Token(token) if token.eq_ignore_ascii_case(name.as_bytes())),
                )
            })
            .find(|groups| !groups.is_empty())
            .unwrap_or_default();
        if groups.is_empty() && binds.follow_star() {
            groups = self.groups_of(|agent| agent == Agent::Star);
        }
        groups
    }

    /// Indexes of the groups with an agent that `is_meant` accepts, ascending, each once.
    fn groups_of(&self, is_meant: impl Fn(Agent<'_>) -> bool) -> Vec<usize> {
        let mut groups: Vec<usize> = self
            .tokens
            .iter()
            .filter(|(agent, _)| is_meant(*agent))
            .map(|(_, group)| *group)
            .collect();
        groups.dedup();
        groups
    }
}

/// A field of the first section that has it.
fn first<T>(
    said: [Option<&EnforcementFields>; 3],
    get: fn(&EnforcementFields) -> Option<T>,
) -> Option<T> {
    said.into_iter().flatten().find_map(get)
}
