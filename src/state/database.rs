//! [`Database`]: the open file `state.db`. [`Database::open`] checks the whole file. Each [`Batch`]
//! is written in one transaction. [`set_aside`] renames a damaged file.

use super::history::{self, HistoryBatch};
use super::previous_run::PreviousRun;
use super::tables::{Tables, definition_of, end_of, upsert_of};
use crate::facts::{Fact, StoredFacts, TABLES, TOLERANCE, Value};
use crate::files::{check_database, prepare_database};
use crate::time::Timestamp;
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Result as SqlResult, params_from_iter,
};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the file.
pub const FILE: &str = "state.db";
/// The version of the tables. A change of a table is a higher number, and a file with another one
/// is set aside.
const SCHEMA: i64 = 6;
/// For so long a commit waits for a person who has the file open.
const PATIENCE: Duration = Duration::from_secs(1);
/// The write-ahead log is cut back to this size after a large transaction.
const JOURNAL_BYTES: u32 = 16 * 1024 * 1024;

/// The removal of a fact of which clients choose how many there are is remembered for so many
/// seconds.
const RELEASED_FOR: i64 = 60;

/// The last commit, in the same transaction as the facts before it; and indexes that find the
/// versions that may be deleted.
const RUN_AND_INDEXES: &str = "\
CREATE TABLE IF NOT EXISTS run (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  committed INTEGER NOT NULL,
  clean INTEGER NOT NULL,
  incomplete INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS versions_by_last_use ON versions (changed);
CREATE INDEX IF NOT EXISTS publications_by_version ON publications (answered);";
const SET_RUN: &str = "INSERT INTO run (one, committed, clean, incomplete) VALUES (1, ?1, ?2, ?3) ON CONFLICT (one) DO \
                       UPDATE SET committed = ?1, clean = ?2, incomplete = ?3";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Its content is damaged or of another program.
    #[error("{0}")]
    Damaged(String),
    /// An earlier version of crawlgate wrote it.
    #[error(
        "an earlier crawlgate wrote {FILE} (tables of version {schema}; this one has version {SCHEMA})"
    )]
    Former {
        /// The version of its tables.
        schema: i64,
    },
    /// A later version of crawlgate wrote it.
    #[error(
        "a newer crawlgate wrote state.db (tables of version {schema}; this one knows version {SCHEMA})"
    )]
    Newer {
        /// The version of its tables.
        schema: i64,
    },
    /// It cannot be read or written.
    #[error("{0}")]
    Unusable(#[from] rusqlite::Error),
    /// Another file has its name now, or none has. What is written would be lost when the process
    /// ends.
    #[error(
        "{FILE} was deleted, moved or replaced while crawlgate used it; put it back, or start crawlgate again"
    )]
    Gone,
}

/// What a transaction says about this run.
#[derive(Debug)]
pub struct RunRow {
    /// When the facts before it were complete.
    pub committed: Timestamp,
    /// Whether the run ends with this transaction.
    pub clean: bool,
    /// Whether facts were lost that the next start would need.
    pub incomplete: bool,
}

/// What one transaction writes.
#[derive(Debug)]
pub struct Batch<'a> {
    /// The facts, in order.
    pub facts: &'a [Fact],
    /// What is added to the history.
    pub history: &'a HistoryBatch,
    /// Whether observation begins anew: what is there about it goes first.
    pub forgets_observation: bool,
    /// Deletes what no crawler may have cached any more: see [`super::writer::Shared::prune`].
    pub prune: Option<Timestamp>,
    /// The time of the commit, once the run has begun.
    pub run: Option<RunRow>,
    /// Whether it has to be on the disk when the transaction is over.
    pub is_durable: bool,
}

/// The open file.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    path: PathBuf,
    /// Which file was opened: SQLite goes on writing to one that was deleted.
    identity: Option<(u64, u64)>,
    /// The hour in which old rows of the history were deleted last.
    history_pruned: i64,
    /// Whether everything is one transaction so far, from the opening on: see
    /// [`Database::open_held`].
    is_held: bool,
}

impl Database {
    /// Opens the file or makes one, makes missing tables, checks the whole file for damage, and
    /// writes the version of the tables into it.
    ///
    /// # Errors
    /// The file is damaged, has tables of an unknown version, or cannot be read or written.
    pub fn open(file: &Path) -> Result<Database, DatabaseError> {
        let database = Database::connect(file)?;
        database.define().map_err(judged)?;
        database.check()?;
        database.mark()?;
        Ok(database)
    }

    /// Opens the file that the previous process has just closed, in one transaction that stays
    /// open. Until [`Database::settle`] nothing is on the disk: a process that ends before leaves
    /// no trace. Does not check the file for damage, because the previous process did.
    ///
    /// # Errors
    /// The file is damaged, has tables of an unknown version, or cannot be read or written.
    pub fn open_held(file: &Path) -> Result<Database, DatabaseError> {
        let mut database = Database::connect(file)?;
        database.set_durable(true)?;
        database.connection.execute_batch("BEGIN IMMEDIATE")?;
        database.is_held = true;
        database.define().map_err(judged)?;
        database.mark()?;
        Ok(database)
    }

    /// Commits the transaction that `Database::open_held` began, with all that was written since.
    /// Does nothing to a database that holds no such transaction.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn settle(&mut self) -> Result<(), DatabaseError> {
        if self.is_held {
            self.connection.execute_batch("COMMIT")?;
            self.is_held = false;
        }
        Ok(())
    }

    /// Opens the file for reading and writing, or makes one that only this user can read, and sets
    /// how SQLite works with it. Does not touch the tables.
    ///
    /// # Errors
    /// The tables are of another version, or the file cannot be read or written.
    fn connect(file: &Path) -> Result<Database, DatabaseError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // For this user alone: it holds addresses of clients. The files of the write-ahead log get
        // the same rights.
        prepare_database(file, true)?;
        let connection = Connection::open_with_flags(file, flags)?;
        let database = Database::of(connection, file);
        database.check_schema()?;
        database.configure().map_err(judged)?;
        Ok(database)
    }

    /// Whether this crawlgate knows the tables. A new file has version 0, which is accepted.
    fn check_schema(&self) -> Result<(), DatabaseError> {
        let version = "PRAGMA user_version";
        let schema = self
            .connection
            .query_row(version, [], |row| row.get(0))
            .map_err(judged)?;
        match schema {
            0 | SCHEMA => Ok(()),
            ..SCHEMA => Err(DatabaseError::Former { schema }),
            _ => Err(DatabaseError::Newer { schema }),
        }
    }

    /// A database on a connection that was just opened: the file that has this name now is taken
    /// for the one that is open.
    fn of(connection: Connection, file: &Path) -> Database {
        Database {
            connection,
            path: file.to_owned(),
            identity: identity(file),
            history_pruned: 0,
            is_held: false,
        }
    }

    /// Reads the whole file, and looks for damage.
    ///
    /// # Errors
    /// It is damaged.
    pub fn check(&self) -> Result<(), DatabaseError> {
        let checked: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(judged)?;
        if checked == "ok" {
            Ok(())
        } else {
            Err(DatabaseError::Damaged(checked))
        }
    }

    /// Opens the file for reading, without checking it for damage: see `open_for_reading`.
    ///
    /// # Errors
    /// The file cannot be opened, or its tables are of another version.
    pub fn open_read_only(file: &Path) -> Result<Database, DatabaseError> {
        let database = Database::of(open_for_reading(file)?, file);
        database.check_schema()?;
        Ok(database)
    }

    /// Sets how SQLite works with the file.
    fn configure(&self) -> SqlResult<()> {
        let connection = &self.connection;
        connection.busy_timeout(PATIENCE)?;
        // Where a file system cannot do it, SQLite stays with its rollback journal.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.query_row(
            &format!("PRAGMA journal_size_limit = {JOURNAL_BYTES}"),
            [],
            |_| Ok(()),
        )
    }

    /// Makes the tables and indexes that are missing, those of the history as well.
    fn define(&self) -> SqlResult<()> {
        let connection = &self.connection;
        for table in TABLES {
            connection.execute_batch(&definition_of(table))?;
        }
        connection.execute_batch(RUN_AND_INDEXES)?;
        history::prepare(connection)
    }

    /// Says in the file which version the tables have.
    fn mark(&self) -> SqlResult<()> {
        self.connection.pragma_update(None, "user_version", SCHEMA)
    }

    /// Returns all stored records, and how the previous run ended: `Clean` or `Crashed` at its last
    /// commit, `Unknown` if there was no run or it lost facts. Moments are read as `taken_as_past`
    /// says.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn read(&self, now: Timestamp) -> Result<(StoredFacts, PreviousRun), DatabaseError> {
        let run = "SELECT committed, clean, incomplete FROM run";
        let run = self
            .connection
            .query_row(run, [], |row| row.try_into())
            .optional()
            .map_err(judged)?;
        let previous = match run {
            Some((_, _, true)) | None => PreviousRun::Unknown,
            Some((at, true, false)) => PreviousRun::Clean { at },
            Some((at, false, false)) => PreviousRun::Crashed { last_commit: at },
        };
        let tables = Tables {
            connection: &self.connection,
            now,
        };
        Ok((StoredFacts::read(&tables).map_err(judged)?, previous))
    }

    /// Removes the clean end of the previous run from the disk, because this run has not ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn take_clean_end(&self) -> Result<(), DatabaseError> {
        self.set_durable(true)?;
        self.connection.execute("UPDATE run SET clean = 0", [])?;
        Ok(())
    }

    /// Writes a batch in one transaction: all of it is written, or nothing. `now` is the moment of
    /// writing. Also deletes removals of client records that are older than `RELEASED_FOR`. In a
    /// database from `Database::open_held` the batch waits for `Database::settle`.
    ///
    /// # Errors
    /// Nothing was written. `DatabaseError::Gone`: another file, or none, has the name of the open
    /// one.
    pub fn write(&mut self, batch: &Batch<'_>, now: Timestamp) -> Result<(), DatabaseError> {
        if identity(&self.path) != self.identity {
            return Err(DatabaseError::Gone);
        }
        self.set_durable(batch.is_durable)?;
        // Within the transaction that is held, or one of its own.
        let transaction = self.connection.savepoint()?;
        if batch.forgets_observation {
            transaction.execute("DELETE FROM observations", [])?;
        }
        write_facts(&transaction, batch.facts, now)?;
        let mut pruned = self.history_pruned;
        history::write(&transaction, batch.history, &mut pruned, now)?;
        let long_ago = now.0.saturating_sub(RELEASED_FOR);
        for table in TABLES.iter().filter(|table| table.is_of_clients) {
            forget_removals(&transaction, table.name, long_ago)?;
        }
        if let Some(before) = batch.prune {
            prune(&transaction, before)?;
        }
        if let Some(RunRow {
            committed,
            clean,
            incomplete,
        }) = batch.run
        {
            transaction.execute(SET_RUN, (committed, clean, incomplete))?;
        }
        transaction.commit()?;
        self.history_pruned = pruned;
        Ok(())
    }

    /// Brings the write-ahead log into the file itself, so that one file is all there is.
    pub fn close(self) {
        // The next start reads the log as well: a failure changes nothing.
        let _ = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Sets whether the next commits wait until they are on the disk. A commit that does not wait
    /// survives the process, but a crash of the machine may undo it as a whole. Does nothing in a
    /// database from `Database::open_held`, whose transaction is open already.
    fn set_durable(&self, is_durable: bool) -> SqlResult<()> {
        if self.is_held {
            return Ok(());
        }
        self.connection.pragma_update(
            None,
            "synchronous",
            if is_durable { "FULL" } else { "NORMAL" },
        )
    }

    #[cfg(test)]
    pub fn execute(&self, sql: &str) {
        self.connection.execute_batch(sql).expect("executed");
    }
}

/// Writes each fact into the table of its record, unless a later change is there: see
/// `upsert_of`. `now` is the moment of writing.
fn write_facts(connection: &Connection, facts: &[Fact], now: Timestamp) -> SqlResult<()> {
    // Facts of one table come one after another, as a rule.
    for of_one_table in facts.chunk_by(|one, next| one.fact.table() == next.fact.table()) {
        let Some(first) = of_one_table.first() else {
            continue;
        };
        let mut statement = connection.prepare(&upsert_of(first.fact.table()))?;
        for Fact {
            at,
            is_removal,
            fact,
        } in of_one_table
        {
            let own = [at.0, (*is_removal).into(), now.0].map(Value::Integer);
            let columns = fact.key().into_iter().chain(fact.values()).chain(own);
            statement.execute(params_from_iter(columns))?;
        }
    }
    Ok(())
}

/// Deletes what ended before a moment, visits that were last served before it, and then the
/// versions that were last needed before it and that no publication or visit refers to. Also
/// deletes removals in every table that are older than that moment by more than `TOLERANCE`.
fn prune(connection: &Connection, before: Timestamp) -> SqlResult<()> {
    for table in TABLES {
        if let Some(end) = end_of(table) {
            let name = table.name;
            connection.execute(&format!("DELETE FROM {name} WHERE {end} < ?1"), [before])?;
        }
    }
    connection.execute(
        "DELETE FROM versions WHERE changed < ?1 AND NOT EXISTS (SELECT 1 FROM publications WHERE answered = versions.id \
         AND removed = 0) AND NOT EXISTS (SELECT 1 FROM served WHERE received = versions.id AND removed = 0)",
        [before],
    )?;
    // A removal is needed as long as a change from before it may still arrive.
    for table in TABLES {
        forget_removals(connection, table.name, before.0.saturating_sub(TOLERANCE))?;
    }
    Ok(())
}

/// Deletes the removals in a table that are older than a moment.
fn forget_removals(connection: &Connection, table: &str, before: i64) -> SqlResult<()> {
    connection.execute(
        &format!("DELETE FROM {table} WHERE removed = 1 AND changed < ?1"),
        [before],
    )?;
    Ok(())
}

/// Opens the file for reading. If its write-ahead log has content, as while another process writes,
/// the connection follows it (`open_following`). Otherwise the file is opened as one that never
/// changes, and later commits are not seen.
pub fn open_for_reading(file: &Path) -> SqlResult<Connection> {
    if fs::metadata(beside(file, "-wal")).is_ok_and(|log| log.len() > 0) {
        return open_following(file);
    }
    check_database(file)?;
    // SQLite would make a file beside it for the readers of a write-ahead log.
    let path = file
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    Connection::open_with_flags(
        format!("file:{path}?immutable=1"),
        READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
    )
}

const READ_ONLY: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);

/// Opens the file for reading with its write-ahead log, so that the commits of another process are
/// seen.
pub fn open_following(file: &Path) -> SqlResult<Connection> {
    check_database(file)?;
    Connection::open_with_flags(file, READ_ONLY)
}

/// Whether there is a write-ahead log, even an empty one: a crawlgate runs or has crashed.
pub fn has_log(file: &Path) -> bool {
    beside(file, "-wal").exists()
}

/// Renames a file that cannot be used and its write-ahead log, with a word that says why and the
/// time, and returns the new name.
///
/// # Errors
/// It cannot be renamed.
pub fn set_aside(file: &Path, why: &str, now: Timestamp) -> io::Result<PathBuf> {
    let time: String = now
        .to_string()
        .chars()
        .filter(|sign| !matches!(sign, ':' | '-'))
        .collect();
    let aside = beside(file, &format!(".{why}-{time}"));
    for suffix in ["-wal", "-shm"] {
        match fs::rename(beside(file, suffix), beside(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(file, &aside)?;
    Ok(aside)
}

/// The device and the inode of the file that has this name now.
fn identity(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file)
        .ok()
        .map(|metadata| (metadata.dev(), metadata.ino()))
}

/// The path of the file with `suffix` appended to its name.
fn beside(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// `Unusable` for a failure of the disk, of permissions, locks or memory; `Damaged` for every other
/// error of SQLite.
fn judged(error: rusqlite::Error) -> DatabaseError {
    let is_of_the_disk = matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::PermissionDenied
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::NoLargeFileSupport
                | ErrorCode::AuthorizationForStatementDenied
        )
    );
    if is_of_the_disk {
        DatabaseError::Unusable(error)
    } else {
        DatabaseError::Damaged(error.to_string())
    }
}
