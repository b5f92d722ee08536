//! [`Step`]: the length of the periods by which the history counts.

use super::{DAY, HOUR};
use crate::time::Timestamp;

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
    pub(super) const FIRST_MONDAY: i64 = 4 * DAY;

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

    /// The beginning of the period that a moment is in.
    pub fn begin(self, moment: Timestamp) -> Timestamp {
        let first = if self == Step::Week { Step::FIRST_MONDAY } else { 0 };
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
        assert_eq!(Step::Week.begin(at("2026-11-16T00:00:00Z")), at("2026-11-16T00:00:00Z"));
    }
}
