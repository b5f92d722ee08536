//! [`PeriodBar`] has the requests of an hour, day or week, and [`bar_chart_svg`] draws them as a
//! bar chart in inline SVG, for reports and the dashboard. The chart has a text alternative, and
//! the pages show the same numbers as a table.

use super::ClientIdentity;
use crate::numbers::thousands;
use crate::record::RequestCounts;
use crate::verdict::Kind;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The requests of one hour, day or week.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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

    /// Adds the requests of one crawler name and identity.
    pub fn add(&mut self, identity: ClientIdentity, counts: &RequestCounts) {
        match identity {
            ClientIdentity::Verified | ClientIdentity::Unverified => {
                self.obeyed += counts.obeyed_rules();
                self.not_counted += counts.uncounted();
                self.against_rules += counts.broke_rules();
            }
            ClientIdentity::SuspectedImpostor => {
                self.pretended += counts.obeyed_rules() + counts.uncounted() + counts.broke_rules();
            }
            ClientIdentity::Impostor => self.pretended += counts.requests_of_kind(Kind::Impostor),
        }
    }
}

/// The periods that have requests.
pub fn non_empty_bars(bars: &[PeriodBar]) -> Vec<&PeriodBar> {
    bars.iter().filter(|bar| bar.total() > 0).collect()
}

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 120.0;
const MAX_WIDTH: f64 = 48.0;

/// Draws stacked bars, with the first and the last period below. Empty if fewer than two periods
/// have requests. Needs no escaping: it has only digits and crawlgate's own words.
pub fn bar_chart_svg(shown: &[PeriodBar]) -> String {
    let most = shown.iter().map(PeriodBar::total).max().unwrap_or(0);
    let [first, ..] = shown else {
        return String::new();
    };
    let last = shown.last().unwrap_or(first);
    // One bar says less than the sentence above it.
    if non_empty_bars(shown).len() < 2 {
        return String::new();
    }
    let step = WIDTH / shown.len() as f64;
    let sum = |of: fn(&PeriodBar) -> u64| thousands(shown.iter().map(of).sum::<u64>());
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Crawler requests from {} to {} UTC: {}, of which {} \
         broke the rules, {} do not count, and {} pretended to be a crawler. The largest bar is {}.\">",
        HEIGHT + 1.0,
        first.period,
        last.period,
        sum(PeriodBar::total),
        sum(|bar| bar.against_rules),
        sum(|bar| bar.not_counted),
        sum(|bar| bar.pretended),
        thousands(most)
    );
    for (place, bar) in shown.iter().enumerate().filter(|(_, bar)| bar.total() > 0) {
        let x = place as f64 * step;
        let width = (step * 0.85).min(MAX_WIDTH);
        let _ = write!(
            out,
            "<g><title>{} UTC: {} obeyed, {} do not count, {} broke the rules, {} pretended</title>",
            bar.period, bar.obeyed, bar.not_counted, bar.against_rules, bar.pretended
        );
        let parts = [
            ("some", bar.obeyed),
            ("unknown", bar.not_counted),
            ("bad", bar.against_rules),
            ("impostor", bar.pretended),
        ];
        let mut top = HEIGHT;
        for (class, number) in parts {
            let height = if number == 0 {
                0.0
            } else {
                (number as f64 / most as f64 * HEIGHT).max(1.5)
            };
            top -= height;
            if number > 0 {
                let y = top.max(0.0);
                let _ = write!(
                    out,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
                );
            }
        }
        out.push_str("</g>");
    }
    let _ = write!(
        out,
        "</svg><p class=\"axis\"><span>{} UTC</span><span>{} UTC</span></p>",
        first.period, last.period
    );
    out
}
