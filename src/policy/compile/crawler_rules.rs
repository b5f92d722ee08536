//! [`CrawlerRulesTable::new`] computes how a site treats each crawler: its group of robots.txt, its enforcement, and
//! the answers to refused requests. It does so once, when a policy is compiled; a request looks the result up.
//! [`unlisted_tokens`] and [`add_origin_tokens`] collect the crawlers that crawlgate does not know by itself, from the
//! policy and from the origin's robots.txt.

use super::registry_overrides::Nature;
use crate::crawlers::{Crawler, Purpose, Registry, SiteMarkers};
use crate::policy::decode::is_token;
use crate::policy::model::{AnswerPolicy, EnforcementFields, Mode, Policy, Unlicensed, Unverified};
use crate::policy::site::{Binding, CrawlerRules, CrawlerRulesTable, RefusalAnswer, binding, names, unlisted};
use crate::robots::{Document, Matcher};
use crate::yaml::Located;
use std::collections::HashSet;
use std::time::Duration;

/// How long a client that requested a trap stays marked, unless the policy says otherwise.
const DEFAULT_TRAPPED: Duration = Duration::from_secs(3_600);
/// Retry-After in seconds while the proof of a claim may still come.
const AWAITING_PROOF: u32 = 60;

/// Tokens that the policy names and the registry does not know. Identification searches for them, too.
pub fn unlisted_tokens(policy: &Policy, registry: &Registry) -> Vec<String> {
    let groups = policy.robots.groups.iter().flat_map(|group| &group.agents);
    let described = policy.crawlers.iter().map(|described| &described.token);
    let agents = groups.chain(policy.enforcement.named()).chain(described);
    unlisted(agents.map(|agent| agent.value.as_str()), registry)
}

/// The most tokens that the origin's file may add. The shortest has three letters.
const MAX_ORIGIN_TOKENS: usize = 1_000;
const MIN_ORIGIN_TOKEN: usize = 3;

/// Adds the tokens of the origin's file that are not known yet. That file is not checked: a token that has characters
/// that tokens do not have names no crawler.
pub fn add_origin_tokens(tokens: &mut Vec<String>, origin: &[String], registry: &Registry) {
    let mut known: HashSet<String> = tokens.iter().map(|token| token.to_ascii_lowercase()).collect();
    known.extend(registry.crawlers().iter().flat_map(names).map(str::to_ascii_lowercase));
    let names_a_bot = |token: &&String| token.len() >= MIN_ORIGIN_TOKEN && is_token(token);
    let new = origin.iter().filter(|token| known.insert(token.to_ascii_lowercase())).filter(names_a_bot);
    tokens.extend(new.take(MAX_ORIGIN_TOKENS).cloned());
}

impl CrawlerRulesTable {
    /// The rules of all claims, and the answers that they point at.
    pub fn new(
        policy: &Policy,
        registry: &Registry,
        document: &Document,
        matcher: &Matcher,
        tokens: &SiteMarkers,
    ) -> (CrawlerRulesTable, Vec<RefusalAnswer>) {
        let mut builder = RulesBuilder { policy, document, matcher, answers: Vec::new() };
        let known = registry.crawlers().iter().map(|crawler| builder.known(crawler)).collect();
        let of_token =
            |token: &String| builder.crawler_rules(std::iter::once(token.as_str()), &Nature::of_token(policy, token));
        let tokens = tokens.tokens().iter().map(of_token).collect();
        let mut unnamed = |purpose| builder.crawler_rules(std::iter::empty(), &Nature::unknown(purpose));
        let (other, tool) = (unnamed(Purpose::Other), unnamed(Purpose::Tool));
        let nobody = CrawlerRules {
            judged: false,
            unlisted: false,
            pausable: false,
            unlicensed: None,
            binding: Binding::NoRules,
            crawl_delay: None,
            ..other
        };
        (CrawlerRulesTable { known, tokens, other, tool, nobody }, builder.answers)
    }
}

struct RulesBuilder<'a> {
    policy: &'a Policy,
    document: &'a Document,
    matcher: &'a Matcher,
    answers: Vec<RefusalAnswer>,
}

impl RulesBuilder<'_> {
    fn known(&mut self, crawler: &Crawler) -> CrawlerRules {
        let nature = Nature::of_known(self.policy, crawler);
        let rules = self.crawler_rules(names(crawler), &nature);
        // A policy token (Google-Extended) is published for others to read: no request carries it, so none is refused.
        let seen =
            !crawler.markers.is_empty() || nature.described.is_some_and(|described| !described.user_agent.is_empty());
        if seen { rules } else { CrawlerRules { mode: Mode::Off, ..rules } }
    }

    fn crawler_rules<'n>(&mut self, names: impl Iterator<Item = &'n str>, nature: &Nature<'_>) -> CrawlerRules {
        let &Nature { purpose, binds, honours_crawl_delay, described } = nature;
        let names: Vec<&str> = names.collect();
        let (binding, named) = binding(self.matcher, names.iter().copied(), binds);
        let enforcement = &self.policy.enforcement;
        let of_name = |name: &&str| enforcement.agents.iter().find(|(agent, _)| agent.value.eq_ignore_ascii_case(name));
        let agent = names.iter().find_map(of_name).map(|(_, fields)| fields);
        let by_purpose = enforcement.purposes.get(&purpose);
        // The sections that speak of the crawler, the narrowest first.
        let said = [agent, by_purpose, Some(&enforcement.site)];
        // Tools and unlisted bots are held to the rules only when the owner means them.
        let meant = named || agent.is_some() || by_purpose.is_some() || described.is_some();
        let judged = purpose != Purpose::Tool || meant;
        let mode = first(said, |fields| fields.mode).unwrap_or_default();
        let unlisted = purpose == Purpose::Other && !meant;
        let unverified = first(said, |fields| fields.unverified).map(|said| said.value).unwrap_or_default();
        // A crawler that never said that it honours Crawl-delay is held to it only when the owner means it.
        let is_held = honours_crawl_delay || named || agent.is_some();
        let group = binding.group().and_then(|group| self.document.groups.get(usize::from(group)));
        let disallowed = self.answer(403, said, |fields| &fields.disallowed);
        CrawlerRules {
            binding,
            judged,
            named,
            binds,
            mode: if unlisted { mode.min(Mode::Observe) } else { mode },
            unlisted,
            disallowed,
            ambiguous: self.answer(403, said, |fields| &fields.ambiguous),
            too_fast: self.answer(429, said, |fields| &fields.too_fast),
            impostor: self.answer(403, said, |fields| &fields.impostor),
            trapped: self.answer(403, said, |fields| &fields.trapped),
            trapped_for: first(said, |fields| fields.trapped_for).unwrap_or(DEFAULT_TRAPPED),
            // The answer while a proof may still come. A 403 would let a search engine drop the page, a 503 does not.
            awaiting_proof: match unverified {
                Unverified::Refuse => {
                    self.place(RefusalAnswer { status: 503, retry_after: Some(AWAITING_PROOF), body: None })
                }
                Unverified::AsClaimed | Unverified::Observe => disallowed,
            },
            unverified,
            exempt: names
                .iter()
                .any(|name| enforcement.exempt.iter().any(|agent| agent.value.eq_ignore_ascii_case(name))),
            crawl_delay: group.and_then(|group| group.crawl_delay).filter(|delay| is_held && !delay.is_zero()),
            // People and unnamed tools are never asked for a licence.
            unlicensed: match first(said, |fields| fields.unlicensed) {
                Some(Located { value: Unlicensed::Refuse(status), .. }) if judged => Some(status),
                _ => None,
            },
            pausable: !matches!(purpose, Purpose::Monitoring | Purpose::Tool),
        }
    }

    /// One answer. Each field comes from the first section of `said` that has it, and `status` is the default.
    fn answer(
        &mut self,
        status: u16,
        said: [Option<&EnforcementFields>; 3],
        get: fn(&EnforcementFields) -> &Option<AnswerPolicy>,
    ) -> u16 {
        let said = || said.into_iter().flatten().filter_map(|fields| get(fields).as_ref());
        let retry_after = said().find_map(|said| said.retry_after);
        self.place(RefusalAnswer {
            status: said().find_map(|said| said.status).unwrap_or(status),
            retry_after: retry_after.map(|delay| u32::try_from(delay.as_secs()).unwrap_or(u32::MAX)),
            body: said().find_map(|said| said.body.as_deref()).map(Into::into),
        })
    }

    fn place(&mut self, answer: RefusalAnswer) -> u16 {
        let index = self.answers.iter().position(|present| *present == answer).unwrap_or_else(|| {
            self.answers.push(answer);
            self.answers.len() - 1
        });
        u16::try_from(index).unwrap_or(0)
    }
}

/// A field of the first section that has it.
fn first<T>(said: [Option<&EnforcementFields>; 3], get: fn(&EnforcementFields) -> Option<T>) -> Option<T> {
    said.into_iter().flatten().find_map(get)
}
