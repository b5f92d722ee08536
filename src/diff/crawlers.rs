//! Groups crawlers for `crawlgate diff`, which compares the rules of a site before and after a
//! change. Two crawlers are in the same [`CrawlerClass`] if the old rules treat them alike and the
//! new rules do, too. So `diff` compares a URL once for each class, not once for each crawler.
//! [`group_crawlers`] makes the classes.

use crate::crawlers::{Claim, CrawlerIndex, Registry};
use crate::policy::Site;
use crate::policy::site::CrawlerRules;
use crate::verdict::claim_label;
use Claim::*;
use std::collections::BTreeSet;

/// These come first, because long lists are cut.
const PROMINENT_CRAWLERS: [&str; 12] = [
    "googlebot",
    "bingbot",
    "gptbot",
    "oai-searchbot",
    "claudebot",
    "perplexitybot",
    "applebot",
    "google-extended",
    "chatgpt-user",
    "meta-externalagent",
    "ccbot",
    "amazonbot",
];

/// Sorts crawlers by name, after the prominent ones.
pub fn sort_crawlers(names: &mut [String]) {
    names.sort_by_cached_key(|name| {
        (
            PROMINENT_CRAWLERS
                .iter()
                .position(|first| first == name)
                .unwrap_or(PROMINENT_CRAWLERS.len()),
            name.clone(),
        )
    });
}

/// Crawlers with the same rules on both sites.
pub struct CrawlerClass {
    /// The rules on the old and the new site.
    pub rules: [CrawlerRules; 2],
    /// The claims of one of them, on the old and the new site.
    pub claims: [Claim; 2],
    /// The ids.
    pub crawlers: Vec<String>,
}

/// Whether a crawler is one of these ids or tokens, which are empty for all.
pub fn is_wanted(name: &str, wanted: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|one| one.eq_ignore_ascii_case(name))
}

/// Groups all crawlers: those of the registry, the tokens of both sites, `other` and `tool`. Leaves
/// out crawlers that neither site judges. With `wanted`, ids or tokens, groups those crawlers alone.
pub fn group_crawlers(sites: [&Site; 2], wanted: &[String]) -> Vec<CrawlerClass> {
    let registry = Registry::builtin();
    let mut all: Vec<(String, [Claim; 2])> = (0..)
        .map(CrawlerIndex)
        .zip(registry.crawlers())
        .map(|(index, crawler)| (crawler.id.clone(), [Known(index); 2]))
        .collect();
    for token in sites
        .iter()
        .flat_map(|site| site.tokens.tokens())
        .map(|token| token.to_ascii_lowercase())
        .collect::<BTreeSet<String>>()
    {
        let claims = sites.map(|site| site.claim_of(&token, registry));
        let name = claims
            .into_iter()
            .zip(sites)
            .rev()
            .find_map(|(claim, site)| {
                matches!(claim, PolicyToken(_)).then(|| claim_label(claim, registry, Some(site)))?
            });
        all.push((name.unwrap_or(&token).to_owned(), claims));
    }
    all.push(("other".into(), [UnknownBot; 2]));
    all.push(("tool".into(), [Tool; 2]));
    all.retain(|(name, _)| is_wanted(name, wanted));
    let mut classes: Vec<CrawlerClass> = Vec::new();
    for (name, claims) in all {
        let rules = std::array::from_fn(|side| sites[side].crawler_rules(claims[side]));
        match classes.iter_mut().find(|class| class.rules == rules) {
            _ if !rules.iter().any(|rules| rules.judged) => {}
            Some(class) => class.crawlers.push(name),
            None => classes.push(CrawlerClass {
                rules,
                claims,
                crawlers: vec![name],
            }),
        }
    }
    classes
}
