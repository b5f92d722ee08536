//! [`EvidenceDatabase`]: the file `evidence.db`, with chains, entries, personal values, documents and checkpoints. A
//! transaction reads the heads of the chains that it writes, so the running crawlgate and a command may both write.

mod deletion;
mod rows;
mod writing;

use super::{ChainName, Hash, Head, NoRandom};
use rows::{all, first};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::fs;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

#[cfg(test)]
pub use deletion::Deletion;
pub use rows::{Chain, Rows};
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

/// The state of the log.
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
    Stopped = 1,
    /// Another process took its place.
    HandedOver = 2,
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

impl Rows for EvidenceDatabase {
    fn connection(&self) -> &Connection {
        &self.connection
    }
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

    /// The state of the log.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn state(&self) -> Result<Option<LogState>, DatabaseError> {
        first(&self.connection, "SELECT id, runs, committed, clean FROM log", [], |row| {
            let end = match row.get(3)? {
                0u8 => None,
                1 => Some(RunEnd::Stopped),
                _ => Some(RunEnd::HandedOver),
            };
            Ok(LogState { id: row.get(0)?, runs: row.get(1)?, committed: row.get(2)?, end })
        })
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

    /// The number of the first entry of a chain at or after a moment, if there is one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn first_since(&self, chain: i64, time: &str) -> Result<Option<u64>, DatabaseError> {
        let query = "SELECT number FROM entries WHERE chain = ?1 AND time >= ?2 ORDER BY time, number LIMIT 1";
        first(&self.connection, query, params![chain, time], |row| row.get(0))
    }

    /// The last entry of a kind before a number.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_before(&self, chain: i64, kind: &str, number: u64) -> Result<Option<u64>, DatabaseError> {
        let query = "SELECT max(number) FROM entries WHERE chain = ?1 AND kind = ?2 AND number < ?3";
        Ok(first(&self.connection, query, params![chain, kind, number], |row| row.get(0))?.flatten())
    }

    /// Lines of a chain, from one number up to another one, which is not among them.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lines(&self, chain: i64, span: Range<u64>, mut each: impl FnMut(&str)) -> Result<(), DatabaseError> {
        let query = "SELECT line FROM entries WHERE chain = ?1 AND number >= ?2 AND number < ?3 ORDER BY number";
        let mut statement = self.connection.prepare(query)?;
        let mut rows = statement.query(params![chain, span.start, span.end])?;
        while let Some(row) = rows.next()? {
            each(&row.get::<_, String>(0)?);
        }
        Ok(())
    }

    /// Personal values of the entries of a chain.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn personal(&self, chain: i64, span: Range<u64>) -> Result<Vec<PersonalValue>, DatabaseError> {
        let query = "SELECT number, name, salt, value FROM personal WHERE chain = ?1 AND number >= ?2 AND number < ?3 \
                     ORDER BY number, name";
        all(&self.connection, query, params![chain, span.start, span.end], |row| {
            Ok(PersonalValue { number: row.get(0)?, name: row.get(1)?, salt: row.get(2)?, value: row.get(3)? })
        })
    }

    /// A document.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn document(&self, hash: Hash) -> Result<Option<Vec<u8>>, DatabaseError> {
        let query = "SELECT bytes FROM documents WHERE sha256 = ?1";
        first(&self.connection, query, [hash.0], |row| row.get(0))
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
        all(&self.connection, query, [from, to], |row| row.try_into())
    }

    /// The notes about changes of the key.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn key_notes(&self) -> Result<Vec<String>, DatabaseError> {
        all(&self.connection, "SELECT note FROM keys ORDER BY number", [], |row| row.get(0))
    }

    /// The heads that a checkpoint covers, in their order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn heads(&self, checkpoint: u64) -> Result<Vec<Head>, DatabaseError> {
        let query = "SELECT site, crawler, heads.entries, hash FROM heads JOIN chains ON chains.id = heads.chain WHERE \
                     checkpoint = ?1 ORDER BY place";
        all(&self.connection, query, [checkpoint], |row| {
            let chain = ChainName { site: row.get(0)?, crawler: row.get(1)? };
            Ok(Head { chain, entries: row.get(2)?, hash: Hash(row.get(3)?) })
        })
    }

    /// Timestamps of a checkpoint, by their authority.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn timestamps(&self, checkpoint: u64) -> Result<Vec<(String, Vec<u8>)>, DatabaseError> {
        let query = "SELECT authority, response FROM timestamps WHERE checkpoint = ?1 ORDER BY authority";
        all(&self.connection, query, [checkpoint], |row| row.try_into())
    }

    /// Checkpoints since a moment that lack the timestamp of an authority: number, note, authority.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn unstamped(&self, since: &str) -> Result<Vec<(u64, String, String)>, DatabaseError> {
        let query = "SELECT number, note, url FROM checkpoints JOIN authorities WHERE time >= ?1 AND NOT EXISTS (SELECT 1 FROM \
                     timestamps WHERE checkpoint = number AND authority = url) ORDER BY number DESC, url";
        all(&self.connection, query, [since], |row| row.try_into())
    }

    /// Empties the write-ahead log, so that what was deleted is in no file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn truncate_journal(&self) -> Result<(), DatabaseError> {
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }
}
