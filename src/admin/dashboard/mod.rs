//! [`Dashboard`]: pages for people on the admin listener, read-only and without script. It makes
//! them from [`Operations`] (the present state) and from the history (stored counts and samples of
//! requests). The first page is the [`Report`](crate::report::Report), which `report` prints as
//! well. The templates escape texts from outside.

mod counted;
mod crawler;
mod format;
mod health;
mod layout;
mod overview;
mod site;
mod violations;

pub use overview::live_report;

use super::Operations;
use super::query::{Query, QueryError};
use crate::record::Counts;
use crate::report::{CrawlerRow, Period};
use crate::state::history::HistoryError;
use crate::time::Timestamp;
use crate::verdict::KnownIdentity;
use layout::{Layout, Link};
use std::sync::Arc;

/// The style of all pages; the page of a report has the first two parts.
const STYLE: &str = concat!(
    include_str!("../../look.css"),
    include_str!("../../report/report.css"),
    include_str!("dashboard.css")
);

/// Days that a page may be about.
const DAYS: [i64; 5] = [1, 7, 30, 90, 400];

/// The period that `days` of a query asks for; 30 days without it. Fails unless the number is one
/// of `DAYS`.
fn period(query: &Query<'_>, now: Timestamp) -> Result<Period, QueryError> {
    Ok(Period::days(query.one_of("days", DAYS)?.unwrap_or(30), now))
}

/// The links of a page to itself for each number of days that may be chosen. That of the period is
/// marked as current.
fn choices(period: &Period, page: &str) -> Vec<Link> {
    let chosen = period.whole_days(&DAYS);
    let separator = if page.contains('?') { '&' } else { '?' };
    let choices = DAYS.map(|days| Link {
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

/// What is proven of a crawler's name, in words; empty for a name that claims nothing.
fn identity_words(id: &str, identity: KnownIdentity) -> &'static str {
    CrawlerRow::new(id, identity.into(), Counts::default()).identity_words()
}

/// The sources of the pages.
pub struct Dashboard {
    operations: Arc<Operations>,
}

/// A page as HTML, or why there is none.
type Page = Result<String, PageError>;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The query has mistakes.
    #[error("{0}")]
    Query(#[from] QueryError),
    /// There is no such site or crawler.
    #[error("{0}")]
    Unknown(String),
    /// The history cannot be read.
    #[error("{0}; the page that needs no history is /health")]
    History(#[from] HistoryError),
    /// A template failed, which no input does.
    #[error("cannot write the page: {0}")]
    Template(#[from] askama::Error),
}

impl Dashboard {
    /// Pages from what the operations know and the history has.
    pub fn new(operations: Arc<Operations>) -> Dashboard {
        Dashboard { operations }
    }

    /// The page at a path, or the style of the pages: its media type and its content. `None` where
    /// there is none.
    pub fn answer(
        &self,
        path: &str,
        query: &str,
    ) -> Option<Result<(&'static str, String), PageError>> {
        let page = match path {
            "/" => self.overview(query),
            "/site" => self.site(query),
            "/crawler" => self.crawler(query),
            "/violations" => self.violations(query),
            "/health" => self.health(query),
            "/style.css" => return Some(Ok(("text/css; charset=utf-8", STYLE.into()))),
            _ => return None,
        };
        Some(page.map(|body| ("text/html; charset=utf-8", body)))
    }

    fn now(&self) -> Timestamp {
        self.operations.moment().now
    }

    fn layout(&self, title: &str, path: &'static str) -> Layout {
        let problems = self.operations.status().problems.len();
        Layout::new(title, path, problems)
    }
}
