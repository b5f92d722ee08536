//! The page of a crawler: what it did on each site, what is proven of its name, and for unlisted bots what they call
//! themselves.

use super::charts::{Bar, bars};
use super::format::{minute, percent, thousands};
use super::layout::{Layout, samples_link, site_link};
use super::overview::{Choice, Period, name};
use super::{Dashboard, PageError};
use crate::admin::query::Query;
use crate::crawlers::Crawler;
use crate::crawlers::Registry;
use crate::state::history::Counts;
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
    sites: Vec<OnSite>,
    kinds: Vec<(String, String, String)>,
    identity: Vec<(String, String)>,
    unlisted: Vec<(String, String)>,
    samples: String,
}

struct OnSite {
    href: String,
    samples: String,
    site: String,
    requests: String,
    robots_txt: String,
    broke: u64,
    hits: String,
    would_refuse: String,
    refused: String,
    compliance: String,
}

impl OnSite {
    fn new(site: &str, crawler: &str, counts: &Counts) -> OnSite {
        OnSite {
            href: site_link(site),
            samples: samples_link(site, crawler, "", ""),
            site: site.to_owned(),
            requests: thousands(counts.requests()),
            robots_txt: thousands(counts.get("robots_txt")),
            broke: counts.broke(),
            hits: thousands(counts.broke()),
            would_refuse: thousands(counts.get("would_refuse")),
            refused: thousands(counts.get("refused")),
            compliance: counts.compliance().map_or_else(|| "-".to_owned(), percent),
        }
    }
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
        let series = self.history.series("", id, period.from, period.step)?;
        let is_known = known.is_some() || matches!(id, "other" | "tool") || !series.is_empty();
        if id.is_empty() || !is_known {
            let problem = format!("crawlgate knows no crawler `{id}`, and the history has none in this time");
            return Err(PageError::Unknown(problem));
        }
        let mut totals = Counts::default();
        series.iter().for_each(|(_, counts)| totals.add_all(counts));
        let all = period.bars(&series);
        let sites = self.history.sites(id, period.from, period.step)?;
        let identity = self.history.identity(id, period.from)?;
        let unlisted = if id == "other" { self.history.unlisted(period.from, NAMES)? } else { Vec::new() };
        let page = CrawlerPage {
            layout: self.layout(&name(id, registry), "/crawler"),
            facts: known.map(facts).unwrap_or_default(),
            period: format!("{} to {} UTC", minute(period.from), minute(period.to)),
            choices: period.choices(&super::layout::crawler_link(id)),
            numbers: vec![
                (thousands(totals.requests()), "requests"),
                (totals.compliance().map_or_else(|| "-".to_owned(), percent), "kept to the rules"),
                (thousands(totals.broke()), "broke the rules"),
                (thousands(totals.get("robots_txt")), "requests for robots.txt"),
                (thousands(totals.get("would_refuse")), "would be refused if enforced"),
            ],
            chart: bars(&all),
            bars: all.into_iter().filter(|bar| bar.all() > 0).collect(),
            sites: sites.iter().map(|(site, counts)| OnSite::new(site, id, counts)).collect(),
            kinds: kinds(id, &totals),
            identity: identity.into_iter().map(|(outcome, count)| (outcome, thousands(count))).collect(),
            unlisted: unlisted.into_iter().map(|(name, count)| (name, thousands(count))).collect(),
            samples: samples_link("", id, "", ""),
        };
        Ok(page.render()?)
    }
}

/// Kinds of requests with their counts, and where samples may be.
fn kinds(crawler: &str, counts: &Counts) -> Vec<(String, String, String)> {
    let done = ["requests", "robots_txt", "refused", "would_refuse", "paused", "not_a_crawler"];
    let kinds = counts.each().filter(|(column, _)| !done.contains(column));
    kinds
        .map(|(kind, count)| {
            let has_samples = !matches!(kind, "allowed" | "off" | "exempt");
            let link = if has_samples { samples_link("", crawler, kind, "") } else { String::new() };
            (kind.replace('_', " "), thousands(count), link)
        })
        .collect()
}
