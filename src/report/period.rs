//! [`Period`]: the span of time that a page or a report covers, divided into hours, days or weeks.

use super::charts::Bar;
use crate::record::ByIdentity;
use crate::state::history::{DAY, Step};
use crate::time::Timestamp;
use std::time::Duration;

/// The time that a page is about, up to now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Period {
    /// The beginning of its first hour, day or week.
    pub from: Timestamp,
    /// Now.
    pub to: Timestamp,
    /// Hours, days or weeks.
    pub step: Step,
}

/// More days are shown as weeks: no screen has so many pixels.
const MAX_DAYS: i64 = 120;
impl Period {
    /// The last `days` days: in hours for one day, in weeks for more than 120 days. The first hour,
    /// day or week is a whole one, so the period may be longer.
    pub fn days(days: i64, now: Timestamp) -> Period {
        let step = match days {
            ..=1 => Step::Hour,
            2..=MAX_DAYS => Step::Day,
            _ => Step::Week,
        };
        Period {
            from: step.begin(Timestamp(now.0 - days * DAY)),
            to: now,
            step,
        }
    }

    /// The last `duration`: in hours, whole ones, unless `duration` is a number of whole days, or
    /// longer than hours are kept. Then it is in days, rounded up, as `Period::days` divides
    /// them.
    pub fn since(duration: Duration, now: Timestamp) -> Period {
        let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
        if seconds % DAY == 0 || seconds > Step::Hour.kept() {
            return Period::days(seconds / DAY + i64::from(seconds % DAY != 0), now);
        }
        Period {
            from: Step::Hour.begin(Timestamp(now.0 - seconds)),
            to: now,
            step: Step::Hour,
        }
    }

    /// The shortest of a day, 7 and 30 days that has everything since the first day with requests.
    pub fn fitting(first_day: Option<Timestamp>, now: Timestamp) -> Period {
        let age = first_day.map_or(0, |first| now.0 - first.0);
        let days = match age {
            ..=DAY => 1,
            age if age <= 7 * DAY => 7,
            _ => 30,
        };
        Period::days(days, now)
    }

    /// The number of days, if it is one of whole days up to now.
    pub fn whole_days(&self, choices: &[i64]) -> Option<i64> {
        let mut choices = choices.iter().copied();
        choices.find(|days| Period::days(*days, self.to) == *self)
    }

    /// How many hours, days or weeks it has.
    pub(super) fn len(&self) -> usize {
        usize::try_from((self.to.0 - self.from.0) / self.step.seconds() + 1).unwrap_or(1)
    }

    /// Which hour, day or week of the period (from 0) has this moment. `None` after its end, and a
    /// step or more before its beginning.
    pub fn place(&self, start: Timestamp) -> Option<usize> {
        usize::try_from((start.0 - self.from.0) / self.step.seconds())
            .ok()
            .filter(|place| *place < self.len())
    }

    /// The hour, day or week that begins at `start`, in words for people.
    pub fn name(&self, start: Timestamp) -> String {
        match self.step {
            Step::Hour => start.minute(),
            Step::Day => start.day(),
            Step::Week => format!("week of {}", start.day()),
        }
    }

    /// A bar for each hour, day or week, those without requests included.
    pub fn bars(&self, series: &[(Timestamp, ByIdentity)]) -> Vec<Bar> {
        let mut bars: Vec<Bar> = (0..self.len())
            .map(|place| {
                let start = Timestamp(
                    self.from.0 + i64::try_from(place).unwrap_or(0) * self.step.seconds(),
                );
                Bar {
                    period: self.name(start),
                    ..Bar::default()
                }
            })
            .collect();
        for (start, by_identity) in series {
            if let Some(bar) = self.place(*start).and_then(|place| bars.get_mut(place)) {
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
    use super::{Period, Step};
    use crate::time::Timestamp;
    use std::time::Duration;

    #[test]
    fn a_time_in_hours_is_counted_in_hours() {
        let now = Timestamp::parse("2026-11-22T19:24:11Z").expect("a time");
        let since = |hours: u64| {
            let Period { from, step, .. } = Period::since(Duration::from_secs(hours * 3_600), now);
            (from.to_string(), step)
        };
        assert_eq!(since(1), ("2026-11-22T18:00:00Z".into(), Step::Hour));
        assert_eq!(since(25), ("2026-11-21T18:00:00Z".into(), Step::Hour));
        assert_eq!(since(36), ("2026-11-21T07:00:00Z".into(), Step::Hour));
        assert_eq!(since(24), ("2026-11-21T19:00:00Z".into(), Step::Hour));
        assert_eq!(since(48), ("2026-11-20T00:00:00Z".into(), Step::Day));
        assert_eq!(
            since(7 * 24 + 1),
            ("2026-11-14T00:00:00Z".into(), Step::Day)
        );
    }

    #[test]
    fn a_time_is_never_shorter_than_asked_for() {
        let now = Timestamp::parse("2026-11-23T03:41:00Z").expect("a time");
        for hours in 1..=400 * 24 {
            let from = Period::since(Duration::from_secs(hours * 3_600), now).from;
            let asked = i64::try_from(hours).expect("few") * 3_600;
            assert!(now.0 - from.0 >= asked, "{hours}h: {from}");
        }
    }
}
