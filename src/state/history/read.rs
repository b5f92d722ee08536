//! [`RequestHistoryReader`] reads the request counts and samples that the dashboard shows. It opens
//! a connection of its own to the state database, so that it can read while another process writes.
//! Without a state directory it reads the [`InMemoryHistory`] of this process.

use super::sql::query_rows;
use super::tables::{count_columns, counts_table, summed_columns};
use super::{PeriodLength, RequestHistoryBatch, create_tables, write_batch};
use crate::locks::lock;
use crate::record::{CountsByIdentity, RequestCounts};
use crate::state::database::{STATE_FILE, has_write_ahead_log, open_following, open_for_reading};
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, IdentityStatus, Kind};
use RequestHistorySource::{File, Memory, Sum};
use rusqlite::types::{FromSql, FromSqlResult, ValueRef};
use rusqlite::{Connection, Params, Result as SqlResult, Row as SqlRow, Rows};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How long a query waits for a process that repairs the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Why the history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RequestHistoryError {
    /// A query failed.
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

/// The history of a process without a state directory, in an SQLite database in memory.
pub struct InMemoryHistory(Mutex<(Connection, i64)>);

impl InMemoryHistory {
    /// Creates an empty history. Fails if SQLite has no memory.
    pub fn new() -> SqlResult<InMemoryHistory> {
        let connection = Connection::open_in_memory()?;
        create_tables(&connection)?;
        Ok(InMemoryHistory(Mutex::new((connection, 0))))
    }

    /// Adds a batch. Ignores a failure.
    pub fn add(&self, batch: &RequestHistoryBatch, now: Timestamp) {
        let (connection, pruned) = &mut *lock(&self.0);
        // Without memory left there is more to worry about than the history.
        let _ = connection
            .execute_batch("BEGIN")
            .and_then(|()| write_batch(connection, batch, pruned, now));
        let _ = connection.execute_batch("COMMIT");
    }

    /// Runs a query on the history in memory.
    pub fn query<T>(
        &self,
        read: impl FnOnce(&Connection) -> SqlResult<T>,
    ) -> Result<T, RequestHistoryError> {
        Ok(read(&lock(&self.0).0)?)
    }
}

/// A reader of the history; cheap to clone.
#[derive(Clone)]
pub struct RequestHistoryReader(Arc<RequestHistorySource>);

enum RequestHistorySource {
    Memory(Arc<InMemoryHistory>),
    /// The added counts of several instances in memory, and the reader of everything else.
    Sum(InMemoryHistory, RequestHistoryReader),
    /// The file, and its connection once it was opened.
    File(PathBuf, Mutex<Option<Connection>>),
}

/// The queries fail with a [`RequestHistoryError`].
impl RequestHistoryReader {
    /// A reader of the history in memory.
    pub fn from_memory(memory: Arc<InMemoryHistory>) -> RequestHistoryReader {
        RequestHistoryReader(Arc::new(Memory(memory)))
    }

    /// A reader of the added counts of several instances in `sum`, and of everything else in `own`.
    pub fn from_sum(sum: InMemoryHistory, own: RequestHistoryReader) -> RequestHistoryReader {
        RequestHistoryReader(Arc::new(Sum(sum, own)))
    }

    /// A reader of a `state.db`, which is opened by the first query.
    pub fn from_file(file: PathBuf) -> RequestHistoryReader {
        RequestHistoryReader(Arc::new(File(file, Mutex::default())))
    }

    /// Opens the `state.db` of a state directory, which a crawlgate may be using.
    ///
    /// # Errors
    /// There is no file that could be read.
    pub fn open(directory: &Path) -> Result<RequestHistoryReader, RequestHistoryError> {
        let file = directory.join(STATE_FILE);
        if !file.exists() {
            return Err(RequestHistoryError::Missing(
                directory.display().to_string(),
            ));
        }
        let connection = Mutex::new(Some(open(&file)?));
        Ok(RequestHistoryReader(Arc::new(File(file, connection))))
    }

    /// Runs a query. For a sum of instances, runs it on the added counts. Opens the file if it is
    /// not open, and again after a failed query.
    pub fn query<T>(
        &self,
        read: impl FnOnce(&Connection) -> SqlResult<T>,
    ) -> Result<T, RequestHistoryError> {
        match &*self.0 {
            Memory(memory) => memory.query(read),
            Sum(memory, _) => memory.query(read),
            File(file, kept) => {
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

    /// Calls `take` for each row of a site in the periods of length `step` that begin from `from` to
    /// `to`, in the order of time: with the beginning of the period, the crawler, the identity and
    /// the counts. An empty `site` stands for all sites. Rows with an empty crawler are the sums
    /// over all crawlers. People have the crawler `none`, count as unverified and are in no such
    /// sum.
    ///
    /// # Errors
    /// See [`RequestHistoryError`].
    pub fn for_each_row(
        &self,
        site: &str,
        from: Timestamp,
        to: Timestamp,
        step: PeriodLength,
        mut take: impl FnMut(Timestamp, &str, IdentityStatus, &RequestCounts),
    ) -> Result<(), RequestHistoryError> {
        let columns = count_columns(str::to_owned);
        let table = counts_table(step);
        let sql = format!(
            "SELECT start, crawler, identity, {columns} FROM {table} WHERE site = ?1 AND start BETWEEN ?2 AND ?3"
        );
        self.query(|connection| {
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query((site, from, to))?;
            while let Some(row) = rows.next()? {
                let crawler = row.get_ref(1)?.as_str()?;
                let identity = read_identity(row, 2)?.unwrap_or_default();
                take(row.get(0)?, crawler, identity, &read_counts(row, 3)?);
            }
            Ok(())
        })
    }

    /// The beginning of the first day with requests; `None` without any.
    pub fn first_day(&self) -> Result<Option<Timestamp>, RequestHistoryError> {
        let table = counts_table(PeriodLength::Day);
        self.query(|connection| {
            let sql = format!("SELECT MIN(start) FROM {table} WHERE site = ''");
            connection.query_row(&sql, [], |row| row.get(0))
        })
    }

    /// The counts of a crawler on each site, added up over the periods of length `step` that begin
    /// from `from` to `to`. An empty crawler stands for all crawlers.
    pub fn counts_by_site(
        &self,
        crawler: &str,
        from: Timestamp,
        to: Timestamp,
        step: PeriodLength,
    ) -> Result<Vec<(String, CountsByIdentity)>, RequestHistoryError> {
        self.query(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT site, identity, {} FROM {} WHERE crawler = ?1 AND start BETWEEN ?2 AND ?3 AND site <> '' GROUP BY site, identity",
                summed_columns(),
                counts_table(step)
            ))?;
            collect_by_identity(statement.query((crawler, from, to))?)
        })
    }

    /// The counts of a crawler on a site in each period of length `step` that begins from `from` to
    /// `to`, in the order of time. Periods without counts are left out. An empty name stands for
    /// all.
    pub fn counts_over_time(
        &self,
        site: &str,
        crawler: &str,
        from: Timestamp,
        to: Timestamp,
        step: PeriodLength,
    ) -> Result<Vec<(Timestamp, CountsByIdentity)>, RequestHistoryError> {
        self.query(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT start, identity, {} FROM {} WHERE site = ?1 AND start BETWEEN ?2 AND ?3 AND crawler = ?4 ORDER BY start",
                count_columns(str::to_owned),
                counts_table(step)
            ))?;
            collect_by_identity(statement.query((site, from, to, crawler))?)
        })
    }

    /// The crawlers with requests of this identity outcome, and how many of them. Counts
    /// whole days: from that of `from` to that of `to`.
    pub fn crawlers_with_outcome(
        &self,
        outcome: IdentityOutcome,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<(String, u64)>, RequestHistoryError> {
        let sql = "SELECT crawler, SUM(requests) FROM history_identity WHERE outcome = ?1 AND start BETWEEN ?2 AND ?3 GROUP BY crawler";
        self.query_rows(
            sql,
            (outcome.name(), PeriodLength::Day.start_of(from), to),
            |row| row.try_into(),
        )
    }

    /// The names that unknown bots give themselves, with their numbers of requests, the most
    /// frequent first and at most `limit`. Counts the days that begin from `from` to `to`.
    pub fn unlisted_bots(
        &self,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
    ) -> Result<Vec<(String, u64)>, RequestHistoryError> {
        let sql = "SELECT name, SUM(requests) AS all_of_it FROM history_unlisted WHERE start BETWEEN ?1 AND ?2 GROUP BY name \
                   ORDER BY all_of_it DESC, name LIMIT ?3";
        self.query_rows(sql, (from, to, limit as i64), |row| row.try_into())
    }

    /// Runs a query of other data than counts and visits, and converts each row. For a sum of
    /// instances, runs it on the history of this instance, because only counts and visits are added
    /// up.
    pub fn query_rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        of_row: impl FnMut(&SqlRow<'_>) -> SqlResult<T>,
    ) -> Result<Vec<T>, RequestHistoryError> {
        let read = |connection: &Connection| query_rows(connection, sql, values, of_row);
        match &*self.0 {
            Sum(_, own) => own.query(read),
            _ => self.query(read),
        }
    }
}

impl FromSql for Kind {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Kind> {
        parse_or_default(value)
    }
}

impl FromSql for IdentityStatus {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<IdentityStatus> {
        parse_or_default(value)
    }
}

/// Parses the value; the default for an unknown name.
fn parse_or_default<T: FromStr + Default>(value: ValueRef<'_>) -> FromSqlResult<T> {
    Ok(value.as_str()?.parse().unwrap_or_default())
}

/// Opens the file for reading. Follows the write-ahead log if there is one that can be followed, as
/// while a process writes. Otherwise opens the file as it is.
fn open(file: &Path) -> Result<Connection, RequestHistoryError> {
    // A log that was left in a directory that cannot be written cannot be followed.
    let connection = open_with_log(file).map_or_else(|| open_for_reading(file), Ok);
    let patient = connection.and_then(|connection| {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        Ok(connection)
    });
    patient.map_err(|error| RequestHistoryError::Unopened {
        file: file.display().to_string(),
        error: error.to_string(),
    })
}

/// Opens the file with its write-ahead log, if there is one that can be followed.
fn open_with_log(file: &Path) -> Option<Connection> {
    let connection = has_write_ahead_log(file).then(|| open_following(file).ok())??;
    connection
        .query_row("PRAGMA schema_version", [], |_| Ok(()))
        .ok()?;
    Some(connection)
}

/// Collects rows of a key, an identity and counts. Successive rows with the same key become one
/// entry.
fn collect_by_identity<K: FromSql + PartialEq>(
    mut rows: Rows<'_>,
) -> SqlResult<Vec<(K, CountsByIdentity)>> {
    let mut found: Vec<(K, CountsByIdentity)> = Vec::new();
    while let Some(row) = rows.next()? {
        let key = row.get(0)?;
        if found.last().is_none_or(|(last, _)| *last != key) {
            found.push((key, CountsByIdentity::default()));
        }
        if let Some((_, by_identity)) = found.last_mut() {
            by_identity.add(
                read_identity(row, 1)?.unwrap_or_default(),
                &read_counts(row, 2)?,
            );
        }
    }
    Ok(found)
}

/// Reads the identity in column `place`; visitors have none.
pub fn read_identity(row: &SqlRow<'_>, place: usize) -> SqlResult<Option<IdentityStatus>> {
    Ok(row.get_ref(place)?.as_str()?.parse().ok())
}

/// Reads all counts of a row, whose first column is `first`.
pub fn read_counts(row: &SqlRow<'_>, first: usize) -> SqlResult<RequestCounts> {
    let mut counts = RequestCounts::default();
    for (place, (_, count)) in counts.columns_mut().enumerate() {
        *count = row.get(first + place)?;
    }
    Ok(counts)
}
