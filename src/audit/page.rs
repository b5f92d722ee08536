//! [`page`] makes the report of an audit as one HTML page that needs no other file: tables and
//! bars, dark and light, without script. The log is hostile input: the template escapes every text
//! of it, and a Content-Security-Policy allows nothing but the page's style.

use super::report::{Crawler, Day, Report};
use askama::Template;
use std::borrow::Borrow;

/// Rows of crawlers that are shown, and crawlers and days that have a bar each.
const CRAWLERS: usize = 100;
const BARS: usize = 15;
const DAYS: usize = 120;

/// The look of all pages that crawlgate makes for its operator, and of this page.
const STYLE: &str = concat!(include_str!("../look.css"), include_str!("page.css"));

#[derive(Template)]
#[template(path = "page.html", escape = "case")]
struct Page<'a> {
    report: &'a Report,
    /// The crawlers that robots.txt concerns.
    crawlers: Vec<&'a Crawler>,
    requests: u64,
    /// The rows with the most disallowed requests.
    worst: Vec<&'a Crawler>,
    most: u64,
    days: Vec<Bar<'a>>,
    most_of_days: u64,
    /// A day, or a week where there are many days.
    period: &'static str,
}

/// Disallowed requests of a period, which begins with a day.
struct Bar<'a> {
    day: &'a str,
    disallowed: u64,
    certain: u64,
    claimed: u64,
}

impl Bar<'_> {
    fn new(days: &[Day]) -> Option<Bar<'_>> {
        Some(Bar {
            day: &days.first()?.day,
            disallowed: days.iter().map(|day| day.counts.disallowed).sum(),
            certain: days.iter().map(|day| day.counts.certain).sum(),
            claimed: days.iter().map(|day| day.counts.certain_claimed).sum(),
        })
    }

    /// The layers of the bar by class of style and height: all disallowed requests, the certain
    /// ones, and those of the certain ones whose client does not merely claim a crawler's name. All
    /// begin at the same line, and each is drawn over the one before it.
    fn parts(&self) -> [(&'static str, u64); 3] {
        [
            ("some", self.disallowed),
            ("claim", self.certain),
            ("bad", self.certain - self.claimed),
        ]
    }
}

/// The page. It has a bar for each day, or for each seven if there are more than 120 days.
///
/// # Errors
/// None that depends on the report.
pub fn page(report: &Report) -> Result<String, askama::Error> {
    let crawlers: Vec<&Crawler> = report
        .crawlers
        .iter()
        .filter(|crawler| crawler.judged)
        .collect();
    let worst = crawlers
        .iter()
        .filter(|crawler| crawler.counts.disallowed > 0);
    let worst: Vec<&Crawler> = worst.take(BARS).copied().collect();
    let (step, period) = if report.days.len() > DAYS {
        (7, "week")
    } else {
        (1, "day")
    };
    let days: Vec<Bar<'_>> = report.days.chunks(step).filter_map(Bar::new).collect();
    let page = Page {
        report,
        requests: crawlers.iter().map(|crawler| crawler.counts.requests).sum(),
        most: worst
            .iter()
            .map(|crawler| crawler.counts.disallowed)
            .max()
            .unwrap_or(0),
        worst,
        most_of_days: days.iter().map(|bar| bar.disallowed).max().unwrap_or(0),
        days,
        period,
        crawlers,
    };
    page.render()
}

/// `part` as a percentage of `all`, which must not be 0. The template calls this.
fn percent(part: impl Borrow<u64>, all: &u64) -> f64 {
    *part.borrow() as f64 / *all as f64 * 100.0
}
