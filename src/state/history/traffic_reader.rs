//! Reads visits and requested paths from the history in the state database.
//! [`RequestHistoryReader::visits`] and [`RequestHistoryReader::top_paths`] are for the dashboard
//! and reports. When crawlgate starts, it reads the paths of the present day, and continues their
//! counts. Other methods read visits for the exchange with other instances.

use super::peer_counts::VisitsRow;
use super::read::{RequestHistoryError, RequestHistoryReader};
use super::sql::query_rows;
use super::traffic::{MAX_SHOWN_PATHS, PATHS, VISITS};
use super::{PathRequestCount, PeriodLength, ServiceVisits};
use crate::record::{DayPaths, TopPathsKey};
use crate::sketch::CountedKey;
use crate::time::Timestamp;
use PeriodLength::Day;
use rusqlite::{Result as SqlResult, Row as SqlRow};

/// The queries fail with a [`RequestHistoryError`].
impl RequestHistoryReader {
    /// The visits that each service sent to a site, or to all sites, the most first. Counts whole
    /// days: from that of `from` to that of `to`.
    pub fn visits(
        &self,
        from: Timestamp,
        to: Timestamp,
        site: Option<&str>,
    ) -> Result<Vec<ServiceVisits>, RequestHistoryError> {
        let sql = format!(
            "SELECT service, SUM(visits) AS sum FROM {VISITS} WHERE day BETWEEN ?1 AND ?2 AND (?3 IS NULL OR site = ?3) \
             GROUP BY service ORDER BY sum DESC, service"
        );
        let from = Day.start_of(from);
        self.query(|connection| {
            query_rows(connection, &sql, (from, to, site), |row| {
                let (service, visits) = row.try_into()?;
                Ok(ServiceVisits { service, visits })
            })
        })
    }

    /// The paths that a crawler requested most on a site, or on all sites, without the requests of
    /// impostors: at most 20, the most requested first. A path whose number may be too high by half
    /// is left out. Counts whole days: from that of `from` to that of `to`. For a sum of instances,
    /// these are the paths of this instance.
    pub fn top_paths(
        &self,
        from: Timestamp,
        to: Timestamp,
        site: Option<&str>,
        crawler: &str,
    ) -> Result<Vec<PathRequestCount>, RequestHistoryError> {
        let sql = format!(
            "SELECT path, SUM(requests) AS requests, SUM(error) AS error FROM {PATHS} WHERE crawler = ?4 AND day BETWEEN ?1 \
             AND ?2 AND (?3 IS NULL OR site = ?3) AND identity <> 'impostor' GROUP BY path HAVING 2 * SUM(error) < \
             SUM(requests) ORDER BY SUM(requests) DESC, path LIMIT {MAX_SHOWN_PATHS}"
        );
        let from = Day.start_of(from);
        self.query_rows(&sql, (from, to, site, crawler), |row| {
            let (path, requests, error) = row.try_into()?;
            Ok(PathRequestCount {
                path,
                requests,
                error,
            })
        })
    }

    /// All stored paths of the day that has `now`, by crawler.
    pub fn paths_of_day(&self, now: Timestamp) -> Result<Vec<DayPaths>, RequestHistoryError> {
        let day = Day.start_of(now);
        let sql = format!(
            "SELECT crawler, site, identity, path, requests, error FROM {PATHS} WHERE day = ?1 ORDER BY crawler, site, \
             identity"
        );
        let rows = self.query_rows(&sql, [day], read_path)?;
        let mut groups: Vec<DayPaths> = Vec::new();
        for (owner, path) in rows {
            match groups.last_mut() {
                Some(last) if last.owner == owner => last.paths.push(path),
                _ => groups.push(DayPaths {
                    day,
                    owner,
                    paths: vec![path],
                }),
            }
        }
        Ok(groups)
    }

    /// The visits of each day that begins at `from` or later.
    pub fn visits_by_day(
        &self,
        from: Timestamp,
    ) -> Result<Vec<(Timestamp, VisitsRow)>, RequestHistoryError> {
        let sql = format!("SELECT day, site, service, visits FROM {VISITS} WHERE day >= ?1");
        self.query(|connection| {
            query_rows(connection, &sql, [from], |row| {
                Ok((row.get(0)?, (row.get(1)?, row.get(2)?, row.get(3)?)))
            })
        })
    }

    /// The visits of this instance on the days that a period has, by site and service.
    pub fn visits_of_period(
        &self,
        step: PeriodLength,
        start: Timestamp,
    ) -> Result<Vec<VisitsRow>, RequestHistoryError> {
        let sql = format!(
            "SELECT site, service, SUM(visits) FROM {VISITS} WHERE day >= ?1 AND day < ?2 GROUP BY site, service"
        );
        let from = Day.start_of(start);
        let end = Timestamp(start.0 + step.seconds());
        self.query(|connection| query_rows(connection, &sql, (from, end), |row| row.try_into()))
    }
}

/// Reads a path with its owner.
fn read_path(row: &SqlRow<'_>) -> SqlResult<(TopPathsKey, CountedKey)> {
    let owner = TopPathsKey {
        crawler: row.get(0)?,
        site: row.get(1)?,
        identity: row.get(2)?,
    };
    let path: String = row.get(3)?;
    let counted = CountedKey {
        key: path.into_bytes().into(),
        count: row.get(4)?,
        error: row.get(5)?,
    };
    Ok((owner, counted))
}

#[cfg(test)]
mod tests {
    use super::{PATHS, VISITS};
    use crate::record::{DayPaths, TopPathsKey};
    use crate::sketch::CountedKey;
    use crate::state::history::read::InMemoryHistory;
    use crate::state::history::traffic::MAX_ROWS;
    use crate::state::history::{
        DAY, DailyCountKind, HOUR, PathRequestCount, RequestHistoryBatch, RequestHistoryReader,
    };
    use crate::time::Timestamp;
    use crate::verdict::IdentityStatus;
    use std::sync::Arc;

    /// The beginning of a day.
    const TODAY: Timestamp = Timestamp(20_000 * DAY);

    /// Site and service.
    const SHOP_FROM_CHATGPT: [&str; 2] = ["shop", "chatgpt"];

    fn days_ago(days: i64) -> Timestamp {
        Timestamp(TODAY.0 - days * DAY)
    }

    /// Paths with their requests and errors, under the name of gptbot.
    fn day_paths(
        day: Timestamp,
        identity: IdentityStatus,
        paths: impl IntoIterator<Item = (String, u64, u64)>,
    ) -> DayPaths {
        let paths = paths.into_iter().map(|(path, count, error)| CountedKey {
            key: path.into_bytes().into(),
            count,
            error,
        });
        DayPaths {
            day,
            owner: TopPathsKey {
                site: "shop".into(),
                crawler: "gptbot".into(),
                identity,
            },
            paths: paths.collect(),
        }
    }

    fn verified(day: Timestamp, paths: &[(&str, u64, u64)]) -> DayPaths {
        let paths = paths
            .iter()
            .map(|(path, count, error)| ((*path).to_owned(), *count, *error));
        day_paths(day, IdentityStatus::Verified, paths)
    }

    fn put_paths(memory: &InMemoryHistory, paths: DayPaths, now: Timestamp) {
        let mut batch = RequestHistoryBatch::default();
        batch.set_paths(paths);
        memory.add(&batch, now);
    }

    fn history() -> (Arc<InMemoryHistory>, RequestHistoryReader) {
        let memory = Arc::new(InMemoryHistory::new().expect("memory"));
        (memory.clone(), RequestHistoryReader::from_memory(memory))
    }

    fn count_rows(history: &RequestHistoryReader, table: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let count = history.query(|connection| connection.query_row(&sql, [], |row| row.get(0)));
        count.expect("read")
    }

    fn top(history: &RequestHistoryReader, from: Timestamp) -> Vec<(String, u64, u64)> {
        let found = history.top_paths(from, TODAY, Some("shop"), "gptbot");
        let paths = found.expect("read").into_iter();
        paths
            .map(
                |PathRequestCount {
                     path,
                     requests,
                     error,
                 }| (path, requests, error),
            )
            .collect()
    }

    #[test]
    fn visits_add_up_by_service_and_day() {
        let (memory, history) = history();
        for (ago, site, service, visits) in [
            (0, "shop", "chatgpt", 2),
            (3 * HOUR, "shop", "chatgpt", 3),
            (3 * HOUR, "blog", "chatgpt", 4),
            (3 * HOUR, "shop", "bing", 7),
        ] {
            let mut batch = RequestHistoryBatch::default();
            let time = Timestamp(TODAY.0 - ago);
            batch.add_daily(DailyCountKind::Visits, time, [site, service], visits);
            memory.add(&batch, TODAY);
        }
        let visits = |from: Timestamp, to: Timestamp, site: Option<&str>| {
            let found = history.visits(from, to, site).expect("read");
            let texts = found.iter();
            texts
                .map(|row| format!("{} {}", row.service, row.visits))
                .collect::<Vec<_>>()
        };
        assert_eq!(visits(days_ago(1), TODAY, None), ["chatgpt 9", "bing 7"]);
        let of_shop = visits(Timestamp(TODAY.0 - 1), TODAY, Some("shop"));
        assert_eq!(of_shop, ["bing 7", "chatgpt 5"]);
        assert_eq!(visits(TODAY, TODAY, None), ["chatgpt 2"]);
        let yesterday = visits(days_ago(1), days_ago(1), Some("shop"));
        assert_eq!(yesterday, ["bing 7", "chatgpt 3"]);
    }

    #[test]
    fn paths_of_a_day_replace_the_stored_ones() {
        let (memory, history) = history();
        let yesterday = verified(days_ago(1), &[("/a", 5, 0), ("/c", 1, 0)]);
        put_paths(&memory, yesterday, TODAY);
        put_paths(
            &memory,
            verified(TODAY, &[("/a", 1, 0), ("/b", 9, 5)]),
            TODAY,
        );
        put_paths(
            &memory,
            verified(TODAY, &[("/a", 2, 1), ("/d", 3, 0)]),
            TODAY,
        );
        let impostor = day_paths(TODAY, IdentityStatus::Impostor, [("/x".into(), 50, 0)]);
        put_paths(&memory, impostor, TODAY);
        let all = [("/a", 7, 1), ("/d", 3, 0), ("/c", 1, 0)];
        assert_eq!(
            top(&history, days_ago(1)),
            all.map(|(path, requests, error)| { (path.to_owned(), requests, error) })
        );
        // The number of `/a` may be too high by half.
        assert_eq!(top(&history, TODAY), [("/d".to_owned(), 3, 0)]);
        let restored = history
            .paths_of_day(Timestamp(TODAY.0 + HOUR))
            .expect("read");
        assert_eq!(restored.len(), 2);
        assert!(restored.contains(&verified(TODAY, &[("/a", 2, 1), ("/d", 3, 0)])));
    }

    #[test]
    fn day_that_is_over_keeps_twenty_paths_of_a_crawler() {
        let (memory, history) = history();
        let many = |day: Timestamp| {
            // The most requested one is the least certain.
            let paths = (0..256).map(|number| (format!("/{number}"), 300 - number, 0));
            let paths = paths.chain([("/uncertain".to_owned(), 999, 900)]);
            day_paths(day, IdentityStatus::Verified, paths)
        };
        put_paths(&memory, many(TODAY), TODAY);
        assert_eq!(count_rows(&history, PATHS), 257);
        put_paths(&memory, many(days_ago(-1)), days_ago(-1));
        assert_eq!(count_rows(&history, PATHS), 20 + 257);
        let kept = top(&history, TODAY);
        assert_eq!((kept.len(), kept[0].1, kept[19].1), (20, 300, 281));
    }

    #[test]
    fn old_and_too_many_rows_are_deleted() {
        let (memory, history) = history();
        let mut batch = RequestHistoryBatch::default();
        for days in [0, 90, 91, 400, 401] {
            batch.set_paths(verified(days_ago(days), &[("/a", 1, 0)]));
            batch.add_daily(DailyCountKind::Visits, days_ago(days), SHOP_FROM_CHATGPT, 1);
        }
        memory.add(&batch, TODAY);
        let counts = |history: &RequestHistoryReader| {
            [VISITS, PATHS].map(|table| count_rows(history, table))
        };
        assert_eq!(counts(&history), [4, 2]);
        let numbers = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {MAX_ROWS}) INSERT INTO"
        );
        let day = days_ago(1).0;
        let many = format!(
            "{numbers} {VISITS} SELECT {day}, i, 'bing', 1 FROM n; {numbers} {PATHS} SELECT {day}, i, 'gptbot', \
             'verified', '/', 1, 0 FROM n"
        );
        let inserted = history.query(|connection| connection.execute_batch(&many));
        inserted.expect("inserted");
        let mut batch = RequestHistoryBatch::default();
        batch.add_daily(DailyCountKind::Visits, TODAY, SHOP_FROM_CHATGPT, 1);
        memory.add(&batch, Timestamp(TODAY.0 + HOUR));
        assert_eq!(counts(&history), [1, 1], "the days before today are gone");
    }
}
