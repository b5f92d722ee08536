//! The dashboard's page of one crawler. The page counts the requests under the crawler's name over
//! time, by site, by kind (such as `allowed` or `violation`), and by whether the client was
//! verified. The page also shows what was sent to the crawler (statuses, bytes), and which paths
//! the crawler requested most. All unknown bots share one page, which also lists the names that
//! these bots give themselves.

use super::counts;
use super::layout::{self, PageLayout, PageLink};
use super::{Dashboard, PageError, PageResult};
use crate::admin::query::QueryParameters;
use crate::crawlers::Crawler;
use crate::record::{CountsByIdentity, RecordedKind};
use crate::report::charts::PeriodBar;
use crate::report::{
    CrawlerRow, NumbersRow, ReportPeriod, count_with_error, crawler_name, is_unprovable_label,
    registry_crawler,
};
use crate::state::history::{PathRequestCount, RequestHistoryError};
use crate::telemetry::UNCLAIMED;
use crate::verdict::{IdentityOutcome, IdentityStatus, Kind};
use Kind::*;
use askama::Template;

const MAX_NAMES: usize = 100;

#[derive(Template)]
#[template(path = "crawler.html")]
struct CrawlerPage<'a> {
    layout: PageLayout,
    id: &'a str,
    name: &'a str,
    known: Option<&'a Crawler>,
    period: ReportPeriod,
    choices: Vec<PageLink>,
    bars: Vec<PeriodBar>,
    totals: CountsByIdentity,
    /// By identity: on all sites, then on each.
    numbers: Vec<NumbersRow>,
    /// Identities and kinds of requests.
    kinds: Vec<(IdentityStatus, RecordedKind, u64)>,
    /// Requests from outside of all lists of the operator, where reverse DNS is not asked; by whole
    /// days.
    suspected: u64,
    /// Requests that would be impostors', but for a list that verified none lately; by whole days.
    suspended: u64,
    unlisted: Vec<(String, u64)>,
    /// The paths that were requested most, by whole days.
    paths: Vec<PathRequestCount>,
}

impl Dashboard {
    /// The page of the crawler `id`, about the last `days` (30 by default). Not found if neither the
    /// registry nor the history has the crawler.
    pub(super) fn crawler_page(&self, query: &str) -> PageResult {
        let query = QueryParameters::parse(query, &["id", "days"])?;
        let id = query.get("id").unwrap_or_default();
        let known = registry_crawler(id);
        let period = super::query_period(&query, self.now())?;
        let (history, counts_note) = counts::period_history(&self.operations, &period)?;
        let series = history.counts_over_time("", id, period.from, period.to, period.step)?;
        let is_known = known.is_some() || matches!(id, "other" | "tool") || !series.is_empty();
        if id.is_empty() || !is_known {
            let problem = format!(
                "crawlgate does not know the crawler {id}, and there is no history of it in this period"
            );
            return Err(PageError::NotFound(problem));
        }
        let mut totals = CountsByIdentity::default();
        series.iter().for_each(|(_, counts)| totals.add_all(counts));
        let crawlers_with_outcome = |outcome| {
            let mut crawlers = history
                .crawlers_with_outcome(outcome, period.from, period.to)?
                .into_iter();
            let found = crawlers.find(|(crawler, _)| crawler == id);
            Ok::<u64, RequestHistoryError>(found.map_or(0, |(_, requests)| requests))
        };
        let suspected = crawlers_with_outcome(IdentityOutcome::Suspected)?;
        let suspended = crawlers_with_outcome(IdentityOutcome::Suspended)?;
        let name = crawler_name(id);
        let mut numbers = identity_rows("", id, &totals);
        for (site, counts) in history.counts_by_site(id, period.from, period.to, period.step)? {
            numbers.extend(identity_rows(&site, id, &counts));
        }
        let page = CrawlerPage {
            layout: self.page_layout(name, "/crawler", counts_note),
            id,
            name,
            known,
            choices: super::period_links(&period, &layout::crawler_link(id)),
            suspected,
            suspended,
            bars: period.bars(&series),
            paths: history.top_paths(period.from, period.to, None, id)?,
            numbers,
            kinds: kind_counts(&totals),
            totals,
            unlisted: if id == "other" {
                history.unlisted_bots(period.from, period.to, MAX_NAMES)?
            } else {
                Vec::new()
            },
            period,
        };
        Ok(page.render()?)
    }
}

/// The rows of a crawler on one site, or (an empty `site`) on all, by identity.
fn identity_rows(site: &str, id: &str, counts: &CountsByIdentity) -> Vec<NumbersRow> {
    let (label, href) = match site {
        "" => ("all sites", String::new()),
        UNCLAIMED => ("hosts without a policy", String::new()),
        site => (site, layout::site_link(site)),
    };
    let mut numbers = Vec::new();
    for (identity, counts) in counts.iter() {
        if counts.requests() > 0 {
            numbers.push(NumbersRow {
                label: label.to_owned(),
                href: href.clone(),
                row: CrawlerRow::new(id, identity.into(), *counts),
            });
        }
    }
    numbers
}

/// The requests for a path, with their error.
fn requests_words(path: &PathRequestCount) -> String {
    count_with_error(path.requests, path.error)
}

/// The requests by identity and kind.
pub fn kind_counts(counts: &CountsByIdentity) -> Vec<(IdentityStatus, RecordedKind, u64)> {
    let mut kinds = Vec::new();
    for (identity, counts) in counts.iter() {
        for kind in RecordedKind::iter_all() {
            let count = counts.requests_of_kind(kind);
            if count > 0 && kind != RecordedKind::Of(NotACrawler) {
                kinds.push((identity, kind, count));
            }
        }
    }
    kinds
}

/// Whether requests of a kind may have samples.
fn has_samples(kind: &RecordedKind) -> bool {
    !matches!(kind, RecordedKind::Off | RecordedKind::Of(Allowed | Exempt))
}

#[cfg(test)]
mod tests {
    use super::identity_rows;
    use crate::record::{CountedAction, CountsByIdentity};
    use crate::verdict::Kind::*;

    #[test]
    fn hosts_without_a_policy_are_no_site() {
        let mut counts = CountsByIdentity::default();
        counts.unverified.add(Allowed, CountedAction::Pass, 1);
        for (site, label, has_link) in [
            ("shop", "shop", true),
            ("unclaimed", "hosts without a policy", false),
        ] {
            let rows = identity_rows(site, "gptbot", &counts);
            assert_eq!(rows.len(), 1);
            assert_eq!(rows[0].label, label);
            assert_eq!(!rows[0].href.is_empty(), has_link);
        }
    }
}
