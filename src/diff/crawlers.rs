//! [`classes`] groups crawlers into classes that both the old and the new site treat alike. A URL
//! is then compared once for each class instead of once for each crawler.

use crate::crawlers::{Claim, CrawlerIndex, Registry};
use crate::policy::Site;
use crate::policy::site::CrawlerRules;
use crate::verdict::{claim_label, claim_of};
use std::collections::BTreeSet;

/// The crawlers of search and AI that owners ask about first. Where a list is cut, it shows the
/// beginning.
const FIRST: [&str; 12] = [
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

/// Sorts crawlers by name, behind those that owners ask about first.
pub fn sort(names: &mut [String]) {
    names.sort_by_cached_key(|name| {
        (
            FIRST
                .iter()
                .position(|first| first == name)
                .unwrap_or(FIRST.len()),
            name.clone(),
        )
    });
}

/// Crawlers that are treated alike.
pub struct Class {
    /// Their rules on the old and the new site.
    pub rules: [CrawlerRules; 2],
    /// The claim of the first of them, on the old and the new site.
    pub claims: [Claim; 2],
    /// Their ids.
    pub crawlers: Vec<String>,
}

/// Groups all crawlers (of the registry, of the tokens of both sites, `other` and `tool`) by their
/// rules on the old and the new site. Crawlers that neither site judges are left out.
pub fn classes(sites: [&Site; 2], registry: &Registry) -> Vec<Class> {
    let known = (0..).map(CrawlerIndex).zip(registry.crawlers());
    let mut all: Vec<(String, [Claim; 2])> = known
        .map(|(index, crawler)| (crawler.id.clone(), [Claim::Known(index); 2]))
        .collect();
    let tokens = sites.iter().flat_map(|site| site.tokens.tokens());
    for token in tokens
        .map(|token| token.to_ascii_lowercase())
        .collect::<BTreeSet<String>>()
    {
        let claims = sites.map(|site| claim_of(&token, registry, Some(site)));
        let name = claims
            .into_iter()
            .zip(sites)
            .rev()
            .find_map(|(claim, site)| {
                matches!(claim, Claim::Token(_))
                    .then(|| claim_label(claim, registry, Some(site)))?
            });
        all.push((name.unwrap_or(&token).to_owned(), claims));
    }
    all.push(("other".into(), [Claim::Other; 2]));
    all.push(("tool".into(), [Claim::Tool; 2]));
    let mut classes: Vec<Class> = Vec::new();
    for (name, claims) in all {
        let rules = std::array::from_fn(|side| sites[side].crawler_rules(claims[side]));
        match classes.iter_mut().find(|class| class.rules == rules) {
            _ if !rules.iter().any(|rules| rules.judged) => {}
            Some(class) => class.crawlers.push(name),
            None => classes.push(Class {
                rules,
                claims,
                crawlers: vec![name],
            }),
        }
    }
    classes
}
