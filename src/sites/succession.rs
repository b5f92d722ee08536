//! One version after another: which of them crawlers may still hold, and since when what is in force.

use super::reload::Sites;
use super::state::Superseded;
use super::takeover::{Published, versions};
use crate::crawlers::Registry;
use crate::policy::compiled::{Held, HtmlRules, TagAges, TagPlan};
use crate::policy::{Former, Site, SiteEntry, Version};
use crate::time::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

impl Sites {
    /// Puts a site in the place of its former version, which crawlers may still hold.
    pub(super) fn succeed(&mut self, before: Option<SiteEntry>, site: Arc<Site>, now: Timestamp) -> SiteEntry {
        let version = site.robots_txt.version;
        self.memory.pauses.note(&site, now);
        self.state.keep_version(version, &site.robots_txt.body);
        let tag_ages = self.tag_ages(&site, now);
        let identity_epoch = self.identity_epoch(&site, now);
        let past = match before {
            Some(before) => Past::of(before, now),
            // What came before a restart may be held all the same.
            None => self.recall(&site.name),
        };
        let Past { mut held, mut forgotten, in_force } = past;
        let since = match &in_force {
            Some(known) if known.version == version => known.since,
            _ => now,
        };
        // A version is its bytes: whoever holds these holds what is in force, and a crawler that the owner names under
        // `enforcement` is held to them at once.
        held.retain(|older| older.former.version != version);
        if let Some(InForce { version: superseded, since, body }) = in_force.filter(|known| known.version != version) {
            held.retain(|older| older.former.version != superseded);
            match body {
                Some(body) => {
                    let former = Arc::new(Former::read(body, self.registry));
                    held.insert(0, Held { former, since, superseded_at: now });
                }
                None => forgotten = Some(now),
            }
        }
        forget_the_oldest(&mut held, &mut forgotten);
        let mut entry = SiteEntry { site, since, held, forgotten, identity_epoch, tag_ages, pauses: Vec::new() };
        forget_what_is_over(&mut entry, self.registry, now);
        entry
    }

    /// What is remembered of a site's versions.
    pub(super) fn recall(&self, name: &str) -> Past {
        let superseded = self.memory.superseded.get(name).map_or([].as_slice(), Vec::as_slice);
        let Published { held, forgotten } = self.read_versions(superseded);
        let in_force = self.memory.since.get(name).and_then(|(version, since)| {
            let version = Version::parse(version)?;
            Some(InForce { version, since: *since, body: self.state.version(version).map(Arc::from) })
        });
        Past { held, forgotten: forgotten.max(self.memory.forgotten.get(name).copied()), in_force }
    }

    /// Versions that were remembered, as far as their bytes are there.
    pub(super) fn read_versions(&self, versions: &[Superseded]) -> Published {
        let mut published = Published::default();
        for known in versions.iter().take(SiteEntry::MAX_HELD) {
            let body = Version::parse(&known.version).and_then(|version| self.state.version(version));
            match body {
                Some(body) => published.held.push(Held {
                    former: Arc::new(Former::read(body.into(), self.registry)),
                    since: known.since,
                    superseded_at: known.until,
                }),
                None => published.forgotten = published.forgotten.max(Some(known.until)),
            }
        }
        published
    }

    /// Since when crawlers are told apart as they are now: what was served to a crawler before is in another's name.
    fn identity_epoch(&mut self, site: &Site, now: Timestamp) -> Timestamp {
        let mut digest = Sha256::new();
        for crawler in self.registry.crawlers() {
            for text in crawler.marks.iter().chain([&crawler.id]).chain(&crawler.shares_cache) {
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
        let names: String = digest.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        match self.memory.names.get(&site.name) {
            Some((known, since)) if *known == names => *since,
            _ => {
                self.memory.names.insert(site.name.clone(), (names, now));
                now
            }
        }
    }

    /// Writes into the memory which versions there are, and drops the bytes of those that are over.
    pub(super) fn remember_versions(&mut self) {
        let mut wanted = BTreeSet::new();
        for entry in self.entries() {
            wanted.insert(entry.site.robots_txt.version);
            wanted.extend(entry.held.iter().map(|held| held.former.version));
        }
        wanted.extend(self.memory.left.iter().flat_map(|left| &left.held).map(|held| held.former.version));
        let known: Vec<_> =
            self.entries().map(|entry| (entry.site.name.clone(), versions(&entry.held), entry.forgotten)).collect();
        for (name, superseded, forgotten) in known {
            match forgotten {
                Some(moment) => self.memory.forgotten.insert(name.clone(), moment),
                None => self.memory.forgotten.remove(&name),
            };
            self.memory.superseded.insert(name, superseded);
        }
        self.state.keep_only_versions(&wanted);
    }

    /// Since when the site's tag rules are in force, through restarts; without a memory, since now.
    fn tag_ages(&mut self, site: &Site, now: Timestamp) -> TagAges {
        let before = self.memory.tag_rules.remove(&site.name).unwrap_or_default();
        let since = |identity: u64| before.get(&identity).copied().unwrap_or(now);
        let rules: Vec<u64> = site.tags.identities().collect();
        // What is written into pages, and that the origin's tags are taken away, is hidden by a 304 too, on every page.
        let html = HtmlRules::identity(&site.policy.html);
        let everywhere = [(html, site.html.is_some()), (STRIPPED, site.tags.strips())];
        let everywhere = everywhere.into_iter().filter(|(_, said)| *said).map(|(identity, _)| identity);
        let everywhere: Vec<u64> = everywhere.collect();
        let identities = rules.iter().chain(&everywhere);
        let known: BTreeMap<u64, Timestamp> = identities.map(|identity| (*identity, since(*identity))).collect();
        // Where a rule only says something else, the new one is for the same pages, and is new. Of one that is gone
        // nobody knows any more for which pages it was.
        let goes_on = |gone: u64| {
            let mut new = known.keys().filter(|identity| !before.contains_key(identity));
            new.any(|identity| TagPlan::are_for_the_same(*identity, gone))
        };
        let gone = before.keys().any(|identity| !known.contains_key(identity) && !goes_on(*identity));
        if gone || everywhere.iter().any(|identity| !before.contains_key(identity)) {
            self.memory.tag_rule_removed.insert(site.name.clone(), now);
        }
        self.memory.tag_rules.insert(site.name.clone(), known);
        TagAges {
            since: rules.into_iter().map(since).collect(),
            everywhere: self.memory.tag_rule_removed.get(&site.name).copied(),
        }
    }
}

/// The identity of "the origin's tags are taken away": no digest, and none of a rule's but by an accident that would
/// only make pages whole.
const STRIPPED: u64 = 0;

/// What came before the version that is put in force.
pub(super) struct Past {
    held: Vec<Held>,
    forgotten: Option<Timestamp>,
    /// What is in force until now, and since when.
    in_force: Option<InForce>,
}

struct InForce {
    version: Version,
    since: Timestamp,
    /// None when they are lost.
    body: Option<Arc<[u8]>>,
}

impl Past {
    pub(super) fn of(before: SiteEntry, now: Timestamp) -> Past {
        let SiteEntry { site, since, held, forgotten, .. } = before;
        let file = &site.robots_txt;
        let in_force = match file.awaits_origin(now) {
            None => Some(InForce { version: file.version, since, body: Some(file.body.clone()) }),
            // What was never served nobody holds. What it took the place of is back, if it is the same again.
            Some(_) => held.first().filter(|former| former.superseded_at == since).map(|former| InForce {
                version: former.former.version,
                since: former.since,
                body: Some(former.former.body.clone()),
            }),
        };
        Past { held, forgotten, in_force }
    }

    /// All of it, for whoever has its hosts from now on.
    pub(super) fn published(self, registry: &'static Registry, now: Timestamp) -> Published {
        let Past { mut held, mut forgotten, in_force } = self;
        match in_force {
            Some(InForce { body: Some(body), since, .. }) => {
                held.insert(0, Held { former: Arc::new(Former::read(body, registry)), since, superseded_at: now });
            }
            Some(InForce { body: None, .. }) => forgotten = Some(now),
            None => {}
        }
        Published { held, forgotten }
    }
}

/// Drops the versions that nobody may hold any more; says whether there were any.
pub fn forget_what_is_over(entry: &mut SiteEntry, registry: &Registry, now: Timestamp) -> bool {
    let before = (entry.held.len(), entry.forgotten);
    let longest = longest_held(&entry.site, registry);
    entry.held.retain(|held| now.since(held.superseded_at) <= longest);
    entry.forgotten = entry.forgotten.filter(|moment| now.since(*moment) <= longest);
    (entry.held.len(), entry.forgotten) != before
}

/// The longest that anybody may go by a copy, and an hour: one may be sent slowly while another version takes its
/// place.
pub(super) fn longest_held(site: &Site, registry: &Registry) -> Duration {
    site.grace.max(registry.longest_robots_cache()) + site.behind_cache.unwrap_or_default() + Duration::from_secs(3_600)
}

/// Keeps as many versions as a site may have; of the others only when the last was superseded.
pub(super) fn forget_the_oldest(held: &mut Vec<Held>, forgotten: &mut Option<Timestamp>) {
    for dropped in held.drain(SiteEntry::MAX_HELD.min(held.len())..) {
        *forgotten = (*forgotten).max(Some(dropped.superseded_at));
    }
}
