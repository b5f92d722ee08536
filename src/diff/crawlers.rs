//! The crawlers that two sites judge, in classes: all of a class are treated alike by both. [`Classes`] holds them, so
//! that a URL is compared once for each class and not once for each crawler.

use crate::crawlers::{Claim, CrawlerIndex, Registry};
use crate::policy::Site;
use crate::policy::site::CrawlerRules;
use crate::verdict::{claim_label, claim_of};
use std::collections::BTreeSet;

/// A crawler as both sites know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BothClaims {
    /// For the old site.
    pub old: Claim,
    /// For the new site.
    pub new: Claim,
}

/// Crawlers that are treated alike.
#[derive(Clone, Debug)]
pub struct Class {
    /// How the old site treats them.
    pub old: CrawlerRules,
    /// How the new site treats them.
    pub new: CrawlerRules,
    /// One of them.
    pub claims: BothClaims,
    /// Their ids.
    pub crawlers: Vec<String>,
}

/// All classes of which either site judges the crawlers.
#[derive(Clone, Debug)]
pub struct Classes(pub Vec<Class>);

impl Classes {
    /// The classes of two sites.
    pub fn new(old: &Site, new: &Site, registry: &Registry) -> Classes {
        let known = (0..registry.crawlers().len()).filter_map(|index| u16::try_from(index).ok());
        let mut all: Vec<(String, BothClaims)> = known
            .map(|index| {
                let claim = Claim::Known(CrawlerIndex(index));
                (registry.get(CrawlerIndex(index)).id.clone(), BothClaims { old: claim, new: claim })
            })
            .collect();
        let tokens = old.tokens.tokens().iter().chain(new.tokens.tokens());
        for token in tokens.map(|token| token.to_ascii_lowercase()).collect::<BTreeSet<String>>() {
            let claims =
                BothClaims { old: claim_of(&token, registry, Some(old)), new: claim_of(&token, registry, Some(new)) };
            let name = [(claims.new, new), (claims.old, old)].into_iter().find_map(|(claim, site)| {
                matches!(claim, Claim::Token(_)).then(|| claim_label(claim, registry, Some(site)))?
            });
            all.push((name.unwrap_or(&token).to_owned(), claims));
        }
        all.push(("other".into(), BothClaims { old: Claim::Other, new: Claim::Other }));
        all.push(("tool".into(), BothClaims { old: Claim::Tool, new: Claim::Tool }));
        let mut classes = Classes(Vec::new());
        for (name, claims) in all {
            classes.add(name, claims, old.crawler_rules(claims.old), new.crawler_rules(claims.new));
        }
        classes
    }

    fn add(&mut self, name: String, claims: BothClaims, old: CrawlerRules, new: CrawlerRules) {
        if !old.judged && !new.judged {
            return;
        }
        match self.0.iter_mut().find(|class| (class.old, class.new) == (old, new)) {
            Some(class) => class.crawlers.push(name),
            None => self.0.push(Class { old, new, claims, crawlers: vec![name] }),
        }
    }

    /// How many crawlers there are.
    pub fn crawlers(&self) -> usize {
        self.0.iter().map(|class| class.crawlers.len()).sum()
    }
}
