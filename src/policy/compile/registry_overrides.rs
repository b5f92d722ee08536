//! [`Nature`]: the facts about a crawler for one policy. The policy's `crawlers` come before the registry.
//! [`site_markers`] and [`networks`] collect the markers and networks of `crawlers`.

use crate::crawlers::{Binds, Claim, Crawler, CrawlerIndex, Purpose, Registry, SiteMarkers};
use crate::policy::model::{DescribedCrawler, Policy};
use crate::policy::site::Networks;

/// The facts about a crawler, by the registry or by the owner.
pub struct Nature<'a> {
    pub purpose: Purpose,
    pub binds: Binds,
    pub honours_crawl_delay: bool,
    /// The owner's record of it.
    pub described: Option<&'a DescribedCrawler>,
}

impl<'a> Nature<'a> {
    /// A crawler with a known purpose alone.
    pub fn unknown(purpose: Purpose) -> Nature<'a> {
        Nature { purpose, binds: Binds::Unknown, honours_crawl_delay: false, described: None }
    }

    /// A crawler of the registry. The owner's facts come before the registry's.
    pub fn of_known(policy: &'a Policy, crawler: &Crawler) -> Nature<'a> {
        let described = record(policy, crawler);
        Nature {
            purpose: described.and_then(|described| described.purpose).unwrap_or(crawler.purpose),
            binds: described.and_then(|described| described.binds).unwrap_or(crawler.binds),
            honours_crawl_delay: described
                .and_then(|described| described.crawl_delay)
                .or(crawler.crawl_delay)
                .unwrap_or(false),
            described,
        }
    }

    /// A crawler that only the policy knows, by its token.
    pub fn of_token(policy: &'a Policy, token: &str) -> Nature<'a> {
        let described = policy.described_crawler(token);
        Nature {
            purpose: described.and_then(|described| described.purpose).unwrap_or(Purpose::Other),
            binds: described.and_then(|described| described.binds).unwrap_or(Binds::Star),
            honours_crawl_delay: described.and_then(|described| described.crawl_delay).unwrap_or(false),
            described,
        }
    }
}

/// The owner's record of a crawler of the registry.
fn record<'a>(policy: &'a Policy, crawler: &Crawler) -> Option<&'a DescribedCrawler> {
    policy.crawlers.iter().find(|described| crawler.is_called(&described.token.value))
}

/// The owner's crawlers that the registry does not know.
pub fn added<'a>(policy: &'a Policy, registry: &'a Registry) -> impl Iterator<Item = &'a DescribedCrawler> {
    policy.crawlers.iter().filter(|described| registry.find(&described.token.value).is_none())
}

/// All that the policy adds to identification: tokens by themselves, and the markers of `crawlers:`.
pub fn site_markers(policy: &Policy, registry: &Registry, tokens: Vec<String>) -> SiteMarkers {
    let mut markers: Vec<(String, Claim)> = Vec::new();
    for (index, token) in (0_u16..).zip(&tokens) {
        let said = policy.described_crawler(token).map(|described| &described.user_agent);
        match said.filter(|said| !said.is_empty()) {
            Some(said) => markers.extend(said.iter().map(|marker| (marker.value.clone(), Claim::Token(index)))),
            None => markers.push((token.clone(), Claim::Token(index))),
        }
    }
    for (index, crawler) in (0_u16..).zip(registry.crawlers()) {
        if let Some(described) = record(policy, crawler) {
            let said = described.user_agent.iter().map(|marker| marker.value.clone());
            markers.extend(said.map(|marker| (marker, Claim::Known(CrawlerIndex(index)))));
        }
    }
    SiteMarkers::with_markers(tokens, markers)
}

/// The addresses that the policy lists for crawlers.
pub fn networks(policy: &Policy, registry: &Registry, tokens: &SiteMarkers) -> Networks {
    let claim = |name: &str| registry.find(name).map(Claim::Known).or_else(|| tokens.named(name));
    let listed = policy.crawlers.iter().filter(|described| !described.networks.is_empty());
    Networks::new(
        listed.filter_map(|described| Some((claim(&described.token.value)?, described.networks.clone()))).collect(),
    )
}
