//! The first page: who obeys, who does not, since when, and what it would mean to enforce. [`Overview`] is its content,
//! read from the history alone; [`report_page`] shows it in one file that needs no server.

use super::charts::{Bar, bars, trend};
use super::format::{minute, percent, thousands};
use super::layout::{Layout, crawler_link, samples_link, site_link};
use super::{Dashboard, PageError, STYLE};
use crate::admin::query::{Mistake, Query, QueryError};
use crate::admin::status::Problem;
use crate::crawlers::Registry;
use crate::state::history::{Counts, DAY, HistoryError, HistoryReader, Step};
use crate::time::Timestamp;
use askama::Template;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Crawlers that the page shows unless it is asked for all.
const SHOWN: usize = 40;
/// The label of unlisted bots, which `mode: enforce` alone does not refuse.
const UNLISTED: &str = "other";
/// Names of unlisted bots that are shown.
const NAMES: usize = 20;

/// The time that a page is about, up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The beginning of its first hour or day.
    pub from: Timestamp,
    /// Now.
    pub to: Timestamp,
    /// Hours, days or weeks.
    pub step: Step,
}

/// More days are shown as weeks: no screen has so many pixels.
const MOST_DAYS: i64 = 120;
/// Days that a page may be about.
const DAYS: [i64; 5] = [1, 7, 30, 90, 400];

impl Period {
    /// The last days; the last 24 hours where it is one, and whole weeks where they are many.
    pub fn days(days: i64, now: Timestamp) -> Period {
        let (step, before) = match days {
            ..=1 => (Step::Hour, 23 * Step::Hour.seconds()),
            2..=MOST_DAYS => (Step::Day, (days - 1) * DAY),
            _ => (Step::Week, (days - 1) * DAY),
        };
        Period { from: step.begin(Timestamp(now.0 - before)), to: now, step }
    }

    /// That which `days` of a query asks for.
    pub(super) fn of(query: &Query<'_>, now: Timestamp) -> Result<Period, QueryError> {
        let Some(given) = query.get("days") else { return Ok(Period::days(30, now)) };
        match given.parse().ok().filter(|days| DAYS.contains(days)) {
            Some(days) => Ok(Period::days(days, now)),
            None => {
                let (value, expected) = (given.to_owned(), DAYS.map(|days| days.to_string()).join(", "));
                Err(Mistake::UnknownValue { name: "days", value, expected }.into())
            }
        }
    }

    /// How many hours, days or weeks it has.
    fn len(&self) -> usize {
        usize::try_from((self.to.0 - self.from.0) / self.step.seconds() + 1).unwrap_or(1)
    }

    fn place(&self, start: Timestamp) -> Option<usize> {
        usize::try_from((start.0 - self.from.0) / self.step.seconds()).ok().filter(|place| *place < self.len())
    }

    /// An hour, day or week of it, for people.
    fn name(&self, start: Timestamp) -> String {
        match self.step {
            Step::Hour => minute(start),
            Step::Day => start.day(),
            Step::Week => format!("week of {}", start.day()),
        }
    }

    /// The days that may be chosen, with links of a page.
    pub(super) fn choices(&self, page: &str) -> Vec<Choice> {
        let chosen = DAYS.into_iter().find(|days| Period::days(*days, self.to) == *self);
        let separator = if page.contains('?') { '&' } else { '?' };
        let choice = |days: i64| Choice {
            href: format!("{page}{separator}days={days}"),
            name: if days == 1 { "24 hours".to_owned() } else { format!("{days} days") },
            is_current: Some(days) == chosen,
        };
        DAYS.map(choice).into()
    }

    /// Requests of each bar, with those that have none.
    pub(super) fn bars(&self, series: &[(Timestamp, Counts)]) -> Vec<Bar> {
        let mut bars: Vec<Bar> = (0..self.len())
            .map(|place| {
                let start = Timestamp(self.from.0 + i64::try_from(place).unwrap_or(0) * self.step.seconds());
                Bar { period: self.name(start), ..Bar::default() }
            })
            .collect();
        for (start, counts) in series {
            if let Some(bar) = self.place(*start).and_then(|place| bars.get_mut(place)) {
                bar.kept += counts.kept();
                bar.unproven += counts.get("unproven");
                bar.broke += counts.broke();
            }
        }
        bars
    }
}

/// A period that may be chosen.
pub struct Choice {
    pub href: String,
    pub name: String,
    pub is_current: bool,
}

/// What happened on all sites.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// Its beginning.
    #[serde(serialize_with = "crate::time::rfc3339")]
    pub from: Timestamp,
    /// Its end.
    #[serde(serialize_with = "crate::time::rfc3339")]
    pub to: Timestamp,
    /// Requests of all crawlers.
    pub totals: Counts,
    /// Requests of unlisted bots that would be refused if `purposes: { other: enforce }` were written, too.
    pub unlisted_would_refuse: u64,
    /// Requests of people.
    pub people: u64,
    /// Requests of crawlers for hosts without a policy, and requests that were refused before they were judged.
    pub unclaimed: u64,
    /// By hour, day or week.
    pub periods: Vec<Bar>,
    /// By crawler: those that broke most rules first.
    pub crawlers: Vec<CrawlerRow>,
    /// By site.
    pub sites: Vec<SiteRow>,
    /// What bots that no list knows call themselves.
    pub unlisted: Vec<(String, u64)>,
}

/// What a crawler did.
#[derive(Clone, Debug, Serialize)]
pub struct CrawlerRow {
    /// The registry's id, the policy's token, `other` or `tool`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub purpose: &'static str,
    /// What it did.
    pub counts: Counts,
    /// Requests that kept to the rules, of a hundred of which it is known.
    pub compliance: Option<f64>,
    /// When it first and last broke a rule.
    pub broke: Option<(String, String)>,
    /// Requests of which it is known whether they broke a rule, and those that did, by hour, day or week.
    pub trend: Vec<(u64, u64)>,
}

/// What crawlers did on a site.
#[derive(Clone, Debug, Serialize)]
pub struct SiteRow {
    /// Its name.
    pub site: String,
    /// What crawlers did.
    pub counts: Counts,
    /// As of all sites.
    pub unlisted_would_refuse: u64,
}

impl Overview {
    /// Reads it.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn read(history: &HistoryReader, period: Period, registry: &Registry) -> Result<Overview, HistoryError> {
        let Period { from, to, step } = period;
        let mut seen: HashMap<String, Trend> = HashMap::new();
        let (mut series, mut totals, mut people) = (Vec::new(), Counts::default(), 0);
        history.each("", from, step, |start, crawler, counts| match crawler {
            "" => {
                totals.add_all(counts);
                series.push((start, *counts));
            }
            "none" => people += counts.requests(),
            crawler => match seen.get_mut(crawler) {
                Some(trend) => trend.add(&period, start, counts),
                None => {
                    let mut trend = Trend::new(&period);
                    trend.add(&period, start, counts);
                    seen.insert(crawler.to_owned(), trend);
                }
            },
        })?;
        let mut crawlers: Vec<CrawlerRow> =
            seen.into_iter().map(|(id, trend)| trend.row(id, &period, registry)).collect();
        crawlers.sort_by(|one, other| {
            let weight = |row: &CrawlerRow| (row.counts.broke(), row.counts.get("would_refuse"), row.counts.requests());
            weight(other).cmp(&weight(one)).then_with(|| one.id.cmp(&other.id))
        });
        let (unclaimed, mut sites): (Vec<_>, Vec<_>) =
            history.sites("", from, step)?.into_iter().partition(|(site, _)| site == crate::telemetry::UNCLAIMED);
        sites.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.broke()));
        let of_unlisted: HashMap<String, Counts> = history.sites(UNLISTED, from, step)?.into_iter().collect();
        let unlisted_on = |site: &str| of_unlisted.get(site).map_or(0, |counts| counts.get("would_refuse"));
        let site_row =
            |(site, counts): (String, Counts)| SiteRow { unlisted_would_refuse: unlisted_on(&site), site, counts };
        Ok(Overview {
            from,
            to,
            totals,
            people,
            unclaimed: unclaimed.iter().map(|(_, counts)| counts.requests()).sum(),
            periods: period.bars(&series),
            crawlers,
            unlisted_would_refuse: of_unlisted.values().map(|counts| counts.get("would_refuse")).sum(),
            sites: sites.into_iter().map(site_row).collect(),
            unlisted: history.unlisted(from, NAMES)?,
        })
    }

    /// Requests that `mode: enforce` alone would refuse.
    pub fn would_refuse(&self) -> u64 {
        self.totals.get("would_refuse").saturating_sub(self.unlisted_would_refuse)
    }
}

/// What people call a crawler.
pub(super) fn name(id: &str, registry: &Registry) -> String {
    match (id, registry.crawlers().iter().find(|crawler| crawler.id == id)) {
        (_, Some(crawler)) => crawler.name.clone(),
        ("other", None) => "unlisted bots".to_owned(),
        ("tool", None) => "unlisted programs".to_owned(),
        ("overflow", None) => "crawlers beyond the bound".to_owned(),
        (id, None) => id.to_owned(),
    }
}

/// A crawler over time.
struct Trend {
    counts: Counts,
    shares: Vec<(u64, u64)>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Trend {
    fn new(period: &Period) -> Trend {
        Trend { counts: Counts::default(), shares: vec![(0, 0); period.len()], first: None, last: None }
    }

    fn add(&mut self, period: &Period, start: Timestamp, counts: &Counts) {
        self.counts.add_all(counts);
        let broke = counts.broke();
        if let Some(share) = period.place(start).and_then(|place| self.shares.get_mut(place)) {
            *share = (share.0 + counts.kept() + broke, share.1 + broke);
        }
        if broke > 0 {
            self.first = self.first.or(Some(start));
            self.last = Some(start);
        }
    }

    fn row(self, id: String, period: &Period, registry: &Registry) -> CrawlerRow {
        let known = registry.crawlers().iter().find(|crawler| crawler.id == id);
        CrawlerRow {
            name: name(&id, registry),
            purpose: known.map_or("", |crawler| crawler.purpose.name()),
            compliance: self.counts.compliance(),
            broke: self.first.zip(self.last).map(|(first, last)| (period.name(first), period.name(last))),
            trend: self.shares,
            counts: self.counts,
            id,
        }
    }
}

/// An overview as the templates show it.
pub struct View {
    pub period: String,
    pub numbers: Vec<(String, &'static str)>,
    pub chart: String,
    pub bars: Vec<Bar>,
    pub crawlers: Vec<Row>,
    pub left_out: usize,
    pub sites: Vec<Enforcing>,
    pub unlisted: Vec<(String, String)>,
    /// Whether there are other pages to lead to.
    pub has_links: bool,
}

/// A crawler in the table.
pub struct Row {
    pub href: String,
    pub samples: String,
    pub name: String,
    pub purpose: &'static str,
    pub requests: String,
    pub robots_txt: String,
    pub broke: u64,
    pub hits: String,
    pub unproven: String,
    pub would_refuse: String,
    pub refused: String,
    pub compliance: String,
    pub when: String,
    pub trend: String,
}

/// What enforcing would do on a site.
pub struct Enforcing {
    pub href: String,
    pub site: String,
    pub mode: String,
    pub requests: String,
    pub broke: u64,
    pub hits: String,
    pub refused: String,
    pub would: String,
    pub unlisted: String,
    pub share: String,
}

impl View {
    /// With the mode of each site, where it is known.
    fn new(overview: &Overview, modes: &BTreeMap<String, String>, shown: usize, has_links: bool) -> View {
        let totals = &overview.totals;
        let breaking = overview.crawlers.iter().filter(|row| row.counts.broke() > 0).count();
        let compliance = totals.compliance().map_or_else(|| "-".to_owned(), percent);
        let number = |number: u64, text| (thousands(number), text);
        View {
            period: format!("{} to {} UTC", minute(overview.from), minute(overview.to)),
            numbers: vec![
                number(totals.requests(), "requests of crawlers"),
                (compliance, "kept to the rules"),
                number(totals.broke(), "broke the rules"),
                number(breaking as u64, "crawlers broke rules"),
                number(totals.get("refused"), "were refused"),
                number(overview.would_refuse(), "would be refused if enforced"),
                number(overview.people, "requests of people"),
            ],
            chart: bars(&overview.periods),
            bars: overview.periods.iter().filter(|bar| bar.all() > 0).cloned().collect(),
            crawlers: overview.crawlers.iter().take(shown).map(Row::new).collect(),
            left_out: overview.crawlers.len().saturating_sub(shown),
            sites: overview.sites.iter().map(|row| Enforcing::new(row, modes)).collect(),
            unlisted: overview.unlisted.iter().map(|(name, count)| (name.clone(), thousands(*count))).collect(),
            has_links,
        }
    }
}

impl Row {
    fn new(row: &CrawlerRow) -> Row {
        let count = |column| thousands(row.counts.get(column));
        Row {
            href: crawler_link(&row.id),
            samples: samples_link("", &row.id, "", ""),
            name: row.name.clone(),
            purpose: row.purpose,
            requests: thousands(row.counts.requests()),
            robots_txt: count("robots_txt"),
            broke: row.counts.broke(),
            hits: thousands(row.counts.broke()),
            unproven: count("unproven"),
            would_refuse: count("would_refuse"),
            refused: count("refused"),
            compliance: row.compliance.map_or_else(|| "-".to_owned(), percent),
            when: match &row.broke {
                None => String::new(),
                Some((first, last)) if first == last => first.clone(),
                Some((first, last)) => format!("{first} to {last}"),
            },
            trend: trend(&row.trend),
        }
    }
}

impl Enforcing {
    fn new(row: &SiteRow, modes: &BTreeMap<String, String>) -> Enforcing {
        let would_refuse = row.counts.get("would_refuse").saturating_sub(row.unlisted_would_refuse);
        let judged = row.counts.judged();
        let share = if judged == 0 { 0.0 } else { 100.0 * would_refuse as f64 / judged as f64 };
        Enforcing {
            href: site_link(&row.site),
            site: row.site.clone(),
            mode: modes.get(&row.site).cloned().unwrap_or_else(|| "removed".to_owned()),
            requests: thousands(row.counts.requests()),
            broke: row.counts.broke(),
            hits: thousands(row.counts.broke()),
            refused: thousands(row.counts.get("refused")),
            would: thousands(would_refuse),
            unlisted: thousands(row.unlisted_would_refuse),
            share: percent(share),
        }
    }
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    layout: Layout,
    view: View,
    choices: Vec<Choice>,
    problems: Vec<Problem>,
    /// Sites that the history has nothing of yet.
    quiet: Vec<(String, String)>,
    all: String,
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    style: &'a str,
    view: View,
}

/// The overview as one page that needs nothing else.
///
/// # Errors
/// None that depends on what is shown.
pub fn report_page(overview: &Overview) -> Result<String, askama::Error> {
    let modes = overview.sites.iter().map(|row| (row.site.clone(), String::new())).collect();
    ReportPage { style: STYLE, view: View::new(overview, &modes, usize::MAX, false) }.render()
}

impl Dashboard {
    pub(super) fn overview(&self, query: &str) -> Result<String, PageError> {
        let query = Query::read(query, &["days", "all"])?;
        let period = Period::of(&query, self.now())?;
        let overview = Overview::read(&self.history, period, Registry::builtin())?;
        let status = self.operations.status();
        let modes: BTreeMap<String, String> =
            status.policies.sites.iter().map(|site| (site.site.clone(), site.mode.clone())).collect();
        let is_quiet = |site: &&String| !overview.sites.iter().any(|row| row.site == **site);
        let quiet = modes.keys().filter(is_quiet).map(|site| (site_link(site), site.clone())).collect();
        let shown = if query.get("all").is_some() { usize::MAX } else { SHOWN };
        let days = query.get("days").unwrap_or("30");
        let page = OverviewPage {
            layout: Layout::new("Overview", "/", status.problems.len()),
            view: View::new(&overview, &modes, shown, true),
            choices: period.choices("/"),
            problems: status.problems,
            quiet,
            all: format!("/?days={days}&all=yes"),
        };
        Ok(page.render()?)
    }
}
