//! [`EvidenceDatabase`]: the SQLite database of the evidence log (`evidence.db`). It has the
//! entries of the log, the files that entries refer to (such as robots.txt), personal values (such
//! as addresses of clients), and checkpoints (signed summaries of the log). The entries form hash
//! chains, in which each entry has the hash of the entry before it. The running crawlgate and a
//! command may write at the same time. So each [`WriteTransaction`] reads the end of a chain before
//! it appends an entry.

mod transaction;

use super::{ChainHead, ChainName, Hash, NoteKeyError, PersonalValueLine};
use crate::files::prepare_database;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Params, Result as SqlResult, Row, Transaction,
    TransactionBehavior, params,
};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

#[cfg(test)]
pub use transaction::PruneResult;
pub use transaction::{EntryKey, NewEntry, WriteTransaction};

/// The name of the file.
pub const DATABASE_FILE: &str = "evidence.db";
/// Entries of one chain by their numbers. `id` is the row of the chain.
#[derive(Default)]
pub struct ChainRange {
    pub id: i64,
    pub numbers: Range<u64>,
}
/// The version of the tables.
const SCHEMA_VERSION: i64 = 2;
/// How long a transaction waits for the other process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// More than there are statements.
const MAX_CACHED_STATEMENTS: usize = 64;

const CREATE_TABLES: &str = "
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

pub type Result<T = (), E = DatabaseError> = std::result::Result<T, E>;

/// The number, time and signed note of the last checkpoint, and the authority of its timestamp.
pub type LastCheckpoint = (u64, String, String, Option<String>);

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite cannot read or write it.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A later version of crawlgate wrote it.
    #[error(
        "a newer crawlgate wrote {DATABASE_FILE} (version {0}; this one reads version {SCHEMA_VERSION}): use the newer one"
    )]
    NewerSchema(i64),
    /// The file has no log.
    #[error(
        "there is no evidence log here; is evidence on in crawlgate.yaml? Give its state directory with --state"
    )]
    NoLog,
    /// The files of the log do not fit together.
    #[error("{DATABASE_FILE} is damaged: {0}")]
    Damaged(LogDamage),
    /// A command rotated the key, and the new private key cannot be read.
    #[error("the key was changed, and the new one cannot be read")]
    RotatedKeyMissing,
    /// The system gives no random salts.
    #[error(transparent)]
    NoRandom(#[from] NoteKeyError),
}

/// Why a new log begins in place of the former one. The texts are those of `begun_anew` in the log.
#[derive(Clone, Copy, Debug, PartialEq, strum::Display, strum::IntoStaticStr)]
pub enum LogDamage {
    #[strum(serialize = "the database was damaged")]
    Unreadable,
    #[strum(serialize = "the database was gone")]
    DatabaseMissing,
    #[strum(serialize = "the database was an older copy")]
    OlderCopy,
    #[strum(serialize = "the database came without the file that counts its processes")]
    RunCountMissing,
    #[strum(serialize = "its key was lost")]
    KeyLost,
    #[strum(serialize = "the key is that of another log")]
    OtherKey,
}

/// The state of the log as of its last transaction.
pub struct LogState {
    /// The name of its key.
    pub id: String,
    /// How many processes have written it.
    pub run_count: u64,
    /// The time of the last transaction, or of the last entry about a site.
    pub complete_until: String,
    /// How the last process ended; `None` while it runs, and after a crash.
    pub last_end: Option<RunEnd>,
}

/// How a process that wrote the log ended, if it did not crash. The texts are the reasons in the first
/// `gap` entry of the next run.
#[derive(Clone, Copy, Debug, PartialEq, strum::IntoStaticStr)]
pub enum RunEnd {
    #[strum(serialize = "stop")]
    Stopped = 1,
    /// Another process took its place.
    #[strum(serialize = "upgrade")]
    HandedOver = 2,
}

/// A row of the table of chains.
#[derive(Debug, PartialEq)]
pub struct StoredChain {
    pub id: i64,
    /// The number of the oldest entry that is kept.
    pub first_number: u64,
    pub head: ChainHead,
    /// The time of the last entry.
    pub last_time: String,
}

/// An open connection to the file.
pub struct EvidenceDatabase {
    connection: Connection,
}

impl EvidenceDatabase {
    /// Opens the file in a directory and creates missing tables. If there is no file, `create` makes
    /// one that only this user may read.
    ///
    /// # Errors
    /// It cannot be read or written, or a later version wrote it.
    pub fn open(directory: &Path, create: bool) -> Result<EvidenceDatabase> {
        let file = directory.join(DATABASE_FILE);
        prepare_database(&file, create)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&file, flags)?;
        connection.busy_timeout(LOCK_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
        let schema: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if schema > SCHEMA_VERSION {
            return Err(DatabaseError::NewerSchema(schema));
        }
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON; PRAGMA journal_size_limit = 16777216",
        )?;
        if schema < SCHEMA_VERSION {
            connection.execute_batch(CREATE_TABLES)?;
            connection.pragma_update(None, "user_version", SCHEMA_VERSION)?;
        }
        Ok(EvidenceDatabase { connection })
    }

    /// The state of the log; `None` if the file has no log yet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn state(&self) -> Result<Option<LogState>> {
        // After a hand-over the former process adds entries, without the time.
        let query = "SELECT id, runs, max(committed, coalesce((SELECT max(time) FROM chains WHERE site <> ''), '')), clean FROM log";
        self.query_first(query, [], |row| {
            let (id, run_count, complete_until, end) = row.try_into()?;
            Ok(LogState {
                id,
                run_count,
                complete_until,
                last_end: match end {
                    0u8 => None,
                    1 => Some(RunEnd::Stopped),
                    _ => Some(RunEnd::HandedOver),
                },
            })
        })
    }

    /// Runs `work` in one transaction. Waits up to 30 seconds for another writer.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn write<T>(&mut self, work: impl FnOnce(&WriteTransaction<'_>) -> Result<T>) -> Result<T> {
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        let done = work(&WriteTransaction(self))?;
        transaction.commit()?;
        Ok(done)
    }

    /// The first value of the first row; the error `QueryReturnedNoRows` without a row.
    fn query_value<T: rusqlite::types::FromSql>(
        &self,
        query: &str,
        parameters: impl Params,
    ) -> SqlResult<T> {
        self.connection
            .prepare_cached(query)?
            .query_row(parameters, |row| row.get(0))
    }

    fn query_first<T>(
        &self,
        query: &str,
        parameters: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> Result<Option<T>> {
        Ok(self
            .connection
            .prepare_cached(query)?
            .query_row(parameters, read)
            .optional()?)
    }

    fn query_all<T>(
        &self,
        query: &str,
        parameters: impl Params,
        read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(query)?;
        Ok(statement
            .query_map(parameters, read)?
            .collect::<SqlResult<_>>()?)
    }

    /// The present public key if the key was ever rotated.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn rotated_key(&self) -> Result<Option<String>> {
        Ok(self
            .query_value("SELECT key FROM keys ORDER BY number DESC LIMIT 1", [])
            .optional()?)
    }

    /// The chain of this name; `None` if it has no entry yet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn chain(&self, name: &ChainName) -> Result<Option<StoredChain>> {
        let query = "SELECT id, first, site, crawler, entries, head, time FROM chains WHERE site = ?1 AND crawler = ?2";
        self.query_first(query, [&name.site, &name.crawler], chain_from_row)
    }

    /// Whether each chain ends with the entry that its head names.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_whole_at_ends(&self) -> Result<bool> {
        let query = "SELECT head, coalesce(line, '') FROM chains LEFT JOIN entries AS e ON e.chain = chains.id AND e.number = \
                     chains.entries - 1";
        let ends = self.query_all(query, [], |row| {
            let line = row.get_ref(1)?.as_bytes()?;
            Ok(Hash::digest(&[line]).0 == row.get::<_, [u8; 32]>(0)?)
        })?;
        Ok(ends.iter().all(|is_whole| *is_whole))
    }

    /// All chains, by their names.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn chains(&self) -> Result<Vec<StoredChain>> {
        let query = "SELECT id, first, site, crawler, entries, head, time FROM chains ORDER BY site, crawler";
        self.query_all(query, [], chain_from_row)
    }

    /// The last checkpoint.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_checkpoint(&self) -> Result<Option<LastCheckpoint>> {
        let query = "SELECT number, time, note, (SELECT authority FROM timestamps WHERE checkpoint = number) FROM checkpoints \
                     ORDER BY number DESC LIMIT 1";
        self.query_first(query, [], |row| row.try_into())
    }

    /// Bytes of the file that are in use.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn size(&self) -> Result<u64> {
        let pages: u64 = self.query_value("PRAGMA page_count", [])?;
        let free: u64 = self.query_value("PRAGMA freelist_count", [])?;
        let size: u64 = self.query_value("PRAGMA page_size", [])?;
        Ok(pages.saturating_sub(free) * size)
    }

    /// The number of the first entry at or after a time, in the chain with this row.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn first_entry_since(&self, chain: i64, time: &str) -> Result<Option<u64>> {
        let query = "SELECT number FROM entries WHERE chain = ?1 AND time >= ?2 ORDER BY time, number LIMIT 1";
        Ok(self.query_value(query, params![chain, time]).optional()?)
    }

    /// The number of the last entry of a kind before `number`, in the chain with this row.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_entry_of_kind(&self, chain: i64, kind: &str, number: u64) -> Result<Option<u64>> {
        let query =
            "SELECT max(number) FROM entries WHERE chain = ?1 AND kind = ?2 AND number < ?3";
        Ok(self.query_value(query, params![chain, kind, number])?)
    }

    /// Calls `visit` with the line of every kept entry of a range.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn for_each_line(&self, range: &ChainRange, mut visit: impl FnMut(&str)) -> Result {
        let ChainRange { id, numbers } = range;
        let query = "SELECT line FROM entries WHERE chain = ?1 AND number >= ?2 AND number < ?3 ORDER BY number";
        let mut statement = self.connection.prepare(query)?;
        let mut rows = statement.query(params![id, numbers.start, numbers.end])?;
        while let Some(row) = rows.next()? {
            visit(&row.get::<_, String>(0)?);
        }
        Ok(())
    }

    /// The personal values of a range of this chain.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn personal_values(
        &self,
        chain: &ChainName,
        range: &ChainRange,
    ) -> Result<Vec<PersonalValueLine>> {
        let ChainRange { id, numbers } = range;
        let query = "SELECT number, name, lower(hex(salt)), value FROM personal WHERE chain = ?1 AND number >= ?2 AND number \
                     < ?3 ORDER BY number, name";
        self.query_all(query, params![id, numbers.start, numbers.end], |row| {
            let (number, name, salt, value) = row.try_into()?;
            Ok(PersonalValueLine {
                chain: chain.clone(),
                number,
                name,
                salt,
                value,
            })
        })
    }

    /// The document with this SHA-256; `None` if it was deleted.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn document(&self, hash: Hash) -> Result<Option<Vec<u8>>> {
        Ok(self
            .query_value("SELECT bytes FROM documents WHERE sha256 = ?1", [hash.0])
            .optional()?)
    }

    /// The numbers and signed notes of the checkpoints in a span of time, with the last one before it
    /// and the first one after it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn checkpoints_around(&self, from: &str, to: &str) -> Result<Vec<(u64, String)>> {
        let query = "SELECT number, note FROM checkpoints WHERE number >= coalesce((SELECT max(number) FROM checkpoints WHERE \
                     time < ?1), 0) AND number <= coalesce((SELECT min(number) FROM checkpoints WHERE time >= ?2), (SELECT \
                     max(number) FROM checkpoints)) ORDER BY number";
        self.query_all(query, [from, to], |row| row.try_into())
    }

    /// The oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn key_change_notes(&self) -> Result<Vec<String>> {
        self.query_all("SELECT note FROM keys ORDER BY number", [], |row| {
            row.get(0)
        })
    }

    /// The heads in a checkpoint, in the order of its leaves.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn checkpoint_heads(&self, checkpoint: u64) -> Result<Vec<ChainHead>> {
        let query = "SELECT site, crawler, heads.entries, hash FROM heads JOIN chains ON chains.id = heads.chain WHERE \
                     checkpoint = ?1 ORDER BY place";
        self.query_all(query, [checkpoint], |row| {
            let (site, crawler, entries, hash) = row.try_into()?;
            Ok(ChainHead {
                chain: ChainName { site, crawler },
                entries,
                hash: Hash(hash),
            })
        })
    }

    /// The responses of the authorities, by their URLs.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn checkpoint_timestamps(&self, checkpoint: u64) -> Result<Vec<Vec<u8>>> {
        self.query_all(
            "SELECT response FROM timestamps WHERE checkpoint = ?1 ORDER BY authority",
            [checkpoint],
            |row| row.get(0),
        )
    }

    /// The number and note of each checkpoint since a time, with the URL of each authority whose
    /// timestamp it lacks. The latest checkpoint comes first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn missing_timestamps(&self, since: &str) -> Result<Vec<(u64, String, String)>> {
        let query = "SELECT number, note, url FROM checkpoints JOIN authorities WHERE time >= ?1 AND NOT EXISTS (SELECT 1 FROM \
                     timestamps WHERE checkpoint = number AND authority = url) ORDER BY number DESC, url";
        self.query_all(query, [since], |row| row.try_into())
    }

    /// Empties the write-ahead log, so that deleted values are in no file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn truncate_wal(&self) -> Result {
        Ok(self
            .connection
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?)
    }

    /// The next entries with personal values, in the order of keys: of this client address and before
    /// this time, where these are given. As many as one transaction deletes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn personal_entries_after(
        &self,
        after: EntryKey,
        address: Option<&str>,
        before: Option<&str>,
    ) -> Result<Vec<EntryKey>> {
        let query = "SELECT DISTINCT chain, number FROM personal WHERE (chain, number) > (?1, ?2) AND (?3 IS NULL OR (name = \
                     'client' AND value = ?3)) AND (?4 IS NULL OR EXISTS (SELECT 1 FROM entries WHERE entries.chain = \
                     personal.chain AND entries.number = personal.number AND time < ?4)) ORDER BY chain, number LIMIT ?5";
        let parameters = params![
            after.0,
            after.1,
            address,
            before,
            transaction::MAX_DELETED_ENTRIES
        ];
        self.query_all(query, parameters, |row| row.try_into())
    }
}

/// Columns: id, first, site, crawler, entries, head, time.
fn chain_from_row(row: &Row<'_>) -> SqlResult<StoredChain> {
    let (id, first_number, site, crawler, entries, hash, last_time) = row.try_into()?;
    let chain = ChainName { site, crawler };
    Ok(StoredChain {
        id,
        first_number,
        head: ChainHead {
            chain,
            entries,
            hash: Hash(hash),
        },
        last_time,
    })
}
