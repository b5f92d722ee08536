//! [`Dashboard`]: pages for people on the admin listener, read-only and without script. It makes
//! them from [`Operations`] (the present state) and from the history (stored counts and samples of
//! requests). [`Overview`] is the content of the first page, which `report` prints as well. The
//! templates escape texts from outside.

mod charts;
mod counted;
mod crawler;
mod format;
mod health;
mod layout;
mod overview;
mod period;
mod rows;
mod site;
mod summary;
mod violations;

pub use overview::{Overview, report_page};
pub use period::Period;
pub use rows::CrawlerRow;

use super::Operations;
use super::query::QueryError;
use crate::state::history::{HistoryError, HistoryReader};
use crate::time::Timestamp;
use layout::Layout;
use std::sync::Arc;

/// The style of all pages; the report of `audit` begins with the same.
const STYLE: &str = concat!(
    include_str!("../../look.css"),
    include_str!("dashboard.css")
);

/// The sources of the pages.
pub struct Dashboard {
    operations: Arc<Operations>,
    history: HistoryReader,
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
    pub fn new(operations: Arc<Operations>, history: HistoryReader) -> Dashboard {
        Dashboard {
            operations,
            history,
        }
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
