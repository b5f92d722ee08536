//! The file `evidence.db`: chains, entries, personal values, documents and checkpoints. The main type is [`EvidenceDatabase`]. A
//! transaction reads the heads of the chains that it writes, so the running crawlgate and a command may both write. Must not
//! know threads.

mod deletion;
mod rows;
mod writing;

use super::canonical::Hash;
use super::checkpoint::Head;
use super::entry::ChainName;
use super::personal::NoRandom;
use rows::{chain, chains, changed_key, last_checkpoint};
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

#[cfg(test)]
pub use deletion::Deletion;
pub use rows::Chain;
pub use writing::{Appended, ProofRecord, Record, Writing};

/// The name of the file.
pub const FILE: &str = "evidence.db";
/// The version of the tables.
const SCHEMA: i64 = 2;
/// For so long a transaction waits for the other process.
const PATIENCE: Duration = Duration::from_secs(30);
/// Statements that are kept prepared: more than there are.
const STATEMENTS: usize = 64;

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
    #[error(
        "there is no evidence log here; name the state directory with --state, and turn `evidence` on in crawlgate.yaml"
    )]
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

/// How the log stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogState {
    /// Its id: the name of its key.
    pub id: String,
    /// How many processes have begun to write it.
    pub runs: u64,
    /// When a process last wrote.
    pub committed: String,
    /// How that process ended; `None` while it runs, and after a crash.
    pub end: Option<RunEnd>,
}

/// How a process that wrote the log ended in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It stopped.
    Stopped,
    /// Another process took its place.
    HandedOver,
}

impl RunEnd {
    /// The reason of the `gap` after it.
    pub fn name(self) -> &'static str {
        match self {
            RunEnd::Stopped => "stop",
            RunEnd::HandedOver => "upgrade",
        }
    }
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
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        let schema: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if schema > SCHEMA {
            return Err(DatabaseError::Newer(schema));
        }
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "secure_delete", true)?;
        connection.query_row("PRAGMA journal_size_limit = 16777216", [], |_| Ok(()))?;
        if schema < SCHEMA {
            connection.execute_batch(rows::TABLES)?;
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
            let end = match row.get(3)? {
                0u8 => None,
                1 => Some(RunEnd::Stopped),
                _ => Some(RunEnd::HandedOver),
            };
            Ok(LogState { id: row.get(0)?, runs: row.get(1)?, committed: row.get(2)?, end })
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
        let done = work(&Writing::new(&transaction))?;
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

    /// The signed notes of the checkpoints that were made in a span of time, the last one before it and the first one after
    /// it, with their numbers.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn checkpoints(&self, from: &str, to: &str) -> Result<Vec<(u64, String)>, DatabaseError> {
        let query = "SELECT number, note FROM checkpoints WHERE number >= coalesce((SELECT max(number) FROM checkpoints WHERE \
                     time < ?1), 0) AND number <= coalesce((SELECT min(number) FROM checkpoints WHERE time >= ?2), (SELECT \
                     max(number) FROM checkpoints)) ORDER BY number";
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
