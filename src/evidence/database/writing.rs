//! [`Writing`]: what a transaction can do to the evidence log. It appends entries, makes
//! checkpoints (signed summaries of the log), and stores changes of the key and timestamps. It also
//! deletes entries that are too old ([`Writing::prune`]), and personal values that an operator
//! withdraws ([`Writing::forget`]).

use super::{EvidenceDatabase, Result, RunEnd};
use crate::evidence::{
    ChainName, Checkpoint, Document, Entry, Hash, NoteError, SigningKey, commitment, hash_of,
    merkle,
};
use rusqlite::{Params, params};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Entries that one transaction deletes: a writer that waits for it waits for a moment.
pub(super) const DELETED_AT_ONCE: u64 = 20_000;

/// The row of a chain, and the number of an entry.
pub type EntryPlace = (i64, i64);

/// What one transaction deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Entries.
    pub entries: u64,
    /// Whether nothing is left that is too old.
    pub is_complete: bool,
}

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
    pub proof: Option<Box<Record>>,
}

impl Record {
    /// A record with this data. What is null is left out.
    pub fn of(kind: &'static str, data: Value) -> Record {
        let mut data = data.as_object().cloned().unwrap_or_default();
        data.retain(|_, value| !value.is_null());
        Record {
            kind,
            data,
            ..Record::default()
        }
    }
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
pub struct Writing<'t>(pub(super) &'t EvidenceDatabase);

impl Writing<'_> {
    fn run(&self, statement: &str, parameters: impl Params) -> Result<usize> {
        Ok(self
            .0
            .connection
            .prepare_cached(statement)?
            .execute(parameters)?)
    }

    /// See [`EvidenceDatabase::changed_key`].
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn changed_key(&self) -> Result<Option<String>> {
        self.0.changed_key()
    }

    /// Begins a log: stores its id (the name of its key). It has no runs yet, and counts as stopped
    /// in order.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin_log(&self, id: &str, time: &str) -> Result {
        let row = "INSERT INTO log (one, id, runs, committed, clean) VALUES (1, ?1, 0, ?2, 1)";
        self.run(row, [id, time]).map(drop)
    }

    /// Counts one more process that writes the log.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin_run(&self) -> Result {
        self.run("UPDATE log SET runs = runs + 1", []).map(drop)
    }

    /// Records that the log is complete until `time`, and how the process ends if this is its last
    /// transaction. With `None` a crash after it is noticed.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_committed(&self, time: &str, end: Option<RunEnd>) -> Result {
        let clean = end.map_or(0, |end| end as u8);
        self.run(
            "UPDATE log SET committed = ?1, clean = ?2",
            params![time, clean],
        )
        .map(drop)
    }

    /// Appends an entry to the chain of the log itself.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn note(&self, kind: &'static str, data: Value, now: &str) -> Result {
        self.append(&ChainName::of_log(), Record::of(kind, data), now)
            .map(drop)
    }

    /// Appends an entry to a chain, which is made if it is new, and stores its personal values and
    /// documents beside it. The proof of the record is not written. The entry's time is `now`, or
    /// that of the entry or checkpoint before it where that is later.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&self, name: &ChainName, record: Record, now: &str) -> Result<Appended> {
        let log = self.0.one("SELECT id FROM log", [])?;
        let known = self.0.chain(name)?;
        let (number, previous, time) = match &known {
            Some(chain) => (
                chain.head.entries,
                chain.head.hash,
                now.max(chain.time.as_str()),
            ),
            None => (0, Hash::NONE, now),
        };
        // No earlier than the last checkpoint, also where the clock was set back: an entry that is
        // would be back-dated.
        let covered: Option<String> = self.0.one("SELECT max(time) FROM checkpoints", [])?;
        let time = covered.as_deref().map_or(time, |covered| time.max(covered));
        let salted = record
            .personal
            .into_iter()
            .map(|(field, value)| Ok((field, crate::evidence::note::random::<16>()?, value)));
        let values: Vec<_> = salted.collect::<Result<_, NoteError>>()?;
        let commitments = values
            .iter()
            .map(|(field, salt, value)| ((*field).to_owned(), commitment(salt, value)));
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
        let hash = hash_of(&line);
        let row = "INSERT INTO chains (site, crawler, first, entries, head, time) VALUES (?1, ?2, 0, ?3, ?4, ?5) ON CONFLICT \
                   (site, crawler) DO UPDATE SET entries = ?3, head = ?4, time = ?5 RETURNING id";
        let id: i64 = self.0.one(
            row,
            params![name.site, name.crawler, number + 1, hash.0, time],
        )?;
        let row =
            "INSERT INTO entries (chain, number, time, kind, line) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.run(row, params![id, number, time, record.kind, line])?;
        let row =
            "INSERT INTO personal (chain, number, name, salt, value) VALUES (?1, ?2, ?3, ?4, ?5)";
        for (field, salt, value) in values {
            self.run(row, params![id, number, field, salt, value])?;
        }
        let row = "INSERT INTO documents (sha256, bytes, used) VALUES (?1, ?2, ?3) ON CONFLICT (sha256) DO UPDATE SET used = ?3";
        for bytes in &record.documents {
            self.run(row, params![Hash::of(&[bytes]).0, &**bytes, time])?;
        }
        Ok(Appended { number, hash })
    }

    /// Makes and signs a checkpoint over the heads of all chains. Returns its number. Its time is
    /// `now`, or that of the last entry or checkpoint where that is later.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn checkpoint(&self, key: &SigningKey, now: &str) -> Result<u64> {
        let chains = self.0.chains()?;
        let last = self.0.last_checkpoint()?;
        let leaves: Vec<Hash> = chains.iter().map(|chain| chain.head.leaf()).collect();
        let number = last.as_ref().map_or(0, |(number, ..)| number + 1);
        // No earlier than what it covers, also where the clock was set back.
        let latest = chains
            .iter()
            .map(|chain| chain.time.as_str())
            .chain(last.iter().map(|last| last.1.as_str()));
        let time = latest.fold(now, |latest, time| latest.max(time)).to_owned();
        let checkpoint = Checkpoint {
            origin: key.verify_key().name,
            leaves: leaves.len(),
            root: merkle::root(&leaves),
            number,
            previous: last.map_or(Hash::NONE, |(_, _, note)| hash_of(&note)),
            time,
        };
        let note = key.sign(&checkpoint.text());
        let row = "INSERT INTO checkpoints (number, time, note) VALUES (?1, ?2, ?3)";
        self.run(row, params![number, checkpoint.time, note])?;
        let row = "INSERT INTO heads (checkpoint, place, chain, entries, hash) VALUES (?1, ?2, ?3, ?4, ?5)";
        for (place, chain) in chains.iter().enumerate() {
            let head = &chain.head;
            self.run(
                row,
                params![number, place, chain.id, head.entries, head.hash.0],
            )?;
        }
        Ok(number)
    }

    /// Stores the public key that signs from now on, with the note about the change. `note` makes
    /// it from the number of the change, which counts from 1.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn change_key(&self, key: &str, note: impl FnOnce(u64) -> String) -> Result {
        let number = self.0.one("SELECT count(*) + 1 FROM keys", [])?;
        let row = "INSERT INTO keys (number, note, key) VALUES (?1, ?2, ?3)";
        self.run(row, params![number, note(number), key]).map(drop)
    }

    /// Replaces the list of authorities that checkpoints get timestamps of.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_authorities(&self, urls: &[String]) -> Result {
        self.run("DELETE FROM authorities", [])?;
        urls.iter().try_for_each(|url| {
            self.run("INSERT OR IGNORE INTO authorities (url) VALUES (?1)", [url])
                .map(drop)
        })
    }

    /// Stores the response of an authority for a checkpoint, in place of one that is there.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_timestamp(&self, checkpoint: u64, authority: &str, response: &[u8]) -> Result {
        let row = "INSERT OR REPLACE INTO timestamps (checkpoint, authority, response) VALUES (?1, ?2, ?3)";
        self.run(row, params![checkpoint, authority, response])
            .map(drop)
    }

    /// Deletes what is older than a moment: the beginnings of chains with their personal values,
    /// then documents and checkpoints. The last entry of a chain stays, without its personal
    /// values, with the documents that it names; so does the last checkpoint. Deletes 20,000
    /// entries at most: then it is not complete, and documents and checkpoints wait for the call
    /// that is.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn prune(&self, before: &str) -> Result<Deletion> {
        let mut left = DELETED_AT_ONCE;
        for chain in self.0.chains()? {
            let kept = self.0.first_since(chain.id, before)?;
            let wanted = kept.unwrap_or(chain.head.entries.saturating_sub(1));
            let begin = wanted.min(chain.first.saturating_add(left));
            if begin > chain.first {
                self.run(
                    "DELETE FROM entries WHERE chain = ?1 AND number < ?2",
                    params![chain.id, begin],
                )?;
                self.run(
                    "UPDATE chains SET first = ?2 WHERE id = ?1",
                    params![chain.id, begin],
                )?;
                left -= begin - chain.first;
            }
            let forgotten = begin + u64::from(kept.is_none() && begin == wanted);
            self.run(
                "DELETE FROM personal WHERE chain = ?1 AND number < ?2",
                params![chain.id, forgotten],
            )?;
            if begin < wanted {
                return Ok(Deletion {
                    entries: DELETED_AT_ONCE - left,
                    is_complete: false,
                });
            }
        }
        self.use_what_last_entries_name(before)?;
        self.run("DELETE FROM documents WHERE used < ?1", [before])?;
        // The last checkpoint stays, with its proofs: the next one names its hash.
        let older = "time < ?1 AND number < (SELECT max(number) FROM checkpoints)";
        for table in ["heads", "timestamps"] {
            let row = format!(
                "DELETE FROM {table} WHERE checkpoint IN (SELECT number FROM checkpoints WHERE {older})"
            );
            self.run(&row, [before])?;
        }
        self.run(&format!("DELETE FROM checkpoints WHERE {older}"), [before])?;
        Ok(Deletion {
            entries: DELETED_AT_ONCE - left,
            is_complete: true,
        })
    }

    /// Marks as used at `time` the documents that the last entries of chains name, where these
    /// entries are older. They are what is published, and what a crawler was judged by last, and
    /// are not deleted.
    fn use_what_last_entries_name(&self, time: &str) -> Result {
        let query = "SELECT line FROM entries JOIN chains ON chains.id = entries.chain AND number = chains.entries - 1 WHERE \
                     entries.time < ?1";
        for line in self.0.all(query, [time], |row| row.get::<_, String>(0))? {
            for document in Entry::read(&line).iter().flat_map(Document::all_of) {
                let row = "UPDATE documents SET used = max(used, ?2) WHERE sha256 = ?1";
                self.run(row, params![document.hash.0, time])?;
            }
        }
        Ok(())
    }

    /// Deletes the personal values of entries. Returns how many values.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&self, entries: &[EntryPlace]) -> Result<usize> {
        let row = "DELETE FROM personal WHERE chain = ?1 AND number = ?2";
        entries.iter().map(|place| self.run(row, *place)).sum()
    }
}
