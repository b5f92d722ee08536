//! [`changes`]: the difference of two sets of records, as facts. Records with the same table and key are two states of one
//! record.

use super::facts::{AnyRecord, Fact};
use crate::time::Timestamp;
use rusqlite::types::Value;
use std::collections::BTreeMap;

/// A table and the key of a record in it.
pub(super) type Key = (&'static str, Vec<KeyPart>);

/// A column of a key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyPart {
    Integer(i64),
    Text(String),
}

/// The key of a record.
pub(super) fn key_of(record: &AnyRecord) -> Key {
    let part = |value| match value {
        Value::Integer(number) => KeyPart::Integer(number),
        Value::Text(text) => KeyPart::Text(text),
        // No key has such a column.
        Value::Null | Value::Real(_) | Value::Blob(_) => KeyPart::Text(String::new()),
    };
    (record.table(), record.key_and_values().0.into_iter().map(part).collect())
}

/// The facts that are new or gone in `after`, compared with `before`.
pub fn changes(
    before: impl IntoIterator<Item = AnyRecord>,
    after: impl IntoIterator<Item = AnyRecord>,
    now: Timestamp,
) -> Vec<Fact> {
    let mut known: BTreeMap<Key, AnyRecord> = before.into_iter().map(|record| (key_of(&record), record)).collect();
    let mut facts = Vec::new();
    for record in after {
        if known.remove(&key_of(&record)).as_ref() != Some(&record) {
            facts.push(Fact::set(now, record));
        }
    }
    facts.extend(known.into_values().map(|gone| Fact::removed(now, gone)));
    facts
}
