//! [`Overview`]: the content of the first page: which crawlers obeyed the rules, which broke them
//! and since when, and what enforcement would refuse. It is made of nothing but the stored counts
//! and samples of requests (`state/history`). [`report_page`] shows it as one file that needs no
//! server.

use super::charts::Bar;
use super::layout::{Layout, Link};
use super::period::Period;
use super::rows::{CrawlerRow, Row, UNLISTED};
use super::summary::sentences;
use super::{Dashboard, Page, STYLE};
use crate::admin::problem::Problem;
use crate::admin::query::Query;
use crate::record::{ByIdentity, Counts};
use crate::state::history::{HistoryError, HistoryReader};
use crate::time::Timestamp;
use crate::verdict::{IdentityOutcome, Kind, KnownIdentity};
use askama::Template;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use strum::VariantArray;

/// The most crawlers that the page shows, unless the query asks for all.
const SHOWN: usize = 40;
/// Names of unlisted bots that are shown.
const NAMES: usize = 20;

/// What crawlers did on all sites in a period.
#[derive(Debug, Serialize)]
pub struct Overview {
    /// The beginning of the period.
    #[serde(serialize_with = "crate::time::rfc3339")]
    pub from: Timestamp,
    /// The end of the period.
    #[serde(serialize_with = "crate::time::rfc3339")]
    pub to: Timestamp,
    /// A summary in sentences.
    pub summary: Vec<String>,
    /// Requests of all crawlers, and of clients in their names. Those of `unlisted_would_refuse` do
    /// not count as `would_refuse`, here and in all rows.
    pub totals: Counts,
    /// The requests by what is proven of the names.
    pub by_identity: ByIdentity,
    /// Requests of unlisted bots that would be refused if `purposes: { other: enforce }` were
    /// written, too.
    pub unlisted_would_refuse: u64,
    /// Requests of people.
    pub people: u64,
    /// Requests of crawlers for hosts without a policy, and requests that were refused before they
    /// were judged.
    pub unclaimed: u64,
    /// The requests by hour, day or week.
    pub periods: Vec<Bar>,
    /// Rows by crawler and identity: those that broke most rules first.
    pub crawlers: Vec<CrawlerRow>,
    /// Rows by site.
    pub sites: Vec<SiteRow>,
    /// The names that unlisted bots give themselves, with their requests.
    pub unlisted: Vec<(String, u64)>,
}

/// What crawlers did on a site.
#[derive(Debug, Serialize)]
pub struct SiteRow {
    /// Its name.
    pub site: String,
    /// What crawlers did.
    pub counts: Counts,
    /// The requests by what is proven of the names.
    pub by_identity: ByIdentity,
    /// As [`Overview::unlisted_would_refuse`], for this site.
    pub unlisted_would_refuse: u64,
}

impl SiteRow {
    /// The percentage of judged requests that would be refused; 0 if none was judged.
    fn share(&self) -> f64 {
        match self.counts.judged() {
            0 => 0.0,
            judged => 100.0 * self.counts.would_refuse() as f64 / judged as f64,
        }
    }
}

impl Overview {
    /// Reads the overview of a period from the history. Requests that claim to be no crawler count
    /// as `people` only. Requests for hosts without a policy count as `unclaimed`, and not among
    /// the sites.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn read(history: &HistoryReader, period: Period) -> Result<Overview, HistoryError> {
        let Period { from, to, step } = period;
        let mut seen: HashMap<String, Trends> = HashMap::new();
        let mut series = Vec::new();
        let mut by_identity = ByIdentity::default();
        let mut people = 0;
        history.each(
            "",
            from,
            step,
            |start, crawler, identity, counts| match crawler {
                "" => {
                    by_identity.add(identity, counts);
                    let mut of_period = ByIdentity::default();
                    of_period.add(identity, counts);
                    series.push((start, of_period));
                }
                "none" => people += counts.requests(),
                crawler => {
                    let trends = seen.entry(crawler.to_owned()).or_default();
                    trends[identity as usize].add(&period, start, counts);
                }
            },
        )?;
        let suspected: HashMap<String, u64> = history
            .with_outcome(IdentityOutcome::Suspected, from)?
            .into_iter()
            .collect();
        let mut crawlers = crawler_rows(seen, &period);
        for row in crawlers
            .iter_mut()
            .filter(|row| row.identity == KnownIdentity::Unverified)
        {
            row.suspected = suspected
                .get(&row.id)
                .map_or(0, |suspected| row.counts.requests().min(*suspected));
        }
        let of_unlisted: HashMap<String, ByIdentity> =
            history.sites(UNLISTED, from, step)?.into_iter().collect();
        let unlisted_would_refuse = of_unlisted
            .values()
            .map(|unlisted| by_identity.subtract_would_refuse(unlisted))
            .sum();
        let mut unclaimed = 0;
        let mut sites = Vec::new();
        for (site, mut by_identity) in history.sites("", from, step)? {
            if site == crate::telemetry::UNCLAIMED {
                unclaimed += by_identity.all().requests();
                continue;
            }
            sites.push(SiteRow {
                unlisted_would_refuse: of_unlisted
                    .get(&site)
                    .map_or(0, |unlisted| by_identity.subtract_would_refuse(unlisted)),
                counts: by_identity.all(),
                by_identity,
                site,
            });
        }
        sites.sort_by_key(|row| Reverse(row.counts.broke()));
        let mut overview = Overview {
            from,
            to,
            summary: Vec::new(),
            totals: by_identity.all(),
            by_identity,
            people,
            unclaimed,
            periods: period.bars(&series),
            crawlers,
            unlisted_would_refuse,
            sites,
            unlisted: history.unlisted(from, NAMES)?,
        };
        overview.summary = sentences(&overview.by_identity, &overview.crawlers);
        Ok(overview)
    }
}

/// Rows of crawlers, one for each identity that has requests; those of one crawler stand together.
/// Crawlers come in the order of rules that they broke as verified, then of all rules that they
/// broke, then of requests that would be refused, then of requests. `seen` has the trends of each
/// crawler by identity.
fn crawler_rows(seen: HashMap<String, Trends>, period: &Period) -> Vec<CrawlerRow> {
    let mut crawlers: Vec<Vec<CrawlerRow>> = Vec::new();
    for (id, trends) in seen {
        let mut rows = Vec::new();
        for (identity, trend) in KnownIdentity::VARIANTS.iter().zip(trends) {
            if trend.counts.requests() > 0 {
                rows.push(trend.row(&id, *identity, period));
            }
        }
        crawlers.push(rows);
    }
    crawlers.sort_by_cached_key(|rows| {
        let sum = |of: fn(&Counts) -> u64| rows.iter().map(|row| of(&row.counts)).sum::<u64>();
        let proven: u64 = rows
            .iter()
            .filter(|row| row.identity == KnownIdentity::Verified)
            .map(|row| row.counts.broke())
            .sum();
        let weight = (
            proven,
            sum(Counts::broke),
            sum(Counts::would_refuse),
            sum(Counts::requests),
        );
        (Reverse(weight), rows.first().map(|row| row.id.clone()))
    });
    crawlers.into_iter().flatten().collect()
}

/// The trends of one crawler name by identity.
type Trends = [Trend; KnownIdentity::VARIANTS.len()];

/// The requests of one crawler name and one identity over time.
#[derive(Default)]
struct Trend {
    counts: Counts,
    shares: Vec<(u64, u64)>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Trend {
    /// Adds the counts of the hour, day or week that begins at `start`. Requests of impostors count
    /// as ones that broke a rule. Counts from outside of the period only add to the sums and times.
    fn add(&mut self, period: &Period, start: Timestamp, counts: &Counts) {
        self.counts.add_all(counts);
        self.shares.resize(period.len(), (0, 0));
        let broke = counts.broke() + counts.of_kind(Kind::Impostor);
        if let Some(share) = period
            .place(start)
            .and_then(|place| self.shares.get_mut(place))
        {
            *share = (share.0 + counts.kept() + broke, share.1 + broke);
        }
        if broke > 0 {
            self.first = self.first.or(Some(start));
            self.last = Some(start);
        }
    }

    /// The row of this crawler and identity, with the times when it first and last broke a rule.
    fn row(self, id: &str, identity: KnownIdentity, period: &Period) -> CrawlerRow {
        CrawlerRow {
            broke: self
                .first
                .zip(self.last)
                .map(|(first, last)| (period.name(first), period.name(last))),
            trend: self.shares,
            ..CrawlerRow::new(id, identity, self.counts)
        }
    }
}

/// An overview as the templates show it.
struct View<'a> {
    overview: &'a Overview,
    /// The mode of each site, where it is known.
    modes: &'a BTreeMap<String, String>,
    crawlers: Vec<Row>,
    /// Whether the page has links to other pages.
    has_links: bool,
}

impl View<'_> {
    /// The view of an overview, with the first `shown` rows of crawlers.
    fn new<'a>(
        overview: &'a Overview,
        modes: &'a BTreeMap<String, String>,
        shown: usize,
        has_links: bool,
    ) -> View<'a> {
        let crawlers = overview
            .crawlers
            .iter()
            .take(shown)
            .map(|row| Row::new("", row.clone()))
            .collect();
        View {
            overview,
            modes,
            crawlers,
            has_links,
        }
    }
}

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage<'a> {
    layout: Layout,
    view: View<'a>,
    choices: Vec<Link>,
    problems: Vec<Problem>,
    /// Sites without requests in the period.
    quiet: Vec<&'a String>,
    all: String,
}

#[derive(Template)]
#[template(path = "report.html")]
struct ReportPage<'a> {
    style: &'a str,
    view: View<'a>,
}

/// The overview as one HTML file that needs no server.
///
/// # Errors
/// None that depends on what is shown.
pub fn report_page(overview: &Overview) -> Result<String, askama::Error> {
    ReportPage {
        style: STYLE,
        view: View::new(overview, &BTreeMap::new(), usize::MAX, false),
    }
    .render()
}

impl Dashboard {
    /// The first page, about the last `days` of the query (30 without it). It shows 40 crawlers, or
    /// all if the query has `all`.
    pub(super) fn overview(&self, query: &str) -> Page {
        let query = Query::read(query, &["days", "all"])?;
        let period = Period::of(&query, self.now())?;
        let (history, counted) = self.counts(&period)?;
        let overview = Overview::read(&history, period)?;
        let status = self.operations.status();
        let sites = status.policies.sites.into_iter();
        let modes: BTreeMap<String, String> = sites.map(|site| (site.site, site.mode)).collect();
        let mut quiet: Vec<&String> = modes.keys().collect();
        quiet.retain(|site| !overview.sites.iter().any(|row| row.site == **site));
        let shown = if query.get("all").is_some() {
            usize::MAX
        } else {
            SHOWN
        };
        let page = OverviewPage {
            layout: Layout::new("Overview", "/", status.problems.len()).counted(counted),
            view: View::new(&overview, &modes, shown, true),
            choices: period.choices("/"),
            problems: status.problems,
            quiet,
            all: format!("/?days={}&all=yes", query.get("days").unwrap_or("30")),
        };
        Ok(page.render()?)
    }
}
