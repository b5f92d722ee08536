//! [`SiteMemory`]: what sites keep through a restart beside the publication log: pauses, tag
//! changes and the last good policies. [`TagHistory`] holds the time since when each rule for the
//! tags of a site is in force. While a rule is new, crawlers are sent its pages whole: a 304 would
//! hide a new noindex.

use super::pauses::Pauses;
use crate::facts::{AnyFact, LastGoodPolicy, StoredFacts, TagChange};
use crate::policy::Site;
use crate::policy::site::{HtmlRules, TagAges, TagPlan};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The identity of "the origin's tags are taken away". No digest of a rule is 0 but by an accident,
/// which would only make pages whole.
const STRIPPED: u64 = 0;

/// The memory of all sites.
#[derive(Clone, Debug, Default)]
pub struct SiteMemory {
    /// Pauses.
    pub pauses: Pauses,
    /// Tag changes.
    pub tags: TagHistory,
    /// The text of the last policy of each site that was accepted.
    pub last_good: BTreeMap<String, Arc<str>>,
}

impl SiteMemory {
    /// The memory that an earlier process stored.
    pub fn remembered(facts: &StoredFacts) -> SiteMemory {
        let last_good = facts.last_good_policies.iter();
        SiteMemory {
            pauses: Pauses::remembered(facts),
            tags: TagHistory::remembered(facts),
            last_good: last_good
                .map(|(_, policy)| (policy.site.clone(), policy.text.as_str().into()))
                .collect(),
        }
    }

    /// Forgets the tag history and the last good policy of a site whose file is gone. Its pauses
    /// stay noted, in case the policy comes back.
    pub fn forget(&mut self, site: &str) {
        self.tags.0.remove(site);
        self.last_good.remove(site);
    }

    /// The facts to store: pauses, tag changes and last good policies.
    pub fn facts(&self) -> impl Iterator<Item = AnyFact> {
        let policies = self.last_good.iter().map(|(site, text)| LastGoodPolicy {
            site: site.clone(),
            text: text.to_string(),
        });
        let pauses = self.pauses.facts().into_iter().map(AnyFact::from);
        let tags = self.tags.facts().map(AnyFact::from);
        pauses.chain(tags).chain(policies.map(AnyFact::from))
    }
}

/// Since when each rule for tags is in force, by the name of its site.
#[derive(Clone, Debug, Default)]
pub struct TagHistory(BTreeMap<String, OfSite>);

#[derive(Clone, Debug, Default)]
struct OfSite {
    /// Since when each rule of the tag plan is in force, by the rule's identity.
    rules: BTreeMap<u64, Timestamp>,
    /// When the tags of every page changed last.
    everywhere: Option<Timestamp>,
}

impl TagHistory {
    /// The history that an earlier process stored. A record whose rule is no hexadecimal number (it
    /// is written as an empty text) is the time when the tags of every page changed last.
    pub fn remembered(facts: &StoredFacts) -> TagHistory {
        let mut history = TagHistory::default();
        for (_, record) in &facts.tag_changes {
            let site = history.0.entry(record.site.clone()).or_default();
            match u64::from_str_radix(&record.rule, 16) {
                Ok(rule) => drop(site.rules.insert(rule, record.since)),
                Err(_) => site.everywhere = Some(record.since),
            }
        }
        history
    }

    /// Replaces the known rules of a site by those that it has now, and returns since when each is
    /// in force: a rule that was known keeps its time, another has `now`. `everywhere`, the last
    /// change of the tags of every page, becomes `now` if the site begins to write into pages or to
    /// take the origin's tags away, or if a rule is gone that no new rule with the same conditions
    /// replaces.
    pub fn follow(&mut self, site: &Site, now: Timestamp) -> TagAges {
        let of_site = self.0.entry(site.name.clone()).or_default();
        let before = std::mem::take(&mut of_site.rules);
        let since = |identity: u64| before.get(&identity).copied().unwrap_or(now);
        let rules: Vec<u64> = site.tags.identities().collect();
        // A 304 also hides, on every page, what is written into pages and that the origin's tags
        // are taken away.
        let mut everywhere = Vec::new();
        if site.html.is_some() {
            everywhere.push(HtmlRules::identity(&site.policy.html));
        }
        if site.tags.strips() {
            everywhere.push(STRIPPED);
        }
        let identities = rules.iter().chain(&everywhere);
        let known: BTreeMap<u64, Timestamp> = identities
            .map(|identity| (*identity, since(*identity)))
            .collect();
        let new: Vec<u64> = known
            .keys()
            .copied()
            .filter(|identity| !before.contains_key(identity))
            .collect();
        // Where a rule only says something else, the new rule is for the same pages and is new. For
        // which pages a rule was that is gone, is not known any more.
        let is_gone = before.keys().any(|gone| {
            let mut new = new.iter();
            !known.contains_key(gone) && !new.any(|new| TagPlan::are_for_the_same(*new, *gone))
        });
        if is_gone
            || everywhere
                .iter()
                .any(|identity| !before.contains_key(identity))
        {
            of_site.everywhere = Some(now);
        }
        of_site.rules = known;
        TagAges {
            since: rules.into_iter().map(since).collect(),
            everywhere: of_site.everywhere,
        }
    }

    /// The facts to store: one for each rule of each site, and one without a rule for `everywhere`.
    pub fn facts(&self) -> impl Iterator<Item = TagChange> {
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
