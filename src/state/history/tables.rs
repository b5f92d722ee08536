//! The tables of the history in `state.db`, with request counts and samples for the dashboard.
//! [`create_tables`] creates them. [`write_batch`] adds a batch, and deletes rows that are too old
//! or too many.

use super::sql::{delete_oldest, to_sql_integer};
use super::traffic::{self, add_daily, delete_expired_traffic, write_paths};
use super::{DAY, DailyCountKind, MAX_SAMPLES_PER_DAY, PeriodLength, RequestHistoryBatch};
use crate::printable::{join, truncate};
use crate::record::{
    FieldValue, RecordField, RecordRow, RequestCounts, SAMPLE_FIELDS, identity_label,
};
use crate::time::Timestamp;
use crate::verdict::IdentityStatus;
use PeriodLength::{Day, Hour, Week};
use SqlValue::{Integer, Text};
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, Result as SqlResult, Row as SqlRow, Statement, params_from_iter};
use strum::VariantArray;

/// How many seconds everything but counts is kept.
const RETENTION: i64 = 400 * DAY;
/// The most samples in all, and how many are deleted at once beyond it.
const MAX_SAMPLES: i64 = 100_000;
const SAMPLES_DELETED_AT_ONCE: i64 = 5_000;
/// The most names of unknown bots of one day.
const MAX_NAMES_PER_DAY: i64 = 200;
/// The longest target, and the longest other text, of a stored sample in bytes.
const MAX_TARGET: usize = 512;
const MAX_TEXT: usize = 256;

const OTHER_TABLES: &str = "\
CREATE TABLE IF NOT EXISTS history_identity (
  start INTEGER NOT NULL, crawler TEXT NOT NULL, outcome TEXT NOT NULL, requests INTEGER NOT NULL,
  PRIMARY KEY (start, crawler, outcome)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS history_unlisted (
  start INTEGER NOT NULL, name TEXT NOT NULL, requests INTEGER NOT NULL,
  PRIMARY KEY (start, name)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS history_samples (
  day INTEGER NOT NULL, site TEXT NOT NULL, crawler TEXT NOT NULL, kind TEXT NOT NULL, rule TEXT NOT NULL,
  number INTEGER NOT NULL, time INTEGER NOT NULL, rule_source TEXT NOT NULL, client TEXT NOT NULL,
  identity TEXT NOT NULL, method TEXT NOT NULL, host TEXT NOT NULL, target TEXT NOT NULL, user_agent TEXT NOT NULL,
  action TEXT NOT NULL, would TEXT NOT NULL, status INTEGER NOT NULL, version TEXT NOT NULL,
  UNIQUE (day, site, crawler, kind, rule, identity, number)) STRICT;
CREATE INDEX IF NOT EXISTS history_samples_by_crawler ON history_samples (crawler, day);
CREATE INDEX IF NOT EXISTS history_samples_by_site ON history_samples (site, day);
CREATE INDEX IF NOT EXISTS history_samples_by_time ON history_samples (time);
CREATE INDEX IF NOT EXISTS history_samples_by_group ON history_samples (site, crawler, kind, rule, identity, time, rule_source);";

/// The SQL condition of samples of a crawler that certainly broke the rules, or of an impostor.
/// SQLite uses their index only for a condition with the same words.
pub const IS_OFFENCE: &str = "kind IN ('violation', 'too_fast', 'trapped', 'impostor')";

/// The columns of a sample, in the order of its fields, each with the prefix `table`.
pub fn sample_columns(table: &str) -> String {
    let names = SAMPLE_FIELDS
        .iter()
        .map(|field| format!("{table}{}", field.name()));
    join(names, ", ")
}

/// Reads a sample from a row with these columns.
pub fn read_sample(row: &SqlRow<'_>) -> SqlResult<RecordRow> {
    let mut sample = RecordRow::default();
    for (place, field) in SAMPLE_FIELDS.iter().enumerate() {
        let value = match (row.get_ref(place)?, field) {
            (ValueRef::Integer(at), RecordField::Time) => FieldValue::Moment(Timestamp(at)),
            (ValueRef::Integer(number), _) => FieldValue::Number(number.unsigned_abs()),
            (text, _) => FieldValue::from_string(text.as_str()?.to_owned()),
        };
        sample.push(*field, value);
    }
    Ok(sample)
}

/// The value of a field of a sample, as stored.
fn sample_value(sample: &RecordRow, field: RecordField) -> SqlValue {
    use RecordField::*;
    match (sample.get(field), field) {
        (Some(FieldValue::Number(count)), _) => Integer(to_sql_integer(*count)),
        (None, Status) => Integer(0),
        (_, Time) => Integer(sample.moment().0),
        _ => {
            let max = match field {
                Target | RuleSource => MAX_TARGET,
                _ => MAX_TEXT,
            };
            Text(truncate(&sample.text(field), max).to_owned())
        }
    }
}

/// The name of the table with the counts of periods of this length.
pub fn counts_table(step: PeriodLength) -> &'static str {
    match step {
        Hour => "history_hours",
        Day => "history_days",
        Week => "history_weeks",
    }
}

/// The columns of counts, each formatted by `form`, separated by commas.
pub fn count_columns(form: impl Fn(&'static str) -> String) -> String {
    let counts = RequestCounts::default();
    join(counts.columns().map(|(column, _)| form(column)), ", ")
}

/// The columns of counts, as sums over a group of rows.
pub fn summed_columns() -> String {
    count_columns(|column| {
        let aggregate = if RequestCounts::is_moment(column) {
            "MAX"
        } else {
            "SUM"
        };
        format!("{aggregate}({column})")
    })
}

/// The most rows in the table of this length. All of them take less than 130 MiB together.
fn max_rows(step: PeriodLength) -> i64 {
    match step {
        Hour | Week => 300_000,
        Day => 600_000,
    }
}

/// Creates missing tables and indexes.
pub fn create_tables(connection: &Connection) -> SqlResult<()> {
    let columns = count_columns(|column| format!("{column} INTEGER NOT NULL"));
    for table in PeriodLength::ALL.map(counts_table) {
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS {table} (site TEXT NOT NULL, start INTEGER NOT NULL, crawler TEXT NOT NULL, \
             identity TEXT NOT NULL, {columns}, PRIMARY KEY (site, start, crawler, identity)) WITHOUT ROWID, STRICT;
             CREATE INDEX IF NOT EXISTS {table}_by_crawler ON {table} (crawler, start);"
        ))?;
    }
    connection.execute_batch(OTHER_TABLES)?;
    connection.execute_batch(traffic::TABLES)?;
    connection.execute_batch(&format!(
        "CREATE INDEX IF NOT EXISTS history_samples_of_offences ON history_samples (crawler, identity, time, site, \
         kind) WHERE {IS_OFFENCE}"
    ))
}

/// Adds a batch to the tables; does nothing if it is empty. The first batch of an hour also deletes
/// old rows: `pruned` is the hour in which that was last done.
pub fn write_batch(
    connection: &Connection,
    batch: &RequestHistoryBatch,
    pruned: &mut i64,
    now: Timestamp,
) -> SqlResult<()> {
    if batch.is_empty() {
        return Ok(());
    }
    add_counts(connection, batch)?;
    for (count, numbers) in DailyCountKind::VARIANTS.iter().zip(&batch.daily) {
        for ((day, [first, second]), number) in numbers {
            add_daily(connection, *count, *day, [first, second], *number)?;
        }
    }
    write_paths(connection, batch)?;
    add_samples(connection, &batch.samples)?;
    let hour = Hour.start_of(now).0;
    if *pruned != hour {
        delete_expired(connection, now)?;
        *pruned = hour;
    }
    Ok(())
}

/// Adds the counts of each hour of the batch to that hour, its day and its week, with their sums:
/// see `add_with_sums`.
fn add_counts(connection: &Connection, batch: &RequestHistoryBatch) -> SqlResult<()> {
    let mut statements = Vec::new();
    for step in PeriodLength::ALL {
        statements.push((step, prepare_add(connection, step)?));
    }
    for ((hour, site, crawler, identity), counts) in &batch.counts {
        for (step, statement) in &mut statements {
            let start = step.start_of(*hour);
            add_with_sums(statement, start, site, crawler, *identity, counts)?;
        }
    }
    Ok(())
}

/// Prepares the statement for `add_to_row`, which adds counts to a row of the table of this length
/// and creates it if it is missing.
pub fn prepare_add(connection: &Connection, step: PeriodLength) -> SqlResult<Statement<'_>> {
    connection.prepare(&format!(
        "INSERT INTO {} (site, start, crawler, identity, {}) VALUES (?, ?, ?, ?, {}) ON CONFLICT DO UPDATE SET {}",
        counts_table(step),
        count_columns(str::to_owned),
        count_columns(|_| "?".to_owned()),
        count_columns(|column| if RequestCounts::is_moment(column) {
            format!("{column} = MAX({column}, excluded.{column})")
        } else {
            format!("{column} = {column} + excluded.{column}")
        })
    ))
}

/// Adds counts of a period to up to four rows: of this crawler on this site, of this crawler on all
/// sites, and of all crawlers on this site and on all sites. Counts without a site are added to the
/// rows of all sites alone. People (`none`) are in no sum of all crawlers.
pub fn add_with_sums(
    statement: &mut Statement<'_>,
    start: Timestamp,
    site: &str,
    crawler: &str,
    identity: Option<IdentityStatus>,
    counts: &RequestCounts,
) -> SqlResult<()> {
    let of_all = [("", crawler), ("", "")];
    let of_site = [(site, crawler), (site, "")];
    let of_site = if site.is_empty() {
        &[][..]
    } else {
        &of_site[..]
    };
    for (site, named) in of_all.iter().chain(of_site) {
        // People are no crawler: they are in no sum of all crawlers.
        if !(crawler == "none" && named.is_empty()) {
            add_to_row(statement, start, site, named, identity, counts)?;
        }
    }
    Ok(())
}

/// Adds counts to the row of one site, period, crawler and identity. `statement` is from
/// `prepare_add`.
pub fn add_to_row(
    statement: &mut Statement<'_>,
    start: Timestamp,
    site: &str,
    crawler: &str,
    identity: Option<IdentityStatus>,
    counts: &RequestCounts,
) -> SqlResult<usize> {
    let key = [
        Text(site.into()),
        Integer(start.0),
        Text(crawler.into()),
        Text(identity_label(identity).into()),
    ];
    let counted = counts
        .columns()
        .map(|(_, count)| Integer(to_sql_integer(count)));
    statement.execute(params_from_iter(key.into_iter().chain(counted)))
}

/// Adds samples, with their texts truncated. Skips a sample if [`MAX_SAMPLES_PER_DAY`] of the same
/// day, site, crawler, kind, rule and identity are stored. If more than `MAX_SAMPLES` are stored in
/// all, deletes the oldest, `SAMPLES_DELETED_AT_ONCE` more than necessary.
fn add_samples(connection: &Connection, samples: &[RecordRow]) -> SqlResult<()> {
    if samples.is_empty() {
        return Ok(());
    }
    let columns = sample_columns("");
    // The day is the first value; the fields follow in their order.
    let values = (2..SAMPLE_FIELDS.len() + 2).map(|place| format!("?{place}"));
    let mut add = connection.prepare(&format!(
        "INSERT INTO history_samples (day, number, {columns}) SELECT ?1, COUNT(*), {} FROM history_samples WHERE day = ?1 \
         AND site = ?3 AND crawler = ?4 AND kind = ?5 AND rule = ?6 AND identity = ?9 HAVING COUNT(*) < {MAX_SAMPLES_PER_DAY}",
        join(values, ", ")
    ))?;
    for sample in samples {
        let day = Integer(Day.start_of(sample.moment()).0);
        let fields = SAMPLE_FIELDS
            .iter()
            .map(|field| sample_value(sample, *field));
        add.execute(params_from_iter([day].into_iter().chain(fields)))?;
    }
    let all: i64 =
        connection.query_row("SELECT COUNT(*) FROM history_samples", [], |row| row.get(0))?;
    if all > MAX_SAMPLES {
        connection.execute(
            "DELETE FROM history_samples WHERE rowid IN (SELECT rowid FROM history_samples ORDER BY day, rowid LIMIT ?1)",
            [all - MAX_SAMPLES + SAMPLES_DELETED_AT_ONCE],
        )?;
    }
    Ok(())
}

/// Deletes rows that are too old, and the oldest periods of tables with too many rows. Of the names of unknown bots, keeps the most frequent `MAX_NAMES_PER_DAY` of today and
/// yesterday.
fn delete_expired(connection: &Connection, now: Timestamp) -> SqlResult<()> {
    for step in PeriodLength::ALL {
        let table = counts_table(step);
        let too_old = now.0 - step.retention_seconds() - step.seconds();
        connection.execute(&format!("DELETE FROM {table} WHERE start <= ?1"), [too_old])?;
        delete_oldest(connection, table, "start", max_rows(step))?;
    }
    for condition in [
        "history_identity WHERE start",
        "history_unlisted WHERE start",
        "history_samples WHERE day",
    ] {
        connection.execute(
            &format!("DELETE FROM {condition} < ?1"),
            [now.0 - RETENTION],
        )?;
    }
    let day = Day.start_of(now).0;
    for start in [day - DAY, day] {
        connection.execute(
            "DELETE FROM history_unlisted WHERE start = ?1 AND name NOT IN (SELECT name FROM history_unlisted WHERE \
             start = ?1 ORDER BY requests DESC, name LIMIT ?2)",
            [start, MAX_NAMES_PER_DAY],
        )?;
    }
    delete_expired_traffic(connection, now)
}

#[cfg(test)]
mod tests {
    use super::{MAX_SAMPLES, create_tables, write_batch};
    use crate::record::{CountedAction, RequestCounts};
    use crate::record::{RecordField, RecordRow};
    use crate::state::history::{DAY, HOUR, RequestHistoryBatch};
    use crate::time::Timestamp;
    use crate::verdict::{IdentityStatus, Kind};
    use rusqlite::Connection;

    const NOW: Timestamp = Timestamp(1_795_305_600);

    fn database() -> Connection {
        let connection = Connection::open_in_memory().expect("memory");
        create_tables(&connection).expect("tables");
        connection
    }

    fn to_sql_integer(connection: &Connection, sql: &str) -> i64 {
        connection
            .query_row(sql, [], |row| row.get(0))
            .expect("a number")
    }

    fn requests(at: Timestamp, crawler: &str, count: u64) -> RequestHistoryBatch {
        let mut batch = RequestHistoryBatch::default();
        let mut counts = RequestCounts::default();
        counts.add(Kind::Violation, CountedAction::WouldBlock, count);
        let identity = Some(IdentityStatus::Unverified);
        batch.add_requests(at, "shop", crawler, identity, &counts);
        batch
    }

    #[test]
    fn counts_add_up_by_hour_and_day_for_one_and_for_all() {
        let (connection, mut pruned) = (database(), 0);
        for (hours, crawler, count) in [
            (0, "gptbot", 2),
            (0, "gptbot", 3),
            (1, "bingbot", 4),
            (0, "none", 9),
        ] {
            let at = Timestamp(NOW.0 - hours * HOUR);
            write_batch(&connection, &requests(at, crawler, count), &mut pruned, NOW)
                .expect("written");
        }
        let sum = |condition: &str| {
            to_sql_integer(
                &connection,
                &format!("SELECT IFNULL(SUM(violation), 0) FROM history_hours WHERE {condition}"),
            )
        };
        assert_eq!(
            sum(&format!(
                "site = 'shop' AND crawler = 'gptbot' AND start = {}",
                NOW.0
            )),
            5
        );
        assert_eq!(
            (
                sum("site = '' AND crawler = 'gptbot'"),
                sum("site = '' AND crawler = ''")
            ),
            (5, 9)
        );
        assert_eq!(
            to_sql_integer(
                &connection,
                "SELECT COUNT(*) FROM history_hours WHERE crawler = 'none'"
            ),
            2
        );
        let today = NOW.0 - NOW.0.rem_euclid(DAY);
        let of_day = format!(
            "SELECT would_refuse FROM history_days WHERE site = '' AND crawler = '' AND start = {today}"
        );
        let yesterday = i64::from(NOW.0.rem_euclid(DAY) < HOUR);
        assert_eq!(to_sql_integer(&connection, &of_day), 9 - 4 * yesterday);
    }

    #[test]
    fn samples_of_impostors_displace_no_others() {
        let (connection, mut batch) = (database(), RequestHistoryBatch::default());
        for identity in [IdentityStatus::Impostor, IdentityStatus::Verified] {
            let sample = RecordRow::from_texts(NOW, &[(RecordField::Identity, identity.name())]);
            (0..30).for_each(|_| batch.add_sample(sample.clone()));
        }
        write_batch(&connection, &batch, &mut 0, NOW).expect("written");
        for identity in [IdentityStatus::Impostor, IdentityStatus::Verified] {
            let kept =
                format!("SELECT COUNT(*) FROM history_samples WHERE identity = '{identity}'");
            assert_eq!(to_sql_integer(&connection, &kept), 20, "{identity}");
        }
    }

    #[test]
    fn old_rows_are_deleted_once_an_hour() {
        let (connection, mut pruned) = (database(), 0);
        for days in [0, 6, 8, 129, 131, 399, 450] {
            write_batch(
                &connection,
                &requests(Timestamp(NOW.0 - days * DAY), "gptbot", 1),
                &mut pruned,
                NOW,
            )
            .expect("written");
        }
        let count = |table: &str| {
            to_sql_integer(
                &connection,
                &format!("SELECT COUNT(DISTINCT start) FROM {table}"),
            )
        };
        let counts = || ["history_hours", "history_days", "history_weeks"].map(count);
        assert_eq!(
            counts(),
            [7, 7, 5],
            "pruned with the first of the hour alone"
        );
        let later = Timestamp(NOW.0 + HOUR);
        write_batch(
            &connection,
            &requests(later, "gptbot", 1),
            &mut pruned,
            later,
        )
        .expect("written");
        assert_eq!(counts(), [3, 4, 4]);
    }

    #[test]
    fn samples_are_bounded_for_each_rule_and_in_all() {
        let (connection, mut pruned) = (database(), 0);
        let target = "/".repeat(5_000);
        let sample = |rule: &str, day: i64| {
            let fields = [
                (RecordField::Site, "shop"),
                (RecordField::Crawler, "gptbot"),
                (RecordField::Kind, Kind::Violation.name()),
                (RecordField::Target, &target),
                (RecordField::Rule, rule),
            ];
            RecordRow::from_texts(Timestamp(NOW.0 + day * DAY), &fields)
        };
        let mut batch = RequestHistoryBatch::default();
        (0..30).for_each(|_| batch.add_sample(sample("Disallow: /", 0)));
        write_batch(&connection, &batch, &mut pruned, NOW).expect("written");
        assert_eq!(
            to_sql_integer(&connection, "SELECT COUNT(*) FROM history_samples"),
            20
        );
        assert_eq!(
            to_sql_integer(
                &connection,
                "SELECT MAX(LENGTH(target)) FROM history_samples"
            ),
            512
        );
        let many = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MAX_SAMPLES}) INSERT INTO \
             history_samples SELECT {}, 'shop', 'bingbot', 'violation', i, 0, 0, '', '', '', '', '', '', '', '', '', 0, '' FROM n",
            NOW.0 + DAY
        );
        connection.execute_batch(&many).expect("many samples");
        let mut one_more = RequestHistoryBatch::default();
        one_more.add_sample(sample("Disallow: /new/", 2));
        write_batch(&connection, &one_more, &mut pruned, NOW).expect("written");
        assert!(to_sql_integer(&connection, "SELECT COUNT(*) FROM history_samples") <= MAX_SAMPLES);
        assert_eq!(
            to_sql_integer(
                &connection,
                "SELECT COUNT(*) FROM history_samples WHERE rule = 'Disallow: /'"
            ),
            0
        );
        assert_eq!(
            to_sql_integer(
                &connection,
                "SELECT COUNT(*) FROM history_samples WHERE rule = 'Disallow: /new/'"
            ),
            1
        );
    }
}
