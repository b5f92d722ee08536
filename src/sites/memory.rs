//! What sites remember through a restart beside their history: pauses, tag changes and the last good policies. The main
//! type is [`SiteMemory`]. This file must not know when facts are written.

use super::pauses::Pauses;
use super::tag_history::TagHistory;
use crate::state::{Fact, Facts, LastGoodPolicy};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// What an earlier process kept.
    pub fn remembered(facts: &Facts) -> SiteMemory {
        let last_good = facts.last_good_policies.iter();
        SiteMemory {
            pauses: Pauses::remembered(facts),
            tags: TagHistory::remembered(facts),
            last_good: last_good.map(|(_, policy)| (policy.site.clone(), policy.text.as_str().into())).collect(),
        }
    }

    /// Forgets a site whose file is gone. What is noted of its pauses stays for a policy that comes back.
    pub fn forget(&mut self, site: &str) {
        self.tags.forget(site);
        self.last_good.remove(site);
    }

    /// The facts that are new or gone, compared with an earlier state.
    pub fn changes(&self, before: &SiteMemory, now: Timestamp) -> Vec<Fact> {
        let mut facts = self.pauses.changes(&before.pauses, now);
        facts.extend(self.tags.changes(&before.tags, now));
        let policy = |site: &String, text: &Arc<str>| LastGoodPolicy { site: site.clone(), text: text.to_string() };
        let new = self.last_good.iter().filter(|(site, text)| before.last_good.get(*site) != Some(*text));
        facts.extend(new.map(|(site, text)| Fact::set(now, policy(site, text))));
        let gone = before.last_good.iter().filter(|(site, _)| !self.last_good.contains_key(*site));
        facts.extend(gone.map(|(site, text)| Fact::removed(now, policy(site, text))));
        facts
    }
}
