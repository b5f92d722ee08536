//! Queries of the samples in the state database. A sample is one stored request that breaks the
//! rules. [`SampleFilter`] selects samples, [`SampleGroup`] summarizes the samples of one rule, and
//! [`ViolatorSummary`] says when and how a crawler broke the rules.

use super::PeriodLength;
use super::read::{RequestHistoryError, RequestHistoryReader};
use super::tables::{IS_OFFENCE, read_sample, sample_columns};
use crate::printable::join;
use crate::record::{RecordField, RecordRow};
use crate::time::Timestamp;
use crate::verdict::{IdentityStatus, Kind};
use rusqlite::params_from_iter;
use rusqlite::types::Value;

/// Selects samples. `None` and no kinds select all.
#[derive(Default)]
pub struct SampleFilter<'a> {
    /// The site.
    pub site: Option<&'a str>,
    /// The crawler, by its id or name.
    pub crawler: Option<&'a str>,
    /// The kinds of requests.
    pub kinds: &'a [Kind],
    /// The rule, as the policy or robots.txt writes it.
    pub rule: Option<&'a str>,
    /// The identity.
    pub identity: Option<IdentityStatus>,
}

/// The samples of one site, crawler, identity, kind and rule.
#[derive(serde::Serialize)]
pub struct SampleGroup {
    /// The site.
    pub site: String,
    /// The crawler, by its id or name.
    pub crawler: String,
    /// The identity.
    pub identity: IdentityStatus,
    /// The kind of the requests.
    pub kind: Kind,
    /// The rule, as the policy or robots.txt writes it.
    pub rule: String,
    /// Where the rule is written: file, line and column.
    pub source: String,
    /// The time of the first sample.
    pub first: Timestamp,
    /// The time of the last sample.
    pub last: Timestamp,
    /// Samples that are kept; there may have been more requests.
    pub samples: u64,
}

/// When a crawler, or clients that pretend to be it, broke the rules.
pub struct ViolatorSummary {
    /// The label of the crawler.
    pub crawler: String,
    /// Whether the claim is proven.
    pub identity: IdentityStatus,
    /// When it broke a rule first.
    pub first: Timestamp,
    /// When it broke a rule last.
    pub last: Timestamp,
    /// The last sample.
    pub latest: RecordRow,
    /// The sites where it did.
    pub sites: Vec<String>,
}

/// The queries fail with a [`RequestHistoryError`].
impl RequestHistoryReader {
    /// The groups of samples that match the filter, since the beginning of the day that `from` is
    /// in: the group with the latest sample first, at most `limit` groups.
    pub fn sample_groups(
        &self,
        filter: &SampleFilter<'_>,
        from: Timestamp,
        limit: usize,
    ) -> Result<Vec<SampleGroup>, RequestHistoryError> {
        let (conditions, values) = filter.sql_conditions(from, limit);
        let sql = format!(
            "SELECT site, crawler, kind, rule, MAX(rule_source), MIN(time), MAX(time) AS last, COUNT(*), identity FROM \
             history_samples WHERE {conditions} GROUP BY site, crawler, kind, rule, identity ORDER BY last DESC LIMIT ?2"
        );
        self.query_rows(&sql, params_from_iter(values), |row| {
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
    ) -> Result<Vec<RecordRow>, RequestHistoryError> {
        let (conditions, values) = filter.sql_conditions(from, limit);
        let sql = format!(
            "SELECT {} FROM history_samples WHERE {conditions} ORDER BY time DESC, rowid DESC LIMIT ?2",
            sample_columns("")
        );
        self.query_rows(&sql, params_from_iter(values), read_sample)
    }

    /// The crawlers that broke the rules from `from` to `to`, by identity: those with a sample of
    /// the kinds `violation`, `too_fast`, `trapped` or `impostor`. An empty `site` stands for all
    /// sites. Sorted by crawler.
    pub fn offences(
        &self,
        site: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Result<Vec<ViolatorSummary>, RequestHistoryError> {
        let columns = sample_columns("latest.");
        let of_pair = format!(
            "FROM history_samples WHERE {IS_OFFENCE} AND crawler = pair.crawler AND identity = pair.identity AND time BETWEEN ?1 \
             AND ?2 AND (?3 = '' OR site = ?3)"
        );
        // The index has few crawlers and many samples: it is searched for each crawler, not read.
        let sql = format!(
            "WITH RECURSIVE known(crawler) AS (SELECT MIN(crawler) FROM history_samples WHERE {IS_OFFENCE} UNION ALL SELECT \
             (SELECT MIN(crawler) FROM history_samples WHERE {IS_OFFENCE} AND crawler > known.crawler) FROM known WHERE \
             crawler IS NOT NULL), pair(crawler, identity) AS (SELECT crawler, column1 FROM known, (VALUES ('verified'), \
             ('unverified'), ('impostor'))) SELECT {columns}, (SELECT MIN(time) {of_pair}) AS first, \
             (SELECT json_group_array(DISTINCT site) {of_pair}) AS sites FROM pair CROSS JOIN \
             history_samples AS latest ON latest.rowid = (SELECT rowid {of_pair} ORDER BY time DESC, rowid DESC LIMIT 1) \
             ORDER BY latest.crawler, latest.identity"
        );
        self.query_rows(&sql, (from, to, site), |row| {
            let latest = read_sample(row)?;
            Ok(ViolatorSummary {
                crawler: latest.text(RecordField::Crawler).into_owned(),
                identity: latest
                    .text(RecordField::Identity)
                    .parse()
                    .unwrap_or_default(),
                first: row.get("first")?,
                last: latest.moment(),
                sites: serde_json::from_str(&row.get::<_, String>("sites")?).unwrap_or_default(),
                latest,
            })
        })
    }
}

impl SampleFilter<'_> {
    /// The SQL conditions of the filter, and the parameters of the query: `?1` is the beginning of
    /// the day of `from`, `?2` the limit of rows, and the values of the filter follow.
    fn sql_conditions(&self, from: Timestamp, limit: usize) -> (String, Vec<Value>) {
        let mut conditions = "time >= ?1".to_owned();
        let mut values = vec![
            Value::Integer(PeriodLength::Day.start_of(from).0),
            Value::Integer(limit as i64),
        ];
        let wanted = [
            ("site", self.site),
            ("crawler", self.crawler),
            ("rule", self.rule),
            ("identity", self.identity.map(IdentityStatus::name)),
        ];
        for (column, wanted) in wanted {
            if let Some(wanted) = wanted {
                values.push(Value::Text(wanted.to_owned()));
                conditions.push_str(&format!(" AND {column} = ?{}", values.len()));
            }
        }
        if !self.kinds.is_empty() {
            let names = self.kinds.iter().map(|kind| format!("'{}'", kind.name()));
            conditions.push_str(&format!(" AND kind IN ({})", join(names, ", ")));
        }
        (conditions, values)
    }
}

#[cfg(test)]
mod tests {
    use super::{IdentityStatus, Kind, RecordField, Timestamp};
    use crate::record::RecordRow;
    use crate::state::history::read::InMemoryHistory;
    use crate::state::history::{RequestHistoryBatch, RequestHistoryReader};
    use std::sync::Arc;

    const NOW: i64 = 1_795_305_600;

    /// A sample `ago` seconds before now, with that number as its target.
    fn sample(site: &str, crawler: &str, kind: Kind, ago: i64) -> RecordRow {
        let identity = if kind == Kind::Impostor {
            IdentityStatus::Impostor
        } else {
            IdentityStatus::Verified
        };
        let fields = [
            (RecordField::Site, site),
            (RecordField::Crawler, crawler),
            (RecordField::Kind, kind.name()),
            (RecordField::Identity, identity.name()),
            (RecordField::Target, &ago.to_string()),
        ];
        RecordRow::from_texts(Timestamp(NOW - ago), &fields)
    }

    fn history(samples: impl IntoIterator<Item = RecordRow>) -> RequestHistoryReader {
        let mut batch = RequestHistoryBatch::default();
        samples
            .into_iter()
            .for_each(|sample| batch.add_sample(sample));
        let memory = InMemoryHistory::new().expect("memory");
        memory.add(&batch, Timestamp(NOW));
        RequestHistoryReader::from_memory(Arc::new(memory))
    }

    /// Crawler, identity, and how long ago the first, the last and the latest sample were, of the
    /// samples from `since` to `until` seconds ago.
    fn offences(history: &RequestHistoryReader, site: &str, since: i64, until: i64) -> Vec<String> {
        let found = history.offences(site, Timestamp(NOW - since), Timestamp(NOW - until));
        let texts = found.expect("read").into_iter().map(|offence| {
            format!(
                "{} {} {} {} {}",
                offence.crawler,
                offence.identity.name(),
                NOW - offence.first.0,
                NOW - offence.last.0,
                offence.latest.text(RecordField::Target)
            )
        });
        texts.collect()
    }

    #[test]
    fn offences_are_those_of_a_period_by_crawler_and_identity() {
        let history = history([
            sample("shop", "gptbot", Kind::Violation, 90),
            sample("shop", "gptbot", Kind::TooFast, 60),
            sample("blog", "gptbot", Kind::Trapped, 30),
            sample("shop", "gptbot", Kind::Impostor, 20),
            sample("shop", "gptbot", Kind::Unproven, 10),
            sample("shop", "bingbot", Kind::Ambiguous, 5),
            sample("shop", "ccbot", Kind::Trapped, 70),
        ]);
        let all = [
            "ccbot verified 70 70 70",
            "gptbot impostor 20 20 20",
            "gptbot verified 90 30 30",
        ];
        assert_eq!(offences(&history, "", 100, 0), all);
        let of_shop = ["gptbot impostor 20 20 20", "gptbot verified 60 60 60"];
        assert_eq!(offences(&history, "shop", 60, 0), of_shop);
        assert_eq!(offences(&history, "", 30, 0)[1], "gptbot verified 30 30 30");
        assert!(offences(&history, "blog", 29, 0).is_empty());
        let until_40 = ["ccbot verified 70 70 70", "gptbot verified 90 60 60"];
        assert_eq!(offences(&history, "", 100, 40), until_40);
    }
}
