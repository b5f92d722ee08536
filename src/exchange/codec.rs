//! Conversion between facts and the [`SharedFact`]s of the shared store. A key is the table of the
//! fact, who wrote it, and the columns of the fact's key, with line feeds between them.
//!
//! A fact of one writer has its other columns as value. An *event* (a version served, a mark, a
//! release, a pause) is a key without a value, and any number of instances may write it: who writes
//! is empty, the other columns stand in the key as well, with moments as seconds after that of the
//! event, and of an event only the last time counts.

use super::SharedFact;
use crate::facts::{
    AnyFact, Fact, Mark, Pause, PauseEvent, Release, Served, Table, TableInfo, Value, Version,
    from_json, table_named, to_json,
};
use crate::publications::VersionFile;
use crate::time::Timestamp;
use serde_json::Value as Json;

/// Parts of a key that are longer are not told.
const MAX_PART: usize = 256;
/// The tables of events.
const EVENTS: [&str; 4] = [
    Served::INFO.name,
    Mark::INFO.name,
    Release::INFO.name,
    Pause::INFO.name,
];

/// The clock of this instance beside that of the store, at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    /// Milliseconds of the store's clock.
    pub store: i64,
    /// Milliseconds by which the own clock is ahead.
    pub ahead: i64,
}

impl Clocks {
    /// The time of the store, in seconds.
    pub fn now(self) -> i64 {
        self.store.div_euclid(1_000)
    }

    /// A moment by the own clock, by that of the store.
    pub fn to_store(self, own: Timestamp) -> i64 {
        own.0.saturating_sub(self.seconds_ahead())
    }

    /// A moment by the clock of the store (in seconds), by the own clock, and two seconds later.
    /// Both are whole seconds, both differences are rounded, and asking for the time takes some: a
    /// copy is taken for two seconds younger rather than for older than it is.
    pub fn to_own(self, store: i64) -> Timestamp {
        Timestamp(self.nearest(store).0.saturating_add(2))
    }

    /// As [`Clocks::to_own`], without the two seconds: as exactly as it is known.
    pub fn nearest(self, store: i64) -> Timestamp {
        Timestamp(store.saturating_add(self.seconds_ahead()))
    }

    /// By how many seconds the own clock is ahead of the store's, rounded to the nearest.
    fn seconds_ahead(self) -> i64 {
        self.ahead.saturating_add(500).div_euclid(1_000)
    }
}

/// Whether a key is of a fact of this kind.
pub fn is_of<T: Table>(key: &str) -> bool {
    key.split_once('\n')
        .is_some_and(|(table, _)| table == T::INFO.name)
}

/// The key of a fact of one writer.
pub fn key_of(writer: &str, fact: &AnyFact) -> String {
    let mut key = format!("{}\n{writer}", fact.table().name);
    for part in fact.key() {
        key.push('\n');
        match part {
            Value::Text(text) => key.push_str(&text),
            Value::Integer(number) | Value::Time(Timestamp(number)) => {
                key.push_str(&number.to_string())
            }
            // No key has such a column.
            Value::Null | Value::Bytes(_) => {}
        }
    }
    key
}

/// A fact of one writer, at a time of the store's clock. Moments in it are converted to that clock.
pub fn write(writer: &str, fact: &AnyFact, at: i64, clocks: Clocks) -> SharedFact {
    let values = fact.values().into_iter();
    let values: Vec<Json> = values
        .map(|value| {
            to_json(value, |own| match own.0 {
                // The beginning of time, by every clock.
                ..=0 => own.0,
                _ => clocks.to_store(own),
            })
        })
        .collect();
    SharedFact {
        key: key_of(writer, fact),
        at,
        value: Json::Array(values).to_string(),
    }
}

/// Reads a fact of one writer, and who wrote it. Moments are converted to the own clock. `None`
/// where the key is that of an event, or something cannot be read.
pub fn read<'a>(key: &'a str, value: &str, clocks: Clocks) -> Option<(&'a str, AnyFact)> {
    let Key {
        table,
        writer,
        parts,
    } = Key::parse(key)?;
    let values: Vec<Json> = serde_json::from_str(value).ok()?;
    let fact = read_columns(table, &parts, values, |store| match store {
        ..=0 => Timestamp(store),
        _ => clocks.to_own(store),
    })?;
    Some((writer, fact))
}

/// An event at a time of the store's clock, in seconds. `None` where the fact is no event, or a
/// name in it is long or has a line feed, so that it cannot stand in a key.
pub fn write_event(fact: &Fact, at: i64) -> Option<SharedFact> {
    let mut key = key_of("", &fact.fact);
    let values = fact.fact.values();
    if fact.is_removal {
        key.push_str("\n[]");
    } else if !values.is_empty() {
        let values = values.into_iter();
        let values: Vec<Json> = values
            .map(|value| to_json(value, |moment| moment.0.saturating_sub(fact.at.0)))
            .collect();
        key.push('\n');
        key.push_str(&Json::Array(values).to_string());
    }
    // A line feed in a name would make another event of it.
    let read = read_event(&key, fact.at)?;
    let is_sound = read.fact.key() == fact.fact.key()
        && read.is_removal == fact.is_removal
        && key.split('\n').all(|part| part.len() <= MAX_PART);
    is_sound.then_some(SharedFact {
        key,
        at,
        value: String::new(),
    })
}

/// Reads the key of an event that happened at a moment. `None` where it is none.
pub fn read_event(key: &str, at: Timestamp) -> Option<Fact> {
    let Key {
        table, mut parts, ..
    } = Key::parse(key)?;
    if !EVENTS.contains(&table.name) {
        return None;
    }
    let mut values: Vec<Json> = Vec::new();
    if !table.values.is_empty() {
        values = serde_json::from_str(parts.pop()?).ok()?;
    }
    if values.is_empty() && table.name == Pause::INFO.name {
        let ended = Pause::of_plan(parts.first()?, "", PauseEvent::Switched, at);
        return Some(Fact::removed(at, ended));
    }
    let fact = read_columns(table, &parts, values, |seconds| {
        Timestamp(at.0.saturating_add(seconds))
    })?;
    Some(Fact::set(at, fact))
}

/// The parts of a key.
struct Key<'a> {
    table: &'static TableInfo,
    writer: &'a str,
    /// The columns of the fact's key, and what stands behind them.
    parts: Vec<&'a str>,
}

impl<'a> Key<'a> {
    fn parse(key: &'a str) -> Option<Key<'a>> {
        let mut parts = key.split('\n');
        let name = parts.next()?;
        Some(Key {
            table: table_named(name)?,
            writer: parts.next()?,
            parts: parts.collect(),
        })
    }
}

/// The fact with these parts of a key and these other columns. `moment` converts moments.
fn read_columns(
    table: &'static TableInfo,
    parts: &[&str],
    values: Vec<Json>,
    moment: impl Fn(i64) -> Timestamp,
) -> Option<AnyFact> {
    if parts.len() != table.key.len() || values.len() != table.values.len() {
        return None;
    }
    let mut columns = Vec::new();
    for (column, part) in table.key.iter().zip(parts) {
        let number = column.definition.starts_with("INTEGER");
        columns.push(if number {
            Value::Integer(part.parse().ok()?)
        } else {
            Value::Text(part.to_string())
        });
    }
    for (column, value) in table.values.iter().zip(values) {
        columns.push(from_json(column, value, &moment)?);
    }
    AnyFact::read(table, &mut columns.into_iter())
}

/// The fact with the bytes of a version.
pub fn write_file(file: VersionFile, at: i64) -> SharedFact {
    let (id, bytes) = file;
    write("", &Version { id, bytes }.into(), at, Clocks::default())
}
