//! [`SharedFact`]: a piece of knowledge that one instance writes to the shared store for the
//! others: a key, a time, and mostly a value. Of facts with the same key the latest counts, and of
//! two with the same time the greater value. So merging is commutative, associative and idempotent.

use std::collections::BTreeMap;

/// A fact under its key.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct SharedFact {
    /// Its kind (one letter), and parts with line feeds between them. The store need not understand
    /// it.
    pub key: String,
    /// When it was so, in seconds of the store's clock.
    pub at: i64,
    /// What is so, as JSON or plain text. Empty for a fact that says no more than its key: see
    /// [`super::Event`]. A fact with a value has one writer: its key names the run or the instance,
    /// or the value follows from the key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
}

/// Facts by key, merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Merged(BTreeMap<String, (i64, String)>);

impl Merged {
    /// Adds a fact, unless one with its key is known that is later, or is of the same time with the
    /// same or a greater value. Returns whether it was added.
    pub fn add(&mut self, fact: SharedFact) -> bool {
        let new = (fact.at, fact.value);
        let is_newer = self.0.get(&fact.key) < Some(&new);
        if is_newer {
            self.0.insert(fact.key, new);
        }
        is_newer
    }

    /// Adds all of another.
    #[cfg(test)]
    pub fn merge(&mut self, other: Merged) {
        for (key, (at, value)) in other.0 {
            self.add(SharedFact { key, at, value });
        }
    }

    /// How many keys have a fact.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All facts, by key.
    pub fn iter(&self) -> impl Iterator<Item = SharedFact> {
        self.0.iter().map(|(key, (at, value))| SharedFact {
            key: key.clone(),
            at: *at,
            value: value.clone(),
        })
    }

    /// The key, time and value of each fact whose key begins with a prefix, in the order of keys.
    pub fn starting_with<'a>(
        &'a self,
        prefix: &'a str,
    ) -> impl Iterator<Item = (&'a str, i64, &'a str)> {
        let range = self
            .0
            .range(prefix.to_owned()..)
            .take_while(move |(key, _)| key.starts_with(prefix));
        range.map(|(key, (at, value))| (key.as_str(), *at, value.as_str()))
    }

    /// Removes the first facts in the order of keys, at most so many, and returns them.
    pub fn take(&mut self, most: usize) -> Vec<SharedFact> {
        let taken = (0..most).map_while(|_| self.0.pop_first());
        taken
            .map(|(key, (at, value))| SharedFact { key, at, value })
            .collect()
    }

    /// Forgets the facts for which this does not hold.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, i64, &str) -> bool) {
        self.0.retain(|key, (at, value)| keep(key, *at, value));
    }
}
