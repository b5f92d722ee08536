//! The tables of visits and of requested paths in `state.db`. Visits are counted by day, by site,
//! and by the AI assistant or search engine that sent the visitor. Paths are counted by day, by
//! site and by crawler. [`add_daily`] adds visits, [`write_paths`] writes paths, and
//! [`delete_expired_traffic`] deletes old rows.

use super::sql::{delete_oldest, query_rows, to_sql_integer};
use super::{DAY, DailyCountKind, PeriodLength, RequestHistoryBatch};
use crate::sketch::CountedKey;
use crate::time::Timestamp;
use rusqlite::{Connection, Result as SqlResult};

pub const VISITS: &str = "history_visits";
pub const PATHS: &str = "history_paths";
/// How many seconds visits are kept, and paths.
const VISITS_RETENTION: i64 = 400 * DAY;
const PATHS_RETENTION: i64 = 90 * DAY;
/// The most rows of each table. Those of paths take less than 30 MiB.
pub const MAX_ROWS: i64 = 200_000;
/// The most paths of a crawler that are shown, and that are kept of a day that is over.
pub const MAX_SHOWN_PATHS: i64 = 20;

pub const TABLES: &str = "\
CREATE TABLE IF NOT EXISTS history_visits (
  day INTEGER NOT NULL, site TEXT NOT NULL, service TEXT NOT NULL, visits INTEGER NOT NULL,
  PRIMARY KEY (day, site, service)) WITHOUT ROWID, STRICT;
CREATE TABLE IF NOT EXISTS history_paths (
  day INTEGER NOT NULL, site TEXT NOT NULL, crawler TEXT NOT NULL, identity TEXT NOT NULL, path TEXT NOT NULL,
  requests INTEGER NOT NULL, error INTEGER NOT NULL,
  PRIMARY KEY (crawler, day, site, identity, path)) WITHOUT ROWID, STRICT;";

/// Replaces the paths of each crawler and day that a batch has.
pub fn write_paths(connection: &Connection, batch: &RequestHistoryBatch) -> SqlResult<()> {
    for ((day, owner), paths) in &batch.paths {
        let key = (*day, &*owner.crawler, &*owner.site, owner.identity.name());
        connection
            .prepare_cached(&format!(
                "DELETE FROM {PATHS} WHERE day = ?1 AND crawler = ?2 AND site = ?3 AND identity = ?4"
            ))?
            .execute(key)?;
        let mut insert = connection.prepare_cached(&format!(
            "INSERT OR REPLACE INTO {PATHS} (day, crawler, site, identity, path, requests, error) VALUES (?1, ?2, ?3, ?4, \
             ?5, ?6, ?7)"
        ))?;
        for CountedKey {
            key: path,
            count,
            error,
        } in paths
        {
            let (day, crawler, site, identity) = key;
            let path = String::from_utf8_lossy(path);
            let count = to_sql_integer(*count);
            let error = to_sql_integer(*error);
            insert.execute((day, crawler, site, identity, path, count, error))?;
        }
    }
    Ok(())
}

/// Adds to the row of a day and two names.
pub fn add_daily(
    connection: &Connection,
    count: DailyCountKind,
    day: Timestamp,
    names: [&str; 2],
    number: u64,
) -> SqlResult<usize> {
    use DailyCountKind::*;
    let sql = match count {
        Identity => {
            "INSERT INTO history_identity VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET requests = requests + ?4"
        }
        Unlisted => {
            "INSERT INTO history_unlisted VALUES (?1, ?2, ?4) ON CONFLICT DO UPDATE SET requests = requests + ?4"
        }
        Visits => {
            "INSERT INTO history_visits VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET visits = visits + ?4"
        }
    };
    let mut statement = connection.prepare_cached(sql)?;
    statement.execute((day, names[0], names[1], to_sql_integer(number)))
}

/// Deletes rows that are too old or too many. Of days that are over, keeps the most requested
/// `MAX_SHOWN_PATHS` paths of each crawler.
pub fn delete_expired_traffic(connection: &Connection, now: Timestamp) -> SqlResult<()> {
    let today = PeriodLength::Day.start_of(now);
    let full_groups = format!(
        "SELECT crawler, day, site, identity FROM {PATHS} WHERE day < ?1 GROUP BY crawler, day, site, identity HAVING \
         COUNT(*) > {MAX_SHOWN_PATHS}"
    );
    let groups: Vec<(String, Timestamp, String, String)> =
        query_rows(connection, &full_groups, [today], |row| row.try_into())?;
    let of_group = "crawler = ?1 AND day = ?2 AND site = ?3 AND identity = ?4";
    let mut delete = connection.prepare(&format!(
        "DELETE FROM {PATHS} WHERE {of_group} AND path NOT IN (SELECT path FROM {PATHS} WHERE {of_group} ORDER BY 2 * error \
         < requests DESC, requests DESC, path LIMIT {MAX_SHOWN_PATHS})"
    ))?;
    for group in groups {
        delete.execute(group)?;
    }
    for (table, retention) in [(VISITS, VISITS_RETENTION), (PATHS, PATHS_RETENTION)] {
        let oldest = Timestamp(today.0 - retention);
        connection.execute(&format!("DELETE FROM {table} WHERE day < ?1"), [oldest])?;
        delete_oldest(connection, table, "day", MAX_ROWS)?;
    }
    Ok(())
}
