//! [`Report::from_history`]: the report of what a running crawlgate counted.

use super::row::UNKNOWN_BOTS;
use super::{ClientIdentity, CrawlerRow, Example, Part, Period, Report, SiteRow, Top};
use crate::record::{ByIdentity, Field, NO_CRAWLER, Row};
use crate::state::history::{HistoryError, HistoryReader, Offence};
use crate::telemetry::UNCLAIMED;
use crate::time::Timestamp;
use crate::verdict::IdentityOutcome;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

/// Names of unknown bots that a report has.
const NAMES: usize = 20;

impl Report {
    /// The report of a period, about one site or (an empty `site`) all.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn from_history(
        history: &HistoryReader,
        period: Period,
        site: &str,
    ) -> Result<Report, HistoryError> {
        let mut counts: HashMap<String, ByIdentity> = HashMap::new();
        let mut periods = period.bars(&[]);
        let mut visitors = 0;
        let Period { from, to, step } = period;
        history.each(site, from, step, |start, crawler, identity, new| {
            match crawler {
                "" => return,
                NO_CRAWLER => {
                    visitors += new.requests();
                    return;
                }
                _ => {}
            }
            let mut new = *new;
            new.settle(to);
            if let Some(bar) = period.place(start).and_then(|place| periods.get_mut(place)) {
                bar.add(identity.into(), &new);
            }
            match counts.get_mut(crawler) {
                Some(known) => known.add(identity, &new),
                None => counts
                    .entry(crawler.to_owned())
                    .or_default()
                    .add(identity, &new),
            }
        })?;
        let crawlers = rows(&counts, to);
        let mut report = Report {
            from: Some(from),
            to: Some(to),
            site: site.to_owned(),
            crawlers,
            visitors,
            periods,
            ..Report::default()
        };
        if site.is_empty() {
            report.add_sites(history, &period)?;
            report.add_suspected(history, &period)?;
            // The names are not kept by site.
            report.unknown_bots = unknown_bots(history, &period)?;
        }
        report.add_offences(history.offences(site, from)?);
        Ok(report.finish(to))
    }

    /// Adds a row for each site, without tools, those with most requests against the rules first.
    /// What enforcement would block is without unknown bots.
    fn add_sites(&mut self, history: &HistoryReader, period: &Period) -> Result<(), HistoryError> {
        let mut sites: HashMap<String, ByIdentity> = HashMap::new();
        for (site, counts) in history.sites("", period.from, period.step)? {
            sites.insert(site, counts);
        }
        let of_tools = self.part(Part::Tool).map(|row| row.id.as_str());
        for tool in of_tools.collect::<BTreeSet<&str>>() {
            for (site, counts) in history.sites(tool, period.from, period.step)? {
                if let Some(all) = sites.get_mut(&site) {
                    all.subtract(&counts);
                }
            }
        }
        // Enforcement alone blocks no unknown bot.
        for (site, counts) in history.sites(UNKNOWN_BOTS, period.from, period.step)? {
            if let Some(all) = sites.get_mut(&site) {
                let would_block = counts.unverified.would_refuse();
                all.unverified.subtract_would_refuse(would_block);
            }
        }
        for (site, mut counts) in sites {
            if site == UNCLAIMED {
                self.unclaimed += counts.all().requests();
                continue;
            }
            counts.settle(period.to);
            self.sites.push(SiteRow {
                site,
                mode: None,
                counts: counts.own(),
                pretended: counts.impostor.requests(),
            });
        }
        self.sites
            .sort_by_cached_key(|row| (Reverse(row.counts.broke()), row.site.clone()));
        Ok(())
    }

    /// Adds to rows that are not verified how many of their requests are suspected to come from
    /// another client.
    fn add_suspected(
        &mut self,
        history: &HistoryReader,
        period: &Period,
    ) -> Result<(), HistoryError> {
        for (id, requests) in history.with_outcome(IdentityOutcome::Suspected, period.from)? {
            let mut rows = self.crawlers.iter_mut();
            let row =
                rows.find(|row| row.id == id && row.identity == Some(ClientIdentity::Unverified));
            if let Some(row) = row {
                row.suspected = requests.min(row.counts.requests());
            }
        }
        Ok(())
    }

    /// Adds to rows when they first and last broke a rule, and the latest request that did.
    fn add_offences(&mut self, offences: Vec<Offence>) {
        for offence in offences {
            let identity = ClientIdentity::from(offence.identity);
            let row = self.crawlers.iter_mut().find(|row| {
                row.id == offence.crawler && row.identity.is_none_or(|known| known == identity)
            });
            let Some(row) = row else { continue };
            row.first = Some(offence.first);
            row.last = Some(offence.last);
            row.is_blocked = Some(offence.latest.text(Field::Would).is_empty());
            row.example = Some(example(&offence.latest));
        }
    }
}

/// A row for each crawler and identity with requests, in its part.
fn rows(counts: &HashMap<String, ByIdentity>, now: Timestamp) -> Vec<CrawlerRow> {
    let mut rows = Vec::new();
    for (id, by_identity) in counts {
        for (identity, counts) in by_identity.iter() {
            if counts.requests() > 0 {
                let mut row = CrawlerRow::new(id, identity.into(), *counts);
                row.classify(now);
                rows.push(row);
            }
        }
    }
    rows
}

/// The request of a sample, and the rule that it broke.
fn example(sample: &Row) -> Example {
    let [method, host, target] =
        [Field::Method, Field::Host, Field::Target].map(|field| sample.text(field));
    Example {
        time: Some(sample.moment()),
        site: sample.text(Field::Site).into_owned(),
        request: format!("{method} {host}{target}"),
        rule: sample.text(Field::Rule).into_owned(),
        place: sample.text(Field::RuleSource).into_owned(),
    }
}

/// The names that unknown bots give themselves.
fn unknown_bots(history: &HistoryReader, period: &Period) -> Result<Vec<Top>, HistoryError> {
    let names = history.unlisted(period.from, NAMES)?.into_iter();
    Ok(names
        .map(|(name, count)| Top {
            name,
            count,
            error: 0,
        })
        .collect())
}
