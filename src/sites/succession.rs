//! What a site says beside its rules, through changes: since when its tag rules are in force, and by which names it
//! tells crawlers apart. And what is in force as the publication log is to know it.

use super::default_sites::is_no_policy;
use super::reload::Sites;
use crate::crawlers::Registry;
use crate::history::{Current, Horizon, PublicationLog, Published};
use crate::policy::host_history::{HostHistories, HostHistory};
use crate::policy::site::{HtmlRules, TagAges, TagPlan};
use crate::policy::{Held, Site, SiteEntry, Snapshot, Version};
use crate::time::Timestamp;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

impl Sites {
    /// A site as it comes into force. Since when, and what its hosts published before, the log says.
    pub(super) fn succeed(&mut self, site: Arc<Site>, now: Timestamp) -> SiteEntry {
        self.memory.pauses.note(&site, now);
        self.state.keep_version(site.robots_txt.version, &site.robots_txt.body);
        self.versions.insert(site.robots_txt.version, site.robots_txt.body.clone());
        let tag_ages = self.tag_ages(&site, now);
        SiteEntry { tag_ages, ..SiteEntry::new(site, now) }
    }

    /// Notes in the log what is to be published, in the place of what was noted since the last snapshot. Where the
    /// published one ceased to answer 503 by the clock alone, or began to, that is noted first.
    pub(super) fn record(&mut self, now: Timestamp) {
        let mut log = self.published_log.clone();
        if let Some(moment) = self.published.next_switch_of_robots_txt().filter(|moment| *moment <= now) {
            record_into(&mut log, self.registry, self.published.sites(), moment);
        }
        let entries: Vec<SiteEntry> = self.entries().map(|entry| self.as_paused(entry)).collect();
        record_into(&mut log, self.registry, &entries, now);
        self.memory.log = log;
    }

    /// Reads the bytes of the versions that were published before a start.
    pub(super) fn recall_versions(&mut self) {
        for version in self.memory.log.versions_since(Timestamp(i64::MIN)) {
            if let Some(body) = self.state.version(version) {
                self.versions.insert(version, body.into());
            }
        }
    }

    /// Drops the bytes of versions that no crawler may use any more.
    pub(super) fn forget_versions(&mut self, now: Timestamp) {
        let log = &self.memory.log;
        let mut wanted: BTreeSet<Version> = log.versions_since(log.cached_since(self.longest_cached(), now));
        wanted.extend(self.entries().map(|entry| entry.site.robots_txt.version));
        self.versions.keep_only(&wanted);
        self.state.keep_only_versions(&wanted);
    }

    /// The longest that a copy of any site may be used.
    pub(super) fn longest_cached(&self) -> Duration {
        let each = self.entries().map(|entry| longest_held(&entry.site, self.registry));
        each.max().unwrap_or_else(|| self.registry.longest_robots_cache())
    }

    /// What is in force with what its hosts published before, as the published log has it.
    pub(super) fn with_history(&mut self, mut entries: Vec<SiteEntry>, now: Timestamp) -> Snapshot {
        let horizon = Horizon { longest: self.longest_cached(), now };
        let known = self.published_log.histories(&mut self.versions, self.registry, horizon);
        let owners = Snapshot::new(entries.clone(), 0);
        let mut of_sites: Vec<Vec<&HostHistory>> = vec![Vec::new(); entries.len()];
        for (pattern, history) in &known {
            let host = pattern.as_ref().map(ToString::to_string).unwrap_or_default();
            if let Some(site) = owners.site_for_host(host.as_bytes())
                && !of_sites[site].iter().any(|other| std::ptr::eq(*other, &**history))
            {
                of_sites[site].push(history);
            }
        }
        for (entry, histories) in entries.iter_mut().zip(&of_sites) {
            entry.since = self.published_log.in_force_since(&name_in_log(&entry.site)).unwrap_or(entry.since);
            hold(entry, histories, horizon);
        }
        let superseded =
            entries.iter().flat_map(|entry| entry.held.iter().map(|held| held.superseded_at).chain(entry.forgotten));
        self.forget_at = superseded.min().map(|first| first.plus(horizon.longest));
        self.generation += 1;
        let snapshot = Snapshot::new(entries, self.generation).with_histories(HostHistories::new(known), now);
        self.published = snapshot.clone();
        snapshot
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

fn record_into(log: &mut PublicationLog, registry: &Registry, entries: &[SiteEntry], now: Timestamp) {
    let names: Vec<String> = entries.iter().map(|entry| name_in_log(&entry.site)).collect();
    let current = entries.iter().zip(&names).map(|(entry, name)| Current {
        site: name,
        hosts: entry.site.policy.hosts.iter().map(|host| &host.value).collect(),
        published: match entry.withholds_robots_txt(now) {
            true => Published::Unavailable,
            false => Published::Version(entry.site.robots_txt.version),
        },
        identities: identities(registry, &entry.site),
        tells: tells(entry, now),
    });
    log.record(&current.collect::<Vec<_>>(), now);
}

/// A site in the log: one without a policy and one of a file may have the same name, and are two.
pub(super) fn name_in_log(site: &Site) -> String {
    if is_no_policy(&site.policy) { format!("{NO_POLICY_IN_LOG}{}", site.name) } else { site.name.clone() }
}

/// No file name begins with it.
const NO_POLICY_IN_LOG: &str = "/";

/// The name of the site that the log calls so.
pub(super) fn name_of_logged(logged: &str) -> &str {
    logged.strip_prefix(NO_POLICY_IN_LOG).unwrap_or(logged)
}

/// The identity of "the origin's tags are taken away": no digest, and none of a rule's but by an accident that would
/// only make pages whole.
const STRIPPED: u64 = 0;

/// Has a site judged by everything that its hosts published before. A crawler that heard 503 for robots.txt may use its
/// copy for longer than since it was superseded, and who that was may not be known any more: so may everybody.
fn hold(entry: &mut SiteEntry, histories: &[&HostHistory], horizon: Horizon) {
    let own = entry.site.robots_txt.version;
    for history in histories {
        // What the site itself published the ledger knows by who heard 503; of a site before it nobody knows that.
        let last_heard = |moment: Timestamp| match moment <= history.at_site_since {
            true => history.last_heard(moment, horizon.longest, horizon.now),
            false => moment,
        };
        for superseded in history.superseded.iter().filter(|known| known.former.version != own) {
            let superseded_at = last_heard(superseded.superseded_at);
            match entry.held.iter_mut().find(|held| held.former.version == superseded.former.version) {
                Some(held) => held.superseded_at = held.superseded_at.max(superseded_at),
                None => entry.held.push(Held { superseded_at, ..superseded.clone() }),
            }
        }
        entry.forgotten = entry.forgotten.max(history.unknown_until.map(last_heard));
    }
    entry.identity_epoch = histories.iter().map(|history| history.identity_epoch).max().unwrap_or(entry.since);
    entry.held.sort_by_key(|held| std::cmp::Reverse(held.superseded_at));
    for dropped in entry.held.drain(SiteEntry::MAX_HELD.min(entry.held.len())..) {
        entry.forgotten = entry.forgotten.max(Some(dropped.superseded_at));
    }
}

/// By which names crawlers are told apart on a site: what was served to a crawler under other names is in another's.
pub(super) fn identities(registry: &Registry, site: &Site) -> u64 {
    let mut digest = Sha256::new();
    for crawler in registry.crawlers() {
        for text in crawler.markers.iter().chain([&crawler.id]).chain(&crawler.shares_cache) {
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
    digest.finalize().iter().take(8).fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Whether a site says something about pages that a 304 would hide, or did lately.
fn tells(entry: &SiteEntry, now: Timestamp) -> bool {
    let site = &entry.site;
    let lately = |moment: Timestamp| now.since(moment) < SiteEntry::TAGS_NEW_FOR;
    site.html.is_some()
        || site.tags.strips()
        || site.tags.identities().next().is_some()
        || entry.tag_ages.everywhere.is_some_and(lately)
}

/// The longest that anybody may go by a copy, and an hour: one may be sent slowly while another version takes its
/// place.
pub(super) fn longest_held(site: &Site, registry: &Registry) -> Duration {
    site.grace.max(registry.longest_robots_cache()) + site.behind_cache.unwrap_or_default() + Duration::from_secs(3_600)
}
