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
    /// The facts that `described`, the owner's record, states come before the other arguments. A
    /// crawler honours Crawl-delay only if one of the two says so.
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

    /// A crawler of which nothing but the purpose is known: nothing is known of what binds it, and
    /// it does not honour Crawl-delay.
    pub fn unknown(purpose: Purpose) -> Nature<'a> {
        Nature::new(None, purpose, Binds::Unknown, None)
    }

    /// A crawler of the registry, with the corrections of the policy.
    pub fn of_known(policy: &'a Policy, crawler: &Crawler) -> Nature<'a> {
        Nature::new(
            record(policy, crawler),
            crawler.purpose,
            crawler.binds,
            crawler.crawl_delay,
        )
    }

    /// A crawler that only the policy or the origin's file knows, by its token. Unless the policy
    /// describes it, its purpose is `Other`, it follows `*`, and it does not honour Crawl-delay.
    pub fn of_token(policy: &'a Policy, token: &str) -> Nature<'a> {
        Nature::new(
            policy.described_crawler(token),
            Purpose::Other,
            Binds::Star,
            None,
        )
    }
}

/// The owner's record (in `crawlers` of the policy) of a crawler of the registry, found by any of
/// the crawler's names.
fn record<'a>(policy: &'a Policy, crawler: &Crawler) -> Option<&'a DescribedCrawler> {
    policy
        .crawlers
        .iter()
        .find(|described| crawler.is_called(&described.token))
}

/// The owner's crawlers that the registry does not know.
pub fn added<'a>(
    policy: &'a Policy,
    registry: &'a Registry,
) -> impl Iterator<Item = &'a DescribedCrawler> {
    policy
        .crawlers
        .iter()
        .filter(|described| registry.find(&described.token).is_none())
}

/// All that the policy adds to identification: `tokens`, the site's tokens that the registry does
/// not have, and the markers (`user_agent`) that the policy's `crawlers` gives to one of them or to
/// a crawler of the registry.
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

/// The networks that the policy lists for crawlers, each list with the claim that it proves. A
/// crawler that neither the registry nor `tokens` has is left out.
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
