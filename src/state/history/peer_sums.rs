//! Adds up the request counts of several instances of crawlgate.
//! [`RequestHistoryReader::period_counts`] returns the counts of this instance for its peers (the
//! other instances). [`RequestHistoryReader::with_peers`] adds the counts of the peers to the
//! counts of this instance.

use super::peer_counts::{PeerPeriodCounts, PeriodCounts, PeriodCountsRow, VisitsRow};
use super::read::{
    InMemoryHistory, RequestHistoryError, RequestHistoryReader, read_counts, read_identity,
};
use super::sql::query_rows;
use super::tables::{add_to_row, add_with_sums, count_columns, counts_table, prepare_add};
use super::traffic::add_daily;
use super::{DailyCountKind, PeriodLength};
use crate::time::Timestamp;
use std::collections::BTreeMap;

impl RequestHistoryReader {
    /// The counts of this instance in the period of length `step` that begins exactly
    /// at `start`: a row for each site, crawler and identity, without the sums, and one for each
    /// site and service. Without requests if `start` begins no period.
    ///
    /// # Errors
    /// See [`RequestHistoryError`].
    pub fn period_counts(
        &self,
        step: PeriodLength,
        start: Timestamp,
    ) -> Result<PeriodCounts, RequestHistoryError> {
        // By crawler, because an index has the crawlers of a period.
        let table = counts_table(step);
        let condition = format!(
            "start = ?1 AND site <> '' AND crawler IN (SELECT crawler FROM {table} WHERE site = '' AND start = ?1 AND \
             crawler <> '')"
        );
        let rows = self.counts_where(step, &condition, start)?.into_iter();
        let counted = rows.map(|(_, row)| row).collect();
        let visits = self.visits_of_period(step, start)?;
        Ok(PeriodCounts::from_rows(counted, visits))
    }

    /// A reader of the added counts of this instance and its peers, for periods of length `step`:
    /// its own since `from`, and all of `peers`. Counts of other lengths are empty, and everything
    /// but counts and visits is of this instance.
    ///
    /// # Errors
    /// See [`RequestHistoryError`].
    pub fn with_peers(
        &self,
        step: PeriodLength,
        from: Timestamp,
        peers: &[PeerPeriodCounts],
    ) -> Result<RequestHistoryReader, RequestHistoryError> {
        let sum = InMemoryHistory::new()?;
        let own = self.counts_where(step, "start >= ?1", from)?;
        let own_visits = self.visits_by_day(PeriodLength::Day.start_of(from))?;
        sum.query(|connection| {
            connection.execute_batch("BEGIN")?;
            for (day, (site, service, visits)) in own_visits.iter().chain(&peer_visits(peers)) {
                let names = [site.as_str(), service];
                add_daily(connection, DailyCountKind::Visits, *day, names, *visits)?;
            }
            let mut statement = prepare_add(connection, step)?;
            for (start, (site, crawler, identity, counts)) in &own {
                add_to_row(&mut statement, *start, site, crawler, *identity, counts)?;
            }
            for PeerPeriodCounts { start, counted, .. } in peers {
                for (site, crawler, identity, counts) in &counted.rows {
                    add_with_sums(&mut statement, *start, site, crawler, *identity, counts)?;
                }
            }
            connection.execute_batch("COMMIT")
        })?;
        Ok(RequestHistoryReader::from_sum(sum, self.clone()))
    }

    /// The rows of periods of length `step` that fulfil a condition on `start`, each with the
    /// beginning of its period.
    fn counts_where(
        &self,
        step: PeriodLength,
        condition: &str,
        start: Timestamp,
    ) -> Result<Vec<(Timestamp, PeriodCountsRow)>, RequestHistoryError> {
        let columns = count_columns(str::to_owned);
        let table = counts_table(step);
        let sql = format!(
            "SELECT start, site, crawler, identity, {columns} FROM {table} WHERE {condition}"
        );
        self.query(|connection| {
            query_rows(connection, &sql, [start], |row| {
                let identity = read_identity(row, 3)?;
                let counted = (row.get(1)?, row.get(2)?, identity, read_counts(row, 4)?);
                Ok((row.get(0)?, counted))
            })
        })
    }
}

/// The visits of peers, each with a day of its period. Of several hours of one day, the last one
/// has all visits.
fn peer_visits(peers: &[PeerPeriodCounts]) -> Vec<(Timestamp, VisitsRow)> {
    let mut latest: BTreeMap<(&str, Timestamp), &PeerPeriodCounts> = BTreeMap::new();
    for peer in peers {
        let day = PeriodLength::Day.start_of(peer.start);
        let known = latest.entry((&peer.instance, day)).or_insert(peer);
        if known.start < peer.start {
            *known = peer;
        }
    }
    let visits = latest.into_iter().flat_map(|((_, day), peer)| {
        peer.counted
            .visits
            .iter()
            .map(move |row| (day, row.clone()))
    });
    visits.collect()
}

#[cfg(test)]
mod tests {
    use super::{PeerPeriodCounts, PeriodCounts};
    use crate::record::{CountedAction, RequestCounts};
    use crate::state::history::peer_counts::MAX_PEER_ROWS;
    use crate::state::history::read::InMemoryHistory;
    use crate::state::history::{
        DailyCountKind, HOUR, PeriodLength, RequestHistoryBatch, RequestHistoryReader,
    };
    use crate::time::Timestamp;
    use crate::verdict::{IdentityStatus, Kind};
    use std::sync::Arc;

    const NOW: Timestamp = Timestamp(1_795_305_600);

    fn read_counts(requests: u64) -> RequestCounts {
        let mut counts = RequestCounts::default();
        counts.add(Kind::Violation, CountedAction::WouldBlock, requests);
        counts.set_older_until(Kind::Unproven, Timestamp(requests as i64));
        counts
    }

    /// A history with requests on sites, by crawlers, some hours ago.
    fn history(requests: &[(&str, &str, i64, u64)]) -> RequestHistoryReader {
        let memory = InMemoryHistory::new().expect("memory");
        for (site, crawler, hours, count) in requests {
            let mut batch = RequestHistoryBatch::default();
            batch.add_requests(
                Timestamp(NOW.0 - hours * HOUR),
                site,
                crawler,
                (*crawler != "none").then_some(IdentityStatus::Unverified),
                &read_counts(*count),
            );
            memory.add(&batch, NOW);
        }
        RequestHistoryReader::from_memory(Arc::new(memory))
    }

    fn peer_counts(history: &RequestHistoryReader, instance: &str, hours: i64) -> PeerPeriodCounts {
        let start = PeriodLength::Hour.start_of(Timestamp(NOW.0 - hours * HOUR));
        let counted = history
            .period_counts(PeriodLength::Hour, start)
            .expect("read");
        let written = serde_json::to_string(&counted).expect("written");
        assert_eq!(
            serde_json::from_str::<PeriodCounts>(&written).expect("read"),
            counted
        );
        PeerPeriodCounts {
            instance: instance.into(),
            start,
            counted,
        }
    }

    /// The requests of each hour.
    fn requests(history: &RequestHistoryReader, site: &str, crawler: &str) -> Vec<u64> {
        let series = history
            .counts_over_time(site, crawler, Timestamp(0), NOW, PeriodLength::Hour)
            .expect("read");
        series
            .iter()
            .map(|(_, counts)| counts.total().requests())
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
            .with_peers(
                PeriodLength::Hour,
                Timestamp(0),
                &[peer_counts(&other, "b", 0)],
            )
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
        let sites = sum
            .counts_by_site("", Timestamp(0), NOW, PeriodLength::Hour)
            .expect("read");
        assert_eq!(sites.len(), 2);
        assert_eq!(requests(&own, "", ""), [3, 2], "it is unchanged");
        let of_gptbot = sum.counts_by_site("gptbot", Timestamp(0), NOW, PeriodLength::Hour);
        let [(_, counts)] = &of_gptbot.expect("read")[..] else {
            panic!("one site");
        };
        let counts = counts.total();
        let latest = Some(Timestamp(5));
        assert_eq!(
            (counts.requests(), counts.older_until(Kind::Unproven)),
            (10, latest)
        );
    }

    #[test]
    fn counts_of_very_many_sites_are_only_in_the_sums() {
        let many: Vec<String> = (0..MAX_PEER_ROWS + 50)
            .map(|number| format!("site{number}"))
            .collect();
        let visits: Vec<(&str, &str, i64, u64)> = many
            .iter()
            .map(|site| (site.as_str(), "gptbot", 0, 2))
            .collect();
        let counts = peer_counts(&history(&visits), "b", 0);
        assert_eq!(counts.counted.rows.len(), MAX_PEER_ROWS + 1);
        let sum = history(&[])
            .with_peers(PeriodLength::Hour, Timestamp(0), &[counts])
            .expect("a sum");
        let all = 2 * many.len() as u64;
        assert_eq!(
            (requests(&sum, "", "gptbot"), requests(&sum, "", "")),
            (vec![all], vec![all])
        );
        assert_eq!(
            sum.counts_by_site("gptbot", Timestamp(0), NOW, PeriodLength::Hour)
                .expect("read")
                .len(),
            MAX_PEER_ROWS
        );
    }

    /// A history with visits from ChatGPT, each some hours ago.
    fn visited(visits: &[(&str, i64, u64)]) -> RequestHistoryReader {
        let memory = InMemoryHistory::new().expect("memory");
        for (site, hours, count) in visits {
            let mut batch = RequestHistoryBatch::default();
            let time = Timestamp(NOW.0 - hours * HOUR);
            batch.add_daily(DailyCountKind::Visits, time, [site, "chatgpt"], *count);
            memory.add(&batch, NOW);
        }
        RequestHistoryReader::from_memory(Arc::new(memory))
    }

    #[test]
    fn visits_of_instances_are_added_up_once() {
        let own = visited(&[("shop", 0, 1), ("shop", 24, 2)]);
        let other = visited(&[("shop", 0, 10), ("blog", 0, 20), ("shop", 24, 100)]);
        let today = PeriodLength::Day.start_of(NOW);
        let visits = |step: PeriodLength, peers: &[PeerPeriodCounts], site: Option<&str>| {
            let sum = own.with_peers(step, Timestamp(NOW.0 - 30 * HOUR), peers);
            let sum = sum.expect("a sum");
            let of = |from| sum.visits(from, NOW, site).expect("read")[0].visits;
            (of(Timestamp(0)), of(today))
        };
        let hours: Vec<PeerPeriodCounts> = (0..30)
            .map(|hours| peer_counts(&other, "b", hours))
            .collect();
        assert_eq!(visits(PeriodLength::Hour, &hours, None), (133, 31));
        assert_eq!(visits(PeriodLength::Hour, &hours, Some("shop")), (113, 11));
        let week = PeriodLength::Week.start_of(NOW);
        let week = PeerPeriodCounts {
            instance: "b".into(),
            start: week,
            counted: other.period_counts(PeriodLength::Week, week).expect("read"),
        };
        let days_in_week = visits(PeriodLength::Week, &[week], None).0;
        let is_monday = PeriodLength::Week.start_of(NOW) == today;
        assert_eq!(days_in_week, if is_monday { 33 } else { 133 });
    }

    #[test]
    fn visits_of_very_many_sites_are_only_in_the_sums() {
        let names: Vec<String> = (0..MAX_PEER_ROWS + 50)
            .map(|number| format!("site{number}"))
            .collect();
        let visits: Vec<(&str, i64, u64)> =
            names.iter().map(|site| (site.as_str(), 0, 2)).collect();
        let counts = peer_counts(&visited(&visits), "b", 0);
        assert_eq!(counts.counted.visits.len(), MAX_PEER_ROWS + 1);
        let sum = visited(&[])
            .with_peers(PeriodLength::Hour, Timestamp(0), &[counts])
            .expect("a sum");
        let all = sum.visits(Timestamp(0), NOW, None).expect("read");
        assert_eq!(all[0].visits, 2 * names.len() as u64);
    }
}
