//! [`ReportPeriod`]: the time that a page or a report covers, divided into steps of an hour, a day
//! or a week. [`PeriodBound`] is the beginning or the end of a period, in the form in which users
//! write it on the command line.

use super::charts::PeriodBar;
use crate::record::CountsByIdentity;
use crate::state::history::{DAY, PeriodLength};
use crate::time::Timestamp;
use crate::yaml::parse_duration;
use PeriodBound::{Ago, At};
use PeriodLength::*;
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// The beginning or the end of a period: a duration before now, or a time.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum PeriodBound {
    Ago(Duration),
    At(Timestamp),
}

impl PeriodBound {
    /// The time that it is at `now`.
    pub fn moment(self, now: Timestamp) -> Timestamp {
        match self {
            Ago(duration) => {
                let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
                Timestamp(now.0.saturating_sub(seconds))
            }
            At(time) => time,
        }
    }
}

/// Parses a duration like `7d`, a date, or a time. The error says what to write.
impl FromStr for PeriodBound {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<PeriodBound, &'static str> {
        if let Some(time) = Timestamp::parse(text) {
            return Ok(At(time));
        }
        parse_duration(text).map(Ago).or(Err(
            "write a duration like 10h or 14d, a date like 2026-11-01, or a time like 2026-11-01T10:00:00Z",
        ))
    }
}

/// A span of time in whole steps.
#[derive(Clone, Copy, PartialEq)]
pub struct ReportPeriod {
    /// The beginning of its first step.
    pub from: Timestamp,
    /// The last second of its last step, or now if that is earlier.
    pub to: Timestamp,
    /// An hour, a day or a week.
    pub step: PeriodLength,
}

/// A longer period has steps of a week: a chart has too few pixels for more bars.
const MAX_DAYS: i64 = 120;

impl ReportPeriod {
    /// The last `days` days, in hours for one day and in weeks for more than 120 days. The first
    /// step is a whole one, so the period may be longer.
    pub fn last_days(days: i64, now: Timestamp) -> ReportPeriod {
        ReportPeriod::between(Timestamp(now.0 - days * DAY), now, now)
    }

    /// The period of `--since` and `--until`. By default it ends now, and begins 1, 7 or 30 days
    /// before its end: the shortest of them that reaches back to the first day with requests.
    pub fn from_bounds(
        since: Option<PeriodBound>,
        until: Option<PeriodBound>,
        first_day: Option<Timestamp>,
        now: Timestamp,
    ) -> ReportPeriod {
        let until = until.map_or(now, |until| until.moment(now));
        let since = since.unwrap_or_else(|| {
            let age = first_day.map_or(0, |first| until.0.saturating_sub(first.0));
            let days = match age {
                ..=DAY => 1,
                age if age <= 7 * DAY => 7,
                _ => 30,
            };
            At(Timestamp(until.0.saturating_sub(days * DAY)))
        });
        ReportPeriod::between(since.moment(now), until, now)
    }

    /// The steps from that of `since` to the last one that begins before `until`, but not after
    /// `now`. They are hours, or days for whole days and if the history has no hours of that time.
    /// They are weeks for more than 120 days and if the history has no days.
    fn between(since: Timestamp, until: Timestamp, now: Timestamp) -> ReportPeriod {
        let since = since.max(Timestamp(now.0 - Week.retention_seconds()));
        let until = until.max(since).min(now);
        let length = until.0 - since.0;
        let has = |step: PeriodLength| now.0 - since.0 <= step.retention_seconds();
        let step = if (length <= DAY || length % DAY != 0) && has(Hour) {
            Hour
        } else if length <= MAX_DAYS * DAY && has(Day) {
            Day
        } else {
            Week
        };
        let mut to = now;
        if until < now {
            let last = step.start_of(Timestamp(until.0 - 1));
            to = now.min(Timestamp(last.0 + step.seconds() - 1));
        }
        ReportPeriod {
            from: step.start_of(since),
            to,
            step,
        }
    }

    /// The number of days, if the period is the last of one of these `choices`.
    pub fn whole_days(&self, choices: &[i64]) -> Option<i64> {
        let mut choices = choices.iter().copied();
        choices.find(|days| ReportPeriod::last_days(*days, self.to) == *self)
    }

    pub(super) fn step_count(&self) -> usize {
        usize::try_from((self.to.0 - self.from.0) / self.step.seconds() + 1).unwrap_or(1)
    }

    /// The index of the step that has this time. `None` after the end, and a step or more before the
    /// beginning.
    pub fn step_index(&self, time: Timestamp) -> Option<usize> {
        usize::try_from((time.0 - self.from.0) / self.step.seconds())
            .ok()
            .filter(|place| *place < self.step_count())
    }

    /// The step that begins at `start`, for people.
    pub fn step_label(&self, start: Timestamp) -> String {
        match self.step {
            Hour => start.format_minute(),
            Day => start.format_day(),
            Week => format!("week of {}", start.format_day()),
        }
    }

    /// A bar for each step, also for steps without requests.
    pub fn bars(&self, series: &[(Timestamp, CountsByIdentity)]) -> Vec<PeriodBar> {
        let mut bars: Vec<PeriodBar> = (0..self.step_count())
            .map(|place| {
                let start = Timestamp(
                    self.from.0 + i64::try_from(place).unwrap_or(0) * self.step.seconds(),
                );
                PeriodBar {
                    period: self.step_label(start),
                    ..PeriodBar::default()
                }
            })
            .collect();
        for (start, by_identity) in series {
            if let Some(bar) = self
                .step_index(*start)
                .and_then(|place| bars.get_mut(place))
            {
                for (identity, counts) in by_identity.iter() {
                    bar.add(identity.into(), counts);
                }
            }
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::PeriodLength::*;
    use super::{PeriodBound, ReportPeriod};
    use crate::time::Timestamp;
    use std::time::Duration;

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-22T19:24:11Z").expect("a time")
    }

    fn last_hours(hours: u64) -> ReportPeriod {
        let since = PeriodBound::Ago(Duration::from_secs(hours * 3_600));
        ReportPeriod::from_bounds(Some(since), None, None, now())
    }

    #[test]
    fn duration_in_hours_has_hourly_steps() {
        let since = |hours: u64| {
            let ReportPeriod { from, step, .. } = last_hours(hours);
            (from.to_string(), step)
        };
        assert_eq!(since(1), ("2026-11-22T18:00:00Z".into(), Hour));
        assert_eq!(since(25), ("2026-11-21T18:00:00Z".into(), Hour));
        assert_eq!(since(36), ("2026-11-21T07:00:00Z".into(), Hour));
        assert_eq!(since(24), ("2026-11-21T19:00:00Z".into(), Hour));
        assert_eq!(since(48), ("2026-11-20T00:00:00Z".into(), Day));
        assert_eq!(since(7 * 24 + 1), ("2026-11-15T00:00:00Z".into(), Day));
    }

    #[test]
    fn period_is_never_shorter_than_requested() {
        for hours in 1..=400 * 24 {
            let from = last_hours(hours).from;
            let requested = i64::try_from(hours).expect("few") * 3_600;
            assert!(now().0 - from.0 >= requested, "{hours}h: {from}");
        }
    }

    #[test]
    fn bound_is_duration_date_or_time() {
        let seconds_ago = |text: &str| {
            let bound: PeriodBound = text.parse().ok()?;
            Some(now().0 - bound.moment(now()).0)
        };
        for (text, seconds) in [
            ("7d", Some(7 * 86_400)),
            ("2026-11-22", Some(19 * 3_600 + 24 * 60 + 11)),
            ("2026-11-22T19:24:00Z", Some(11)),
            ("2026-11-22T20:24:00+01:00", Some(11)),
            ("2026-13-01", None),
            ("2026-11-22T19:24", None),
            ("7", None),
            ("-1d", None),
            ("", None),
        ] {
            assert_eq!(seconds_ago(text), seconds, "{text}");
        }
    }

    #[test]
    fn period_ends_with_whole_step_before_until() {
        for (since, until, period) in [
            (
                "2026-11-01",
                "2026-11-08",
                "2026-11-01 00:00 2026-11-07 23:59 Day",
            ),
            (
                "2026-11-01",
                "2026-11-08T00:00:01Z",
                "2026-11-01 00:00 2026-11-08 23:59 Day",
            ),
            (
                "2026-11-21",
                "2026-11-22",
                "2026-11-21 00:00 2026-11-21 23:59 Hour",
            ),
            (
                "2026-11-21T10:30:00Z",
                "2026-11-21T12:30:00Z",
                "2026-11-21 10:00 2026-11-21 12:59 Hour",
            ),
            ("2d", "26h", "2026-11-20 19:00 2026-11-21 17:59 Hour"),
            // The history has no hours of that time, and then no days.
            (
                "2026-11-01",
                "2026-11-02",
                "2026-11-01 00:00 2026-11-01 23:59 Day",
            ),
            (
                "2026-07-01",
                "2026-07-02",
                "2026-06-29 00:00 2026-07-05 23:59 Week",
            ),
            (
                "2026-11-22",
                "2027-01-01",
                "2026-11-22 00:00 2026-11-22 19:24 Hour",
            ),
            ("2026-11-20", "1h", "2026-11-20 00:00 2026-11-22 18:59 Hour"),
        ] {
            let [since, until] = [since, until].map(|text| text.parse().ok());
            let ReportPeriod { from, to, step } =
                ReportPeriod::from_bounds(since, until, None, now());
            let found = format!("{} {} {step:?}", from.format_minute(), to.format_minute());
            assert_eq!(found, period);
        }
    }

    #[test]
    fn default_beginning_is_before_the_end() {
        let [until, first] = ["2026-11-11", "2026-11-08"].map(|text| text.parse().ok());
        let first_day = first.map(|day: PeriodBound| day.moment(now()));
        let period = ReportPeriod::from_bounds(None, until, first_day, now());
        assert_eq!(period.from.format_day(), "2026-11-04");
        assert_eq!(period.to.to_string(), "2026-11-10T23:59:59Z");
        assert_eq!(period.step_count(), 7);
    }
}
