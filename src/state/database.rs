//! [`Database`]: the open state database, the SQLite file `state.db`. [`Database::open`] checks the
//! whole file, and [`Database::write`] writes a [`CommitBatch`] in one transaction. [`set_aside`]
//! renames a file that cannot be used.

use super::history::{self, RequestHistoryBatch};
use super::previous_run::PreviousRun;
use super::tables::{StateTables, create_table_sql, expiry_column, upsert_sql};
use crate::facts::{ColumnValue, Fact, StoredFacts, TABLES};
use crate::files::{check_database, file_identity, prepare_database};
use crate::time::Timestamp;
use DatabaseError::{Damaged, Former, Gone, Newer, Unusable};
use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension, Result as SqlResult, params_from_iter,
};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the file.
pub const STATE_FILE: &str = "state.db";
/// The version of the tables, raised with each change of a table. A file with a lower version is
/// set aside.
const SCHEMA_VERSION: i64 = 9;
/// How long a commit waits for another program that has the file open.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// The write-ahead log is cut back to this size after a large transaction.
const JOURNAL_BYTES: u32 = 16 * 1024 * 1024;

/// How many seconds removals are kept.
const REMOVALS_KEPT_FOR: i64 = 60;

/// The table of the last commit, and the indexes that find deletable versions.
const RUN_AND_INDEXES: &str = "\
CREATE TABLE IF NOT EXISTS run (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  committed INTEGER NOT NULL,
  clean INTEGER NOT NULL,
  incomplete INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS versions_by_last_use ON versions (changed);
CREATE INDEX IF NOT EXISTS publications_by_version ON publications (answered);";
const UPSERT_RUN: &str = "INSERT INTO run (one, committed, clean, incomplete) VALUES (1, ?1, ?2, ?3) ON CONFLICT (one) DO \
                       UPDATE SET committed = ?1, clean = ?2, incomplete = ?3";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// It is damaged, or belongs to another program.
    #[error("{0}")]
    Damaged(String),
    /// An earlier version of crawlgate wrote it.
    #[error(
        "an earlier crawlgate wrote {STATE_FILE} (tables of version {schema}; this one has version {SCHEMA_VERSION})"
    )]
    Former {
        /// The version of its tables.
        schema: i64,
    },
    /// A later version of crawlgate wrote it.
    #[error(
        "a newer crawlgate wrote state.db (tables of version {schema}; this one knows version {SCHEMA_VERSION}). \
         Its pauses and last good policies are not used. Put the newer crawlgate back, or restore a backup from before it"
    )]
    Newer {
        /// The version of its tables.
        schema: i64,
    },
    /// It cannot be read or written.
    #[error("{0}")]
    Unusable(#[from] rusqlite::Error),
    /// The open file has no name any more, or another file has its name. What is written would be
    /// lost when the process ends.
    #[error(
        "{STATE_FILE} was deleted, moved or replaced while crawlgate used it. Put it back: a restart begins another first day"
    )]
    Gone,
}

/// The row of the table `run`.
pub struct RunRow {
    /// All facts until this moment are written.
    pub committed: Timestamp,
    /// Whether the run ends with this transaction.
    pub clean: bool,
    /// Whether facts were dropped that the next start would need.
    pub incomplete: bool,
}

/// What one transaction writes.
pub struct CommitBatch<'a> {
    /// The facts, in order.
    pub facts: &'a [Fact],
    /// The additions to the history.
    pub history: &'a RequestHistoryBatch,
    /// Whether to delete the stored observations first, because observation begins anew.
    pub deletes_observations: bool,
    /// Deletes facts that ended before this moment: see [`super::writer::StateWriterShared::prune`].
    pub prune: Option<Timestamp>,
    /// The row of this run, once the run has begun.
    pub run: Option<RunRow>,
    /// Whether the transaction must wait until it is on disk.
    pub is_durable: bool,
}

/// The open file.
#[derive(Debug)]
pub struct Database {
    connection: Connection,
    path: PathBuf,
    /// Device and inode of the opened file, because SQLite keeps writing to a deleted file.
    identity: Option<(u64, u64)>,
    /// The hour in which old rows of the history were last deleted.
    history_pruned: i64,
    /// Whether the transaction that [`Database::open_in_transaction`] began is still open.
    in_transaction: bool,
}

impl Database {
    /// Opens or creates the file, creates missing tables, checks the whole file for damage, and
    /// writes the version of the tables.
    ///
    /// # Errors
    /// The file is damaged, has tables of an unknown version, or cannot be read or written.
    pub fn open(file: &Path) -> Result<Database, DatabaseError> {
        let database = Database::connect(file)?;
        database.create_tables().map_err(classify_error)?;
        database.check()?;
        database.write_schema_version()?;
        Ok(database)
    }

    /// Opens the file that the previous process has just closed, and begins a transaction that
    /// stays open. Nothing is on disk until [`Database::commit_open_transaction`], so a process
    /// that ends before leaves no trace. Does not check for damage, because the previous process
    /// did.
    ///
    /// # Errors
    /// The file is damaged, has tables of an unknown version, or cannot be read or written.
    pub fn open_in_transaction(file: &Path) -> Result<Database, DatabaseError> {
        let mut database = Database::connect(file)?;
        database.set_durable(true)?;
        database.connection.execute_batch("BEGIN IMMEDIATE")?;
        database.in_transaction = true;
        database.create_tables().map_err(classify_error)?;
        database.write_schema_version()?;
        Ok(database)
    }

    /// Commits the transaction that `Database::open_in_transaction` began. Does nothing if none is
    /// open.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn commit_open_transaction(&mut self) -> Result<(), DatabaseError> {
        if self.in_transaction {
            self.connection.execute_batch("COMMIT")?;
            self.in_transaction = false;
        }
        Ok(())
    }

    /// Opens the file for reading and writing, or creates one that only this user can read, and
    /// configures SQLite. Does not touch the tables.
    ///
    /// # Errors
    /// The tables are of another version, or the file cannot be read or written.
    fn connect(file: &Path) -> Result<Database, DatabaseError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // For this user alone, because it has addresses of clients. The files of the write-ahead
        // log get the same rights.
        prepare_database(file, true)?;
        let connection = Connection::open_with_flags(file, flags)?;
        let database = Database::from_connection(connection, file);
        database.check_schema()?;
        database.configure().map_err(classify_error)?;
        Ok(database)
    }

    /// Checks the version of the tables. A new file has version 0, which is accepted.
    fn check_schema(&self) -> Result<(), DatabaseError> {
        let version = "PRAGMA user_version";
        let schema = self
            .connection
            .query_row(version, [], |row| row.get(0))
            .map_err(classify_error)?;
        match schema {
            0 | SCHEMA_VERSION => Ok(()),
            ..SCHEMA_VERSION => Err(Former { schema }),
            _ => Err(Newer { schema }),
        }
    }

    /// A database on a connection that was just opened. The file that has this name now is taken
    /// for the open one.
    fn from_connection(connection: Connection, file: &Path) -> Database {
        Database {
            connection,
            path: file.to_owned(),
            identity: file_identity(file),
            history_pruned: 0,
            in_transaction: false,
        }
    }

    /// Reads the whole file, and checks it for damage.
    ///
    /// # Errors
    /// It is damaged.
    pub fn check(&self) -> Result<(), DatabaseError> {
        let checked: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(classify_error)?;
        if checked == "ok" {
            Ok(())
        } else {
            Err(Damaged(checked))
        }
    }

    /// Opens the file for reading, without checking it for damage: see `open_for_reading`.
    ///
    /// # Errors
    /// The file cannot be opened, or its tables are of another version.
    pub fn open_read_only(file: &Path) -> Result<Database, DatabaseError> {
        let database = Database::from_connection(open_for_reading(file)?, file);
        database.check_schema()?;
        Ok(database)
    }

    /// Configures SQLite: timeout, write-ahead log and its size limit.
    fn configure(&self) -> SqlResult<()> {
        let connection = &self.connection;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        // On a file system without support SQLite keeps its rollback journal.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.query_row(
            &format!("PRAGMA journal_size_limit = {JOURNAL_BYTES}"),
            [],
            |_| Ok(()),
        )
    }

    /// Creates missing tables and indexes, also those of the history.
    fn create_tables(&self) -> SqlResult<()> {
        let connection = &self.connection;
        for table in TABLES {
            connection.execute_batch(&create_table_sql(table))?;
        }
        connection.execute_batch(RUN_AND_INDEXES)?;
        history::create_tables(connection)
    }

    /// Writes the version of the tables into the file.
    fn write_schema_version(&self) -> SqlResult<()> {
        self.connection
            .pragma_update(None, "user_version", SCHEMA_VERSION)
    }

    /// Reads all stored facts, and how the previous run ended: `Clean` or `Crashed` at its last
    /// commit, `Unknown` if there was no run or it lost facts. Moments in the future become `now`.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn read(&self, now: Timestamp) -> Result<(StoredFacts, PreviousRun), DatabaseError> {
        use PreviousRun::*;
        let run = "SELECT committed, clean, incomplete FROM run";
        let run = self
            .connection
            .query_row(run, [], |row| row.try_into())
            .optional()
            .map_err(classify_error)?;
        let previous = match run {
            Some((_, _, true)) | None => Unknown,
            Some((at, true, false)) => Clean { at },
            Some((at, false, false)) => Crashed { last_commit: at },
        };
        let tables = StateTables {
            connection: &self.connection,
            now,
        };
        Ok((
            StoredFacts::read(&tables).map_err(classify_error)?,
            previous,
        ))
    }

    /// Clears the mark of the clean end of the previous run, because this run has not ended.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn clear_clean_end(&self) -> Result<(), DatabaseError> {
        self.set_durable(true)?;
        self.connection.execute("UPDATE run SET clean = 0", [])?;
        Ok(())
    }

    /// Writes a batch in one transaction. `now` is the moment of writing. Also deletes old removals
    /// from the tables that clients can fill. While the transaction of `open_in_transaction` is
    /// open, the batch becomes a part of it.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn write(&mut self, batch: &CommitBatch<'_>, now: Timestamp) -> Result<(), DatabaseError> {
        if file_identity(&self.path) != self.identity {
            return Err(Gone);
        }
        self.set_durable(batch.is_durable)?;
        // A savepoint works inside the open transaction and without one.
        let transaction = self.connection.savepoint()?;
        if batch.deletes_observations {
            transaction.execute("DELETE FROM observations", [])?;
        }
        write_facts(&transaction, batch.facts, now)?;
        let mut pruned = self.history_pruned;
        history::write_batch(&transaction, batch.history, &mut pruned, now)?;
        let long_ago = now.0.saturating_sub(REMOVALS_KEPT_FOR);
        // An earlier change may still arrive for some seconds.
        for table in TABLES {
            let name = table.name;
            transaction.execute(
                &format!("DELETE FROM {name} WHERE removed = 1 AND changed < ?1"),
                [long_ago],
            )?;
        }
        if let Some(before) = batch.prune {
            delete_expired(&transaction, before)?;
        }
        if let Some(run) = &batch.run {
            transaction.execute(UPSERT_RUN, (run.committed, run.clean, run.incomplete))?;
        }
        transaction.commit()?;
        self.history_pruned = pruned;
        Ok(())
    }

    /// Moves the write-ahead log into the file, so that the state is one file.
    pub fn close(self) {
        // A failure does no harm, because the next start reads the log as well.
        let _ = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    }

    /// Sets whether the next commits wait until they are on disk. A commit that does not wait
    /// survives the process, but a crash of the machine may undo it as a whole. Does nothing while
    /// the transaction of `open_in_transaction` is open.
    fn set_durable(&self, is_durable: bool) -> SqlResult<()> {
        if self.in_transaction {
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

/// Writes each fact into its table, unless a later change is stored: see `upsert_sql`. `now` is the
/// moment of writing.
fn write_facts(connection: &Connection, facts: &[Fact], now: Timestamp) -> SqlResult<()> {
    // Facts of one table come one after another, as a rule.
    for of_one_table in facts.chunk_by(|one, next| one.fact.table() == next.fact.table()) {
        let Some(first) = of_one_table.first() else {
            continue;
        };
        let mut statement = connection.prepare(&upsert_sql(first.fact.table()))?;
        for Fact {
            at,
            is_removal,
            fact,
        } in of_one_table
        {
            let own = [at.0, (*is_removal).into(), now.0].map(ColumnValue::Integer);
            let columns = fact.key().into_iter().chain(fact.values()).chain(own);
            statement.execute(params_from_iter(columns))?;
        }
    }
    Ok(())
}

/// Deletes facts that ended before a moment, and then the versions that were last needed before it
/// and that no publication or served version refers to.
fn delete_expired(connection: &Connection, before: Timestamp) -> SqlResult<()> {
    for table in TABLES {
        if let Some(end) = expiry_column(table) {
            let name = table.name;
            connection.execute(&format!("DELETE FROM {name} WHERE {end} < ?1"), [before])?;
        }
    }
    connection.execute(
        "DELETE FROM versions WHERE changed < ?1 AND NOT EXISTS (SELECT 1 FROM publications WHERE answered = versions.id \
         AND removed = 0) AND NOT EXISTS (SELECT 1 FROM served WHERE received = versions.id AND removed = 0)",
        [before],
    )?;
    Ok(())
}

/// Opens the file for reading. If its write-ahead log has content, as while another process writes,
/// the connection follows it (`open_following`). Otherwise the file is opened as immutable, and
/// later commits are not seen.
pub fn open_for_reading(file: &Path) -> SqlResult<Connection> {
    if fs::metadata(with_suffix(file, "-wal")).is_ok_and(|log| log.len() > 0) {
        return open_following(file);
    }
    check_database(file)?;
    // Otherwise SQLite would create a file beside it for readers of a write-ahead log.
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

/// Whether there is a write-ahead log, even an empty one. Then a crawlgate runs or has crashed.
pub fn has_write_ahead_log(file: &Path) -> bool {
    with_suffix(file, "-wal").exists()
}

/// Renames a file that cannot be used, and its write-ahead log, to a name with the reason `why` and
/// the time. Returns the new name.
///
/// # Errors
/// It cannot be renamed.
pub fn set_aside(file: &Path, why: &str, now: Timestamp) -> io::Result<PathBuf> {
    let time: String = now
        .to_string()
        .chars()
        .filter(|sign| !matches!(sign, ':' | '-'))
        .collect();
    let aside = with_suffix(file, &format!(".{why}-{time}"));
    for suffix in ["-wal", "-shm"] {
        match fs::rename(with_suffix(file, suffix), with_suffix(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::rename(file, &aside)?;
    Ok(aside)
}

/// The path of the file with `suffix` appended to its name.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// `Unusable` for a failure of the disk, of permissions, locks or memory; `Damaged` for every other
/// error of SQLite.
fn classify_error(error: rusqlite::Error) -> DatabaseError {
    use ErrorCode::*;

    let is_of_the_disk = matches!(
        error.sqlite_error_code(),
        Some(
            CannotOpen
                | ReadOnly
                | DiskFull
                | SystemIoFailure
                | PermissionDenied
                | DatabaseBusy
                | DatabaseLocked
                | OutOfMemory
                | FileLockingProtocolFailed
                | NoLargeFileSupport
                | AuthorizationForStatementDenied
        )
    );
    if is_of_the_disk {
        Unusable(error)
    } else {
        Damaged(error.to_string())
    }
}
