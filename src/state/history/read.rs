//! [`HistoryReader`] reads the history for people. It opens a connection of its own to a state
//! directory, also while another process writes there. Without a state directory it reads the
//! memory of the running crawlgate. It writes nothing. [`Counted`] are the requests that one
//! instance counted in one hour, day or week. Instances in front of one site exchange these counts,
//! and [`HistoryReader::with_others`] adds them up.

use super::tables::{
    add, add_with_sums, adding, columns, read_sample, rows, sample_columns, sums, table,
};
use super::{HistoryBatch, Step, prepare, write};
use crate::locks::lock;
use crate::record::{ByIdentity, Counts, Row};
use crate::state::database::{FILE, has_log, open_following, open_for_reading};
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, Kind, KnownIdentity};
use rusqlite::types::{FromSql, FromSqlResult, Value, ValueRef};
use rusqlite::{Connection, Params, Result as SqlResult, Row as SqlRow, Rows, params_from_iter};
use std::collections::BTreeMap;
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
    fn read<T>(&self, read: impl FnOnce(&Connection) -> SqlResult<T>) -> Result<T, HistoryError> {
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

/// The samples that are wanted; `None` selects all.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct SampleFilter<'a> {
    pub site: Option<&'a str>,
    pub crawler: Option<&'a str>,
    pub kind: Option<Kind>,
    pub rule: Option<&'a str>,
    pub identity: Option<KnownIdentity>,
}

/// Samples that have all but the day in common.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
#[allow(missing_docs)]
pub struct SampleGroup {
    pub site: String,
    pub crawler: String,
    pub identity: KnownIdentity,
    pub kind: Kind,
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
    /// A reader of the history in memory. Without a memory it finds nothing.
    pub(in crate::state) fn of_memory(memory: Option<Arc<Memory>>) -> HistoryReader {
        HistoryReader(Arc::new(memory.map_or(Source::Nothing, Source::Memory)))
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
    fn with<T: Default>(
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

    /// The groups of samples that match the filter, since the beginning of the day that `from` is
    /// in: the group with the latest sample first, at most `limit` groups.
    pub fn sample_groups(
        &self,
        filter: &SampleFilter<'_>,
        from: Timestamp,
        limit: usize,
    ) -> Result<Vec<SampleGroup>, HistoryError> {
        let (conditions, values) = filter.conditions(from, limit);
        let sql = format!(
            "SELECT site, crawler, kind, rule, MAX(rule_source), MIN(time), MAX(time) AS last, COUNT(*), identity FROM \
             history_samples WHERE {conditions} GROUP BY site, crawler, kind, rule, identity ORDER BY last DESC LIMIT ?2"
        );
        self.rows(&sql, params_from_iter(values), |row| {
            let (site, crawler, kind, rule, source, first, last, samples, identity) =
                row.try_into()?;
            Ok(SampleGroup {
                site,
                crawler,
                identity,
                kind,
                rule,
                source,
                first,
                last,
                samples,
            })
        })
    }

    /// The samples that match the filter, since the beginning of the day that `from` is in: the
    /// latest first, at most `limit`.
    pub fn samples(
        &self,
        filter: &SampleFilter<'_>,
        from: Timestamp,
        limit: usize,
    ) -> Result<Vec<Row>, HistoryError> {
        let (conditions, values) = filter.conditions(from, limit);
        let sql = format!(
            "SELECT {} FROM history_samples WHERE {conditions} ORDER BY time DESC, rowid DESC LIMIT ?2",
            sample_columns()
        );
        self.rows(&sql, params_from_iter(values), read_sample)
    }

    /// Runs a query about anything but counts of sites and crawlers, and converts each row. Of a
    /// sum of instances the history of this instance answers, because only counts are summed.
    fn rows<T>(
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

impl SampleFilter<'_> {
    /// The SQL conditions of the filter, and the parameters of the query: `?1` is the beginning of
    /// the day that `from` is in, `?2` how many rows are wanted, and the filter's values follow.
    fn conditions(&self, from: Timestamp, limit: usize) -> (String, Vec<Value>) {
        let mut conditions = "time >= ?1".to_owned();
        let mut values = vec![
            Value::Integer(Step::Day.begin(from).0),
            Value::Integer(limit as i64),
        ];
        let wanted = [
            ("site", self.site),
            ("crawler", self.crawler),
            ("kind", self.kind.map(Kind::name)),
            ("rule", self.rule),
            ("identity", self.identity.map(KnownIdentity::name)),
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
fn identity(row: &SqlRow<'_>, place: usize) -> SqlResult<Option<KnownIdentity>> {
    Ok(row.get_ref(place)?.as_str()?.parse().ok())
}

/// Reads all counts of a row; `first` is the place of the first of their columns.
fn counts(row: &SqlRow<'_>, first: usize) -> SqlResult<Counts> {
    let mut counts = Counts::default();
    for (place, (_, count)) in counts.columns_mut().enumerate() {
        *count = row.get(first + place)?;
    }
    Ok(counts)
}

/// Rows that are told of a period. Those with fewer requests are added up over all sites.
const MOST_ROWS: usize = 1_000;

/// Site, crawler, identity and counts. Visitors have no identity.
type CountedRow = (String, String, Option<KnownIdentity>, Counts);

/// What one instance counted in one period.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counted {
    /// Until when it counted, in seconds since 1970.
    pub at: i64,
    /// An empty site stands for several.
    rows: Vec<CountedRow>,
}

/// What an instance told.
#[derive(Clone, Debug)]
pub struct Told {
    /// Its id.
    pub instance: String,
    /// The beginning of the period.
    pub start: Timestamp,
    /// What it counted.
    pub counted: Counted,
}

impl Counted {
    /// Keeps the `MOST_ROWS` rows (site, crawler, identity, counts) with the most requests. The
    /// others are added up for each crawler and identity, with an empty site. `at` is when they
    /// were counted.
    fn of(mut rows: Vec<CountedRow>, at: Timestamp) -> Counted {
        rows.sort_by_key(|(.., counts)| std::cmp::Reverse(counts.requests()));
        let rest = rows.split_off(rows.len().min(MOST_ROWS));
        let mut of_several: BTreeMap<(String, Option<KnownIdentity>), Counts> = BTreeMap::new();
        for (_, crawler, identity, counts) in rest {
            of_several
                .entry((crawler, identity))
                .or_default()
                .add_all(&counts);
        }
        rows.extend(
            of_several
                .into_iter()
                .map(|((crawler, identity), counts)| (String::new(), crawler, identity, counts)),
        );
        Counted { at: at.0, rows }
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl HistoryReader {
    /// What this instance counted, until `now`, in the period of length `step` that begins exactly
    /// at `start`: a row for each site, crawler and identity, without the sums. Empty if `start`
    /// begins no period.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn counted(
        &self,
        step: Step,
        start: Timestamp,
        now: Timestamp,
    ) -> Result<Counted, HistoryError> {
        let counted = self.with(|connection| {
            let table = table(step);
            let columns = columns(str::to_owned);
            let sql = format!(
                "SELECT site, crawler, identity, {columns} FROM {table} WHERE start = ?1 AND site <> '' AND crawler IN \
                 (SELECT crawler FROM {table} WHERE site = '' AND start = ?1 AND crawler <> '')"
            );
            rows(connection, &sql, [start], |row| {
                Ok((
                    row.get(0)?,
                    row.get(1)?,
                    identity(row, 2)?,
                    counts(row, 3)?,
                ))
            })
        })?;
        Ok(Counted::of(counted, now))
    }

    /// A reader of the counts of this instance and of `others` together, for periods of length
    /// `step`: its own since `from`, and all that the others told. The counts of other lengths are
    /// empty, and everything but counts is this instance's. Returns a reader of this instance alone
    /// if SQLite has no memory.
    ///
    /// # Errors
    /// See [`HistoryError`].
    pub fn with_others(
        &self,
        step: Step,
        from: Timestamp,
        others: &[Told],
    ) -> Result<HistoryReader, HistoryError> {
        let Some(sum) = Memory::new() else {
            return Ok(self.clone());
        };
        let own: Vec<(Timestamp, CountedRow)> = self.with(|connection| {
            let table = table(step);
            let columns = columns(str::to_owned);
            let sql = format!(
                "SELECT site, start, crawler, identity, {columns} FROM {table} WHERE start >= ?1"
            );
            rows(connection, &sql, [from], |row| {
                let counted = (row.get(0)?, row.get(2)?, identity(row, 3)?, counts(row, 4)?);
                Ok((row.get(1)?, counted))
            })
        })?;
        sum.read(|connection| {
            connection.execute_batch("BEGIN")?;
            let mut statement = adding(connection, step)?;
            for (start, (site, crawler, identity, counts)) in &own {
                add(&mut statement, *start, site, crawler, *identity, counts)?;
            }
            for Told { start, counted, .. } in others {
                for (site, crawler, identity, counts) in &counted.rows {
                    add_with_sums(&mut statement, *start, site, crawler, *identity, counts)?;
                }
            }
            connection.execute_batch("COMMIT")
        })?;
        Ok(HistoryReader(Arc::new(Source::Sum(sum, self.clone()))))
    }
}

#[cfg(test)]
mod counted_tests {
    use super::{Counted, MOST_ROWS, Told};
    use crate::record::{CountedAction, Counts};
    use crate::state::history::read::Memory;
    use crate::state::history::{HOUR, HistoryBatch, HistoryReader, Step};
    use crate::time::Timestamp;
    use crate::verdict::{Kind, KnownIdentity};
    use std::sync::Arc;

    const NOW: Timestamp = Timestamp(1_795_305_600);

    fn counts(requests: u64) -> Counts {
        let mut counts = Counts::default();
        counts.add(Kind::Violation, CountedAction::WouldBlock, requests);
        counts
    }

    /// A history with requests on sites, by crawlers, some hours ago.
    fn history(requests: &[(&str, &str, i64, u64)]) -> HistoryReader {
        let memory = Memory::new().expect("memory");
        for (site, crawler, hours, count) in requests {
            let mut batch = HistoryBatch::default();
            batch.requests(
                Timestamp(NOW.0 - hours * HOUR),
                site,
                crawler,
                (*crawler != "none").then_some(KnownIdentity::Unverified),
                &counts(*count),
            );
            memory.add(&batch, NOW);
        }
        HistoryReader::of_memory(Some(Arc::new(memory)))
    }

    fn told(history: &HistoryReader, instance: &str, hours: i64) -> Told {
        let start = Step::Hour.begin(Timestamp(NOW.0 - hours * HOUR));
        let counted = history.counted(Step::Hour, start, NOW).expect("read");
        let written = serde_json::to_string(&counted).expect("written");
        assert_eq!(
            serde_json::from_str::<Counted>(&written).expect("read"),
            counted
        );
        Told {
            instance: instance.into(),
            start,
            counted,
        }
    }

    /// The requests of each hour.
    fn requests(history: &HistoryReader, site: &str, crawler: &str) -> Vec<u64> {
        let series = history
            .series(site, crawler, Timestamp(0), Step::Hour)
            .expect("read");
        series
            .iter()
            .map(|(_, counts)| counts.all().requests())
            .collect()
    }

    #[test]
    fn sum_of_histories_has_the_counts_of_each() {
        let own = history(&[
            ("shop", "gptbot", 0, 2),
            ("shop", "gptbot", 1, 3),
            ("shop", "none", 0, 9),
        ]);
        let other = history(&[
            ("shop", "gptbot", 0, 5),
            ("blog", "bingbot", 0, 7),
            ("shop", "none", 0, 1),
        ]);
        let sum = own
            .with_others(Step::Hour, Timestamp(0), &[told(&other, "b", 0)])
            .expect("a sum");
        assert_eq!(requests(&sum, "shop", "gptbot"), [3, 7]);
        assert_eq!(
            (
                requests(&sum, "", "gptbot"),
                requests(&sum, "blog", "bingbot")
            ),
            (vec![3, 7], vec![7])
        );
        assert_eq!(
            (requests(&sum, "", ""), requests(&sum, "shop", "")),
            (vec![3, 14], vec![3, 7])
        );
        assert_eq!(
            (requests(&sum, "", "none"), requests(&sum, "shop", "none")),
            (vec![10], vec![10])
        );
        let sites = sum.sites("", Timestamp(0), Step::Hour).expect("read");
        assert_eq!(sites.len(), 2);
        assert_eq!(requests(&own, "", ""), [3, 2], "it is unchanged");
    }

    #[test]
    fn counts_of_very_many_sites_are_told_in_the_sums_alone() {
        let many: Vec<String> = (0..MOST_ROWS + 50)
            .map(|number| format!("site{number}"))
            .collect();
        let visits: Vec<(&str, &str, i64, u64)> = many
            .iter()
            .map(|site| (site.as_str(), "gptbot", 0, 2))
            .collect();
        let told = told(&history(&visits), "b", 0);
        assert_eq!(told.counted.rows.len(), MOST_ROWS + 1);
        let sum = history(&[])
            .with_others(Step::Hour, Timestamp(0), &[told])
            .expect("a sum");
        let all = 2 * many.len() as u64;
        assert_eq!(
            (requests(&sum, "", "gptbot"), requests(&sum, "", "")),
            (vec![all], vec![all])
        );
        assert_eq!(
            sum.sites("gptbot", Timestamp(0), Step::Hour)
                .expect("read")
                .len(),
            MOST_ROWS
        );
    }
}
