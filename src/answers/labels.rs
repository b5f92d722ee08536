//! How answers name crawlers and rules.

use crate::crawlers::{Claim, Registry};
use crate::policy::SiteEntry;
use crate::robots::Rule;
use crate::verdict::claim_label;

/// The name by which a crawler knows itself: its token, else its name.
pub fn crawler_name(registry: &Registry, entry: &SiteEntry, claim: Claim) -> String {
    match claim {
        Claim::Known(index) => {
            let crawler = registry.get(index);
            crawler.tokens.first().unwrap_or(&crawler.name).clone()
        }
        Claim::Token(_) => claim_label(claim, registry, Some(&entry.site)).unwrap_or_default().to_owned(),
        Claim::Other | Claim::Nobody => "this crawler".to_owned(),
    }
}

/// A rule as it stands in robots.txt.
pub fn rule_line(rule: &Rule) -> String {
    format!("{}: {}", if rule.allow { "Allow" } else { "Disallow" }, rule.pattern.as_str())
}
