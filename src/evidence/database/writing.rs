//! [`Writing`]: a transaction, which appends entries, makes checkpoints, and keeps changes of the key and timestamps.

use super::rows::{Chain, Rows, first};
use super::{DatabaseError, RunEnd};
use crate::evidence::personal::fresh_salt;
use crate::evidence::{ChainName, Checkpoint, Entry, Hash, NoRandom, SigningKey, commitment, hash_of, merkle};
use rusqlite::{Connection, Transaction, params};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What an entry is made of.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// `request`, `served`, ...
    pub kind: &'static str,
    /// What it says.
    pub data: Map<String, Value>,
    /// Values that are personal data, by their name.
    pub personal: Vec<(&'static str, String)>,
    /// Files that it names by their SHA-256.
    pub documents: Vec<Arc<[u8]>>,
    /// What proves who the client was. It becomes an entry of its own, once, which the entry names.
    pub proof: Option<Box<ProofRecord>>,
}

impl Record {
    /// A record with this data. What is null is left out.
    pub fn of(kind: &'static str, data: Value) -> Record {
        let mut data = data.as_object().cloned().unwrap_or_default();
        data.retain(|_, value| !value.is_null());
        Record { kind, data, ..Record::default() }
    }
}

/// What a `proof` entry is made of.
#[derive(Clone, Debug, Default)]
pub struct ProofRecord {
    /// What it says.
    pub data: Map<String, Value>,
    /// Values that are personal data, by their name.
    pub personal: Vec<(&'static str, String)>,
    /// Lists that it names by their SHA-256.
    pub documents: Vec<Arc<[u8]>>,
}

/// The place of an entry that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its number.
    pub number: u64,
    /// The hash of its line.
    pub hash: Hash,
}

/// What one transaction can do.
pub struct Writing<'t>(pub(super) &'t Transaction<'t>);

impl Rows for Writing<'_> {
    fn connection(&self) -> &Connection {
        self.0
    }
}

impl Writing<'_> {
    /// Begins a log.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin_log(&self, id: &str, time: &str) -> Result<(), DatabaseError> {
        let row = "INSERT INTO log (one, id, runs, committed, clean) VALUES (1, ?1, 0, ?2, 1)";
        self.0.execute(row, [id, time])?;
        Ok(())
    }

    /// Counts one more process that writes the log.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin_run(&self) -> Result<(), DatabaseError> {
        self.0.execute("UPDATE log SET runs = runs + 1", [])?;
        Ok(())
    }

    /// Says until when the log is complete, and how the process ends if it ends with this.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_committed(&self, time: &str, end: Option<RunEnd>) -> Result<(), DatabaseError> {
        let clean = end.map_or(0, |end| end as u8);
        self.0.execute("UPDATE log SET committed = ?1, clean = ?2", params![time, clean])?;
        Ok(())
    }

    /// Appends an entry to the chain of the log itself.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&self, kind: &'static str, data: Value, now: &str) -> Result<(), DatabaseError> {
        self.append(&ChainName::of_log(), Record::of(kind, data), now).map(drop)
    }

    /// Appends an entry, without the proof of its record. Its time is `now`, or that of the entry or checkpoint before it where
    /// that is later.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&self, name: &ChainName, record: Record, now: &str) -> Result<Appended, DatabaseError> {
        let log: String = self.0.prepare_cached("SELECT id FROM log")?.query_row([], |row| row.get(0))?;
        let known = self.chain(name)?;
        let (number, previous, time) = match &known {
            Some(chain) => (chain.head.entries, chain.head.hash, now.max(chain.time.as_str())),
            None => (0, Hash::NONE, now),
        };
        // No earlier than the last checkpoint, also where the clock was set back: an entry that is would be back-dated.
        let covered: Option<Option<String>> = first(self.0, "SELECT max(time) FROM checkpoints", [], |row| row.get(0))?;
        let time = covered.as_ref().and_then(Option::as_deref).map_or(time, |covered| time.max(covered));
        let salted = record.personal.into_iter().map(|(field, value)| Ok((field, fresh_salt()?, value)));
        let values: Vec<_> = salted.collect::<Result<_, NoRandom>>()?;
        let commitments = values.iter().map(|(field, salt, value)| ((*field).to_owned(), commitment(salt, value)));
        let entry = Entry {
            chain: name.clone(),
            log,
            number,
            previous,
            time: time.to_owned(),
            kind: record.kind.to_owned(),
            data: record.data,
            personal: commitments.collect(),
        };
        let line = entry.line();
        let id = self.set_head(known.as_ref(), name, &line, &entry)?;
        let row = "INSERT INTO entries (chain, number, time, kind, line) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.0.prepare_cached(row)?.execute(params![id, number, time, record.kind, line])?;
        let row = "INSERT INTO personal (chain, number, name, salt, value) VALUES (?1, ?2, ?3, ?4, ?5)";
        for (field, salt, value) in values {
            self.0.prepare_cached(row)?.execute(params![id, number, field, salt, value])?;
        }
        record.documents.iter().try_for_each(|bytes| self.keep_document(bytes, time))?;
        Ok(Appended { number, hash: hash_of(&line) })
    }

    fn set_head(&self, known: Option<&Chain>, name: &ChainName, line: &str, entry: &Entry) -> rusqlite::Result<i64> {
        let (hash, entries) = (hash_of(line), entry.number + 1);
        if let Some(chain) = known {
            let row = "UPDATE chains SET entries = ?2, head = ?3, time = ?4 WHERE id = ?1";
            self.0.prepare_cached(row)?.execute(params![chain.id, entries, hash.0, entry.time])?;
            return Ok(chain.id);
        }
        let row = "INSERT INTO chains (site, crawler, first, entries, head, time) VALUES (?1, ?2, 0, ?3, ?4, ?5)";
        self.0.execute(row, params![name.site, name.crawler, entries, hash.0, entry.time])?;
        Ok(self.0.last_insert_rowid())
    }

    fn keep_document(&self, bytes: &[u8], time: &str) -> Result<(), DatabaseError> {
        let hash = Hash::of(&[bytes]);
        let used = "UPDATE documents SET used = ?2 WHERE sha256 = ?1";
        if self.0.prepare_cached(used)?.execute(params![hash.0, time])? == 0 {
            let row = "INSERT INTO documents (sha256, bytes, used) VALUES (?1, ?2, ?3)";
            self.0.execute(row, params![hash.0, bytes, time])?;
        }
        Ok(())
    }

    /// Makes and signs a checkpoint over the heads of all chains. Returns its number.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn checkpoint(&self, key: &SigningKey, now: &str) -> Result<u64, DatabaseError> {
        let (mut chains, last) = (self.chains()?, self.last_checkpoint()?);
        chains.sort_by(|one, other| one.head.chain.cmp(&other.head.chain));
        let leaves: Vec<Hash> = chains.iter().map(|chain| chain.head.leaf()).collect();
        let number = last.as_ref().map_or(0, |(number, ..)| number + 1);
        // No earlier than what it covers, also where the clock was set back.
        let latest = chains.iter().map(|chain| chain.time.as_str()).chain(last.iter().map(|last| last.1.as_str()));
        let time = latest.fold(now, |latest, time| latest.max(time)).to_owned();
        let checkpoint = Checkpoint {
            origin: key.verify_key().name().to_owned(),
            leaves: leaves.len(),
            root: merkle::root(&leaves),
            number,
            previous: last.map_or(Hash::NONE, |(_, _, note)| hash_of(&note)),
            time,
        };
        let note = key.sign(&checkpoint.text());
        let row = "INSERT INTO checkpoints (number, time, note) VALUES (?1, ?2, ?3)";
        self.0.execute(row, params![number, checkpoint.time, note])?;
        let row = "INSERT INTO heads (checkpoint, place, chain, entries, hash) VALUES (?1, ?2, ?3, ?4, ?5)";
        for (place, chain) in chains.iter().enumerate() {
            let head = &chain.head;
            self.0.prepare_cached(row)?.execute(params![number, place, chain.id, head.entries, head.hash.0])?;
        }
        Ok(number)
    }

    /// Keeps the note about a change of the key. `note` gets its number, from 1.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn change_key(&self, key: &str, note: impl FnOnce(u64) -> String) -> Result<(), DatabaseError> {
        let number: u64 = self.0.query_row("SELECT count(*) + 1 FROM keys", [], |row| row.get(0))?;
        let row = "INSERT INTO keys (number, note, key) VALUES (?1, ?2, ?3)";
        self.0.execute(row, params![number, note(number), key])?;
        Ok(())
    }

    /// Says which authorities checkpoints get timestamps of.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_authorities(&self, urls: &[String]) -> Result<(), DatabaseError> {
        self.0.execute("DELETE FROM authorities", [])?;
        for url in urls {
            self.0.execute("INSERT OR IGNORE INTO authorities (url) VALUES (?1)", [url])?;
        }
        Ok(())
    }

    /// Keeps a timestamp.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_timestamp(&self, checkpoint: u64, authority: &str, response: &[u8]) -> Result<(), DatabaseError> {
        let row = "INSERT OR REPLACE INTO timestamps (checkpoint, authority, response) VALUES (?1, ?2, ?3)";
        self.0.execute(row, params![checkpoint, authority, response])?;
        Ok(())
    }
}
