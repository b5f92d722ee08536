//! The history: counts of requests by hour, day and week, and samples of requests against the
//! rules. It is for people to look at; nothing is judged by it. [`HistoryBatch`] is added in the
//! same transaction as the facts. [`HistoryReader`] reads the history, also while another process
//! writes.
//!
//! Counts are kept for each site, crawler and identity, and for all sites (an empty site) and all
//! crawlers (an empty crawler), so that an overview need not add them up. Hours are kept for 7
//! days, days for 130 days and weeks for 400 days, within bounds of rows: a page reads tens of
//! periods, however far back it goes.

mod batch;
#[cfg(feature = "state")]
mod counted;
#[cfg(feature = "state")]
mod read;
#[cfg(feature = "state")]
mod samples;
#[cfg(feature = "state")]
mod tables;
mod told;

pub use batch::HistoryBatch;
pub use told::Told;
#[cfg(feature = "state")]
pub(super) use {
    read::Memory,
    tables::{prepare, write},
};
#[cfg(feature = "state")]
pub use {
    read::{HistoryError, HistoryReader},
    samples::{Offence, SampleFilter, SampleGroup},
};

use crate::time::Timestamp;

/// Seconds of an hour.
pub const HOUR: i64 = 3_600;
/// Seconds of a day.
pub const DAY: i64 = 86_400;
/// Samples of one site, crawler, kind, rule, identity and day.
pub const SAMPLES_EACH: usize = 20;

/// The length of the periods by which the history counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// An hour; hours are kept for 7 days.
    Hour,
    /// A day; days are kept for 130 days.
    Day,
    /// A week from Monday on; weeks are kept for 400 days.
    Week,
}

impl Step {
    /// Every length.
    pub const ALL: [Step; 3] = [Step::Hour, Step::Day, Step::Week];
    /// 1970-01-05, in seconds since 1970-01-01.
    const FIRST_MONDAY: i64 = 4 * DAY;

    /// For how many seconds periods of this length are kept.
    pub fn kept(self) -> i64 {
        match self {
            Step::Hour => 7 * DAY,
            Step::Day => 130 * DAY,
            Step::Week => 400 * DAY,
        }
    }

    /// In seconds.
    pub fn seconds(self) -> i64 {
        match self {
            Step::Hour => HOUR,
            Step::Day => DAY,
            Step::Week => 7 * DAY,
        }
    }

    /// The beginning of the period, in UTC, that a moment is in. Weeks begin on Monday.
    pub fn begin(self, moment: Timestamp) -> Timestamp {
        let first = if self == Step::Week {
            Step::FIRST_MONDAY
        } else {
            0
        };
        Timestamp(moment.0 - (moment.0 - first).rem_euclid(self.seconds()))
    }
}

#[cfg(test)]
mod tests {
    use super::Step;
    use crate::time::Timestamp;

    #[test]
    fn periods_begin_on_the_hour_at_midnight_and_on_monday() {
        // 2026-11-22 is a Sunday.
        let at = |text: &str| Timestamp::parse(text).expect("a time");
        let moment = at("2026-11-22T19:24:11Z");
        assert_eq!(Step::Hour.begin(moment), at("2026-11-22T19:00:00Z"));
        assert_eq!(Step::Day.begin(moment), at("2026-11-22T00:00:00Z"));
        assert_eq!(Step::Week.begin(moment), at("2026-11-16T00:00:00Z"));
        assert_eq!(
            Step::Week.begin(at("2026-11-16T00:00:00Z")),
            at("2026-11-16T00:00:00Z")
        );
    }
}
