//! [`HistoryReader`] reads the history for people. It opens a connection of its own to a state
//! directory, also while another process writes there. Without a state directory it reads the
//! memory of the running crawlgate. It writes nothing. Questions about samples are in `samples.rs`;
//! the sum of several instances is in `counted.rs`.

use super::tables::{columns, rows, sums, table};
use super::{HistoryBatch, Step, prepare, write};
use crate::locks::lock;
use crate::record::{ByIdentity, Counts};
use crate::state::database::{FILE, has_log, open_following, open_for_reading};
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, Kind, KnownIdentity};
use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use rusqlite::{Connection, Params, Result as SqlResult, Row as SqlRow, Rows};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// For so long a question waits for a process that repairs the file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why the history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// SQLite says no.
    #[error("cannot read the history: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The directory has no `state.db`.
    #[error("{0} has no state.db: has crawlgate run here? Give its state directory with --state")]
    Missing(String),
    /// The file cannot be opened.
    #[error("cannot open {file}: {error}")]
    Unopened {
        /// The file.
        file: String,
        /// Why.
        error: String,
    },
}

/// The history of a crawlgate without a state directory.
pub struct Memory(Mutex<(Connection, i64)>);

impl Memory {
    /// An empty history. `None` where SQLite has no memory.
    pub fn new() -> Option<Memory> {
        let connection = Connection::open_in_memory().ok()?;
        prepare(&connection).ok()?;
        Some(Memory(Mutex::new((connection, 0))))
    }

    /// Adds a batch. A failure is ignored.
    pub fn add(&self, batch: &HistoryBatch, now: Timestamp) {
        let (connection, pruned) = &mut *lock(&self.0);
        // Without memory left there is more to worry about than the history.
        let _ = connection
            .execute_batch("BEGIN")
            .and_then(|()| write(connection, batch, pruned, now));
        let _ = connection.execute_batch("COMMIT");
    }

    /// Runs a query on the history in memory.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> SqlResult<T>,
    ) -> Result<T, HistoryError> {
        Ok(read(&lock(&self.0).0)?)
    }
}

/// Reads the history; cheap to clone.
#[derive(Clone)]
pub struct HistoryReader(Arc<Source>);

enum Source {
    Memory(Arc<Memory>),
    /// The counts of several instances in memory, and the history of this one, which has everything
    /// else.
    Sum(Memory, HistoryReader),
    /// The file, and the connection that is kept once it was opened.
    File(PathBuf, Mutex<Option<Connection>>),
    Nothing,
}

/// Questions fail as [`HistoryError`] says.
#[allow(clippy::missing_errors_doc)]
impl HistoryReader {
    /// A reader of the history in memory. Without a memory it finds nothing.
    pub(in crate::state) fn of_memory(memory: Option<Arc<Memory>>) -> HistoryReader {
        HistoryReader(Arc::new(memory.map_or(Source::Nothing, Source::Memory)))
    }

    /// A reader of the counts of several instances, which are in `sum`, and of everything else that
    /// `own` reads.
    pub(super) fn of_sum(sum: Memory, own: HistoryReader) -> HistoryReader {
        HistoryReader(Arc::new(Source::Sum(sum, own)))
    }

    /// A reader of a `state.db`, which is opened when it is read first.
    pub(in crate::state) fn of_file(file: PathBuf) -> HistoryReader {
        HistoryReader(Arc::new(Source::File(file, Mutex::default())))
    }

    /// A reader of a state directory, whose `state.db` is opened now. Its crawlgate may be running.
    ///
    /// # Errors
    /// There is no file that could be read.
    pub fn open(directory: &Path) -> Result<HistoryReader, HistoryError> {
        let file = directory.join(FILE);
        if !file.exists() {
            return Err(HistoryError::Missing(directory.display().to_string()));
        }
        let connection = Mutex::new(Some(open(&file)?));
        Ok(HistoryReader(Arc::new(Source::File(file, connection))))
    }

    /// Runs a query on the history that this reader reads; of a sum of instances, on the counts of
    /// all. Opens the file if it is not open, and again after a query that failed. Without any
    /// history the result is empty.
    pub(super) fn with<T: Default>(
        &self,
        read: impl FnOnce(&Connection) -> SqlResult<T>,
    ) -> Result<T, HistoryError> {
        match &*self.0 {
            Source::Nothing => Ok(T::default()),
            Source::Memory(memory) => memory.read(read),
            Source::Sum(memory, _) => memory.read(read),
            Source::File(file, kept) => {
                let mut kept = lock(kept);
                let connection = match kept.take() {
                    Some(connection) => connection,
                    None => open(file)?,
                };
                // A connection that failed is not kept: the next question opens the file anew.
                let answer = read(&connection)?;
                *kept = Some(connection);
                Ok(answer)
            }
        }
    }

    /// Calls `take` for each row of a site in the periods of length `step` that begin at `from` or
    /// later, in the order of time: with the beginning of the period, the crawler, the identity and
    /// the counts. An empty `site` stands for all sites. Rows with an empty crawler are the sums
    /// over all crawlers; people have the crawler `none`, count as unverified and are in no such
    /// sum.
    ///
    /// # Errors
    /// See [`HistoryError`]. The other functions here that read fail in the same way.
    pub fn each(
        &self,
        site: &str,
        from: Timestamp,
        step: Step,
        mut take: impl FnMut(Timestamp, &str, KnownIdentity, &Counts),
    ) -> Result<(), HistoryError> {
        let columns = columns(str::to_owned);
        let table = table(step);
        let sql = format!(
            "SELECT start, crawler, identity, {columns} FROM {table} WHERE site = ?1 AND start >= ?2"
        );
        self.with(|connection| {
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query((site, from))?;
            while let Some(row) = rows.next()? {
                let crawler = row.get_ref(1)?.as_str()?;
                let identity = identity(row, 2)?.unwrap_or_default();
                take(row.get(0)?, crawler, identity, &counts(row, 3)?);
            }
            Ok(())
        })
    }

    /// The beginning of the first day with requests; `None` without any.
    pub fn first_day(&self) -> Result<Option<Timestamp>, HistoryError> {
        let table = table(Step::Day);
        self.with(|connection| {
            let sql = format!("SELECT MIN(start) FROM {table} WHERE site = ''");
            connection.query_row(&sql, [], |row| row.get(0))
        })
    }

    /// The counts of a crawler on each site, added up over the periods of length `step` that begin
    /// at `from` or later. An empty crawler stands for all crawlers.
    pub fn sites(
        &self,
        crawler: &str,
        from: Timestamp,
        step: Step,
    ) -> Result<Vec<(String, ByIdentity)>, HistoryError> {
        self.with(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT site, identity, {} FROM {} WHERE crawler = ?1 AND start >= ?2 AND site <> '' GROUP BY site, identity",
                sums(),
                table(step)
            ))?;
            by_identity(statement.query((crawler, from))?)
        })
    }

    /// The counts of a crawler on a site in each period of length `step` that begins at `from` or
    /// later, in the order of time. Periods without counts are left out. An empty name stands for
    /// all.
    pub fn series(
        &self,
        site: &str,
        crawler: &str,
        from: Timestamp,
        step: Step,
    ) -> Result<Vec<(Timestamp, ByIdentity)>, HistoryError> {
        self.with(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT start, identity, {} FROM {} WHERE site = ?1 AND start >= ?2 AND crawler = ?3 ORDER BY start",
                columns(str::to_owned),
                table(step)
            ))?;
            by_identity(statement.query((site, from, crawler))?)
        })
    }

    /// The crawlers with requests that had this outcome of identification, and how many of these
    /// requests, since the beginning of the day that `from` is in.
    pub fn with_outcome(
        &self,
        outcome: IdentityOutcome,
        from: Timestamp,
    ) -> Result<Vec<(String, u64)>, HistoryError> {
        let sql = "SELECT crawler, SUM(requests) FROM history_identity WHERE outcome = ?1 AND start >= ?2 GROUP BY crawler";
        self.rows(sql, (outcome.name(), Step::Day.begin(from)), |row| {
            row.try_into()
        })
    }

    /// The names that unknown bots give themselves, with their numbers of requests, the most
    /// frequent first and at most `limit`. Counts the days that begin at `from` or later.
    pub fn unlisted(
        &self,
        from: Timestamp,
        limit: usize,
    ) -> Result<Vec<(String, u64)>, HistoryError> {
        let sql = "SELECT name, SUM(requests) AS all_of_it FROM history_unlisted WHERE start >= ?1 GROUP BY name ORDER BY \
                   all_of_it DESC, name LIMIT ?2";
        self.rows(sql, (from, limit as i64), |row| row.try_into())
    }

    /// Runs a query about anything but counts of sites and crawlers, and converts each row. Of a
    /// sum of instances the history of this instance answers, because only counts are summed.
    pub(super) fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        of_row: impl FnMut(&SqlRow<'_>) -> SqlResult<T>,
    ) -> Result<Vec<T>, HistoryError> {
        match &*self.0 {
            Source::Sum(_, own) => own.rows(sql, values, of_row),
            _ => self.with(|connection| rows(connection, sql, values, of_row)),
        }
    }
}

impl FromSql for Kind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Kind> {
        parsed(value)
    }
}

impl FromSql for KnownIdentity {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<KnownIdentity> {
        parsed(value)
    }
}

/// The value with this name; the default for a name that no value has.
fn parsed<T: FromStr + Default>(value: ValueRef<'_>) -> FromSqlResult<T> {
    Ok(value.as_str()?.parse().unwrap_or_default())
}

/// Opens the file for reading. Follows the write-ahead log if there is one that can be followed, as
/// while a process writes; otherwise opens the file as it is.
fn open(file: &Path) -> Result<Connection, HistoryError> {
    let connection = match follow(file) {
        Some(connection) => Ok(connection),
        // A log that was left in a directory that cannot be written cannot be followed.
        None => open_for_reading(file),
    };
    let patient = connection.and_then(|connection| {
        connection.busy_timeout(PATIENCE)?;
        Ok(connection)
    });
    patient.map_err(|error| HistoryError::Unopened {
        file: file.display().to_string(),
        error: error.to_string(),
    })
}

/// While a process writes there is a write-ahead log, which an ordinary connection follows.
fn follow(file: &Path) -> Option<Connection> {
    let connection = has_log(file).then(|| open_following(file).ok())??;
    connection
        .query_row("PRAGMA schema_version", [], |_| Ok(()))
        .ok()?;
    Some(connection)
}

/// Collects rows of a key, an identity and counts. Successive rows with the same key become one
/// entry, and the entries keep the order of the rows.
fn by_identity<K: FromSql + PartialEq>(mut rows: Rows<'_>) -> SqlResult<Vec<(K, ByIdentity)>> {
    let mut found: Vec<(K, ByIdentity)> = Vec::new();
    while let Some(row) = rows.next()? {
        let key = row.get(0)?;
        if found.last().is_none_or(|(last, _)| *last != key) {
            found.push((key, ByIdentity::default()));
        }
        if let Some((_, by_identity)) = found.last_mut() {
            by_identity.add(identity(row, 1)?.unwrap_or_default(), &counts(row, 2)?);
        }
    }
    Ok(found)
}

/// Reads the identity at a place of a row; visitors have none.
pub(super) fn identity(row: &SqlRow<'_>, place: usize) -> SqlResult<Option<KnownIdentity>> {
    Ok(row.get_ref(place)?.as_str()?.parse().ok())
}

/// Reads all counts of a row; `first` is the place of the first of their columns.
pub(super) fn counts(row: &SqlRow<'_>, first: usize) -> SqlResult<Counts> {
    let mut counts = Counts::default();
    for (place, (_, count)) in counts.columns_mut().enumerate() {
        *count = row.get(first + place)?;
    }
    Ok(counts)
}
