//! The file `evidence.db`: chains, entries, personal values, documents and checkpoints. The main type is [`EvidenceDatabase`]. A
//! transaction reads the heads of the chains that it writes, so the running crawlgate and a command may both write. Must not
//! know threads.

use super::canonical::Hash;
use super::checkpoint::{Checkpoint, Head};
use super::entry::{ChainName, Entry, hash_of};
use super::merkle;
use super::note::SigningKey;
use super::personal::{NoRandom, commitment, fresh_salt};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use serde_json::{Map, Value};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The name of the file.
pub const FILE: &str = "evidence.db";
/// The version of the tables.
const SCHEMA: i64 = 2;
/// For so long a transaction waits for the other process: `forget` reads the whole log.
const PATIENCE: Duration = Duration::from_secs(30);
/// Entries that one transaction deletes of a chain.
const DELETED_AT_ONCE: u64 = 20_000;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS log (
  one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, runs INTEGER NOT NULL, committed TEXT NOT NULL,
  clean INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS chains (
  id INTEGER PRIMARY KEY, site TEXT NOT NULL, crawler TEXT NOT NULL, first INTEGER NOT NULL, entries INTEGER NOT NULL,
  head BLOB NOT NULL, time TEXT NOT NULL, UNIQUE (site, crawler)
) STRICT;
CREATE TABLE IF NOT EXISTS entries (
  chain INTEGER NOT NULL, number INTEGER NOT NULL, time TEXT NOT NULL, kind TEXT NOT NULL, line TEXT NOT NULL,
  PRIMARY KEY (chain, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_by_time ON entries (chain, time);
CREATE INDEX IF NOT EXISTS entries_by_kind ON entries (chain, kind, number);
CREATE TABLE IF NOT EXISTS personal (
  chain INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, salt BLOB NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (chain, number, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (sha256 BLOB PRIMARY KEY, bytes BLOB NOT NULL, used TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS checkpoints (number INTEGER PRIMARY KEY, time TEXT NOT NULL, note TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS checkpoints_by_time ON checkpoints (time);
CREATE TABLE IF NOT EXISTS heads (
  checkpoint INTEGER NOT NULL, place INTEGER NOT NULL, chain INTEGER NOT NULL, entries INTEGER NOT NULL,
  hash BLOB NOT NULL, PRIMARY KEY (checkpoint, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (number INTEGER PRIMARY KEY, note TEXT NOT NULL, key TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS authorities (url TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS timestamps (
  checkpoint INTEGER NOT NULL, authority TEXT NOT NULL, response BLOB NOT NULL, PRIMARY KEY (checkpoint, authority)
) STRICT, WITHOUT ROWID;
";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite cannot read or write it.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A later version of crawlgate wrote it.
    #[error("a newer crawlgate wrote {FILE} (tables of version {0}; this one knows version {SCHEMA})")]
    Newer(i64),
    /// There is no log in it.
    #[error("there is no evidence log here")]
    NoLog,
    /// What is in it does not fit together.
    #[error("{FILE} is damaged: {0}")]
    Damaged(&'static str),
    /// The private key is not the one that the database names.
    #[error("the key was changed, and the new one cannot be read")]
    NoKey,
    /// No salts can be made.
    #[error(transparent)]
    NoRandom(#[from] NoRandom),
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
    pub proof: Option<Box<ProofRecord>>,
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

/// How the log stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogState {
    /// Its id: the name of its key.
    pub id: String,
    /// How many processes have begun to write it.
    pub runs: u64,
    /// When a process last wrote.
    pub committed: String,
    /// Whether that process ended in order.
    pub clean: bool,
}

/// A stored chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its row.
    pub id: i64,
    /// The number of the oldest entry that is kept.
    pub first: u64,
    /// Its head.
    pub head: Head,
    /// The time of the last entry.
    pub time: String,
}

/// A personal value beside an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersonalValue {
    /// The number of the entry.
    pub number: u64,
    /// The name of the value.
    pub name: String,
    /// The salt.
    pub salt: Vec<u8>,
    /// The value.
    pub value: String,
}

/// The open file.
pub struct EvidenceDatabase {
    connection: Connection,
}

impl EvidenceDatabase {
    /// Opens the file, or makes one where `make` says so.
    ///
    /// # Errors
    /// It cannot be read or written, or is not one that this version knows.
    pub fn open(directory: &Path, make: bool) -> Result<EvidenceDatabase, DatabaseError> {
        let file = directory.join(FILE);
        if make {
            // For this user alone: it holds addresses of clients.
            let _ = fs::OpenOptions::new().append(true).create(true).mode(0o600).open(&file);
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&file, flags)?;
        connection.busy_timeout(PATIENCE)?;
        let schema: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if schema > SCHEMA {
            return Err(DatabaseError::Newer(schema));
        }
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "secure_delete", true)?;
        connection.query_row("PRAGMA journal_size_limit = 16777216", [], |_| Ok(()))?;
        if schema < SCHEMA {
            connection.execute_batch(TABLES)?;
            connection.pragma_update(None, "user_version", SCHEMA)?;
        }
        Ok(EvidenceDatabase { connection })
    }

    /// How the log stands.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn state(&self) -> Result<Option<LogState>, DatabaseError> {
        let row = self.connection.query_row("SELECT id, runs, committed, clean FROM log", [], |row| {
            Ok(LogState { id: row.get(0)?, runs: row.get(1)?, committed: row.get(2)?, clean: row.get(3)? })
        });
        Ok(row.optional()?)
    }

    /// One transaction.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn write<T>(
        &mut self,
        work: impl FnOnce(&Writing<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&Writing(&transaction))?;
        transaction.commit()?;
        Ok(done)
    }

    /// Bytes of the file that are in use.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn octets(&self) -> Result<u64, DatabaseError> {
        let number = |pragma: &str| self.connection.query_row(pragma, [], |row| row.get::<_, u64>(0));
        let used = number("PRAGMA page_count")?.saturating_sub(number("PRAGMA freelist_count")?);
        Ok(used * number("PRAGMA page_size")?)
    }

    /// A chain.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn chain(&self, name: &ChainName) -> Result<Option<Chain>, DatabaseError> {
        chain(&self.connection, name)
    }

    /// All chains.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn chains(&self) -> Result<Vec<Chain>, DatabaseError> {
        chains(&self.connection)
    }

    /// The number of the first entry of a chain at or after a moment, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn first_since(&self, chain: i64, time: &str) -> Result<Option<u64>, DatabaseError> {
        let query = "SELECT number FROM entries WHERE chain = ?1 AND time >= ?2 ORDER BY time, number LIMIT 1";
        Ok(self.connection.query_row(query, params![chain, time], |row| row.get(0)).optional()?)
    }

    /// The last entry of a kind before a number.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_before(&self, chain: i64, kind: &str, number: u64) -> Result<Option<u64>, DatabaseError> {
        let query = "SELECT max(number) FROM entries WHERE chain = ?1 AND kind = ?2 AND number < ?3";
        Ok(self.connection.query_row(query, params![chain, kind, number], |row| row.get(0))?)
    }

    /// Lines of a chain, from one number up to another one, which is not among them.
    ///
    /// # Errors
    /// The file cannot be read, or reading a line failed.
    pub fn lines<E: From<DatabaseError>>(
        &self,
        chain: i64,
        span: std::ops::Range<u64>,
        mut each: impl FnMut(&str) -> Result<(), E>,
    ) -> Result<(), E> {
        let query = "SELECT line FROM entries WHERE chain = ?1 AND number >= ?2 AND number < ?3 ORDER BY number";
        let mut statement = self.connection.prepare(query).map_err(DatabaseError::from)?;
        let mut rows = statement.query(params![chain, span.start, span.end]).map_err(DatabaseError::from)?;
        while let Some(row) = rows.next().map_err(DatabaseError::from)? {
            let line: String = row.get(0).map_err(DatabaseError::from)?;
            each(&line)?;
        }
        Ok(())
    }

    /// Personal values of the entries of a chain.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn personal(&self, chain: i64, span: std::ops::Range<u64>) -> Result<Vec<PersonalValue>, DatabaseError> {
        let query = "SELECT number, name, salt, value FROM personal WHERE chain = ?1 AND number >= ?2 AND number < ?3 \
                     ORDER BY number, name";
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map(params![chain, span.start, span.end], |row| {
            Ok(PersonalValue { number: row.get(0)?, name: row.get(1)?, salt: row.get(2)?, value: row.get(3)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// A document.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn document(&self, hash: Hash) -> Result<Option<Vec<u8>>, DatabaseError> {
        let query = "SELECT bytes FROM documents WHERE sha256 = ?1";
        Ok(self.connection.query_row(query, [hash.0.as_slice()], |row| row.get(0)).optional()?)
    }

    /// The signed notes of the checkpoints that were made in a span of time, and the first one after it, with their
    /// numbers.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn checkpoints(&self, from: &str, to: &str) -> Result<Vec<(u64, String)>, DatabaseError> {
        let query = "SELECT number, note FROM checkpoints WHERE time >= ?1 AND number <= coalesce((SELECT min(number) FROM \
                     checkpoints WHERE time >= ?2), (SELECT max(number) FROM checkpoints)) ORDER BY number";
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map([from, to], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The last checkpoint: its number, its time, its signed note.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_checkpoint(&self) -> Result<Option<(u64, String, String)>, DatabaseError> {
        last_checkpoint(&self.connection)
    }

    /// The notes about changes of the key.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn key_notes(&self) -> Result<Vec<String>, DatabaseError> {
        let mut statement = self.connection.prepare("SELECT note FROM keys ORDER BY number")?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The public key that signs now, if the key was ever changed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn changed_key(&self) -> Result<Option<String>, DatabaseError> {
        changed_key(&self.connection)
    }

    /// The heads that a checkpoint covers, in their order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn heads(&self, checkpoint: u64) -> Result<Vec<Head>, DatabaseError> {
        let query = "SELECT site, crawler, heads.entries, hash FROM heads JOIN chains ON chains.id = heads.chain WHERE \
                     checkpoint = ?1 ORDER BY place";
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map([checkpoint], |row| {
            let chain = ChainName { site: row.get(0)?, crawler: row.get(1)? };
            Ok((chain, row.get(2)?, row.get::<_, Vec<u8>>(3)?))
        })?;
        let mut heads = Vec::new();
        for row in rows {
            let (chain, entries, hash) = row?;
            let hash = Hash::from_octets(&hash).ok_or(DatabaseError::Damaged("a head has no hash"))?;
            heads.push(Head { chain, entries, hash });
        }
        Ok(heads)
    }

    /// Timestamps of a checkpoint, by their authority.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn timestamps(&self, checkpoint: u64) -> Result<Vec<(String, Vec<u8>)>, DatabaseError> {
        let query = "SELECT authority, response FROM timestamps WHERE checkpoint = ?1 ORDER BY authority";
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map([checkpoint], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Checkpoints since a moment that lack the timestamp of an authority: number, note, authority.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn unstamped(&self, since: &str) -> Result<Vec<(u64, String, String)>, DatabaseError> {
        let query = "SELECT number, note, url FROM checkpoints JOIN authorities WHERE time >= ?1 AND NOT EXISTS (SELECT 1 FROM \
                     timestamps WHERE checkpoint = number AND authority = url) ORDER BY number DESC, url";
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map([since], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Empties the write-ahead log, so that what was deleted is in no file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn truncate_journal(&self) -> Result<(), DatabaseError> {
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }
}

/// What one transaction can do.
pub struct Writing<'t>(&'t Transaction<'t>);

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

    /// Says until when the log is complete, and whether the process ends with this.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn set_committed(&self, time: &str, clean: bool) -> Result<(), DatabaseError> {
        self.0.execute("UPDATE log SET committed = ?1, clean = ?2", params![time, clean])?;
        Ok(())
    }

    /// Appends an entry, without the proof of its record. Its time is `now`, or that of the entry before it where that is later.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn append(&self, name: &ChainName, record: Record, now: &str) -> Result<Appended, DatabaseError> {
        let log: String = self.0.query_row("SELECT id FROM log", [], |row| row.get(0))?;
        let known = chain(self.0, name)?;
        let (number, previous, time) = match &known {
            Some(chain) => (chain.head.entries, chain.head.hash, now.max(chain.time.as_str())),
            None => (0, Hash::NONE, now),
        };
        // No earlier than the last checkpoint, also where the clock was set back: an entry that is would be back-dated.
        let covered: Option<String> =
            self.0.prepare("SELECT max(time) FROM checkpoints")?.query_row([], |row| row.get(0))?;
        let time = covered.as_deref().map_or(time, |covered| time.max(covered));
        let (mut commitments, mut values) = (std::collections::BTreeMap::new(), Vec::new());
        for (field, value) in record.personal {
            let salt = fresh_salt()?;
            commitments.insert(field.to_owned(), commitment(&salt, &value));
            values.push((field, salt, value));
        }
        let entry = Entry {
            chain: name.clone(),
            log,
            number,
            previous,
            time: time.to_owned(),
            kind: record.kind.to_owned(),
            data: record.data,
            personal: commitments,
        };
        let line = entry.line();
        let id = self.set_head(known.as_ref(), name, &line, &entry)?;
        let row = "INSERT INTO entries (chain, number, time, kind, line) VALUES (?1, ?2, ?3, ?4, ?5)";
        self.0.prepare(row)?.execute(params![id, number, time, record.kind, line])?;
        let row = "INSERT INTO personal (chain, number, name, salt, value) VALUES (?1, ?2, ?3, ?4, ?5)";
        for (field, salt, value) in values {
            self.0.prepare(row)?.execute(params![id, number, field, salt, value])?;
        }
        record.documents.iter().try_for_each(|bytes| self.keep_document(bytes, time))?;
        Ok(Appended { number, hash: hash_of(&line) })
    }

    fn set_head(&self, known: Option<&Chain>, name: &ChainName, line: &str, entry: &Entry) -> rusqlite::Result<i64> {
        let (hash, entries) = (hash_of(line), entry.number + 1);
        if let Some(chain) = known {
            let row = "UPDATE chains SET entries = ?2, head = ?3, time = ?4 WHERE id = ?1";
            self.0.prepare(row)?.execute(params![chain.id, entries, hash.0, entry.time])?;
            return Ok(chain.id);
        }
        let row = "INSERT INTO chains (site, crawler, first, entries, head, time) VALUES (?1, ?2, 0, ?3, ?4, ?5)";
        self.0.execute(row, params![name.site, name.crawler, entries, hash.0, entry.time])?;
        Ok(self.0.last_insert_rowid())
    }

    fn keep_document(&self, bytes: &[u8], time: &str) -> Result<(), DatabaseError> {
        let hash = Hash::of(&[bytes]);
        let used = "UPDATE documents SET used = ?2 WHERE sha256 = ?1";
        if self.0.prepare(used)?.execute(params![hash.0, time])? == 0 {
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
        let (mut chains, last) = (chains(self.0)?, last_checkpoint(self.0)?);
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
            self.0.prepare(row)?.execute(params![number, place, chain.id, head.entries, head.hash.0])?;
        }
        Ok(number)
    }

    /// The public key that signs now, if the key was ever changed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn changed_key(&self) -> Result<Option<String>, DatabaseError> {
        changed_key(self.0)
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

    /// Deletes what is older than a moment: the beginnings of chains, with all that stands beside them. The last entry of
    /// a chain stays.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn prune(&self, before: &str) -> Result<(), DatabaseError> {
        for chain in chains(self.0)? {
            let query = "SELECT number FROM entries WHERE chain = ?1 AND time >= ?2 ORDER BY time, number LIMIT 1";
            let kept: Option<u64> =
                self.0.prepare(query)?.query_row(params![chain.id, before], |row| row.get(0)).optional()?;
            let last = chain.head.entries.saturating_sub(1);
            let first = kept.unwrap_or(last).min(chain.first.saturating_add(DELETED_AT_ONCE));
            if first > chain.first {
                self.0.execute("DELETE FROM entries WHERE chain = ?1 AND number < ?2", params![chain.id, first])?;
                self.0.execute("DELETE FROM personal WHERE chain = ?1 AND number < ?2", params![chain.id, first])?;
                self.0.execute("UPDATE chains SET first = ?2 WHERE id = ?1", params![chain.id, first])?;
            }
        }
        self.use_what_is_published(before)?;
        self.0.execute("DELETE FROM documents WHERE used < ?1", [before])?;
        let older = "(SELECT number FROM checkpoints WHERE time < ?1)";
        self.0.execute(&format!("DELETE FROM heads WHERE checkpoint IN {older}"), [before])?;
        self.0.execute(&format!("DELETE FROM timestamps WHERE checkpoint IN {older}"), [before])?;
        // The last one stays: the next names its hash.
        let row = "DELETE FROM checkpoints WHERE time < ?1 AND number < (SELECT max(number) FROM checkpoints)";
        self.0.execute(row, [before])?;
        Ok(())
    }

    /// The last entries of all publications name what is still published.
    fn use_what_is_published(&self, time: &str) -> Result<(), DatabaseError> {
        let query = "SELECT line FROM entries JOIN chains ON chains.id = entries.chain AND number = chains.entries - 1 WHERE \
                     crawler = '' AND kind = 'published'";
        let mut statement = self.0.prepare(query)?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
        for line in lines {
            let line = line?;
            let Some(hash) = Entry::read(&line).and_then(|entry| Hash::parse(entry.text("sha256")?)) else { continue };
            self.0.execute("UPDATE documents SET used = max(used, ?2) WHERE sha256 = ?1", params![hash.0, time])?;
        }
        Ok(())
    }

    /// Deletes personal values: of entries with this address, or all of entries before a moment. Returns how many.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&self, address: Option<&str>, before: Option<&str>) -> Result<usize, DatabaseError> {
        let row = "DELETE FROM personal WHERE (chain, number) IN (SELECT chain, number FROM entries WHERE (?2 IS NULL OR \
                   time < ?2)) AND (?1 IS NULL OR (chain, number) IN (SELECT chain, number FROM personal WHERE name = \
                   'client' AND value = ?1))";
        Ok(self.0.execute(row, params![address, before])?)
    }
}

fn changed_key(connection: &Connection) -> Result<Option<String>, DatabaseError> {
    let query = "SELECT key FROM keys ORDER BY number DESC LIMIT 1";
    Ok(connection.query_row(query, [], |row| row.get(0)).optional()?)
}

fn chain(connection: &Connection, name: &ChainName) -> Result<Option<Chain>, DatabaseError> {
    let query = "SELECT id, first, site, crawler, entries, head, time FROM chains WHERE site = ?1 AND crawler = ?2";
    let row = connection.prepare(query)?.query_row([&name.site, &name.crawler], chain_row).optional()?;
    row.map(whole).transpose()
}

fn chains(connection: &Connection) -> Result<Vec<Chain>, DatabaseError> {
    let query = "SELECT id, first, site, crawler, entries, head, time FROM chains";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], chain_row)?;
    rows.map(|row| whole(row?)).collect()
}

fn chain_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Chain, Vec<u8>)> {
    let head =
        Head { chain: ChainName { site: row.get(2)?, crawler: row.get(3)? }, entries: row.get(4)?, hash: Hash::NONE };
    Ok((Chain { id: row.get(0)?, first: row.get(1)?, head, time: row.get(6)? }, row.get(5)?))
}

fn whole((mut chain, head): (Chain, Vec<u8>)) -> Result<Chain, DatabaseError> {
    chain.head.hash = Hash::from_octets(&head).ok_or(DatabaseError::Damaged("a chain has no head"))?;
    Ok(chain)
}

fn last_checkpoint(connection: &Connection) -> Result<Option<(u64, String, String)>, DatabaseError> {
    let query = "SELECT number, time, note FROM checkpoints ORDER BY number DESC LIMIT 1";
    Ok(connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?)
}
