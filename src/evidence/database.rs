//! [`EvidenceDatabase`]: the SQLite file `evidence.db` with the evidence log: the entries of its
//! hash chains, personal values, documents (robots.txt files, and lists of networks or keys), and
//! checkpoints. The running crawlgate and a command may both write to the file: each transaction
//! reads the last entry of a chain before it appends the next one.

mod writing;

use super::{ChainName, Hash, Head, NoteError, PersonalLine};
use crate::files::prepare_database;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Params, Result as SqlResult, Row, Transaction,
    TransactionBehavior, params,
};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

#[cfg(test)]
pub use writing::Deletion;
pub use writing::{Appended, EntryPlace, Record, Writing};

/// The name of the file.
pub const FILE: &str = "evidence.db";
/// The part of a chain that a case has: row and numbers. A chain that is not there yet has none.
pub type Part = (i64, Range<u64>);
/// The version of the tables.
const SCHEMA: i64 = 2;
/// For so long a transaction waits for the other process.
const PATIENCE: Duration = Duration::from_secs(30);
/// Statements that are kept prepared: more than there are.
const STATEMENTS: usize = 64;

/// The tables.
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

/// What reading or writing the file comes to.
pub type Result<T = (), E = DatabaseError> = std::result::Result<T, E>;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite cannot read or write it.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// A later version of crawlgate wrote it.
    #[error(
        "a newer crawlgate wrote {FILE} (tables of version {0}; this one knows version {SCHEMA})"
    )]
    Newer(i64),
    /// There is no log in it.
    #[error(
        "there is no evidence log here; name the state directory with --state, and turn `evidence` on in crawlgate.yaml"
    )]
    NoLog,
    /// What is in it does not fit together.
    #[error("{FILE} is damaged: {0}")]
    Damaged(Damage),
    /// The private key is not the one that the database names.
    #[error("the key was changed, and the new one cannot be read")]
    NoKey,
    /// No salts can be made.
    #[error(transparent)]
    NoRandom(#[from] NoteError),
}

/// Why a log cannot go on. The names are those in the evidence log (`begun_anew`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, strum::IntoStaticStr)]
pub enum Damage {
    #[strum(serialize = "the database was damaged")]
    Unreadable,
    #[strum(serialize = "the database was gone")]
    Gone,
    #[strum(serialize = "the database was an older copy")]
    OlderCopy,
    #[strum(serialize = "the database came without the file that counts its processes")]
    NoRuns,
    #[strum(serialize = "its key was lost")]
    KeyLost,
    #[strum(serialize = "the key is that of another log")]
    OtherKey,
}

/// The state of the log.
#[derive(Debug)]
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
    /// The reason that the next run writes into its first `gap` entry, if this run ended so: `stop`
    /// or `upgrade`. After a crash it is `crash`.
    pub fn name(self) -> &'static str {
        match self {
            RunEnd::Stopped => "stop",
            RunEnd::HandedOver => "upgrade",
        }
    }
}

/// A stored chain.
#[derive(Clone, Debug, PartialEq)]
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

/// The open file.
pub struct EvidenceDatabase {
    connection: Connection,
}

impl EvidenceDatabase {
    /// Opens the file in a directory and makes its tables where they are missing or older. If there
    /// is no file, one is made for this user alone where `make` says so.
    ///
    /// # Errors
    /// It cannot be read or written, or is not one that this version knows.
    pub fn open(directory: &Path, make: bool) -> Result<EvidenceDatabase> {
        let file = directory.join(FILE);
        // For this user alone: it holds addresses of clients.
        prepare_database(&file, make)?;
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
            connection.execute_batch(TABLES)?;
            connection.pragma_update(None, "user_version", SCHEMA)?;
        }
        Ok(EvidenceDatabase { connection })
    }

    /// The state of the log; `None` if the file has no log yet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn state(&self) -> Result<Option<LogState>> {
        self.first("SELECT id, runs, committed, clean FROM log", [], |row| {
            let (id, runs, committed, end) = row.try_into()?;
            Ok(LogState {
                id,
                runs,
                committed,
                end: match end {
                    0u8 => None,
                    1 => Some(RunEnd::Stopped),
                    _ => Some(RunEnd::HandedOver),
                },
            })
        })
    }

    /// Runs `work` in one transaction, which keeps other writers out from its beginning. Waits for
    /// another writer up to 30 seconds. If `work` fails, nothing is written.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn write<T>(&mut self, work: impl FnOnce(&Writing<'_>) -> Result<T>) -> Result<T> {
        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        let done = work(&Writing(self))?;
        transaction.commit()?;
        Ok(done)
    }

    /// The first value of the first row of a query. An error (`QueryReturnedNoRows`) if it has no
    /// row.
    fn one<T: rusqlite::types::FromSql>(
        &self,
        query: &str,
        parameters: impl Params,
    ) -> SqlResult<T> {
        self.connection
            .prepare_cached(query)?
            .query_row(parameters, |row| row.get(0))
    }

    /// The first row of a query, read by `read`. `None` if it has no row.
    fn first<T>(
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

    /// All rows of a query.
    fn all<T>(
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

    /// The public key that signs now, if the key was ever changed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn changed_key(&self) -> Result<Option<String>> {
        Ok(self
            .one("SELECT key FROM keys ORDER BY number DESC LIMIT 1", [])
            .optional()?)
    }

    /// The chain of this name; `None` if it has no entry yet.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn chain(&self, name: &ChainName) -> Result<Option<Chain>> {
        let query = "SELECT id, first, site, crawler, entries, head, time FROM chains WHERE site = ?1 AND crawler = ?2";
        self.first(query, [&name.site, &name.crawler], chain)
    }

    /// All chains, by their names.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn chains(&self) -> Result<Vec<Chain>> {
        let query = "SELECT id, first, site, crawler, entries, head, time FROM chains ORDER BY site, crawler";
        self.all(query, [], chain)
    }

    /// The last checkpoint: its number, its time, its signed note. `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_checkpoint(&self) -> Result<Option<(u64, String, String)>> {
        let query = "SELECT number, time, note FROM checkpoints ORDER BY number DESC LIMIT 1";
        self.first(query, [], |row| row.try_into())
    }

    /// Bytes of the file that are in use.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn octets(&self) -> Result<u64> {
        let pages: u64 = self.one("PRAGMA page_count", [])?;
        let free: u64 = self.one("PRAGMA freelist_count", [])?;
        let size: u64 = self.one("PRAGMA page_size", [])?;
        Ok(pages.saturating_sub(free) * size)
    }

    /// The number of the first entry at or after a moment, in the chain with this row. `None` if
    /// there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn first_since(&self, chain: i64, time: &str) -> Result<Option<u64>> {
        let query = "SELECT number FROM entries WHERE chain = ?1 AND time >= ?2 ORDER BY time, number LIMIT 1";
        Ok(self.one(query, params![chain, time]).optional()?)
    }

    /// The number of the last entry of a kind with a number below `number`, in the chain with this
    /// row. `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last_before(&self, chain: i64, kind: &str, number: u64) -> Result<Option<u64>> {
        let query =
            "SELECT max(number) FROM entries WHERE chain = ?1 AND kind = ?2 AND number < ?3";
        Ok(self.one(query, params![chain, kind, number])?)
    }

    /// Calls `each` with the line of every kept entry of a part of a chain, in the order of
    /// numbers. The end of the part is not among them.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn lines(&self, part: &Part, mut each: impl FnMut(&str)) -> Result {
        let (chain, span) = part;
        let query = "SELECT line FROM entries WHERE chain = ?1 AND number >= ?2 AND number < ?3 ORDER BY number";
        let mut statement = self.connection.prepare(query)?;
        let mut rows = statement.query(params![chain, span.start, span.end])?;
        while let Some(row) = rows.next()? {
            each(&row.get::<_, String>(0)?);
        }
        Ok(())
    }

    /// The personal values of a part of a chain, as a case has them. `chain` is the name of the
    /// chain whose row the part has.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn personal(&self, chain: &ChainName, part: &Part) -> Result<Vec<PersonalLine>> {
        let (id, span) = part;
        let query = "SELECT number, name, lower(hex(salt)), value FROM personal WHERE chain = ?1 AND number >= ?2 AND number \
                     < ?3 ORDER BY number, name";
        self.all(query, params![id, span.start, span.end], |row| {
            let (number, name, salt, value) = row.try_into()?;
            Ok(PersonalLine {
                chain: chain.clone(),
                number,
                name,
                salt,
                value,
            })
        })
    }

    /// The bytes of the document with this SHA-256; `None` if it is not stored any more.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn document(&self, hash: Hash) -> Result<Option<Vec<u8>>> {
        let query = "SELECT bytes FROM documents WHERE sha256 = ?1";
        Ok(self.one(query, [hash.0]).optional()?)
    }

    /// The signed notes of the checkpoints that were made in a span of time, the last one before it
    /// and the first one after it, with their numbers.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn checkpoints(&self, from: &str, to: &str) -> Result<Vec<(u64, String)>> {
        let query = "SELECT number, note FROM checkpoints WHERE number >= coalesce((SELECT max(number) FROM checkpoints WHERE \
                     time < ?1), 0) AND number <= coalesce((SELECT min(number) FROM checkpoints WHERE time >= ?2), (SELECT \
                     max(number) FROM checkpoints)) ORDER BY number";
        self.all(query, [from, to], |row| row.try_into())
    }

    /// The notes about changes of the key, the oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn key_notes(&self) -> Result<Vec<String>> {
        self.all("SELECT note FROM keys ORDER BY number", [], |row| {
            row.get(0)
        })
    }

    /// The heads that a checkpoint covers, in their order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn heads(&self, checkpoint: u64) -> Result<Vec<Head>> {
        let query = "SELECT site, crawler, heads.entries, hash FROM heads JOIN chains ON chains.id = heads.chain WHERE \
                     checkpoint = ?1 ORDER BY place";
        self.all(query, [checkpoint], |row| {
            let (site, crawler, entries, hash) = row.try_into()?;
            Ok(Head {
                chain: ChainName { site, crawler },
                entries,
                hash: Hash(hash),
            })
        })
    }

    /// The timestamps of a checkpoint: pairs of the authority's URL and its response, by URL.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn timestamps(&self, checkpoint: u64) -> Result<Vec<(String, Vec<u8>)>> {
        let query =
            "SELECT authority, response FROM timestamps WHERE checkpoint = ?1 ORDER BY authority";
        self.all(query, [checkpoint], |row| row.try_into())
    }

    /// Each checkpoint since a moment with each authority whose timestamp it lacks: number, note,
    /// URL of the authority. The latest checkpoint comes first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn unstamped(&self, since: &str) -> Result<Vec<(u64, String, String)>> {
        let query = "SELECT number, note, url FROM checkpoints JOIN authorities WHERE time >= ?1 AND NOT EXISTS (SELECT 1 FROM \
                     timestamps WHERE checkpoint = number AND authority = url) ORDER BY number DESC, url";
        self.all(query, [since], |row| row.try_into())
    }

    /// Empties the write-ahead log, so that what was deleted is in no file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn truncate_journal(&self) -> Result {
        Ok(self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }

    /// The next entries after a place whose personal values are to be deleted: those with this
    /// client address, if one is given, and older than `before`, if that is given. With neither,
    /// all that have personal values. As many as one transaction deletes; empty at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn personal_after(
        &self,
        after: EntryPlace,
        address: Option<&str>,
        before: Option<&str>,
    ) -> Result<Vec<EntryPlace>> {
        let query = "SELECT DISTINCT chain, number FROM personal WHERE (chain, number) > (?1, ?2) AND (?3 IS NULL OR (name = \
                     'client' AND value = ?3)) AND (?4 IS NULL OR EXISTS (SELECT 1 FROM entries WHERE entries.chain = \
                     personal.chain AND entries.number = personal.number AND time < ?4)) ORDER BY chain, number LIMIT ?5";
        let parameters = params![after.0, after.1, address, before, writing::DELETED_AT_ONCE];
        self.all(query, parameters, |row| row.try_into())
    }
}

/// Reads a chain from a row with the columns id, first, site, crawler, entries, head, time.
fn chain(row: &Row<'_>) -> SqlResult<Chain> {
    let (id, first, site, crawler, entries, hash, time) = row.try_into()?;
    let chain = ChainName { site, crawler };
    Ok(Chain {
        id,
        first,
        head: Head {
            chain,
            entries,
            hash: Hash(hash),
        },
        time,
    })
}
