//! The tables of the history (counts and samples of requests) in `state.db`. [`prepare`] makes
//! them. [`write`] adds a batch, and deletes rows that are too old or too many.

use super::{DAY, HistoryBatch, SAMPLES_EACH, Step};
use crate::printable::cut;
use crate::record::{Counts, Field, Row, SAMPLE_FIELDS, Value, identity_name};
use crate::time::Timestamp;
use crate::verdict::KnownIdentity;
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{
    Connection, Params, Result as SqlResult, Row as SqlRow, Statement, params_from_iter,
};

/// How long everything but counts is kept.
const KEPT: i64 = 400 * DAY;
/// Samples that are kept, and how many go at once when there are more.
const MAX_SAMPLES: i64 = 100_000;
const SAMPLES_AT_ONCE: i64 = 5_000;
/// Names of unlisted bots that are kept of each day.
const NAMES_EACH_DAY: i64 = 200;
/// Octets of a text of a sample that are kept.
const MAX_TARGET: usize = 512;
const MAX_TEXT: usize = 256;

const OTHERS: &str = "\
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

/// The samples that tell of a crawler that certainly broke the rules, or of an impostor. SQLite
/// uses the index of these only for a condition with the same words.
pub const OFFENCES: &str = "kind IN ('violation', 'too_fast', 'trapped', 'impostor')";

/// The columns of a sample, in the order of its fields. `table` is written before each.
pub fn sample_columns(table: &str) -> String {
    let fields = SAMPLE_FIELDS.iter();
    let names: Vec<String> = fields
        .map(|field| format!("{table}{}", field.name()))
        .collect();
    names.join(", ")
}

/// The sample in a row that has these columns.
pub fn read_sample(row: &SqlRow<'_>) -> SqlResult<Row> {
    let mut sample = Row::default();
    for (place, field) in SAMPLE_FIELDS.iter().enumerate() {
        let value = match (row.get_ref(place)?, field) {
            (ValueRef::Integer(at), Field::Time) => Value::Moment(Timestamp(at)),
            (ValueRef::Integer(number), _) => Value::Number(number.unsigned_abs()),
            (text, _) => Value::text_of(text.as_str()?.to_owned()),
        };
        sample.push(*field, value);
    }
    Ok(sample)
}

/// A field of a sample as it is stored.
fn stored(sample: &Row, field: Field) -> SqlValue {
    match (sample.get(field), field) {
        (Some(Value::Number(count)), _) => SqlValue::Integer(number(*count)),
        (None, Field::Status) => SqlValue::Integer(0),
        (_, Field::Time) => SqlValue::Integer(sample.moment().0),
        (_, Field::Target | Field::RuleSource) => {
            SqlValue::Text(cut(&sample.text(field), MAX_TARGET).to_owned())
        }
        _ => SqlValue::Text(cut(&sample.text(field), MAX_TEXT).to_owned()),
    }
}

/// The name of the table with the counts of periods of this length.
pub fn table(step: Step) -> &'static str {
    match step {
        Step::Hour => "history_hours",
        Step::Day => "history_days",
        Step::Week => "history_weeks",
    }
}

/// Runs a query and converts each row.
pub fn rows<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    of_row: impl FnMut(&SqlRow<'_>) -> SqlResult<T>,
) -> SqlResult<Vec<T>> {
    connection
        .prepare(sql)?
        .query_map(values, of_row)?
        .collect()
}

/// The columns of counts, each as `form` writes it, separated by commas.
pub fn columns(form: impl Fn(&'static str) -> String) -> String {
    let counts = Counts::default();
    let columns: Vec<String> = counts.columns().map(|(column, _)| form(column)).collect();
    columns.join(", ")
}

/// The columns of counts, added up over a group of rows.
pub fn sums() -> String {
    columns(|column| {
        let aggregate = if Counts::is_moment(column) {
            "MAX"
        } else {
            "SUM"
        };
        format!("{aggregate}({column})")
    })
}

/// How many rows the table of this length of period keeps. All of them take less than 130 MiB
/// together.
fn most(step: Step) -> i64 {
    match step {
        Step::Hour | Step::Week => 300_000,
        Step::Day => 600_000,
    }
}

/// Makes the tables where they are missing.
pub fn prepare(connection: &Connection) -> SqlResult<()> {
    let columns = columns(|column| format!("{column} INTEGER NOT NULL"));
    for table in Step::ALL.map(table) {
        connection.execute_batch(&format!(
            "CREATE TABLE IF NOT EXISTS {table} (site TEXT NOT NULL, start INTEGER NOT NULL, crawler TEXT NOT NULL, \
             identity TEXT NOT NULL, {columns}, PRIMARY KEY (site, start, crawler, identity)) WITHOUT ROWID, STRICT;
             CREATE INDEX IF NOT EXISTS {table}_by_crawler ON {table} (crawler, start);"
        ))?;
    }
    connection.execute_batch(OTHERS)?;
    connection.execute_batch(&format!(
        "CREATE INDEX IF NOT EXISTS history_samples_of_offences ON history_samples (crawler, identity, time, site, \
         kind) WHERE {OFFENCES}"
    ))
}

/// Adds a batch to the tables; does nothing if the batch is empty. With the first batch of an hour
/// it also deletes old rows: `pruned` is the beginning of the hour in which that was done last.
pub fn write(
    connection: &Connection,
    batch: &HistoryBatch,
    pruned: &mut i64,
    now: Timestamp,
) -> SqlResult<()> {
    if batch.is_empty() {
        return Ok(());
    }
    add_counts(connection, batch)?;
    let mut identity = connection.prepare(
        "INSERT INTO history_identity VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET requests = requests + ?4",
    )?;
    for ((day, crawler, outcome), requests) in &batch.identity {
        identity.execute((day, crawler, outcome.name(), number(*requests)))?;
    }
    let mut unlisted = connection.prepare(
        "INSERT INTO history_unlisted VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET requests = requests + ?3",
    )?;
    for ((day, name), requests) in &batch.unlisted {
        unlisted.execute((day, name, number(*requests)))?;
    }
    add_samples(connection, &batch.samples)?;
    let hour = Step::Hour.begin(now).0;
    if *pruned != hour {
        prune(connection, now)?;
        *pruned = hour;
    }
    Ok(())
}

/// A count as SQLite takes it: one that is too large becomes the largest integer.
fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Adds the counts of each hour of the batch to that hour, its day and its week, with their sums:
/// see `add_with_sums`.
fn add_counts(connection: &Connection, batch: &HistoryBatch) -> SqlResult<()> {
    let mut statements = Vec::new();
    for step in Step::ALL {
        statements.push((step, adding(connection, step)?));
    }
    for ((hour, site, crawler, identity), counts) in &batch.counts {
        for (step, statement) in &mut statements {
            let start = step.begin(*hour);
            add_with_sums(statement, start, site, crawler, *identity, counts)?;
        }
    }
    Ok(())
}

/// Prepares the statement by which `add` adds counts to a row of the table of this length of
/// period. The row is made if it is missing.
pub fn adding(connection: &Connection, step: Step) -> SqlResult<Statement<'_>> {
    connection.prepare(&format!(
        "INSERT INTO {} (site, start, crawler, identity, {}) VALUES (?, ?, ?, ?, {}) ON CONFLICT DO UPDATE SET {}",
        table(step),
        columns(str::to_owned),
        columns(|_| "?".to_owned()),
        columns(|column| if Counts::is_moment(column) {
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
    identity: Option<KnownIdentity>,
    counts: &Counts,
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
            add(statement, start, site, named, identity, counts)?;
        }
    }
    Ok(())
}

/// Adds counts to the row of one site, period, crawler and identity. `statement` is from `adding`.
pub fn add(
    statement: &mut Statement<'_>,
    start: Timestamp,
    site: &str,
    crawler: &str,
    identity: Option<KnownIdentity>,
    counts: &Counts,
) -> SqlResult<usize> {
    let key = [
        SqlValue::Text(site.into()),
        SqlValue::Integer(start.0),
        SqlValue::Text(crawler.into()),
        SqlValue::Text(identity_name(identity).into()),
    ];
    let counted = counts
        .columns()
        .map(|(_, count)| SqlValue::Integer(number(count)));
    statement.execute(params_from_iter(key.into_iter().chain(counted)))
}

/// Adds samples, their texts cut to a bounded length. A sample is left out if [`SAMPLES_EACH`] of
/// the same day, site, crawler, kind, rule and identity are stored. If more than `MAX_SAMPLES` are
/// stored in all, deletes the oldest, `SAMPLES_AT_ONCE` more than necessary.
fn add_samples(connection: &Connection, samples: &[Row]) -> SqlResult<()> {
    if samples.is_empty() {
        return Ok(());
    }
    let columns = sample_columns("");
    // The day is the first value; the fields follow in their order.
    let values: Vec<String> = (2..SAMPLE_FIELDS.len() + 2)
        .map(|place| format!("?{place}"))
        .collect();
    let mut add = connection.prepare(&format!(
        "INSERT INTO history_samples (day, number, {columns}) SELECT ?1, COUNT(*), {} FROM history_samples WHERE day = ?1 \
         AND site = ?3 AND crawler = ?4 AND kind = ?5 AND rule = ?6 AND identity = ?9 HAVING COUNT(*) < {SAMPLES_EACH}",
        values.join(", ")
    ))?;
    for sample in samples {
        let day = SqlValue::Integer(Step::Day.begin(sample.moment()).0);
        let fields = SAMPLE_FIELDS.iter().map(|field| stored(sample, *field));
        add.execute(params_from_iter([day].into_iter().chain(fields)))?;
    }
    let all: i64 =
        connection.query_row("SELECT COUNT(*) FROM history_samples", [], |row| row.get(0))?;
    if all > MAX_SAMPLES {
        connection.execute(
            "DELETE FROM history_samples WHERE rowid IN (SELECT rowid FROM history_samples ORDER BY day, rowid LIMIT ?1)",
            [all - MAX_SAMPLES + SAMPLES_AT_ONCE],
        )?;
    }
    Ok(())
}

/// Deletes rows that are too old. If a table of counts has too many rows, its oldest periods go. Of
/// the names of unknown bots today and yesterday, the most frequent `NAMES_EACH_DAY` of each day
/// stay.
fn prune(connection: &Connection, now: Timestamp) -> SqlResult<()> {
    for step in Step::ALL {
        let table = table(step);
        let most = most(step);
        let too_old = now.0 - step.kept() - step.seconds();
        connection.execute(&format!("DELETE FROM {table} WHERE start <= ?1"), [too_old])?;
        let rows: i64 =
            connection.query_row(&format!("SELECT COUNT(*) FROM {table}"), [], |row| {
                row.get(0)
            })?;
        if rows > most {
            let oldest = format!("SELECT start FROM {table} ORDER BY start LIMIT 1 OFFSET ?1");
            let before: i64 = connection.query_row(&oldest, [rows - most], |row| row.get(0))?;
            connection.execute(&format!("DELETE FROM {table} WHERE start <= ?1"), [before])?;
        }
    }
    for table in ["history_identity", "history_unlisted"] {
        connection.execute(
            &format!("DELETE FROM {table} WHERE start < ?1"),
            [now.0 - KEPT],
        )?;
    }
    connection.execute("DELETE FROM history_samples WHERE day < ?1", [now.0 - KEPT])?;
    let day = Step::Day.begin(now).0;
    for start in [day - DAY, day] {
        connection.execute(
            "DELETE FROM history_unlisted WHERE start = ?1 AND name NOT IN (SELECT name FROM history_unlisted WHERE \
             start = ?1 ORDER BY requests DESC, name LIMIT ?2)",
            [start, NAMES_EACH_DAY],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MAX_SAMPLES, prepare, write};
    use crate::record::{CountedAction, Counts};
    use crate::record::{Field, Row};
    use crate::state::history::{DAY, HOUR, HistoryBatch};
    use crate::time::Timestamp;
    use crate::verdict::{Kind, KnownIdentity};
    use rusqlite::Connection;

    const NOW: Timestamp = Timestamp(1_795_305_600);

    fn database() -> Connection {
        let connection = Connection::open_in_memory().expect("memory");
        prepare(&connection).expect("tables");
        connection
    }

    fn number(connection: &Connection, sql: &str) -> i64 {
        connection
            .query_row(sql, [], |row| row.get(0))
            .expect("a number")
    }

    fn requests(at: Timestamp, crawler: &str, count: u64) -> HistoryBatch {
        let mut batch = HistoryBatch::default();
        let mut counts = Counts::default();
        counts.add(Kind::Violation, CountedAction::WouldBlock, count);
        let identity = Some(KnownIdentity::Unverified);
        batch.requests(at, "shop", crawler, identity, &counts);
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
            write(&connection, &requests(at, crawler, count), &mut pruned, NOW).expect("written");
        }
        let sum = |condition: &str| {
            number(
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
            number(
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
        assert_eq!(number(&connection, &of_day), 9 - 4 * yesterday);
    }

    #[test]
    fn samples_of_impostors_take_no_room_of_the_crawlers() {
        let (connection, mut batch) = (database(), HistoryBatch::default());
        for identity in [KnownIdentity::Impostor, KnownIdentity::Verified] {
            let sample = Row::of_texts(NOW, &[(Field::Identity, identity.name())]);
            (0..30).for_each(|_| batch.sample(sample.clone()));
        }
        write(&connection, &batch, &mut 0, NOW).expect("written");
        for identity in [KnownIdentity::Impostor, KnownIdentity::Verified] {
            let kept =
                format!("SELECT COUNT(*) FROM history_samples WHERE identity = '{identity}'");
            assert_eq!(number(&connection, &kept), 20, "{identity}");
        }
    }

    #[test]
    fn what_is_too_old_is_deleted_once_an_hour() {
        let (connection, mut pruned) = (database(), 0);
        for days in [0, 6, 8, 129, 131, 399, 450] {
            write(
                &connection,
                &requests(Timestamp(NOW.0 - days * DAY), "gptbot", 1),
                &mut pruned,
                NOW,
            )
            .expect("written");
        }
        let count = |table: &str| {
            number(
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
        write(
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
                (Field::Site, "shop"),
                (Field::Crawler, "gptbot"),
                (Field::Kind, Kind::Violation.name()),
                (Field::Target, &target),
                (Field::Rule, rule),
            ];
            Row::of_texts(Timestamp(NOW.0 + day * DAY), &fields)
        };
        let mut batch = HistoryBatch::default();
        (0..30).for_each(|_| batch.sample(sample("Disallow: /", 0)));
        write(&connection, &batch, &mut pruned, NOW).expect("written");
        assert_eq!(
            number(&connection, "SELECT COUNT(*) FROM history_samples"),
            20
        );
        assert_eq!(
            number(
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
        let mut one_more = HistoryBatch::default();
        one_more.sample(sample("Disallow: /new/", 2));
        write(&connection, &one_more, &mut pruned, NOW).expect("written");
        assert!(number(&connection, "SELECT COUNT(*) FROM history_samples") <= MAX_SAMPLES);
        assert_eq!(
            number(
                &connection,
                "SELECT COUNT(*) FROM history_samples WHERE rule = 'Disallow: /'"
            ),
            0
        );
        assert_eq!(
            number(
                &connection,
                "SELECT COUNT(*) FROM history_samples WHERE rule = 'Disallow: /new/'"
            ),
            1
        );
    }
}
