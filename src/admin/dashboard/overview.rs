//! The first page: who obeys, who does not, since when, and what it would mean to enforce. [`Overview`] is its content,
//! read from the history alone; [`report_page`] shows it in one file that needs no server.

use super::charts::{Bar, bars};
use super::format::{minute, percent, thousands};
use super::layout::{Layout, site_link};
use super::period::{Choice, Period};
use super::rows::{CrawlerRow, Row, UNLISTED};
use super::summary::{TimeBefore, Told, sentences};
use super::{Dashboard, PageError, STYLE};
use crate::admin::query::Query;
use crate::admin::status::Problem;
use crate::crawlers::Registry;
use crate::state::history::{ByIdentity, Counts, HistoryError, HistoryReader};
use crate::telemetry::UNCLAIMED;
use crate::time::Timestamp;
use askama::Template;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Crawlers that the page shows unless it is asked for all.
const SHOWN: usize = 40;
/// Names of unlisted bots that are shown.
const NAMES: usize = 20;

/// What happened on all sites.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// Its beginning.
    #[serde(serialize_with = "crate::time::rfc3339")]
    pub from: Timestamp,
    /// Its end.
    #[serde(serialize_with = "crate::time::rfc3339")]
    pub to: Timestamp,
    /// What happened, in sentences for people.
    pub summary: Vec<String>,
    /// Requests of all crawlers, and of clients in their names. Those of `unlisted_would_refuse` do not count as
    /// `would_refuse`, here and in all rows.
    pub totals: Counts,
    /// The same by what is proven of the names.
    pub by_identity: ByIdentity,
    /// Requests of unlisted bots that would be refused if `purposes: { other: enforce }` were written, too.
    pub unlisted_would_refuse: u64,
    /// Requests of people.
    pub people: u64,
    /// Requests of crawlers for hosts without a policy, and requests that were refused before they were judged.
    pub unclaimed: u64,
    /// By hour, day or week.
    pub periods: Vec<Bar>,
    /// By crawler and identity: those that broke most rules first.
    pub crawlers: Vec<CrawlerRow>,
    /// By site.
    pub sites: Vec<SiteRow>,
    /// What bots that no list knows call themselves.
    pub unlisted: Vec<(String, u64)>,
}

/// What crawlers did on a site.
#[derive(Clone, Debug, Serialize)]
pub struct SiteRow {
    /// Its name.
    pub site: String,
    /// What crawlers did.
    pub counts: Counts,
    /// The same by what is proven of their names.
    pub by_identity: ByIdentity,
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
        let mut seen: HashMap<String, Trends> = HashMap::new();
        let (mut series, mut by_identity, mut people) = (Vec::new(), ByIdentity::default(), 0);
        history.each("", (from, Timestamp(i64::MAX)), step, |start, (crawler, identity), counts| match crawler {
            "" => {
                by_identity.add(identity, counts);
                let mut of_period = ByIdentity::default();
                of_period.add(identity, counts);
                series.push((start, of_period));
            }
            "none" => people += counts.requests(),
            crawler => match seen.get_mut(crawler) {
                Some(trends) => trends.add(&period, start, (identity, counts)),
                None => {
                    let mut trends = Trends::default();
                    trends.add(&period, start, (identity, counts));
                    seen.insert(crawler.to_owned(), trends);
                }
            },
        })?;
        let suspected: HashMap<String, u64> = history.with_outcome("suspected", from)?.into_iter().collect();
        let mut crawlers = crawler_rows(seen, &period, registry);
        for row in crawlers.iter_mut().filter(|row| row.identity == "unverified") {
            row.suspected = suspected.get(&row.id).map_or(0, |suspected| row.counts.requests().min(*suspected));
        }
        let of_unlisted: HashMap<String, ByIdentity> = history.sites(UNLISTED, from, step)?.into_iter().collect();
        let site_row = |(site, mut by_identity): (String, ByIdentity)| SiteRow {
            unlisted_would_refuse: of_unlisted
                .get(&site)
                .map_or(0, |unlisted| by_identity.take_out("would_refuse", unlisted)),
            counts: by_identity.all(),
            by_identity,
            site,
        };
        let unlisted_would_refuse =
            of_unlisted.values().map(|unlisted| by_identity.take_out("would_refuse", unlisted)).sum();
        let (unclaimed, mut sites): (Vec<_>, Vec<_>) =
            history.sites("", from, step)?.into_iter().map(site_row).partition(|row| row.site == UNCLAIMED);
        sites.sort_by_key(|row| std::cmp::Reverse(row.counts.broke()));
        let mut overview = Overview {
            from,
            to,
            summary: Vec::new(),
            totals: by_identity.all(),
            by_identity,
            people,
            unclaimed: unclaimed.iter().map(|row| row.counts.requests()).sum(),
            periods: period.bars(&series),
            crawlers,
            unlisted_would_refuse,
            sites,
            unlisted: history.unlisted(from, NAMES)?,
        };
        let told = Told { by_identity: &overview.by_identity, crawlers: &overview.crawlers };
        overview.summary = sentences(&told, TimeBefore::read(history, &period)?.as_ref());
        Ok(overview)
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

/// Rows of crawlers in the order of the worst that was done in their names, proven offenders first; the identities of one crawler stand together.
fn crawler_rows(seen: HashMap<String, Trends>, period: &Period, registry: &Registry) -> Vec<CrawlerRow> {
    let mut crawlers: Vec<Vec<CrawlerRow>> = seen
        .into_iter()
        .map(|(id, Trends([verified, unverified, impostor]))| {
            let trends = [("verified", verified), ("unverified", unverified), ("impostor", impostor)];
            let some = trends.into_iter().filter_map(|(identity, trend)| Some((identity, trend?)));
            some.map(|(identity, trend)| trend.row((&id, identity), period, registry)).collect()
        })
        .collect();
    let weight = |rows: &Vec<CrawlerRow>| {
        let sum = |of: fn(&Counts) -> u64| rows.iter().map(|row| of(&row.counts)).sum::<u64>();
        let proven: u64 = rows.iter().filter(|row| row.identity == "verified").map(|row| row.counts.broke()).sum();
        (proven, sum(Counts::broke), sum(|counts| counts.get("would_refuse")), sum(Counts::requests))
    };
    let id = |rows: &Vec<CrawlerRow>| rows.first().map(|row| row.id.clone());
    crawlers.sort_by(|one, other| weight(other).cmp(&weight(one)).then_with(|| id(one).cmp(&id(other))));
    crawlers.into_iter().flatten().collect()
}

/// What was done in a crawler's name over time: verified, unverified and by impostors.
#[derive(Default)]
struct Trends([Option<Trend>; 3]);

impl Trends {
    fn add(&mut self, period: &Period, start: Timestamp, (identity, counts): (&str, &Counts)) {
        let place = match identity {
            "verified" => 0,
            "impostor" => 2,
            _ => 1,
        };
        self.0[place].get_or_insert_with(|| Trend::new(period)).add(period, start, counts);
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
        let broke = counts.broke() + counts.get("impostor");
        if let Some(share) = period.place(start).and_then(|place| self.shares.get_mut(place)) {
            *share = (share.0 + counts.kept() + broke, share.1 + broke);
        }
        if broke > 0 {
            self.first = self.first.or(Some(start));
            self.last = Some(start);
        }
    }

    fn row(mut self, (id, identity): (&str, &'static str), period: &Period, registry: &Registry) -> CrawlerRow {
        let unlisted_would_refuse = if id == UNLISTED { self.counts.get("would_refuse") } else { 0 };
        self.counts.take_out("would_refuse", unlisted_would_refuse);
        let known = registry.crawlers().iter().find(|crawler| crawler.id == id);
        CrawlerRow {
            name: name(id, registry),
            identity,
            suspected: 0,
            unlisted_would_refuse,
            purpose: known.map_or("", |crawler| crawler.purpose.name()),
            compliance: self.counts.compliance(),
            broke: self.first.zip(self.last).map(|(first, last)| (period.name(first), period.name(last))),
            trend: self.shares,
            counts: self.counts,
            id: id.to_owned(),
        }
    }
}

/// An overview as the templates show it.
pub struct View {
    pub period: String,
    pub summary: String,
    pub numbers: Vec<(String, &'static str)>,
    pub chart: String,
    pub bars: Vec<Bar>,
    pub crawlers: Vec<Row>,
    pub left_out: usize,
    pub sites: Vec<Enforcing>,
    /// Requests for hosts without a policy, if there are any.
    pub unclaimed: String,
    pub unlisted: Vec<(String, String)>,
    /// Whether there are other pages to lead to.
    pub has_links: bool,
}

/// What enforcing would do on a site.
pub struct Enforcing {
    pub href: String,
    pub site: String,
    pub mode: String,
    pub requests: String,
    pub broke: u64,
    pub hits: String,
    pub unverified: String,
    pub impostor: String,
    pub refused: String,
    pub would: String,
    pub unlisted: String,
    pub share: String,
}

impl View {
    /// With the mode of each site, where it is known.
    fn new(overview: &Overview, modes: &BTreeMap<String, String>, shown: usize, has_links: bool) -> View {
        let (totals, by_identity) = (&overview.totals, &overview.by_identity);
        let compliance = totals.compliance().map_or_else(|| "-".to_owned(), percent);
        let number = |number: u64, text| (thousands(number), text);
        View {
            period: format!("{} to {} UTC", minute(overview.from), minute(overview.to)),
            summary: overview.summary.join(" "),
            numbers: vec![
                number(by_identity.own().requests(), "requests of crawlers"),
                (compliance, "kept to the rules"),
                number(by_identity.verified.broke(), "of verified crawlers broke the rules"),
                number(by_identity.unverified.broke(), "under names that nothing proves broke them"),
                number(by_identity.impostor.requests(), "came from impostors"),
                number(totals.get("refused"), "were refused"),
                number(totals.get("would_refuse"), "would be refused if enforced"),
                number(overview.people, "requests of people"),
            ],
            chart: bars(&overview.periods),
            bars: overview.periods.iter().filter(|bar| bar.all() > 0).cloned().collect(),
            crawlers: overview.crawlers.iter().take(shown).map(CrawlerRow::shown).collect(),
            left_out: overview.crawlers.len().saturating_sub(shown),
            sites: overview.sites.iter().map(|row| Enforcing::new(row, modes)).collect(),
            unclaimed: if overview.unclaimed == 0 { String::new() } else { thousands(overview.unclaimed) },
            unlisted: overview.unlisted.iter().map(|(name, count)| (name.clone(), thousands(*count))).collect(),
            has_links,
        }
    }
}

impl Enforcing {
    fn new(row: &SiteRow, modes: &BTreeMap<String, String>) -> Enforcing {
        let would_refuse = row.counts.get("would_refuse");
        let judged = row.counts.judged();
        let share = if judged == 0 { 0.0 } else { 100.0 * would_refuse as f64 / judged as f64 };
        Enforcing {
            href: site_link(&row.site),
            site: row.site.clone(),
            mode: modes.get(&row.site).cloned().unwrap_or_else(|| "removed".to_owned()),
            requests: thousands(row.by_identity.own().requests()),
            broke: row.by_identity.verified.broke(),
            hits: thousands(row.by_identity.verified.broke()),
            unverified: thousands(row.by_identity.unverified.broke()),
            impostor: thousands(row.by_identity.impostor.requests()),
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
        let (history, counted) = self.counts(&period)?;
        let overview = Overview::read(&history, period, Registry::builtin())?;
        let status = self.operations.status();
        let modes: BTreeMap<String, String> =
            status.policies.sites.iter().map(|site| (site.site.clone(), site.mode.clone())).collect();
        let is_quiet = |site: &&String| !overview.sites.iter().any(|row| row.site == **site);
        let quiet = modes.keys().filter(is_quiet).map(|site| (site_link(site), site.clone())).collect();
        let shown = if query.get("all").is_some() { usize::MAX } else { SHOWN };
        let days = query.get("days").unwrap_or("30");
        let page = OverviewPage {
            layout: Layout::new("Overview", "/", status.problems.len()).counted(counted),
            view: View::new(&overview, &modes, shown, true),
            choices: period.choices("/"),
            problems: status.problems,
            quiet,
            all: format!("/?days={days}&all=yes"),
        };
        Ok(page.render()?)
    }
}
