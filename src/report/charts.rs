//! [`PeriodBar`]: how many requests there were in one hour, day or week. Reports and the dashboard
//! draw these numbers as a bar chart in inline SVG (`shared.html`). The chart has a text
//! alternative, and the pages show the same numbers as a table.

use super::ClientIdentity;
use crate::record::RequestCounts;
use serde::{Deserialize, Serialize};

/// How many times higher than the lowest part of a bar a chart is.
const MAX_HEIGHT_RATIO: u64 = 80;

/// The requests of one hour, day or week.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeriodBar {
    /// Its beginning, for people.
    pub period: String,
    /// Requests that obeyed the rules.
    pub obeyed: u64,
    /// Disallowed requests that do not count.
    pub not_counted: u64,
    /// Requests against the rules.
    pub against_rules: u64,
    /// Requests by clients that only used the name of a crawler.
    pub pretended: u64,
}

impl PeriodBar {
    /// All requests.
    pub fn total(&self) -> u64 {
        self.obeyed + self.not_counted + self.against_rules + self.pretended
    }

    /// The parts of the bar from the bottom up, in a chart as high as `most`: each with its class, its
    /// distance from the top and its height. A small part is still visible.
    pub fn parts(&self, most: u64) -> Vec<(&'static str, u64, u64)> {
        let mut top = most;
        let lowest = top.div_ceil(MAX_HEIGHT_RATIO);
        let parts = [
            ("some", self.obeyed),
            ("unknown", self.not_counted),
            ("bad", self.against_rules),
            ("impostor", self.pretended),
        ];
        let mut drawn = Vec::new();
        for (class, number) in parts.into_iter().filter(|(_, number)| *number > 0) {
            let height = number.max(lowest);
            top = top.saturating_sub(height);
            drawn.push((class, top, height));
        }
        drawn
    }

    /// Adds the requests of one crawler name and identity.
    pub fn add(&mut self, identity: ClientIdentity, counts: &RequestCounts) {
        use ClientIdentity::*;

        match identity {
            Verified | Unverified => {
                self.obeyed += counts.rule_obeying_requests();
                self.not_counted += counts.uncounted();
                self.against_rules += counts.rule_breaking_requests();
            }
            SuspectedImpostor | Impostor => {
                self.pretended += counts.requests();
            }
        }
    }
}

/// The requests of the period that has most.
pub fn largest_total(bars: &[PeriodBar]) -> u64 {
    bars.iter().map(PeriodBar::total).max().unwrap_or(0)
}

/// The width of each of so many bars, of which each has a space of 1. A few are narrow.
pub fn bar_width(bars: usize) -> f64 {
    (bars as f64 * 0.04).min(0.85)
}

/// The sums of all periods.
pub fn sum_bars(bars: &[PeriodBar]) -> PeriodBar {
    let mut sum = PeriodBar::default();
    for bar in bars {
        sum.obeyed += bar.obeyed;
        sum.not_counted += bar.not_counted;
        sum.against_rules += bar.against_rules;
        sum.pretended += bar.pretended;
    }
    sum
}

/// The periods that have requests.
pub fn non_empty_bars(bars: &[PeriodBar]) -> Vec<&PeriodBar> {
    bars.iter().filter(|bar| bar.total() > 0).collect()
}
