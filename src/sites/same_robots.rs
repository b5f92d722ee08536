//! [`has_same_robots`] tells whether a changed site still has the same robots.txt, so that nothing
//! new is published. [`identity_digest`] is a hash of the names by which the site tells crawlers
//! apart. A change of these names counts as a new robots.txt: earlier fetches of a crawler may be
//! recorded under another name.

use crate::crawlers::Registry;
use crate::policy::{Site, SiteEntry};
use crate::yaml::located_values;
use sha2::{Digest, Sha256};

/// Whether two entries of a site publish the same robots.txt on the same hosts, are both or neither
/// 503, and tell crawlers apart by the same names.
pub fn has_same_robots(before: &SiteEntry, new: &SiteEntry) -> bool {
    is_same_publication(&before.site, &new.site)
        && before.robots_txt.is_unavailable() == new.robots_txt.is_unavailable()
}

/// Whether two versions of a site publish the same robots.txt on the same hosts, and tell crawlers
/// apart by the same names.
pub fn is_same_publication(before: &Site, new: &Site) -> bool {
    located_values(&before.policy.hosts) == located_values(&new.policy.hosts)
        && before.robots_txt.version == new.robots_txt.version
        && identity_digest(before) == identity_digest(new)
}

/// A digest of the names by which crawlers are told apart on a site: those of the registry, the
/// site's tokens, and the crawlers of its policy. If it changes, copies that were served before may
/// be recorded under another name.
pub fn identity_digest(site: &Site) -> u64 {
    let mut digest = Sha256::new();
    for crawler in Registry::builtin().crawlers() {
        for text in crawler
            .markers
            .iter()
            .chain([&crawler.id])
            .chain(&crawler.shares_cache)
        {
            digest.update(text.as_bytes());
            digest.update([0]);
        }
    }
    for token in site.tokens.tokens() {
        digest.update(token.as_bytes());
        digest.update([1]);
    }
    for own in &site.policy.crawlers {
        for text in own.user_agent.iter().chain([&own.token]) {
            digest.update(text.value.as_bytes());
            digest.update([2]);
        }
    }
    digest
        .finalize()
        .iter()
        .take(8)
        .fold(0, |all, byte| all << 8 | u64::from(*byte))
}
