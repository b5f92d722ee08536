//! [`HistoryReader`] reads the history for people. It opens a connection of its own to a state directory, also while another
//! process writes there. Without a state directory it reads the memory of the running crawlgate. It writes nothing.

use super::counts::{COLUMNS, UNKNOWN};
use super::tables::{rows, sums, table, tells_identities};
use super::{ByIdentity, Counts, HistoryBatch, Sample, Step, prepare, write};
use crate::locks::lock;
use crate::state::database::{FILE, has_log, open_following, open_for_reading};
use crate::time::Timestamp;
use rusqlite::types::{FromSql, Value};
use rusqlite::{Connection, Params, Result as SqlResult, Row, Rows, params_from_iter};
use std::path::{Path, PathBuf};
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
    #[error("{0} has no state.db; name the state directory of a crawlgate that has run")]
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

    /// Adds a batch.
    pub fn add(&self, batch: &HistoryBatch, now: Timestamp) {
        let (connection, pruned) = &mut *lock(&self.0);
        // Without memory left there is more to worry about than the history.
        let _ = connection.execute_batch("BEGIN").and_then(|()| write(connection, batch, pruned, now));
        let _ = connection.execute_batch("COMMIT");
    }

    pub(super) fn read<T>(&self, read: impl FnOnce(&Connection) -> SqlResult<T>) -> Result<T, HistoryError> {
        Ok(read(&lock(&self.0).0)?)
    }
}

/// Reads the history; cheap to clone.
#[derive(Clone)]
pub struct HistoryReader(Arc<Source>);

enum Source {
    Memory(Arc<Memory>),
    /// The counts of several instances in memory, and the history of this one, which has everything else.
    Sum(Memory, HistoryReader),
    /// The file, and the connection that is kept once it was opened.
    File(PathBuf, Mutex<Option<Connection>>),
    Nothing,
}

/// The samples that are wanted; `None` selects all.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)]
pub struct SampleFilter<'a> {
    pub site: Option<&'a str>,
    pub crawler: Option<&'a str>,
    pub kind: Option<&'a str>,
    pub rule: Option<&'a str>,
    pub identity: Option<&'a str>,
}

/// Samples that have all but the day in common.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct SampleGroup {
    pub site: String,
    pub crawler: String,
    pub identity: String,
    pub kind: String,
    pub rule: String,
    pub source: String,
    pub first: Timestamp,
    pub last: Timestamp,
    /// Samples that are kept; there may have been more requests.
    pub samples: u64,
}

/// Questions fail as [`HistoryError`] says.
#[allow(clippy::missing_errors_doc)]
impl HistoryReader {
    pub(in crate::state) fn of_memory(memory: Option<Arc<Memory>>) -> HistoryReader {
        HistoryReader(Arc::new(memory.map_or(Source::Nothing, Source::Memory)))
    }

    /// A reader of a `state.db`, which is opened when it is read first.
    pub(in crate::state) fn of_file(file: PathBuf) -> HistoryReader {
        HistoryReader(Arc::new(Source::File(file, Mutex::default())))
    }

    /// A reader of a state directory. Its crawlgate may be running.
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

    /// A reader with the counts of a memory, and everything else of this history.
    pub(super) fn with_counts(&self, counts: Memory) -> HistoryReader {
        HistoryReader(Arc::new(Source::Sum(counts, self.clone())))
    }

    pub(super) fn with<T: Default>(&self, read: impl FnOnce(&Connection) -> SqlResult<T>) -> Result<T, HistoryError> {
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

    /// Calls `take` with the counts of each crawler on a site with each identity, in each period since a moment and before
    /// another one, in the order of time. An empty site stands for all, and so does an empty crawler; people are `none`.
    ///
    /// # Errors
    /// See [`HistoryError`]; so for the other questions.
    pub fn each(
        &self,
        site: &str,
        (from, before): (Timestamp, Timestamp),
        step: Step,
        mut take: impl FnMut(Timestamp, (&str, &str), &Counts),
    ) -> Result<(), HistoryError> {
        let columns = COLUMNS.join(", ");
        self.with(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT start, crawler, identity, {columns} FROM {} WHERE site = ?1 AND start >= ?2 AND start < ?3",
                source(connection, step)?
            ))?;
            let mut rows = statement.query((site, from, before))?;
            while let Some(row) = rows.next()? {
                let named = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
                take(row.get(0)?, named, &counts(row, 3)?);
            }
            Ok(())
        })
    }

    /// The counts of a crawler on each site; an empty crawler stands for all.
    pub fn sites(&self, crawler: &str, from: Timestamp, step: Step) -> Result<Vec<(String, ByIdentity)>, HistoryError> {
        self.with(|connection| {
            let mut statement = connection.prepare(&format!(
                "SELECT site, identity, {} FROM {} WHERE crawler = ?1 AND start >= ?2 AND site <> '' GROUP BY site, identity",
                sums(),
                source(connection, step)?
            ))?;
            by_identity(statement.query((crawler, from))?)
        })
    }

    /// The counts of a crawler on a site for each period that has any; empty names stand for all.
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
                COLUMNS.join(", "),
                source(connection, step)?
            ))?;
            by_identity(statement.query((site, from, crawler))?)
        })
    }

    /// Crawlers with requests since the beginning of a day that had an outcome of identification, and how many.
    pub fn with_outcome(&self, outcome: &str, from: Timestamp) -> Result<Vec<(String, u64)>, HistoryError> {
        let sql =
            "SELECT crawler, SUM(requests) FROM history_identity WHERE outcome = ?1 AND start >= ?2 GROUP BY crawler";
        self.rows(sql, (outcome, Step::Day.begin(from)), |row| row.try_into())
    }

    /// What bots that no list knows call themselves, the most frequent first.
    pub fn unlisted(&self, from: Timestamp, limit: usize) -> Result<Vec<(String, u64)>, HistoryError> {
        let sql = "SELECT name, SUM(requests) AS all_of_it FROM history_unlisted WHERE start >= ?1 GROUP BY name ORDER BY \
                   all_of_it DESC, name LIMIT ?2";
        self.rows(sql, (from, most(limit)), |row| row.try_into())
    }

    /// Which requests against the rules there are samples of, the latest first.
    pub fn sample_groups(
        &self,
        filter: &SampleFilter<'_>,
        from: Timestamp,
        limit: usize,
    ) -> Result<Vec<SampleGroup>, HistoryError> {
        let (conditions, values) = filter.conditions(from, limit);
        let sql = format!(
            "SELECT site, crawler, kind, rule, MAX(source), MIN(at), MAX(at) AS last, COUNT(*), identity FROM \
             history_samples WHERE {conditions} GROUP BY site, crawler, kind, rule, identity ORDER BY last DESC LIMIT ?2"
        );
        self.rows(&sql, params_from_iter(values), |row| {
            let (site, crawler, kind, rule, source, first, last, samples, identity) = row.try_into()?;
            Ok(SampleGroup { site, crawler, identity, kind, rule, source, first, last, samples })
        })
    }

    /// Samples, the latest first.
    pub fn samples(
        &self,
        filter: &SampleFilter<'_>,
        from: Timestamp,
        limit: usize,
    ) -> Result<Vec<Sample>, HistoryError> {
        let (conditions, values) = filter.conditions(from, limit);
        let sql = format!(
            "SELECT at, site, crawler, kind, rule, source, client, identity, method, host, target, user_agent, action, \
             status, version FROM history_samples WHERE {conditions} ORDER BY at DESC, rowid DESC LIMIT ?2"
        );
        self.rows(&sql, params_from_iter(values), |row| {
            let (
                at,
                site,
                crawler,
                kind,
                rule,
                source,
                client,
                identity,
                method,
                host,
                target,
                user_agent,
                action,
                status,
                version,
            ) = row.try_into()?;
            Ok(Sample {
                at,
                site,
                crawler,
                kind,
                rule,
                source,
                client,
                identity,
                method,
                host,
                target,
                user_agent,
                action,
                status,
                version,
            })
        })
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        of_row: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> Result<Vec<T>, HistoryError> {
        match &*self.0 {
            Source::Sum(_, own) => own.rows(sql, values, of_row),
            _ => self.with(|connection| rows(connection, sql, values, of_row)),
        }
    }
}

impl SampleFilter<'_> {
    /// The conditions, and the parameters of the query. The second of them is how many rows are wanted.
    fn conditions(&self, from: Timestamp, limit: usize) -> (String, Vec<Value>) {
        let mut conditions = "at >= ?1".to_owned();
        let mut values = vec![Value::Integer(Step::Day.begin(from).0), Value::Integer(most(limit))];
        let wanted = [
            ("site", self.site),
            ("crawler", self.crawler),
            ("kind", self.kind),
            ("rule", self.rule),
            ("identity", self.identity),
        ];
        for (column, wanted) in wanted {
            if let Some(wanted) = wanted {
                values.push(Value::Text(wanted.to_owned()));
                conditions.push_str(&format!(" AND {column} = ?{}", values.len()));
            }
        }
        (conditions, values)
    }
}

/// While a process writes there is a write-ahead log, which an ordinary connection follows.
fn open(file: &Path) -> Result<Connection, HistoryError> {
    let unopened =
        |error: rusqlite::Error| HistoryError::Unopened { file: file.display().to_string(), error: error.to_string() };
    let following = || {
        let connection = has_log(file).then(|| open_following(file).ok())??;
        connection.query_row("PRAGMA schema_version", [], |_| Ok(())).ok()?;
        Some(connection)
    };
    // A log that was left in a directory that cannot be written cannot be followed.
    let connection = following().map_or_else(|| open_for_reading(file), Ok).map_err(unopened)?;
    connection.busy_timeout(PATIENCE).map_err(unopened)?;
    Ok(connection)
}

/// The table of periods as it is today, also of a file that a crawlgate before identities wrote and that none has opened
/// since.
pub(super) fn source(connection: &Connection, step: Step) -> SqlResult<String> {
    let table = table(step);
    Ok(match tells_identities(connection)? {
        true => table.to_owned(),
        false => format!("(SELECT *, '{UNKNOWN}' AS identity FROM {table})"),
    })
}

/// Rows of a key, an identity and counts, in the order of their keys.
fn by_identity<K: FromSql + PartialEq>(mut rows: Rows<'_>) -> SqlResult<Vec<(K, ByIdentity)>> {
    let mut found: Vec<(K, ByIdentity)> = Vec::new();
    while let Some(row) = rows.next()? {
        let key = row.get(0)?;
        if found.last().is_none_or(|(last, _)| *last != key) {
            found.push((key, ByIdentity::default()));
        }
        if let Some((_, by_identity)) = found.last_mut() {
            by_identity.add(row.get_ref(1)?.as_str()?, &counts(row, 2)?);
        }
    }
    Ok(found)
}

fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(super) fn counts(row: &Row<'_>, first: usize) -> SqlResult<Counts> {
    let mut counts = Counts::default();
    for (place, count) in counts.0.iter_mut().enumerate() {
        *count = row.get(first + place)?;
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_an_older_crawlgate_is_read_without_being_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let columns = COLUMNS.map(|column| format!("{column} INTEGER NOT NULL")).join(", ");
        let connection = Connection::open(directory.path().join(FILE)).expect("a file");
        connection
            .execute_batch(&format!(
                "CREATE TABLE history_hours (site TEXT NOT NULL, start INTEGER NOT NULL, crawler TEXT NOT NULL, {columns});
                 INSERT INTO history_hours VALUES ('shop', 3600, 'googlebot', {})",
                vec!["2"; COLUMNS.len()].join(", ")
            ))
            .expect("an older table");
        drop(connection);
        let history = HistoryReader::open(directory.path()).expect("a history");
        let sites = history.sites("googlebot", Timestamp(0), Step::Hour).expect("read");
        let [(site, counts)] = &sites[..] else { panic!("{sites:?}") };
        assert_eq!((site.as_str(), counts.unverified.requests(), counts.unknown), ("shop", 2, 2));
        assert_eq!(counts.own(), counts.all());
        let series = history.series("shop", "googlebot", Timestamp(0), Step::Hour).expect("read");
        assert_eq!(series, [(Timestamp(3600), *counts)]);
    }
}
