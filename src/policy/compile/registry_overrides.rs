//! Combines the registry (crawlgate's table of known crawlers) with the section `crawlers` of a
//! policy, in which an owner adds or corrects crawlers for one site. [`CrawlerFacts`] is the
//! combined data about one crawler; the policy takes precedence over the registry. [`site_markers`]
//! collects what the policy adds for recognising crawlers by user agent. [`crawler_networks`]
//! collects the IP networks that the policy lists for crawlers.

use crate::crawlers::{
    Claim, Crawler, CrawlerIndex, Purpose, Registry, RobotsObedience, SiteMarkers,
};
use crate::policy::model::{CrawlerDescription, Policy};
use crate::policy::site::CrawlerNetworks;

/// The facts about a crawler, by the policy or by the registry.
pub struct CrawlerFacts<'a> {
    pub purpose: Purpose,
    pub binds: RobotsObedience,
    pub honours_crawl_delay: bool,
    /// The policy's entry about it.
    pub described: Option<&'a CrawlerDescription>,
}

impl<'a> CrawlerFacts<'a> {
    /// The fields of `described` take precedence over the other arguments.
    fn new(
        described: Option<&'a CrawlerDescription>,
        purpose: Purpose,
        binds: RobotsObedience,
        delay: Option<bool>,
    ) -> CrawlerFacts<'a> {
        CrawlerFacts {
            purpose: described
                .and_then(|described| described.purpose)
                .unwrap_or(purpose),
            binds: described
                .and_then(|described| described.binds)
                .unwrap_or(binds),
            honours_crawl_delay: described
                .and_then(|described| described.crawl_delay)
                .or(delay)
                .unwrap_or(false),
            described,
        }
    }

    /// A crawler of which only the purpose is known.
    pub fn unknown(purpose: Purpose) -> CrawlerFacts<'a> {
        CrawlerFacts::new(None, purpose, RobotsObedience::Unknown, None)
    }

    /// A crawler of the registry, with the policy's corrections.
    pub fn from_registry(policy: &'a Policy, crawler: &Crawler) -> CrawlerFacts<'a> {
        CrawlerFacts::new(
            description_of(policy, crawler),
            crawler.purpose,
            crawler.binds,
            crawler.crawl_delay,
        )
    }

    /// A crawler that only the policy or the origin's file names.
    pub fn from_token(policy: &'a Policy, token: &str) -> CrawlerFacts<'a> {
        CrawlerFacts::new(
            policy.crawler_description(token),
            Purpose::Other,
            RobotsObedience::Star,
            None,
        )
    }
}

/// The policy's entry about a crawler of the registry.
fn description_of<'a>(policy: &'a Policy, crawler: &Crawler) -> Option<&'a CrawlerDescription> {
    policy
        .crawlers
        .iter()
        .find(|described| crawler.has_name(&described.token))
}

/// The policy's crawlers that the registry does not know.
pub fn unregistered_crawlers<'a>(
    policy: &'a Policy,
    registry: &'a Registry,
) -> impl Iterator<Item = &'a CrawlerDescription> {
    policy
        .crawlers
        .iter()
        .filter(|described| registry.find(&described.token).is_none())
}

/// What the site adds to identification: `tokens`, which the registry does not have, and the
/// markers (`user_agent`) that the policy lists for them and for crawlers of the registry.
pub fn site_markers(policy: &Policy, registry: &Registry, tokens: Vec<String>) -> SiteMarkers {
    let mut markers: Vec<(String, Claim)> = Vec::new();
    let own = (0_u16..)
        .zip(&tokens)
        .map(|(index, token)| (policy.crawler_description(token), Claim::PolicyToken(index)));
    let known = (0_u16..).zip(registry.crawlers()).map(|(index, crawler)| {
        (
            description_of(policy, crawler),
            Claim::Known(CrawlerIndex(index)),
        )
    });
    for (description, claim) in own.chain(known) {
        let listed = description
            .iter()
            .flat_map(|described| &described.user_agent);
        markers.extend(listed.map(|marker| (marker.value.clone(), claim)));
    }
    SiteMarkers::with_markers(tokens, markers)
}

/// The networks that the policy lists for crawlers.
pub fn crawler_networks(
    policy: &Policy,
    registry: &Registry,
    tokens: &SiteMarkers,
) -> CrawlerNetworks {
    let mut listed = Vec::new();
    for described in &policy.crawlers {
        let name = &described.token.value;
        if let Some(claim) = registry
            .find(name)
            .map(Claim::Known)
            .or_else(|| tokens.token_claim(name))
            && !described.networks.is_empty()
        {
            listed.push((claim, described.networks.clone()));
        }
    }
    CrawlerNetworks(listed)
}
