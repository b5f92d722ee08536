//! [`StoredSitesState`]: what crawlgate keeps about sites over a restart: pauses, changes of
//! X-Robots-Tag rules, and the last good text of each policy. (What hosts published as robots.txt
//! is stored apart.) [`TagRuleTimes`] says since when each X-Robots-Tag rule is in force. While a
//! rule is new, crawlers are sent whole pages, because a 304 would hide a new `noindex`.

use super::pauses::Pauses;
use crate::facts::{AnyFact, LastGoodPolicy, StoredFacts, TagChange};
use crate::policy::Site;
use crate::policy::site::{RobotsMetaPaths, TagChangeTimes, TagRules};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The rule id of "the origin's tags are removed". Rule ids are digests; if one were 0 by accident,
/// pages would only be sent whole.
const STRIPPED_TAGS_ID: u64 = 0;

/// The stored state of all sites.
#[derive(Clone)]
pub struct StoredSitesState {
    /// Pauses that are in force, planned or ended.
    pub pauses: Pauses,
    /// Since when each rule for tags is in force.
    pub tags: TagRuleTimes,
    /// The text of the last accepted policy, by site.
    pub last_good: BTreeMap<String, Arc<str>>,
}

impl StoredSitesState {
    /// The state that an earlier process stored.
    pub fn from_facts(facts: &StoredFacts) -> StoredSitesState {
        let last_good = facts.last_good_policies.iter();
        StoredSitesState {
            pauses: Pauses::from_facts(facts),
            tags: TagRuleTimes::from_facts(facts),
            last_good: last_good
                .map(|(_, policy)| (policy.site.clone(), policy.text.as_str().into()))
                .collect(),
        }
    }

    /// Removes the tag history and the last good policy of a site whose file is gone. Its pauses
    /// stay, in case the policy comes back.
    pub fn remove_site(&mut self, site: &str) {
        self.tags.0.remove(site);
        self.last_good.remove(site);
    }

    /// The facts to store: pauses, tag changes and last good policies.
    pub fn to_facts(&self) -> impl Iterator<Item = AnyFact> {
        let policies = self.last_good.iter().map(|(site, text)| LastGoodPolicy {
            site: site.clone(),
            text: text.to_string(),
        });
        let pauses = self.pauses.to_facts().into_iter().map(AnyFact::from);
        pauses
            .chain(self.tags.to_facts().map(AnyFact::from))
            .chain(policies.map(AnyFact::from))
    }
}

/// Since when each rule for tags is in force, by the name of its site.
#[derive(Clone, Default)]
pub struct TagRuleTimes(BTreeMap<String, SiteTagRuleTimes>);

#[derive(Clone, Default)]
struct SiteTagRuleTimes {
    /// Since when each rule of the tag plan is in force, by the id of the rule.
    rules: BTreeMap<u64, Timestamp>,
    /// When the tags of every page changed last.
    everywhere: Option<Timestamp>,
}

impl TagRuleTimes {
    /// The history that an earlier process stored. A record whose rule is no hexadecimal number (it
    /// is written as an empty text) is the time when the tags of every page changed last.
    pub fn from_facts(facts: &StoredFacts) -> TagRuleTimes {
        let mut history = TagRuleTimes::default();
        for (_, record) in &facts.tag_changes {
            let site = history.0.entry(record.site.clone()).or_default();
            match u64::from_str_radix(&record.rule, 16) {
                Ok(rule) => drop(site.rules.insert(rule, record.since)),
                Err(_) => site.everywhere = Some(record.since),
            }
        }
        history
    }

    /// Replaces the known rules of a site by its present ones, and returns since when each is in
    /// force: a known rule keeps its time, a new one has `now`. `everywhere`, the last change of the
    /// tags of every page, becomes `now` if the site begins to write into pages or to remove the
    /// origin's tags, or if a rule is gone that no new rule with the same conditions replaces.
    pub fn update_rules(&mut self, site: &Site, now: Timestamp) -> TagChangeTimes {
        let history = self.0.entry(site.name.clone()).or_default();
        let before = std::mem::take(&mut history.rules);
        let since = |id: &u64| before.get(id).copied().unwrap_or(now);
        let is_new = |id: &u64| !before.contains_key(id);
        let rules: Vec<u64> = site.tags.rule_ids().collect();
        // A 304 would also hide metas that are written into pages, and that the origin's tags are
        // removed.
        let mut everywhere = Vec::new();
        if site.html.is_some() {
            everywhere.push(RobotsMetaPaths::fingerprint(&site.policy.html));
        }
        if site.strips_origin_tags() {
            everywhere.push(STRIPPED_TAGS_ID);
        }
        let ids = rules.iter().chain(&everywhere);
        let known: BTreeMap<u64, Timestamp> = ids.map(|id| (*id, since(id))).collect();
        // A removed rule changes pages that are not known any more, unless a new rule with the same
        // conditions replaces it.
        let is_gone = before.keys().any(|gone| {
            let mut new = known.keys().filter(|id| is_new(id));
            !known.contains_key(gone) && !new.any(|new| TagRules::have_same_conditions(*new, *gone))
        });
        if is_gone || everywhere.iter().any(is_new) {
            history.everywhere = Some(now);
        }
        history.rules = known;
        TagChangeTimes {
            since: rules.iter().map(since).collect(),
            everywhere: history.everywhere,
        }
    }

    /// The facts to store: one for each rule of each site, and one without a rule for `everywhere`.
    pub fn to_facts(&self) -> impl Iterator<Item = TagChange> {
        self.0.iter().flat_map(|(site, known)| {
            let rules = known
                .rules
                .iter()
                .map(|(rule, since)| (format!("{rule:016x}"), *since));
            let everywhere = known.everywhere.map(|since| (String::new(), since));
            rules.chain(everywhere).map(|(rule, since)| TagChange {
                site: site.clone(),
                rule,
                since,
            })
        })
    }
}
