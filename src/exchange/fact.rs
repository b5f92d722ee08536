//! [`SharedFact`]: one fact (such as which crawler fetched which robots.txt) in the store that
//! several crawlgate instances share. It has a key, a time, and a value, which may be empty.
//! [`MergedFacts`] keeps the latest fact of each key. If two facts with the same key have the same
//! time, it keeps the one with the greater value. So all instances end with the same facts,
//! whatever the order in which the facts arrive.

use std::collections::BTreeMap;

/// A fact in the format of the shared store.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct SharedFact {
    /// Its table and further parts, separated by line feeds (see `codec`). The store does not parse
    /// it.
    pub key: String,
    /// When it was set, in seconds of the store's clock.
    pub at: i64,
    /// Its value as JSON. Empty for an event, whose key has everything (see `codec`). A fact with a
    /// value has one writer: its key names the run or the instance, or the value follows from the
    /// key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// The latest fact of each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MergedFacts(BTreeMap<String, SharedFact>);

impl MergedFacts {
    /// Adds a fact, unless the known one with its key is later, or has the same time and the same
    /// or a greater value. Returns whether it was added.
    pub fn add(&mut self, fact: SharedFact) -> bool {
        let is_newer = self.0.get(&fact.key) < Some(&fact);
        if is_newer {
            self.0.insert(fact.key.clone(), fact);
        }
        is_newer
    }

    /// Adds all facts of `other`.
    #[cfg(test)]
    pub fn merge(&mut self, other: MergedFacts) {
        for fact in other.0.into_values() {
            self.add(fact);
        }
    }

    /// The time of the fact with this key.
    pub fn time(&self, key: &str) -> Option<i64> {
        self.0.get(key).map(|fact| fact.at)
    }

    /// The number of facts.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no fact.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All facts, by key.
    pub fn iter(&self) -> impl Iterator<Item = &SharedFact> {
        self.0.values()
    }

    /// Removes and returns the first facts in the order of keys, at most `most`.
    pub fn take_first(&mut self, most: usize) -> Vec<SharedFact> {
        (0..most)
            .map_while(|_| self.0.pop_first())
            .map(|(_, fact)| fact)
            .collect()
    }

    /// Removes the facts for whose key `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.0.retain(|key, _| keep(key));
    }
}
