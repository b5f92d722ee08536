//! [`Pending`]: the facts (changes of records) that wait to be written to `state.db`. Of several
//! facts about one record only the latest is kept. The number of facts and their size are bounded.

use crate::facts::{Fact, Key, TOLERANCE};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// At most so many facts wait.
const MAX_FACTS: usize = 400_000;
/// At most so many bytes wait.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// Facts that wait, one for each key.
#[derive(Debug)]
pub struct Pending {
    facts: BTreeMap<Key, Fact>,
    bytes: usize,
    max_facts: usize,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending {
            facts: BTreeMap::new(),
            bytes: 0,
            max_facts: MAX_FACTS,
        }
    }
}

impl Pending {
    /// Adds a fact that was put after those that wait. A fact about the same record is merged with
    /// it, also in a full queue, and stays as it is if the new one is older by more than the
    /// tolerance. Returns false, and drops the fact, if its record is new and the queue is full.
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

    /// Puts back facts that could not be written, before those that were put meanwhile, which are
    /// added to them anew. Returns false if there was no room for one of the latter, which is
    /// dropped.
    #[must_use]
    pub fn put_back(&mut self, unwritten: Pending) -> bool {
        let later = std::mem::replace(self, unwritten);
        // Every fact is to be tried, one without room too.
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
    pub fn bounded_by(max_facts: usize) -> Pending {
        Pending {
            max_facts,
            ..Pending::default()
        }
    }
}

/// Replaces a fact by a later one about the same record, with the later of both times. Keeps
/// `before` if `after` is older by more than `TOLERANCE`. The tables have the same rule: see
/// [`super::tables::upsert_of`].
fn merge(before: &mut Fact, after: Fact) {
    if after.at.0.saturating_add(TOLERANCE) >= before.at.0 {
        let at = after.at.max(before.at);
        *before = Fact { at, ..after };
    }
}

#[cfg(test)]
mod tests {
    use super::Pending;
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

    fn texts(pending: &Pending) -> Vec<(i64, bool)> {
        pending
            .iter()
            .map(|fact| (fact.at.0, fact.is_removal))
            .collect()
    }

    #[test]
    fn only_the_latest_change_of_a_key_waits() {
        let mut pending = Pending::default();
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
    fn within_the_tolerance_of_clocks_the_order_of_putting_decides() {
        let mut pending = Pending::default();
        assert!(pending.add(policy(100, "a", "first")) && pending.add(policy(96, "a", "second")));
        assert_eq!(
            pending.iter().cloned().collect::<Vec<_>>(),
            [policy(100, "a", "second")]
        );
    }

    #[test]
    fn what_is_put_back_does_not_undo_what_came_after_it() {
        let mut unwritten = Pending::default();
        assert!(unwritten.add(policy(100, "a", "1")) && unwritten.add(policy(100, "b", "1")));
        let mut pending = Pending::default();
        assert!(pending.add(policy(101, "a", "2")));
        assert!(pending.put_back(unwritten));
        assert_eq!(
            pending.iter().cloned().collect::<Vec<_>>(),
            [policy(101, "a", "2"), policy(100, "b", "1")]
        );
    }

    #[test]
    fn a_full_queue_takes_changes_of_what_waits_and_nothing_else() {
        let mut pending = Pending::bounded_by(2);
        assert!(pending.add(policy(1, "a", "1")) && pending.add(policy(1, "b", "1")));
        assert!(!pending.add(policy(1, "c", "1")));
        assert!(pending.add(policy(2, "a", "2")));
        assert_eq!(pending.iter().count(), 2);
        assert!(!pending.add(policy(2, "d", &"x".repeat(super::MAX_BYTES))));
    }
}
