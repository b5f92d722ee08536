//! [`ReportPeriod`]: the time that a page or a report covers, divided into steps of an hour, a day
//! or a week.

use super::charts::PeriodBar;
use crate::record::CountsByIdentity;
use crate::state::history::{DAY, PeriodLength};
use crate::time::Timestamp;
use std::time::Duration;

/// A span of time up to now, in whole steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportPeriod {
    /// The beginning of its first step.
    pub from: Timestamp,
    /// Now.
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
        let step = match days {
            ..=1 => PeriodLength::Hour,
            2..=MAX_DAYS => PeriodLength::Day,
            _ => PeriodLength::Week,
        };
        ReportPeriod {
            from: step.start_of(Timestamp(now.0 - days * DAY)),
            to: now,
            step,
        }
    }

    /// The last `duration`, in hours. A duration of whole days, or longer than the history has
    /// hours, is rounded up to days, as for [`ReportPeriod::last_days`].
    pub fn last_duration(duration: Duration, now: Timestamp) -> ReportPeriod {
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        if seconds % DAY == 0 || seconds > PeriodLength::Hour.retention_seconds() {
            return ReportPeriod::last_days(seconds / DAY + i64::from(seconds % DAY != 0), now);
        }
        ReportPeriod {
            from: PeriodLength::Hour.start_of(Timestamp(now.0 - seconds)),
            to: now,
            step: PeriodLength::Hour,
        }
    }

    /// The shortest of 1, 7 and 30 days that reaches back to the first day with requests.
    pub fn since_first_day(first_day: Option<Timestamp>, now: Timestamp) -> ReportPeriod {
        let age = first_day.map_or(0, |first| now.0 - first.0);
        let days = match age {
            ..=DAY => 1,
            age if age <= 7 * DAY => 7,
            _ => 30,
        };
        ReportPeriod::last_days(days, now)
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
            PeriodLength::Hour => start.format_minute(),
            PeriodLength::Day => start.format_day(),
            PeriodLength::Week => format!("week of {}", start.format_day()),
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
    use super::{PeriodLength, ReportPeriod};
    use crate::time::Timestamp;
    use std::time::Duration;

    #[test]
    fn duration_in_hours_has_hourly_steps() {
        let now = Timestamp::parse("2026-11-22T19:24:11Z").expect("a time");
        let since = |hours: u64| {
            let ReportPeriod { from, step, .. } =
                ReportPeriod::last_duration(Duration::from_secs(hours * 3_600), now);
            (from.to_string(), step)
        };
        assert_eq!(
            since(1),
            ("2026-11-22T18:00:00Z".into(), PeriodLength::Hour)
        );
        assert_eq!(
            since(25),
            ("2026-11-21T18:00:00Z".into(), PeriodLength::Hour)
        );
        assert_eq!(
            since(36),
            ("2026-11-21T07:00:00Z".into(), PeriodLength::Hour)
        );
        assert_eq!(
            since(24),
            ("2026-11-21T19:00:00Z".into(), PeriodLength::Hour)
        );
        assert_eq!(
            since(48),
            ("2026-11-20T00:00:00Z".into(), PeriodLength::Day)
        );
        assert_eq!(
            since(7 * 24 + 1),
            ("2026-11-14T00:00:00Z".into(), PeriodLength::Day)
        );
    }

    #[test]
    fn period_is_never_shorter_than_requested() {
        let now = Timestamp::parse("2026-11-23T03:41:00Z").expect("a time");
        for hours in 1..=400 * 24 {
            let from = ReportPeriod::last_duration(Duration::from_secs(hours * 3_600), now).from;
            let requested = i64::try_from(hours).expect("few") * 3_600;
            assert!(now.0 - from.0 >= requested, "{hours}h: {from}");
        }
    }
}
