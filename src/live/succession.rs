//! One version after another: which of them crawlers may still hold, and since when what is in force.

use super::reload::Sites;
use crate::policy::compiled::{Held, HtmlRules, TagAges};
use crate::policy::{Site, SiteEntry};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

impl Sites {
    /// Puts a site in the place of its former version, which crawlers may still hold.
    pub(super) fn succeed(&mut self, before: Option<SiteEntry>, site: Arc<Site>, now: Timestamp) -> SiteEntry {
        let version = site.robots_txt.version;
        self.memory.pauses.note(&site, now);
        let tag_ages = self.tag_ages(&site, now);
        let awaited = |site: &Site| site.robots_txt.awaits_origin(now).is_some();
        // What was never served nobody holds: the version before it counts, or the memory of it.
        let before = match before {
            Some(before) if awaited(&before.site) && !before.held.is_empty() => {
                return SiteEntry { site, since: now, tag_ages, pauses: Vec::new(), ..before };
            }
            before => before.filter(|before| !awaited(&before.site)),
        };
        let Some(before) = before else {
            let remembered = self.memory.since.get(&site.name).cloned();
            let same = remembered.as_ref().filter(|(known, _)| *known == version.to_string());
            let since = same.map_or(now, |(_, since)| *since);
            if remembered.is_some() && same.is_none() && !awaited(&site) {
                self.memory.superseded.insert(site.name.clone(), now);
            }
            // What came before a restart is not there any more, and may be held all the same.
            let superseded = self.memory.superseded.get(&site.name);
            let forgotten_until = superseded.map(|moment| moment.plus(site.grace)).filter(|until| now < *until);
            return SiteEntry { forgotten_until, tag_ages, ..SiteEntry::new(site, since) };
        };
        let mut held = before.held;
        let mut forgotten_until = before.forgotten_until.filter(|until| now < *until);
        let unchanged = before.site.robots_txt.version == version;
        let since = if unchanged { before.since } else { now };
        // A version is its bytes: whoever holds these holds what is in force, and a crawler that the owner names under
        // `enforcement` is held to them at once.
        if !unchanged {
            self.memory.superseded.insert(site.name.clone(), now);
            held.retain(|older| ![version, before.site.robots_txt.version].contains(&older.site.robots_txt.version));
            held.insert(0, Held { site: before.site, superseded_at: now });
        }
        let longest = longest_grace(&site, &held);
        for dropped in held.drain(SiteEntry::MAX_HELD.min(held.len())..) {
            let until = dropped.superseded_at.plus(longest);
            forgotten_until = Some(forgotten_until.map_or(until, |known| known.max(until)));
        }
        SiteEntry { site, since, held, forgotten_until, tag_ages, pauses: Vec::new() }
    }

    /// Since when the site's tag rules are in force, through restarts; without a memory, since now.
    fn tag_ages(&mut self, site: &Site, now: Timestamp) -> TagAges {
        let before = self.memory.tag_rules.remove(&site.name).unwrap_or_default();
        let since = |identity: u64| before.get(&identity).copied().unwrap_or(now);
        let rules: Vec<u64> = site.tags.identities().collect();
        // What is written into pages is hidden by a 304 too: when it changes, what was written before is taken away.
        let html = HtmlRules::identity(&site.policy.html);
        let identities = rules.iter().copied().chain([html]);
        let known: BTreeMap<u64, Timestamp> = identities.map(|identity| (identity, since(identity))).collect();
        if before.keys().any(|identity| !known.contains_key(identity)) {
            self.memory.tag_rule_removed.insert(site.name.clone(), now);
        }
        self.memory.tag_rules.insert(site.name.clone(), known);
        TagAges {
            since: rules.into_iter().map(since).collect(),
            removed: self.memory.tag_rule_removed.get(&site.name).copied(),
        }
    }
}

/// Drops the versions that nobody may hold any more; says whether there were any.
pub fn forget_what_is_over(entry: &mut SiteEntry, now: Timestamp) -> bool {
    let (held, forgotten) = (entry.held.len(), entry.forgotten_until);
    let longest = longest_grace(&entry.site, &entry.held);
    entry.held.retain(|held| now.since(held.superseded_at) <= longest);
    entry.forgotten_until = forgotten.filter(|until| now < *until);
    (entry.held.len(), entry.forgotten_until) != (held, forgotten)
}

fn longest_grace(site: &Site, held: &[Held]) -> Duration {
    held.iter().map(|held| held.site.grace).max().unwrap_or_default().max(site.grace)
}
