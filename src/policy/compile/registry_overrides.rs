//! What the `crawlers` section of a policy adds to the registry (crawlgate's table of known
//! crawlers), for one site. [`Nature`] holds facts about a crawler, such as its purpose (for
//! example training); the policy takes precedence over the registry. [`site_markers`] collects the
//! substrings by which user agents are recognised, and [`networks`] the networks from which the
//! crawlers come.

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
    /// The owner's facts come before what is known otherwise.
    fn new(
        described: Option<&'a DescribedCrawler>,
        purpose: Purpose,
        binds: Binds,
        delay: Option<bool>,
    ) -> Nature<'a> {
        let delay = described
            .and_then(|described| described.crawl_delay)
            .or(delay);
        Nature {
            purpose: described
                .and_then(|described| described.purpose)
                .unwrap_or(purpose),
            binds: described
                .and_then(|described| described.binds)
                .unwrap_or(binds),
            honours_crawl_delay: delay.unwrap_or(false),
            described,
        }
    }

    /// A crawler with a known purpose alone.
    pub fn unknown(purpose: Purpose) -> Nature<'a> {
        Nature::new(None, purpose, Binds::Unknown, None)
    }

    /// Of a crawler of the registry.
    pub fn of_known(policy: &'a Policy, crawler: &Crawler) -> Nature<'a> {
        Nature::new(
            record(policy, crawler),
            crawler.purpose,
            crawler.binds,
            crawler.crawl_delay,
        )
    }

    /// A crawler that only the policy knows, by its token.
    pub fn of_token(policy: &'a Policy, token: &str) -> Nature<'a> {
        Nature::new(
            policy.described_crawler(token),
            Purpose::Other,
            Binds::Star,
            None,
        )
    }
}

/// The owner's record of a crawler of the registry.
fn record<'a>(policy: &'a Policy, crawler: &Crawler) -> Option<&'a DescribedCrawler> {
    policy
        .crawlers
        .iter()
        .find(|described| crawler.is_called(&described.token.value))
}

/// The owner's crawlers that the registry does not know.
pub fn added<'a>(
    policy: &'a Policy,
    registry: &'a Registry,
) -> impl Iterator<Item = &'a DescribedCrawler> {
    policy
        .crawlers
        .iter()
        .filter(|described| registry.find(&described.token.value).is_none())
}

/// All that the policy adds to identification: tokens, and the markers of `crawlers:`.
pub fn site_markers(policy: &Policy, registry: &Registry, tokens: Vec<String>) -> SiteMarkers {
    let mut markers: Vec<(String, Claim)> = Vec::new();
    for (index, token) in (0_u16..).zip(&tokens) {
        let described = policy
            .described_crawler(token)
            .into_iter()
            .flat_map(|described| &described.user_agent);
        markers.extend(described.map(|marker| (marker.value.clone(), Claim::Token(index))));
    }
    for (index, crawler) in (0_u16..).zip(registry.crawlers()) {
        let described = record(policy, crawler)
            .into_iter()
            .flat_map(|described| &described.user_agent);
        markers.extend(
            described.map(|marker| (marker.value.clone(), Claim::Known(CrawlerIndex(index)))),
        );
    }
    SiteMarkers::with_markers(tokens, markers)
}

/// The addresses that the policy lists for crawlers.
pub fn networks(policy: &Policy, registry: &Registry, tokens: &SiteMarkers) -> Networks {
    let mut listed = Vec::new();
    for described in &policy.crawlers {
        let name = &described.token.value;
        let known = registry.find(name).map(Claim::Known);
        if let Some(claim) = known.or_else(|| tokens.named(name))
            && !described.networks.is_empty()
        {
            listed.push((claim, described.networks.clone()));
        }
    }
    Networks(listed)
}
