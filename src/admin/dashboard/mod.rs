//! [`Dashboard`]: the web pages of the admin listener, read-only and without script. They show the
//! present state ([`Operations`]) and the history (stored request counts and samples of requests).
//! The first page is the [`Report`](crate::report::Report), which the command `report` prints as
//! well. The templates escape texts from outside.

mod counts;
mod crawler;
mod format;
mod health;
mod layout;
mod overview;
mod site;
mod violations;

pub use overview::{apply_policies, live_report, report_period};

use super::Operations;
use super::query::{QueryError, QueryParameters};
use crate::report::{ClientIdentity, ReportPeriod, is_unprovable_label};
use crate::state::history::RequestHistoryError;
use crate::time::Timestamp;
use crate::verdict::IdentityStatus;
use layout::{PageLayout, PageLink};
use std::sync::Arc;

/// The style of all pages. `report --html` has the first two parts.
const STYLE: &str = concat!(
    include_str!("../../look.css"),
    include_str!("../../report/report.css"),
    include_str!("dashboard.css")
);

const DAY_CHOICES: [i64; 5] = [1, 7, 30, 90, 400];

/// The period of `days` in a query, 30 by default. Fails unless the number is one of the choices.
fn query_period(query: &QueryParameters<'_>, now: Timestamp) -> Result<ReportPeriod, QueryError> {
    Ok(ReportPeriod::last_days(
        query.get_one_of("days", DAY_CHOICES)?.unwrap_or(30),
        now,
    ))
}

/// The links of a page to itself, one for each choice of days. The one of `period` is current.
fn period_links(period: &ReportPeriod, page: &str) -> Vec<PageLink> {
    let chosen = period.whole_days(&DAY_CHOICES);
    let separator = if page.contains('?') { '&' } else { '?' };
    let choices = DAY_CHOICES.map(|days| PageLink {
        href: format!("{page}{separator}days={days}"),
        name: if days == 1 {
            "24 hours".to_owned()
        } else {
            format!("{days} days")
        },
        is_current: Some(days) == chosen,
    });
    choices.into()
}

/// The identity of a crawler in words; empty where it cannot be proven.
fn identity_words(id: &str, identity: IdentityStatus) -> &'static str {
    if is_unprovable_label(id) {
        return "";
    }
    ClientIdentity::from(identity).words()
}

/// Renders the pages.
pub struct Dashboard {
    operations: Arc<Operations>,
}

/// A page as HTML.
type PageResult = Result<String, PageError>;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The query has mistakes.
    #[error("{0}")]
    Query(#[from] QueryError),
    /// There is no such site or crawler.
    #[error("{0}")]
    NotFound(String),
    /// The history cannot be read.
    #[error("{0}. The page /health works without a history")]
    History(#[from] RequestHistoryError),
    /// A template failed, which no input does.
    #[error("cannot write the page: {0}")]
    Template(#[from] askama::Error),
}

impl Dashboard {
    /// Pages of these operations and their history.
    pub fn new(operations: Arc<Operations>) -> Dashboard {
        Dashboard { operations }
    }

    /// The media type and content of a path: a page, or the style sheet. `None` for other paths.
    pub fn render_path(
        &self,
        path: &str,
        query: &str,
    ) -> Option<Result<(&'static str, String), PageError>> {
        let page = match path {
            "/" => self.overview_page(query),
            "/site" => self.site_page(query),
            "/crawler" => self.crawler_page(query),
            "/violations" => self.violations_page(query),
            "/health" => self.health_page(query),
            "/style.css" => return Some(Ok(("text/css; charset=utf-8", STYLE.into()))),
            _ => return None,
        };
        Some(page.map(|body| ("text/html; charset=utf-8", body)))
    }

    fn now(&self) -> Timestamp {
        self.operations.moment().now
    }

    fn page_layout(&self, title: &str, path: &'static str, counts_note: String) -> PageLayout {
        PageLayout::new(
            title,
            path,
            self.operations.status().problems.len(),
            counts_note,
        )
    }
}
