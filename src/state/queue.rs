//! [`PendingFacts`]: a queue of facts (such as which robots.txt a crawler was served) that wait to
//! be written to the state database `state.db`. If a fact changes again while it waits, only the
//! latest change is kept. The number of facts and their size are bounded.

use crate::facts::{CLOCK_TOLERANCE, Fact, FactKey};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The most facts that wait.
const MAX_FACTS: usize = 400_000;
/// The most bytes that wait.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// The waiting facts, one for each key.
pub struct PendingFacts {
    facts: BTreeMap<FactKey, Fact>,
    bytes: usize,
    max_facts: usize,
}

impl Default for PendingFacts {
    fn default() -> PendingFacts {
        PendingFacts {
            facts: BTreeMap::new(),
            bytes: 0,
            max_facts: MAX_FACTS,
        }
    }
}

impl PendingFacts {
    /// Adds a fact. It replaces a waiting one with the same key, also in a full queue, unless it is
    /// older by more than the tolerance. Returns false, and drops the fact, if its key is new and
    /// the queue is full.
    #[must_use]
    pub fn add(&mut self, fact: Fact) -> bool {
        let size = fact.size();
        let has_room =
            self.facts.len() < self.max_facts && self.bytes.saturating_add(size) <= MAX_BYTES;
        match self.facts.entry(fact.key()) {
            Entry::Occupied(mut waiting) => {
                let before = waiting.get_mut();
                self.bytes = self.bytes.saturating_sub(before.size());
                merge(before, fact);
                self.bytes += before.size();
                true
            }
            Entry::Vacant(place) if has_room => {
                self.bytes += size;
                place.insert(fact);
                true
            }
            Entry::Vacant(_) => false,
        }
    }

    /// Puts back facts that could not be written, before those that were added meanwhile. Returns
    /// false if one of the latter did not fit and was dropped.
    #[must_use]
    pub fn requeue(&mut self, unwritten: PendingFacts) -> bool {
        let later = std::mem::replace(self, unwritten);
        // `fold`, because every fact must be tried, also after one that does not fit.
        later
            .facts
            .into_values()
            .map(|fact| self.add(fact))
            .fold(true, |all, one| all & one)
    }

    /// The facts, in the order of tables and keys.
    pub fn iter(&self) -> impl Iterator<Item = &Fact> {
        self.facts.values()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    #[cfg(test)]
    pub fn with_max_facts(max_facts: usize) -> PendingFacts {
        PendingFacts {
            max_facts,
            ..PendingFacts::default()
        }
    }
}

/// Replaces `before` by `after`, which has the same key, and keeps the later of both times. Does
/// nothing if `after` is older by more than `CLOCK_TOLERANCE`. [`super::tables::upsert_sql`] has
/// the same rule.
fn merge(before: &mut Fact, after: Fact) {
    if after.at.0.saturating_add(CLOCK_TOLERANCE) >= before.at.0 {
        let at = after.at.max(before.at);
        *before = Fact { at, ..after };
    }
}

#[cfg(test)]
mod tests {
    use super::PendingFacts;
    use crate::facts::{Fact, LastGoodPolicy};
    use crate::time::Timestamp;

    fn policy(at: i64, site: &str, text: &str) -> Fact {
        Fact::set(
            Timestamp(at),
            LastGoodPolicy {
                site: site.into(),
                text: text.into(),
            },
        )
    }

    fn texts(pending: &PendingFacts) -> Vec<(i64, bool)> {
        pending
            .iter()
            .map(|fact| (fact.at.0, fact.is_removal))
            .collect()
    }

    #[test]
    fn only_the_latest_change_of_a_key_waits() {
        let mut pending = PendingFacts::default();
        assert!(
            [
                policy(100, "a", "1"),
                policy(200, "a", "2"),
                policy(100, "a", "3")
            ]
            .map(|fact| pending.add(fact))
                == [true; 3]
        );
        assert_eq!(texts(&pending), [(200, false)]);
        let LastGoodPolicy { site, text } = LastGoodPolicy {
            site: "a".into(),
            text: String::new(),
        };
        assert!(pending.add(Fact::removed(Timestamp(201), LastGoodPolicy { site, text })));
        assert_eq!(texts(&pending), [(201, true)]);
    }

    #[test]
    fn order_of_adding_decides_within_the_clock_tolerance() {
        let mut pending = PendingFacts::default();
        assert!(pending.add(policy(100, "a", "first")) && pending.add(policy(96, "a", "second")));
        assert_eq!(
            pending.iter().cloned().collect::<Vec<_>>(),
            [policy(100, "a", "second")]
        );
    }

    #[test]
    fn requeued_facts_do_not_undo_later_ones() {
        let mut unwritten = PendingFacts::default();
        assert!(unwritten.add(policy(100, "a", "1")) && unwritten.add(policy(100, "b", "1")));
        let mut pending = PendingFacts::default();
        assert!(pending.add(policy(101, "a", "2")));
        assert!(pending.requeue(unwritten));
        assert_eq!(
            pending.iter().cloned().collect::<Vec<_>>(),
            [policy(101, "a", "2"), policy(100, "b", "1")]
        );
    }

    #[test]
    fn full_queue_accepts_only_changes_of_waiting_facts() {
        let mut pending = PendingFacts::with_max_facts(2);
        assert!(pending.add(policy(1, "a", "1")) && pending.add(policy(1, "b", "1")));
        assert!(!pending.add(policy(1, "c", "1")));
        assert!(pending.add(policy(2, "a", "2")));
        assert_eq!(pending.iter().count(), 2);
        assert!(!pending.add(policy(2, "d", &"x".repeat(super::MAX_BYTES))));
    }
}
