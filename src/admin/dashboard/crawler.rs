//! The page of a crawler: what it did on each site, what is proven of its name, and for unlisted bots what they call
//! themselves.

use super::charts::{Bar, bars};
use super::format::{minute, thousands};
use super::layout::{Layout, samples_link, site_link};
use super::overview::name;
use super::period::{Choice, Period};
use super::rows::{Row, claims_nothing};
use super::{Dashboard, PageError};
use crate::admin::query::Query;
use crate::crawlers::Crawler;
use crate::crawlers::Registry;
use crate::state::history::{ByIdentity, Counts};
use askama::Template;

/// Names of unlisted bots that are shown.
const NAMES: usize = 100;

#[derive(Template)]
#[template(path = "crawler.html")]
struct CrawlerPage {
    layout: Layout,
    facts: Vec<(&'static str, String)>,
    period: String,
    choices: Vec<Choice>,
    numbers: Vec<(String, &'static str)>,
    chart: String,
    bars: Vec<Bar>,
    identities: Vec<Row>,
    sites: Vec<Row>,
    kinds: Vec<KindRow>,
    /// The name, where nothing proves any request under it.
    unproven_name: String,
    /// What the command that proves an address calls the crawler; empty where it does not know it.
    known_as: String,
    /// Requests from outside of all lists of the operator, where reverse DNS is not asked; by whole days.
    suspected: u64,
    /// Requests that would be impostors', but for a list that verified none lately; by whole days.
    suspended: u64,
    unlisted: Vec<(String, String)>,
    samples: String,
}

fn facts(crawler: &Crawler) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Operator", crawler.operator.clone()),
        ("Purpose", crawler.purpose.name().to_owned()),
        ("Tokens in robots.txt", crawler.tokens.join(", ")),
    ];
    facts.extend(crawler.user_agent.clone().map(|user_agent| ("Example of its user agent", user_agent)));
    facts
}

impl Dashboard {
    pub(super) fn crawler(&self, query: &str) -> Result<String, PageError> {
        let query = Query::read(query, &["id", "days"])?;
        let id = query.get("id").unwrap_or_default();
        let (registry, period) = (Registry::builtin(), Period::of(&query, self.now())?);
        let known = registry.crawlers().iter().find(|crawler| crawler.id == id);
        let (history, counted) = self.counts(&period)?;
        let series = history.series("", id, period.from, period.step)?;
        let is_known = known.is_some() || matches!(id, "other" | "tool") || !series.is_empty();
        if id.is_empty() || !is_known {
            let problem = format!("crawlgate knows no crawler `{id}`, and the history has none in this time");
            return Err(PageError::Unknown(problem));
        }
        let mut totals = ByIdentity::default();
        series.iter().for_each(|(_, counts)| totals.add_all(counts));
        let (bars_of_all, all, name) = (period.bars(&series), totals.all(), name(id, registry));
        let sites = history.sites(id, period.from, period.step)?;
        let unlisted = if id == "other" { history.unlisted(period.from, NAMES)? } else { Vec::new() };
        let of_outcome = |outcome: &str| -> Result<u64, PageError> {
            let found = history.with_outcome(outcome, period.from)?.into_iter().find(|(crawler, _)| crawler == id);
            Ok(found.map_or(0, |(_, requests)| requests))
        };
        let page = CrawlerPage {
            layout: self.layout(&name, "/crawler").counted(counted),
            facts: known.map(facts).unwrap_or_default(),
            period: format!("{} to {} UTC", minute(period.from), minute(period.to)),
            choices: period.choices(&super::layout::crawler_link(id)),
            unproven_name: if claims_nothing(id) || all.requests() != totals.unverified.requests() {
                String::new()
            } else {
                name.clone()
            },
            known_as: known.map(|crawler| crawler.id.clone()).unwrap_or_default(),
            suspected: of_outcome("suspected")?,
            suspended: of_outcome("suspended")?,
            numbers: vec![
                (thousands(all.requests()), "requests under this name"),
                (thousands(totals.verified.requests()), "of them verified"),
                (thousands(totals.unverified.requests()), "unverified"),
                (thousands(totals.impostor.requests()), "of impostors"),
            ],
            chart: bars(&bars_of_all),
            bars: bars_of_all.into_iter().filter(|bar| bar.all() > 0).collect(),
            identities: identities(id, &name, &totals),
            sites: sites.iter().flat_map(|(site, counts)| on_site(site, (id, &name), counts)).collect(),
            kinds: totals.each().into_iter().flat_map(|(identity, counts)| kinds(id, identity, counts)).collect(),
            unlisted: unlisted.into_iter().map(|(name, count)| (name, thousands(count))).collect(),
            samples: samples_link(&[("crawler", id)]),
        };
        Ok(page.render()?)
    }
}

/// The name of such a row is what is proven of the crawler's.
fn identities(id: &str, name: &str, counts: &ByIdentity) -> Vec<Row> {
    let mut rows = Row::each("", (id, name), counts);
    for row in rows.iter_mut().filter(|_| !claims_nothing(id)) {
        row.name = std::mem::take(&mut row.says);
    }
    rows
}

fn on_site(site: &str, (id, name): (&str, &str), counts: &ByIdentity) -> Vec<Row> {
    let mut rows = Row::each(site, (id, name), counts);
    rows.iter_mut().for_each(|row| (row.href, row.name) = (site_link(site), site.to_owned()));
    rows
}

/// A kind of requests of one identity.
struct KindRow {
    kind: String,
    identity: &'static str,
    requests: String,
    /// Where samples may be.
    samples: String,
}

/// Kinds of requests with their counts.
fn kinds(crawler: &str, identity: &'static str, counts: &Counts) -> Vec<KindRow> {
    let done = ["requests", "robots_txt", "refused", "would_refuse", "paused", "not_a_crawler"];
    let kinds = counts.each().filter(|(column, _)| !done.contains(column));
    kinds
        .map(|(kind, count)| {
            let has_samples = !matches!(kind, "allowed" | "off" | "exempt");
            let link = || samples_link(&[("crawler", crawler), ("kind", kind), ("identity", identity)]);
            KindRow {
                kind: kind.replace('_', " "),
                identity: if claims_nothing(crawler) { "" } else { identity },
                requests: thousands(count),
                samples: if has_samples { link() } else { String::new() },
            }
        })
        .collect()
}
