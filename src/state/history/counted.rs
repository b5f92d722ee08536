//! What this instance counted, for the other instances in front of its sites
//! ([`HistoryReader::counted`]), and the sum of what all of them counted
//! ([`HistoryReader::with_others`]).

use super::Step;
use super::read::{HistoryError, HistoryReader, Memory, counts, identity};
use super::tables::{add, add_with_sums, adding, columns, rows, table};
use super::told::{Counted, CountedRow, Told};
use crate::time::Timestamp;

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
        Ok(HistoryReader::of_sum(sum, self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Counted, Told};
    use crate::record::{CountedAction, Counts};
    use crate::state::history::read::Memory;
    use crate::state::history::told::MOST_ROWS;
    use crate::state::history::{HOUR, HistoryBatch, HistoryReader, Step};
    use crate::time::Timestamp;
    use crate::verdict::{Kind, KnownIdentity};
    use std::sync::Arc;

    const NOW: Timestamp = Timestamp(1_795_305_600);

    fn counts(requests: u64) -> Counts {
        let mut counts = Counts::default();
        counts.add(Kind::Violation, CountedAction::WouldBlock, requests);
        counts.set_older_until(Kind::Unproven, Timestamp(requests as i64));
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
        let of_gptbot = sum.sites("gptbot", Timestamp(0), Step::Hour);
        let [(_, counts)] = &of_gptbot.expect("read")[..] else {
            panic!("one site");
        };
        let counts = counts.all();
        let latest = Some(Timestamp(5));
        assert_eq!(
            (counts.requests(), counts.older_until(Kind::Unproven)),
            (10, latest)
        );
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
