//! What a policy's `crawlers:` says of a crawler, over what the registry knows.

use crate::crawlers::{Binds, Claim, Crawler, CrawlerIndex, Purpose, Registry, SiteMarkers};
use crate::policy::model::{OwnCrawler, Policy};
use crate::policy::site::Networks;

/// The registry's crawlers as the owner corrected them.
#[derive(Clone, Copy)]
pub struct Corrected<'a> {
    policy: &'a Policy,
}

impl<'a> Corrected<'a> {
    pub fn new(policy: &'a Policy) -> Corrected<'a> {
        Corrected { policy }
    }

    /// The owner's record of a crawler of the registry.
    pub fn record(self, crawler: &Crawler) -> Option<&'a OwnCrawler> {
        self.policy.crawlers.iter().find(|own| is(crawler, &own.token.value))
    }

    pub fn purpose(self, crawler: &Crawler) -> Purpose {
        self.record(crawler).and_then(|own| own.purpose).unwrap_or(crawler.purpose)
    }

    pub fn binds(self, crawler: &Crawler) -> Binds {
        self.record(crawler).and_then(|own| own.binds).unwrap_or(crawler.binds)
    }

    pub fn honours_crawl_delay(self, crawler: &Crawler) -> bool {
        self.record(crawler).and_then(|own| own.crawl_delay).or(crawler.crawl_delay).unwrap_or(false)
    }

    /// The owner's record of a token that the registry does not know.
    pub fn token(self, token: &str) -> Option<&'a OwnCrawler> {
        self.policy.crawlers.iter().find(|own| own.token.value.eq_ignore_ascii_case(token))
    }

    /// The owner's crawlers that the registry does not know.
    pub fn added(self, registry: &'a Registry) -> impl Iterator<Item = &'a OwnCrawler> {
        self.policy
            .crawlers
            .iter()
            .filter(|own| !registry.crawlers().iter().any(|crawler| is(crawler, &own.token.value)))
    }
}

/// Its first token, id or name: the token that it shares with others is not its own.
fn is(crawler: &Crawler, name: &str) -> bool {
    let token = crawler.tokens.first().is_some_and(|token| token.eq_ignore_ascii_case(name));
    token || crawler.id.eq_ignore_ascii_case(name) || crawler.name.eq_ignore_ascii_case(name)
}

/// Everybody that the policy adds to identification: tokens by themselves, and the marks of `crawlers:`.
pub fn marks(policy: &Policy, registry: &Registry, tokens: Vec<String>) -> SiteMarkers {
    let mut marks: Vec<(String, Claim)> = Vec::new();
    for (index, token) in (0_u16..).zip(&tokens) {
        match Corrected::new(policy).token(token).map(|own| &own.user_agent).filter(|said| !said.is_empty()) {
            Some(said) => marks.extend(said.iter().map(|mark| (mark.value.clone(), Claim::Token(index)))),
            None => marks.push((token.clone(), Claim::Token(index))),
        }
    }
    for (index, crawler) in (0_u16..).zip(registry.crawlers()) {
        if let Some(own) = Corrected::new(policy).record(crawler) {
            let said = own.user_agent.iter().map(|mark| mark.value.clone());
            marks.extend(said.map(|mark| (mark, Claim::Known(CrawlerIndex(index)))));
        }
    }
    SiteMarkers::with_markers(tokens, marks)
}

/// The addresses that the policy lists for crawlers.
pub fn networks(policy: &Policy, registry: &Registry, tokens: &SiteMarkers) -> Networks {
    let claim = |name: &str| {
        let known = registry.crawlers().iter().position(|crawler| is(crawler, name));
        let token = || tokens.tokens().iter().position(|token| token.eq_ignore_ascii_case(name));
        match known {
            Some(index) => u16::try_from(index).ok().map(|index| Claim::Known(CrawlerIndex(index))),
            None => token().and_then(|index| u16::try_from(index).ok()).map(Claim::Token),
        }
    };
    let listed = policy.crawlers.iter().filter(|own| !own.networks.is_empty());
    Networks::new(listed.filter_map(|own| Some((claim(&own.token.value)?, own.networks.clone()))).collect())
}
