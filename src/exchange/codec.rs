//! Converts facts (such as which crawler fetched which robots.txt) to [`SharedFact`]s and back. A
//! `SharedFact` is a key, a time and a value: the form of a fact in the Redis or Valkey store that
//! several crawlgate instances share. There are two kinds of facts:
//!
//! - Some facts are written by one instance only. The key has the name of the fact's table, the
//!   writer, and the columns that identify the fact, separated by line feeds. The value has the
//!   other columns.
//! - *Events* may be written by several instances: a crawler was served a robots.txt, a client was
//!   marked for breaking the rules, a client was released, or a site was paused. The key has the
//!   name of the table and all columns, but no writer. The value is empty. A time in the key (such
//!   as the end of a pause) is a number of seconds since the event. If an event happens again, its
//!   latest time counts.

use super::SharedFact;
use crate::facts::{
    AnyFact, ClientMark, ColumnValue, Fact, FactTable, MarkRelease, PauseEvent, PauseRecord,
    ServedVersion, SqlTableSchema, VersionBytes, find_table, value_from_json, value_to_json,
};
use crate::policy::RobotsVersionId;
use crate::time::Timestamp;
use serde_json::Value as Json;
use std::sync::Arc;

/// The tables of events.
const EVENT_TABLES: [&str; 4] = [
    ServedVersion::SCHEMA.name,
    ClientMark::SCHEMA.name,
    MarkRelease::SCHEMA.name,
    PauseRecord::SCHEMA.name,
];

/// The clocks of the store and of this instance at one moment. Converts times between them.
#[derive(Clone, Copy, Default)]
pub struct StoreClockOffset {
    /// Milliseconds of the store's clock.
    pub store: i64,
    /// Milliseconds by which the own clock is ahead.
    pub ahead: i64,
}

impl StoreClockOffset {
    /// The time of the store, in seconds.
    pub fn now(self) -> i64 {
        self.store.div_euclid(1_000)
    }

    /// Converts a moment of the own clock to seconds of the store's clock.
    pub fn to_store(self, own: Timestamp) -> i64 {
        own.0.saturating_sub(self.seconds_ahead())
    }

    /// Converts seconds of the store's clock to the own clock, and adds two seconds. Times and
    /// clock differences are rounded to seconds, and reading the store's clock takes time. So a
    /// cached copy seems up to two seconds younger, and never older than it is.
    pub fn to_own(self, store: i64) -> Timestamp {
        Timestamp(self.to_own_exact(store).0.saturating_add(2))
    }

    /// Like [`StoreClockOffset::to_own`], without the two seconds.
    pub fn to_own_exact(self, store: i64) -> Timestamp {
        Timestamp(store.saturating_add(self.seconds_ahead()))
    }

    /// Seconds by which the own clock is ahead of the store's, rounded.
    fn seconds_ahead(self) -> i64 {
        self.ahead.saturating_add(500).div_euclid(1_000)
    }
}

/// Whether a key belongs to a fact of kind `T`.
pub fn is_key_of<T: FactTable>(key: &str) -> bool {
    key.split_once('\n')
        .is_some_and(|(table, _)| table == T::SCHEMA.name)
}

/// The key of a fact of one writer.
pub fn writer_key(writer: &str, fact: &AnyFact) -> String {
    use ColumnValue::*;
    let mut key = format!("{}\n{writer}", fact.table().name);
    for part in fact.key() {
        key.push('\n');
        match part {
            Text(text) => key.push_str(&text),
            Integer(number) | Time(Timestamp(number)) => key.push_str(&number.to_string()),
            // No key has such columns.
            _ => {}
        }
    }
    key
}

/// Encodes a fact of one writer. `at` and the moments in the result are by the store's clock.
pub fn encode_fact(writer: &str, fact: &AnyFact, at: i64, clocks: StoreClockOffset) -> SharedFact {
    let value = columns_json(fact, |own| match own.0 {
        // Zero means the beginning of time on every clock.
        ..=0 => own.0,
        _ => clocks.to_store(own),
    });
    SharedFact {
        key: writer_key(writer, fact),
        at,
        value,
    }
}

/// The other columns of a fact as JSON. `seconds` converts moments.
fn columns_json(fact: &AnyFact, seconds: impl Fn(Timestamp) -> i64) -> String {
    let values = fact.values().into_iter();
    let values = values.map(|value| value_to_json(value, &seconds)).collect();
    Json::Array(values).to_string()
}

/// Decodes a fact of one writer, and returns the writer with it. Moments are by the own clock.
/// `None` for an event, and if something cannot be parsed.
pub fn decode_fact<'a>(
    key: &'a str,
    value: &str,
    clocks: StoreClockOffset,
) -> Option<(&'a str, AnyFact)> {
    let StoreKeyParts {
        table,
        writer,
        parts,
    } = StoreKeyParts::parse(key)?;
    let values: Vec<Json> = serde_json::from_str(value).ok()?;
    let fact = decode_columns(table, &parts, values, |store| match store {
        ..=0 => Timestamp(store),
        _ => clocks.to_own(store),
    })?;
    Some((writer, fact))
}

/// Encodes a fact of one of `EVENT_TABLES` that happened at `at`, in seconds of the store's clock.
pub fn encode_event(fact: &Fact, at: i64) -> SharedFact {
    let mut key = writer_key("", &fact.fact);
    if fact.is_removal {
        key.push_str("\n[]");
    } else if !fact.fact.table().values.is_empty() {
        key.push('\n');
        key += &columns_json(&fact.fact, |moment| moment.0.saturating_sub(fact.at.0));
    }
    SharedFact {
        key,
        at,
        value: String::new(),
    }
}

/// Decodes the key of an event that happened at `at`. `None` if it is no event.
pub fn decode_event(key: &str, at: Timestamp) -> Option<Fact> {
    let StoreKeyParts {
        table, mut parts, ..
    } = StoreKeyParts::parse(key)?;
    if !EVENT_TABLES.contains(&table.name) {
        return None;
    }
    let mut values: Vec<Json> = Vec::new();
    if !table.values.is_empty() {
        values = serde_json::from_str(parts.pop()?).ok()?;
    }
    if values.is_empty() && table.name == PauseRecord::SCHEMA.name {
        let ended = PauseRecord::for_pause_event(parts.first()?, "", PauseEvent::Switched, at);
        return Some(Fact::removed(at, ended));
    }
    let fact = decode_columns(table, &parts, values, |seconds| {
        Timestamp(at.0.saturating_add(seconds))
    })?;
    Some(Fact::set(at, fact))
}

/// A key of the store, split into its parts.
struct StoreKeyParts<'a> {
    table: &'static SqlTableSchema,
    writer: &'a str,
    /// The columns of the fact's key, and what follows them.
    parts: Vec<&'a str>,
}

impl<'a> StoreKeyParts<'a> {
    fn parse(key: &'a str) -> Option<StoreKeyParts<'a>> {
        let mut parts = key.split('\n');
        let name = parts.next()?;
        Some(StoreKeyParts {
            table: find_table(name)?,
            writer: parts.next()?,
            parts: parts.collect(),
        })
    }
}

/// Builds a fact from the columns of its key (`parts`) and its other columns (`values`). `moment`
/// converts moments.
fn decode_columns(
    table: &'static SqlTableSchema,
    parts: &[&str],
    values: Vec<Json>,
    moment: impl Fn(i64) -> Timestamp,
) -> Option<AnyFact> {
    if parts.len() != table.key.len() || values.len() != table.values.len() {
        return None;
    }
    let mut columns = Vec::new();
    for (column, part) in table.key.iter().zip(parts) {
        let number = column.sql_type.starts_with("INTEGER");
        columns.push(if number {
            ColumnValue::Integer(part.parse().ok()?)
        } else {
            ColumnValue::Text(part.to_string())
        });
    }
    for (column, value) in table.values.iter().zip(values) {
        columns.push(value_from_json(column, value, &moment)?);
    }
    AnyFact::read(table, &mut columns.into_iter())
}

/// Encodes the bytes of a version.
pub fn encode_file(id: RobotsVersionId, bytes: Arc<[u8]>, at: i64) -> SharedFact {
    encode_fact(
        "",
        &VersionBytes { id, bytes }.into(),
        at,
        StoreClockOffset::default(),
    )
}
