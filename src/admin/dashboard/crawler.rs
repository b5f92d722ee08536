//! The page of a crawler: whether its name is proven, and its requests over time, by site and by
//! kind (such as `allowed` or `violation`). For unlisted bots it lists the names that they give
//! themselves.

use super::counted;
use super::layout::{self, Layout, Link};
use super::{Dashboard, Page, PageError};
use crate::admin::query::Query;
use crate::crawlers::Crawler;
use crate::record::{ByIdentity, RecordedKind};
use crate::report::charts::Bar;
use crate::report::{CrawlerRow, Numbers, Period, claims_nothing, crawler_name, known};
use crate::state::history::HistoryError;
use crate::verdict::{IdentityOutcome, Kind, KnownIdentity};
use askama::Template;

/// Names of unlisted bots that are shown.
const NAMES: usize = 100;

#[derive(Template)]
#[template(path = "crawler.html")]
struct CrawlerPage<'a> {
    layout: Layout,
    id: &'a str,
    name: &'a str,
    known: Option<&'a Crawler>,
    period: Period,
    choices: Vec<Link>,
    bars: Vec<Bar>,
    totals: ByIdentity,
    /// By identity: on all sites, then on each.
    numbers: Vec<Numbers>,
    /// Identities and kinds of requests.
    kinds: Vec<(KnownIdentity, RecordedKind, u64)>,
    /// Requests from outside of all lists of the operator, where reverse DNS is not asked; by whole
    /// days.
    suspected: u64,
    /// Requests that would be impostors', but for a list that verified none lately; by whole days.
    suspended: u64,
    unlisted: Vec<(String, u64)>,
}

impl Dashboard {
    /// The page of the crawler that `id` of the query names, about the last `days` (30 without it).
    /// Unknown if neither the registry nor the history of this time has the crawler.
    pub(super) fn crawler(&self, query: &str) -> Page {
        let query = Query::read(query, &["id", "days"])?;
        let id = query.get("id").unwrap_or_default();
        let known = known(id);
        let period = super::period(&query, self.now())?;
        let (history, whose) = counted::counts(&self.operations, &period)?;
        let series = history.series("", id, period.from, period.step)?;
        let is_known = known.is_some() || matches!(id, "other" | "tool") || !series.is_empty();
        if id.is_empty() || !is_known {
            let problem =
                format!("crawlgate knows no crawler {id}, and the history has none in this period");
            return Err(PageError::Unknown(problem));
        }
        let mut totals = ByIdentity::default();
        series.iter().for_each(|(_, counts)| totals.add_all(counts));
        let with_outcome = |outcome| {
            let crawlers = history.with_outcome(outcome, period.from)?.into_iter();
            let mut of_crawler = crawlers.filter(|(crawler, _)| crawler == id);
            let requests = of_crawler.next().map_or(0, |(_, requests)| requests);
            Ok::<u64, HistoryError>(requests)
        };
        let suspected = with_outcome(IdentityOutcome::Suspected)?;
        let suspended = with_outcome(IdentityOutcome::Suspended)?;
        let name = crawler_name(id);
        let mut numbers = numbers("", id, &totals);
        for (site, counts) in history.sites(id, period.from, period.step)? {
            numbers.extend(self::numbers(&site, id, &counts));
        }
        let page = CrawlerPage {
            layout: self.layout(name, "/crawler").counted(whose),
            id,
            name,
            known,
            choices: super::choices(&period, &layout::crawler_link(id)),
            suspected,
            suspended,
            bars: period.bars(&series),
            numbers,
            kinds: kinds(&totals),
            totals,
            unlisted: if id == "other" {
                history.unlisted(period.from, NAMES)?
            } else {
                Vec::new()
            },
            period,
        };
        Ok(page.render()?)
    }
}

/// The rows of a crawler on one site, or (an empty `site`) on all, by identity.
fn numbers(site: &str, id: &str, counts: &ByIdentity) -> Vec<Numbers> {
    let (label, href) = match site {
        "" => ("all sites", String::new()),
        site => (site, layout::site_link(site)),
    };
    let mut numbers = Vec::new();
    for (identity, counts) in counts.iter() {
        if counts.requests() > 0 {
            numbers.push(Numbers {
                label: label.to_owned(),
                href: href.clone(),
                row: CrawlerRow::new(id, identity.into(), *counts),
            });
        }
    }
    numbers
}

/// The requests by identity and kind: triples of identity, kind and count.
pub(super) fn kinds(counts: &ByIdentity) -> Vec<(KnownIdentity, RecordedKind, u64)> {
    let mut kinds = Vec::new();
    for (identity, counts) in counts.iter() {
        for kind in RecordedKind::all() {
            let count = counts.of_kind(kind);
            if count > 0 && kind != RecordedKind::Of(Kind::NotACrawler) {
                kinds.push((identity, kind, count));
            }
        }
    }
    kinds
}

/// Whether requests of a kind may have samples.
fn has_samples(kind: &RecordedKind) -> bool {
    !matches!(
        kind,
        RecordedKind::Off | RecordedKind::Of(Kind::Allowed | Kind::Exempt)
    )
}
