//! [`SiteMemory`]: what sites keep through a restart beside the publication log: pauses, tag changes and the last good
//! policies.

use super::pauses::Pauses;
use super::tag_history::TagHistory;
use crate::state::{AnyRecord, LastGoodPolicy, StoredFacts};
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
    /// The memory that an earlier process stored.
    pub fn remembered(facts: &StoredFacts) -> SiteMemory {
        let last_good = facts.last_good_policies.iter();
        SiteMemory {
            pauses: Pauses::remembered(facts),
            tags: TagHistory::remembered(facts),
            last_good: last_good.map(|(_, policy)| (policy.site.clone(), policy.text.as_str().into())).collect(),
        }
    }

    /// Forgets a site whose file is gone. Its pauses stay noted, in case the policy comes back.
    pub fn forget(&mut self, site: &str) {
        self.tags.forget(site);
        self.last_good.remove(site);
    }

    /// The records to store.
    pub fn records(&self) -> impl Iterator<Item = AnyRecord> {
        let policy = |(site, text): (&String, &Arc<str>)| LastGoodPolicy { site: site.clone(), text: text.to_string() };
        let last_good = self.last_good.iter().map(policy).map(AnyRecord::from);
        let pauses = self.pauses.records().map(AnyRecord::from);
        pauses.chain(self.tags.records().map(AnyRecord::from)).chain(last_good)
    }
}
