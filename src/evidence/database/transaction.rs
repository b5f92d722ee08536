//! [`WriteTransaction`]: one SQLite transaction that writes to the evidence log. It appends entries
//! ([`NewEntry`]) to hash chains, in which each entry has the hash of the entry before it. It
//! stores checkpoints (signed summaries of the log) with their timestamps, and changes of the
//! signing key. It deletes old entries, and the personal values (such as addresses of clients) that
//! an operator withdraws.

use super::{EvidenceDatabase, Result, RunEnd};
use crate::evidence::{
    ChainName, Checkpoint, DocumentRef, EntryRef, EvidenceEntry, Hash, SigningKey, commitment,
    line_hash, merkle, note::random_bytes,
};
use rusqlite::{Params, params};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// The most entries that one transaction deletes: other writers wait for it.
pub const MAX_DELETED_ENTRIES: u64 = 20_000;

/// The row of a chain, and the number of an entry in it.
pub type EntryKey = (i64, i64);

/// How far [`WriteTransaction::prune`] came.
#[derive(Debug, PartialEq)]
pub struct PruneResult {
    /// Deleted entries.
    pub entries: u64,
    /// Whether nothing too old is left.
    pub is_complete: bool,
}

/// The content of an entry that is to be appended to a chain.
#[derive(Clone, Default)]
pub struct NewEntry {
    /// `request`, `served`, ...
    pub kind: &'static str,
    /// The content, by kind.
    pub data: Map<String, Value>,
    /// Personal values with their names, stored beside the entry.
    pub personal: Vec<(&'static str, String)>,
    /// Files that the data names by SHA-256.
    pub documents: Vec<Arc<[u8]>>,
    /// The proof of the client's identity. It becomes an entry of its own, which this one refers to.
    pub proof: Option<Box<NewEntry>>,
}

impl NewEntry {
    /// Leaves null values out.
    pub fn new(kind: &'static str, data: Value) -> NewEntry {
        let mut data = data.as_object().cloned().unwrap_or_default();
        data.retain(|_, value| !value.is_null());
        NewEntry {
            kind,
            data,
            ..NewEntry::default()
        }
    }
}

/// An open transaction, which other writers wait for.
pub struct WriteTransaction<'t>(pub(super) &'t EvidenceDatabase);

impl Deref for WriteTransaction<'_> {
    type Target = EvidenceDatabase;

    fn deref(&self) -> &EvidenceDatabase {
        self.0
    }
}

impl WriteTransaction<'_> {
    fn execute(&self, statement: &str, parameters: impl Params) -> Result {
        self.connection
            .prepare_cached(statement)?
            .execute(parameters)?;
        Ok(())
    }

    /// Begins a log without runs. `id` is the name of its key.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn insert_log(&self, id: &str, time: &str) -> Result {
        self.execute(
            "INSERT INTO log (one, id, runs, committed, clean) VALUES (1, ?1, 0, ?2, 1)",
            [id, time],
        )
    }

    /// Counts one more process that writes the log.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn increment_runs(&self) -> Result {
        self.execute("UPDATE log SET runs = runs + 1", [])
    }

    /// Records that the log is complete until `time`. `end` is given in the last transaction of a
    /// process; without it the next run reports a crash.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_complete_until(&self, time: &str, end: Option<RunEnd>) -> Result {
        let clean = end.map_or(0, |end| end as u8);
        self.execute(
            "UPDATE log SET committed = ?1, clean = ?2",
            params![time, clean],
        )
    }

    /// Appends an entry to the chain of the log itself.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append_to_log_chain(&self, kind: &'static str, data: Value, now: &str) -> Result {
        self.append(&ChainName::of_log(), NewEntry::new(kind, data), now)
            .map(drop)
    }

    /// Appends an entry to a chain, which may be new, and stores its personal values and documents.
    /// Does not write its proof. The time of the entry is `now`, or that of the entry or checkpoint
    /// before it if that is later.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&self, name: &ChainName, record: NewEntry, now: &str) -> Result<EntryRef> {
        let log = self.query_value("SELECT id FROM log", [])?;
        let known = self.chain(name)?;
        let (number, previous, time) = match &known {
            Some(chain) => (
                chain.head.entries,
                chain.head.hash,
                now.max(chain.last_time.as_str()),
            ),
            None => (0, Hash::ZERO, now),
        };
        // If the clock was set back, an entry before the last checkpoint would look back-dated.
        let covered: Option<String> = self.query_value("SELECT max(time) FROM checkpoints", [])?;
        let time = covered.as_deref().map_or(time, |covered| time.max(covered));
        let mut values = Vec::new();
        let mut commitments = BTreeMap::new();
        for (field, value) in record.personal {
            let salt = random_bytes::<16>()?;
            commitments.insert(field.to_owned(), commitment(&salt, &value));
            values.push((field, salt, value));
        }
        let entry = EvidenceEntry {
            chain: name.clone(),
            log,
            number,
            previous,
            time: time.to_owned(),
            kind: record.kind.to_owned(),
            data: record.data,
            personal: commitments,
        };
        let line = entry.to_line();
        let hash = line_hash(&line);
        let row = "INSERT INTO chains (site, crawler, first, entries, head, time) VALUES (?1, ?2, 0, ?3, ?4, ?5) ON CONFLICT \
                   (site, crawler) DO UPDATE SET entries = ?3, head = ?4, time = ?5 RETURNING id";
        let id: i64 = self.query_value(
            row,
            params![name.site, name.crawler, number + 1, hash.0, time],
        )?;
        let row =
            "INSERT INTO entries (chain, number, time, kind, line) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.execute(row, params![id, number, time, record.kind, line])?;
        let row =
            "INSERT INTO personal (chain, number, name, salt, value) VALUES (?1, ?2, ?3, ?4, ?5)";
        for (field, salt, value) in values {
            self.execute(row, params![id, number, field, salt, value])?;
        }
        let row = "INSERT INTO documents (sha256, bytes, used) VALUES (?1, ?2, ?3) ON CONFLICT (sha256) DO UPDATE SET used = ?3";
        for bytes in &record.documents {
            self.execute(row, params![Hash::digest(&[bytes]).0, &**bytes, time])?;
        }
        Ok(EntryRef { number, hash })
    }

    /// Signs a checkpoint over the heads of all chains, and returns its number. Its time is `now`, or
    /// that of the last entry or checkpoint if that is later.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create_checkpoint(&self, key: &SigningKey, now: &str) -> Result<u64> {
        let chains = self.chains()?;
        let last = self.last_checkpoint()?;
        let leaves: Vec<Hash> = chains.iter().map(|chain| chain.head.leaf_hash()).collect();
        let number = last.as_ref().map_or(0, |(number, ..)| number + 1);
        let latest = chains
            .iter()
            .map(|chain| chain.last_time.as_str())
            .chain(last.iter().map(|last| last.1.as_str()));
        let time = latest.fold(now, |latest, time| latest.max(time)).to_owned();
        let checkpoint = Checkpoint {
            origin: key.verify_key().name,
            leaves: leaves.len(),
            root: merkle::tree_root(&leaves),
            number,
            previous: last.map_or(Hash::ZERO, |(_, _, note, _)| line_hash(&note)),
            time,
        };
        let note = key.sign_note(&checkpoint.to_text());
        let row = "INSERT INTO checkpoints (number, time, note) VALUES (?1, ?2, ?3)";
        self.execute(row, params![number, checkpoint.time, note])?;
        let row = "INSERT INTO heads (checkpoint, place, chain, entries, hash) VALUES (?1, ?2, ?3, ?4, ?5)";
        for (place, chain) in chains.iter().enumerate() {
            let head = &chain.head;
            self.execute(
                row,
                params![number, place, chain.id, head.entries, head.hash.0],
            )?;
        }
        Ok(number)
    }

    /// Stores the new public key, and the signed note about the change, which `note` makes from the
    /// number of the change (from 1).
    ///
    /// # Errors
    /// It cannot be written.
    pub fn store_key_change(&self, key: &str, note: impl FnOnce(u64) -> String) -> Result {
        let number = self.query_value("SELECT count(*) + 1 FROM keys", [])?;
        self.execute(
            "INSERT INTO keys (number, note, key) VALUES (?1, ?2, ?3)",
            params![number, note(number), key],
        )
    }

    /// Replaces the URLs of the timestamp authorities.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_timestamp_authorities(&self, urls: &[String]) -> Result {
        self.execute("DELETE FROM authorities", [])?;
        let row = "INSERT OR IGNORE INTO authorities (url) VALUES (?1)";
        urls.iter().try_for_each(|url| self.execute(row, [url]))
    }

    /// Stores or replaces the response of an authority for a checkpoint.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn store_timestamp(&self, checkpoint: u64, authority: &str, response: &[u8]) -> Result {
        self.execute(
            "INSERT OR REPLACE INTO timestamps (checkpoint, authority, response) VALUES (?1, ?2, ?3)",
            params![checkpoint, authority, response],
        )
    }

    /// Deletes entries before a time with their personal values, then documents and checkpoints. The
    /// last entry of each chain stays, with its documents and without its personal values; so does
    /// the last checkpoint. Deletes 20,000 entries at most; documents and checkpoints only in the
    /// call that completes.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn prune(&self, before: &str) -> Result<PruneResult> {
        let mut left = MAX_DELETED_ENTRIES;
        for chain in self.chains()? {
            let kept = self.first_entry_since(chain.id, before)?;
            let wanted = kept.unwrap_or(chain.head.entries.saturating_sub(1));
            let begin = wanted.min(chain.first_number.saturating_add(left));
            if begin > chain.first_number {
                self.execute(
                    "DELETE FROM entries WHERE chain = ?1 AND number < ?2",
                    params![chain.id, begin],
                )?;
                self.execute(
                    "UPDATE chains SET first = ?2 WHERE id = ?1",
                    params![chain.id, begin],
                )?;
                left -= begin - chain.first_number;
            }
            let forgotten = begin + u64::from(kept.is_none() && begin == wanted);
            self.execute(
                "DELETE FROM personal WHERE chain = ?1 AND number < ?2",
                params![chain.id, forgotten],
            )?;
            if begin < wanted {
                return Ok(PruneResult {
                    entries: MAX_DELETED_ENTRIES - left,
                    is_complete: false,
                });
            }
        }
        self.mark_last_documents_used(before)?;
        self.execute("DELETE FROM documents WHERE used < ?1", [before])?;
        // The last checkpoint stays: the next one names its hash.
        let older = "time < ?1 AND number < (SELECT max(number) FROM checkpoints)";
        for table in ["heads", "timestamps"] {
            let row = format!(
                "DELETE FROM {table} WHERE checkpoint IN (SELECT number FROM checkpoints WHERE {older})"
            );
            self.execute(&row, [before])?;
        }
        self.execute(&format!("DELETE FROM checkpoints WHERE {older}"), [before])?;
        Ok(PruneResult {
            entries: MAX_DELETED_ENTRIES - left,
            is_complete: true,
        })
    }

    /// Marks the documents of old last entries as used at `time`, so that they are not deleted: the
    /// files that are published, and those that a crawler was last judged by.
    fn mark_last_documents_used(&self, time: &str) -> Result {
        let query = "SELECT line FROM entries JOIN chains ON chains.id = entries.chain AND number = chains.entries - 1 WHERE \
                     entries.time < ?1";
        let lines: Vec<String> = self.query_all(query, [time], |row| row.get(0))?;
        for document in lines
            .iter()
            .filter_map(|line| EvidenceEntry::parse(line))
            .flat_map(|entry| DocumentRef::named_by(&entry))
        {
            self.execute(
                "UPDATE documents SET used = max(used, ?2) WHERE sha256 = ?1",
                params![document.hash.0, time],
            )?;
        }
        Ok(())
    }

    /// Deletes the personal values of entries, and returns their number.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn delete_personal_values(&self, entries: &[EntryKey]) -> Result<usize> {
        let mut statement = self
            .connection
            .prepare_cached("DELETE FROM personal WHERE chain = ?1 AND number = ?2")?;
        let mut deleted = 0;
        for entry in entries {
            deleted += statement.execute(*entry)?;
        }
        Ok(deleted)
    }
}
