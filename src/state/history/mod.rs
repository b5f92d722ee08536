//! The history for the dashboard, in the state database: counts of requests by hour, day and week,
//! counts of visits and of requested paths by day, and samples of requests that break the rules. A
//! [`RequestHistoryBatch`] collects what is new, and is written in the same transaction as other
//! state. [`RequestHistoryReader`] reads the history, even while another process writes.

mod batch;
mod peer_counts;
#[cfg(feature = "state")]
mod peer_sums;
#[cfg(feature = "state")]
mod read;
#[cfg(feature = "state")]
mod samples;
#[cfg(feature = "state")]
mod sql;
#[cfg(feature = "state")]
mod tables;
#[cfg(feature = "state")]
mod traffic;
#[cfg(feature = "state")]
mod traffic_reader;

pub use batch::{DailyCountKind, RequestHistoryBatch};
pub use peer_counts::PeerPeriodCounts;
#[cfg(feature = "state")]
pub(super) use {
    read::InMemoryHistory,
    tables::{create_tables, write_batch},
};
#[cfg(feature = "state")]
pub use {
    read::{RequestHistoryError, RequestHistoryReader},
    samples::{SampleFilter, SampleGroup, ViolatorSummary},
};

use crate::time::Timestamp;
use PeriodLength::{Day, Hour, Week};

/// Seconds of an hour.
pub const HOUR: i64 = 3_600;
/// Seconds of a day.
pub const DAY: i64 = 86_400;
/// The most samples of one site, crawler, kind, rule, identity and day.
pub const MAX_SAMPLES_PER_DAY: usize = 20;

/// The visits that a referring service sent.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServiceVisits {
    /// The id of the service, see [`Services`](crate::referrals::Services).
    pub service: String,
    /// Requests of visitors that came from it.
    pub visits: u64,
}

/// The requests of a crawler for a path.
#[derive(serde::Serialize)]
pub struct PathRequestCount {
    /// The path, in printable ASCII: other bytes are percent-encoded.
    pub path: String,
    /// The requests for it.
    pub requests: u64,
    /// By how much that may be too high.
    pub error: u64,
}

/// The length of the periods in which the history counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodLength {
    /// An hour; hours are kept for 7 days.
    Hour,
    /// A day; days are kept for 130 days.
    Day,
    /// A week from Monday on; weeks are kept for 400 days.
    Week,
}

impl PeriodLength {
    /// Every length.
    pub const ALL: [PeriodLength; 3] = [Hour, Day, Week];
    /// 1970-01-05, in seconds since 1970-01-01.
    const FIRST_MONDAY: i64 = 4 * DAY;

    /// How many seconds periods of this length are kept.
    pub fn retention_seconds(self) -> i64 {
        match self {
            Hour => 7 * DAY,
            Day => 130 * DAY,
            Week => 400 * DAY,
        }
    }

    /// In seconds.
    pub fn seconds(self) -> i64 {
        match self {
            Hour => HOUR,
            Day => DAY,
            Week => 7 * DAY,
        }
    }

    /// The beginning, in UTC, of the period that has `moment`. Weeks begin on Monday.
    pub fn start_of(self, moment: Timestamp) -> Timestamp {
        let first = if self == Week {
            PeriodLength::FIRST_MONDAY
        } else {
            0
        };
        Timestamp(moment.0 - (moment.0 - first).rem_euclid(self.seconds()))
    }
}

#[cfg(test)]
mod tests {
    use super::PeriodLength;
    use crate::time::Timestamp;

    #[test]
    fn periods_begin_on_the_hour_at_midnight_and_on_monday() {
        // 2026-11-22 is a Sunday.
        let at = |text: &str| Timestamp::parse(text).expect("a time");
        let moment = at("2026-11-22T19:24:11Z");
        assert_eq!(
            PeriodLength::Hour.start_of(moment),
            at("2026-11-22T19:00:00Z")
        );
        assert_eq!(
            PeriodLength::Day.start_of(moment),
            at("2026-11-22T00:00:00Z")
        );
        assert_eq!(
            PeriodLength::Week.start_of(moment),
            at("2026-11-16T00:00:00Z")
        );
        assert_eq!(
            PeriodLength::Week.start_of(at("2026-11-16T00:00:00Z")),
            at("2026-11-16T00:00:00Z")
        );
    }
}
