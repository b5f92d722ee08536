//! [`Zone`]: a time zone of the IANA database, and [`Recurrence`]: a daily or weekly span of time
//! in a zone, such as `02:00-03:00` in Europe/Berlin. The database is compiled in (chrono-tz),
//! because the engine that judges requests reads no file.

use super::Timestamp;
use chrono::{DateTime, MappedLocalTime, NaiveDate, NaiveTime, TimeDelta, TimeZone, Weekday};
use std::fmt;
use std::time::Duration;

/// The most minutes that a zone ever skipped at once, with a margin (Samoa skipped a day in 2011).
const MAX_SKIPPED_MINUTES: i64 = 25 * 60;
/// How long [`Recurrence::spans_around`] still returns a span that has ended: the clock may be set
/// back.
const PAST_SPANS_KEPT: Duration = Duration::from_secs(86_400);
/// The most future spans that [`Recurrence::spans_around`] returns.
const MAX_UPCOMING_SPANS: usize = 2;

/// A time zone of the IANA database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone(chrono_tz::Tz);

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Zone = Zone(chrono_tz::UTC);

    /// The zone of this name, as in `Europe/Berlin`.
    pub fn from_name(name: &str) -> Option<Zone> {
        name.parse().ok().map(Zone)
    }

    /// Its name in the IANA database.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// The names of all zones.
    pub fn names() -> impl Iterator<Item = &'static str> {
        chrono_tz::TZ_VARIANTS.iter().map(|zone| zone.name())
    }

    /// The timestamp of a local day and minute (from midnight). Of a minute that occurs twice, the
    /// last one if `is_last`, else the first. For a minute that is skipped, the time of the jump.
    fn to_timestamp(self, day: NaiveDate, minute: u16, is_last: bool) -> Option<Timestamp> {
        let local = day
            .and_time(NaiveTime::MIN)
            .checked_add_signed(TimeDelta::minutes(minute.into()))?;
        (0..MAX_SKIPPED_MINUTES)
            .find_map(|back| {
                let (first, last) = match self
                    .0
                    .from_local_datetime(&(local - TimeDelta::minutes(back)))
                {
                    MappedLocalTime::Single(moment) => (moment.timestamp(), moment.timestamp()),
                    MappedLocalTime::Ambiguous(first, last) => {
                        (first.timestamp(), last.timestamp())
                    }
                    MappedLocalTime::None => return None,
                };
                // The clock jumped one minute after the last minute that exists.
                Some(if back > 0 {
                    last + 60
                } else if is_last {
                    last
                } else {
                    first
                })
            })
            .map(Timestamp)
    }
}

/// A span of time that recurs each day or each week, in local time of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recurrence {
    /// The day on which it begins; every day when absent.
    pub weekday: Option<Weekday>,
    /// When it begins, in minutes after midnight.
    pub begins: u16,
    /// When it ends; on the next day where that is no later than it begins.
    pub ends: u16,
    /// The zone of the clock.
    pub zone: Zone,
}

impl Recurrence {
    /// Parses `02:00-03:00`, or `Sun 02:00-03:00` if `is_weekly`. `None` for an empty span.
    pub fn parse(text: &str, is_weekly: bool, zone: Zone) -> Option<Recurrence> {
        let (weekday, span) = if is_weekly {
            text.split_once(' ')
                .and_then(|(day, span)| Some((Some(day.parse().ok()?), span)))?
        } else {
            (None, text)
        };
        let (begins, ends) = span.split_once('-')?;
        let begins = parse_minute_of_day(begins)?;
        let ends = parse_minute_of_day(ends)?;
        (begins != ends).then_some(Recurrence {
            weekday,
            begins,
            ends,
            zone,
        })
    }

    /// The begin and end of the spans around `now`, in their order: those that ended within the last
    /// day, the present one, and the next two. Spans that the clock skips are left out.
    pub fn spans_around(&self, now: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        let Some(moment) = DateTime::from_timestamp(now.0, 0) else {
            return Vec::new();
        };
        let today = moment.with_timezone(&self.zone.0).date_naive();
        let days = (-2..=15).filter_map(|days| today.checked_add_signed(TimeDelta::days(days)));
        let days = days.filter(|day| {
            self.weekday
                .is_none_or(|weekday| chrono::Datelike::weekday(day) == weekday)
        });
        let spans = days.filter_map(|day| {
            let last = if self.ends > self.begins {
                day
            } else {
                day.succ_opt()?
            };
            Some((
                self.zone.to_timestamp(day, self.begins, false)?,
                self.zone.to_timestamp(last, self.ends, true)?,
            ))
        });
        let spans: Vec<_> = spans
            .filter(|(begin, end)| begin < end && now < end.plus(PAST_SPANS_KEPT))
            .collect();
        let begun = spans.iter().filter(|(begin, _)| *begin <= now).count();
        spans.into_iter().take(begun + MAX_UPCOMING_SPANS).collect()
    }
}

/// Parses a time of day, `02:00`, as minutes from midnight.
fn parse_minute_of_day(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    Some(parse_two_digits(hours, 24)? * 60 + parse_two_digits(minutes, 60)?)
}

fn parse_two_digits(text: &str, below: u16) -> Option<u16> {
    let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok()?;
    (is_plain && number < below).then_some(number)
}

impl fmt::Display for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.weekday {
            Some(day) => write!(f, "weekly {day}")?,
            None => f.write_str("daily")?,
        }
        let [begins, ends] =
            [self.begins, self.ends].map(|minute| format!("{:02}:{:02}", minute / 60, minute % 60));
        write!(f, " {begins}-{ends} {}", self.zone.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str, zone: &str, now: &str) -> Vec<String> {
        let zone = Zone::from_name(zone).expect("a zone");
        let is_weekly = text.contains(' ');
        let recurrence = Recurrence::parse(text, is_weekly, zone).expect("a recurrence");
        let spans = recurrence.spans_around(Timestamp::parse(now).expect("a moment"));
        spans
            .iter()
            .map(|(begin, end)| format!("{begin} {end}").replace(":00Z", ""))
            .collect()
    }

    #[test]
    fn spans_around_a_moment_are_those_of_the_zone() {
        assert_eq!(
            spans("02:00-03:00", "Europe/Berlin", "2026-12-02T01:30:00Z"),
            [
                "2026-12-01T01:00 2026-12-01T02:00",
                "2026-12-02T01:00 2026-12-02T02:00",
                "2026-12-03T01:00 2026-12-03T02:00",
                "2026-12-04T01:00 2026-12-04T02:00"
            ]
        );
        assert_eq!(
            spans(
                "Sun 23:30-00:30",
                "America/New_York",
                "2026-07-05T12:00:00Z"
            ),
            [
                "2026-07-06T03:30 2026-07-06T04:30",
                "2026-07-13T03:30 2026-07-13T04:30"
            ]
        );
        assert_eq!(
            spans("00:00-12:00", "Asia/Kolkata", "2026-07-05T00:00:00Z")[1..3],
            [
                "2026-07-04T18:30 2026-07-05T06:30",
                "2026-07-05T18:30 2026-07-06T06:30"
            ]
        );
    }

    /// On the last Sunday of March the clock jumps from 02:00 to 03:00, on that of October from
    /// 03:00 back to 02:00.
    #[test]
    fn skipped_and_doubled_hours_follow_wall_clock() {
        let of_day = |text: &str, day: &str| -> Vec<String> {
            let all = spans(text, "Europe/Berlin", &format!("{day}T00:00:00Z"));
            all.into_iter()
                .filter(|span| span.starts_with(day))
                .take(1)
                .collect()
        };
        assert_eq!(of_day("02:00-03:00", "2026-03-29"), Vec::<String>::new());
        assert_eq!(of_day("02:15-02:45", "2026-03-29"), Vec::<String>::new());
        assert_eq!(
            of_day("01:30-02:30", "2026-03-29"),
            ["2026-03-29T00:30 2026-03-29T01:00"]
        );
        assert_eq!(
            of_day("02:30-03:30", "2026-03-29"),
            ["2026-03-29T01:00 2026-03-29T01:30"]
        );
        assert_eq!(
            of_day("02:00-03:00", "2026-10-25"),
            ["2026-10-25T00:00 2026-10-25T02:00"]
        );
        assert_eq!(
            of_day("02:30-03:30", "2026-10-25"),
            ["2026-10-25T00:30 2026-10-25T02:30"]
        );
        // Samoa had no 30 December 2011.
        assert_eq!(
            spans("02:00-03:00", "Pacific/Apia", "2011-12-30T00:00:00Z"),
            [
                "2011-12-29T12:00 2011-12-29T13:00",
                "2011-12-30T12:00 2011-12-30T13:00",
                "2011-12-31T12:00 2011-12-31T13:00"
            ]
        );
    }

    #[test]
    fn recurrences_are_parsed_strictly() {
        for (text, is_weekly) in [
            ("2:00-03:00", false),
            ("02:00", false),
            ("02:00-02:00", false),
            ("02:60-03:00", false),
            ("+2:00-03:00", false),
            ("Sun 02:00-03:00", false),
            ("02:00-03:00", true),
            ("Someday 02:00-03:00", true),
        ] {
            assert_eq!(
                Recurrence::parse(text, is_weekly, Zone::UTC),
                None,
                "{text}"
            );
        }
        let weekly =
            Recurrence::parse("sunday 22:00 - 00:00", true, Zone::UTC).expect("a recurrence");
        assert_eq!(weekly.to_string(), "weekly Sun 22:00-00:00 UTC");
    }

    #[test]
    fn timestamp_beyond_calendars_has_no_spans() {
        let daily = Recurrence::parse("02:00-03:00", false, Zone::UTC).expect("a recurrence");
        for now in [i64::MIN, i64::MAX] {
            assert_eq!(daily.spans_around(Timestamp(now)), []);
        }
    }
}
