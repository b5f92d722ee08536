//! What a policy's `crawlers:` says of a crawler, over what the registry knows.

use crate::crawlers::{Binds, Claim, Crawler, CrawlerIndex, Purpose, Registry, SiteMarkers};
use crate::policy::model::{DescribedCrawler, Policy};
use crate::policy::site::Networks;

/// The registry's crawlers as the owner corrected them.
#[derive(Clone, Copy)]
pub struct RegistryOverrides<'a> {
    policy: &'a Policy,
}

impl<'a> RegistryOverrides<'a> {
    pub fn new(policy: &'a Policy) -> RegistryOverrides<'a> {
        RegistryOverrides { policy }
    }

    /// The owner's record of a crawler of the registry.
    pub fn record(self, crawler: &Crawler) -> Option<&'a DescribedCrawler> {
        self.policy.crawlers.iter().find(|described| is(crawler, &described.token.value))
    }

    pub fn purpose(self, crawler: &Crawler) -> Purpose {
        self.record(crawler).and_then(|described| described.purpose).unwrap_or(crawler.purpose)
    }

    pub fn binds(self, crawler: &Crawler) -> Binds {
        self.record(crawler).and_then(|described| described.binds).unwrap_or(crawler.binds)
    }

    pub fn honours_crawl_delay(self, crawler: &Crawler) -> bool {
        self.record(crawler).and_then(|described| described.crawl_delay).or(crawler.crawl_delay).unwrap_or(false)
    }

    /// The owner's record of a token that the registry does not know.
    pub fn token(self, token: &str) -> Option<&'a DescribedCrawler> {
        self.policy.crawlers.iter().find(|described| described.token.value.eq_ignore_ascii_case(token))
    }

    /// The owner's crawlers that the registry does not know.
    pub fn added(self, registry: &'a Registry) -> impl Iterator<Item = &'a DescribedCrawler> {
        self.policy
            .crawlers
            .iter()
            .filter(|described| !registry.crawlers().iter().any(|crawler| is(crawler, &described.token.value)))
    }
}

/// Its first token, id or name: the token that it shares with others is not its described.
fn is(crawler: &Crawler, name: &str) -> bool {
    let token = crawler.tokens.first().is_some_and(|token| token.eq_ignore_ascii_case(name));
    token || crawler.id.eq_ignore_ascii_case(name) || crawler.name.eq_ignore_ascii_case(name)
}

/// All that the policy adds to identification: tokens by themselves, and the markers of `crawlers:`.
pub fn site_markers(policy: &Policy, registry: &Registry, tokens: Vec<String>) -> SiteMarkers {
    let mut markers: Vec<(String, Claim)> = Vec::new();
    for (index, token) in (0_u16..).zip(&tokens) {
        match RegistryOverrides::new(policy)
            .token(token)
            .map(|described| &described.user_agent)
            .filter(|said| !said.is_empty())
        {
            Some(said) => markers.extend(said.iter().map(|marker| (marker.value.clone(), Claim::Token(index)))),
            None => markers.push((token.clone(), Claim::Token(index))),
        }
    }
    for (index, crawler) in (0_u16..).zip(registry.crawlers()) {
        if let Some(described) = RegistryOverrides::new(policy).record(crawler) {
            let said = described.user_agent.iter().map(|marker| marker.value.clone());
            markers.extend(said.map(|marker| (marker, Claim::Known(CrawlerIndex(index)))));
        }
    }
    SiteMarkers::with_markers(tokens, markers)
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
    let listed = policy.crawlers.iter().filter(|described| !described.networks.is_empty());
    Networks::new(
        listed.filter_map(|described| Some((claim(&described.token.value)?, described.networks.clone()))).collect(),
    )
}
