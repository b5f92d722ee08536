//! [`Report::from_history`] makes the report about crawlers from the state database of a running
//! crawlgate. The database has the counts of requests by hour, day or week, and samples of requests
//! that broke the rules.

use super::row::UNKNOWN_BOTS;
use super::{
    ClientIdentity, CrawlerRow, Report, ReportPeriod, ReportSection, SiteRow, TopEntry,
    TrafficReport, ViolationExample,
};
use crate::record::{CountsByIdentity, NO_CRAWLER, RecordField, RecordRow};
use crate::state::history::{
    PeriodLength, RequestHistoryError, RequestHistoryReader, ViolatorSummary,
};
use crate::telemetry::UNCLAIMED;
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, IdentityStatus};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// The names of unknown bots in a report.
const MAX_BOT_NAMES: usize = 20;

impl Report {
    /// The report of a period, about one site and one crawler, or about all where the name is empty.
    /// The report of one crawler has no visitors and no traffic. It begins with the first hour, day or
    /// week that has requests.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn from_history(
        history: &RequestHistoryReader,
        period: ReportPeriod,
        site: &str,
        only_crawler: &str,
    ) -> Result<Report, RequestHistoryError> {
        let mut counts: HashMap<String, CountsByIdentity> = HashMap::new();
        let mut periods = period.bars(&[]);
        let mut visitors = 0;
        let mut visitors_bytes = 0;
        let ReportPeriod { from, to, step } = period;
        let mut first = None;
        history.for_each_row(site, from, to, step, |start, crawler, identity, new| {
            first.get_or_insert(start);
            match crawler {
                _ if !only_crawler.is_empty() && crawler != only_crawler => return,
                "" => return,
                NO_CRAWLER => {
                    visitors += new.requests();
                    visitors_bytes += new.bytes();
                    return;
                }
                _ => {}
            }
            let mut new = *new;
            new.count_expired_stale_copies_as_allowed(to);
            if let Some(bar) = period
                .step_index(start)
                .and_then(|place| periods.get_mut(place))
            {
                bar.add(identity.into(), &new);
            }
            let known = counts.entry(crawler.to_owned()).or_default();
            known.add(identity, &new);
        })?;
        let crawlers = crawler_rows(&counts, to);
        let mut report = Report {
            from: first.or(Some(from)),
            to: Some(to),
            site: site.to_owned(),
            crawlers,
            visitors,
            periods,
            ..Report::default()
        };
        if site.is_empty() {
            report.add_sites(history, &period, only_crawler)?;
            report.add_suspected(history, &period)?;
        }
        // The history has no names by site. If unknown bots requested no other site, they are its own.
        let has_names = site.is_empty() || {
            let sites = history.counts_by_site(UNKNOWN_BOTS, from, to, step)?;
            let mut others = sites.iter().filter(|(name, _)| name != site);
            others.all(|(name, _)| name == UNCLAIMED)
        };
        if has_names && ["", UNKNOWN_BOTS].contains(&only_crawler) {
            report.unknown_bots = top_unknown_bots(history, &period)?;
        }
        report.add_offences(history.offences(site, from, to)?);
        let mut report = report.finish(to);
        if !only_crawler.is_empty() {
            return Ok(report);
        }
        let mut traffic = TrafficReport::new(&report, visitors_bytes);
        add_visits(&mut traffic, history, &period, site)?;
        report.traffic = Some(traffic);
        Ok(report)
    }

    /// Adds a row for each site, without tools, with the counts of `crawler` (empty: all). Sites with
    /// the most requests against the rules come first. `would_block` is without unknown bots.
    fn add_sites(
        &mut self,
        history: &RequestHistoryReader,
        period: &ReportPeriod,
        crawler: &str,
    ) -> Result<(), RequestHistoryError> {
        let sites = history.counts_by_site(crawler, period.from, period.to, period.step)?;
        let mut sites: HashMap<String, CountsByIdentity> = sites.into_iter().collect();
        let of_tools = self.rows_in(ReportSection::Tool).map(|row| row.id.as_str());
        for tool in of_tools.collect::<BTreeSet<&str>>() {
            for (site, counts) in
                history.counts_by_site(tool, period.from, period.to, period.step)?
            {
                if let Some(all) = sites.get_mut(&site) {
                    all.subtract(&counts);
                }
            }
        }
        // Unknown bots are blocked only if the policy says so.
        if ["", UNKNOWN_BOTS].contains(&crawler) {
            let unknown_bots =
                history.counts_by_site(UNKNOWN_BOTS, period.from, period.to, period.step)?;
            for (site, counts) in unknown_bots {
                if let Some(all) = sites.get_mut(&site) {
                    all.unverified.subtract_would_refuse(&counts.unverified);
                }
            }
        }
        for (site, mut counts) in sites {
            if site == UNCLAIMED {
                self.unclaimed += counts.without_impostors().requests();
                continue;
            }
            counts.count_expired_stale_copies_as_allowed(period.to);
            self.sites.push(SiteRow {
                site,
                mode: None,
                other_modes: Vec::new(),
                counts: counts.without_impostors(),
                pretended: counts.impostor.requests(),
            });
        }
        self.sites.sort_by_cached_key(|row| {
            (
                Reverse(row.counts.rule_breaking_requests()),
                row.site.clone(),
            )
        });
        Ok(())
    }

    /// Sets the suspected requests of rows that are not verified.
    fn add_suspected(
        &mut self,
        history: &RequestHistoryReader,
        period: &ReportPeriod,
    ) -> Result<(), RequestHistoryError> {
        for (id, requests) in
            history.crawlers_with_outcome(IdentityOutcome::Suspected, period.from, period.to)?
        {
            let mut rows = self.crawlers.iter_mut();
            let row =
                rows.find(|row| row.id == id && row.identity == Some(ClientIdentity::Unverified));
            if let Some(row) = row {
                row.suspected = requests.min(row.counts.requests());
            }
        }
        Ok(())
    }

    /// Sets the first and last violation of rows, and the latest one as the example.
    fn add_offences(&mut self, offences: Vec<ViolatorSummary>) {
        for offence in offences {
            let identity = ClientIdentity::from(offence.identity);
            let row = self.crawlers.iter_mut().find(|row| {
                row.id == offence.crawler && row.identity.is_none_or(|known| known == identity)
            });
            let Some(row) = row else { continue };
            row.first = Some(offence.first);
            row.last = Some(offence.last);
            row.is_blocked = Some(offence.latest.text(RecordField::Would).is_empty());
            row.example = Some(example_from_sample(&offence.latest));
            row.sites = offence.sites;
        }
    }
}

/// Adds the visits of the days of a period, and the pages that crawlers read on these days.
fn add_visits(
    traffic: &mut TrafficReport,
    history: &RequestHistoryReader,
    period: &ReportPeriod,
    site: &str,
) -> Result<(), RequestHistoryError> {
    let step = match period.step {
        PeriodLength::Hour => PeriodLength::Day,
        step => step,
    };
    let from = step.start_of(period.from);
    let mut first = None;
    let mut pages: HashMap<String, u64> = HashMap::new();
    history.for_each_row(
        site,
        from,
        period.to,
        step,
        |start, crawler, identity, counts| {
            first.get_or_insert(start);
            if identity != IdentityStatus::Impostor {
                *pages.entry(crawler.to_owned()).or_default() += counts.pages_read();
            }
        },
    )?;
    let visits = history.visits(from, period.to, (!site.is_empty()).then_some(site))?;
    let pages = pages.iter();
    traffic.set_visits(
        visits,
        pages.map(|(crawler, pages)| (crawler.as_str(), *pages)),
    );
    traffic.visits_from = first.or(Some(from));
    Ok(())
}

/// A row for each crawler and identity with requests, in its section.
fn crawler_rows(counts: &HashMap<String, CountsByIdentity>, now: Timestamp) -> Vec<CrawlerRow> {
    let mut rows = Vec::new();
    for (id, by_identity) in counts {
        for (identity, counts) in by_identity.iter() {
            if counts.requests() > 0 {
                let mut row = CrawlerRow::new(id, identity.into(), *counts);
                row.assign_section(now);
                rows.push(row);
            }
        }
    }
    rows
}

/// The request of a sample and the rule that it broke.
fn example_from_sample(sample: &RecordRow) -> ViolationExample {
    let [method, host, target] = [RecordField::Method, RecordField::Host, RecordField::Target]
        .map(|field| sample.text(field));
    ViolationExample {
        time: Some(sample.moment()),
        site: sample.text(RecordField::Site).into_owned(),
        request: format!("{method} {host}{target}"),
        rule: sample.text(RecordField::Rule).into_owned(),
        place: sample.text(RecordField::RuleSource).into_owned(),
    }
}

/// The most frequent names that unknown bots give themselves.
fn top_unknown_bots(
    history: &RequestHistoryReader,
    period: &ReportPeriod,
) -> Result<Vec<TopEntry>, RequestHistoryError> {
    let names = history
        .unlisted_bots(period.from, period.to, MAX_BOT_NAMES)?
        .into_iter();
    Ok(names
        .map(|(name, count)| TopEntry {
            name,
            count,
            ..TopEntry::default()
        })
        .collect())
}
