//! Moments in ISO 8601 as people write them, beyond RFC 3339: the basic forms, offsets in hours, dates by week and by
//! the day of the year. A day without a time is its midnight, a time without an offset is UTC.
//!
//! What could be something else is none: `2030176` (a day of the year without its hyphen, or a slip in `20300176`),
//! `2030-06` and `2030-W26`, which are no days.

use crate::time::Timestamp;
use chrono::{NaiveDate, NaiveTime, Weekday};

/// The moment that a text says.
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let midnight = self::date(date)?.and_time(NaiveTime::MIN).and_utc().timestamp();
    Some(Timestamp(midnight + time.map_or(Some(0), seconds)?))
}

/// Digits, and nothing else, of this number.
fn number(text: &str, digits: usize) -> Option<u32> {
    (text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `2030-06-25`, `20300625`, `2030-W26-2`, `2030W262`, `2030-176`.
fn date(text: &str) -> Option<NaiveDate> {
    let (year, rest) = text.split_at_checked(4)?;
    let year = i32::try_from(number(year, 4)?).ok()?;
    let extended = rest.strip_prefix('-');
    let rest = extended.unwrap_or(rest);
    if let Some(week) = rest.strip_prefix(['W', 'w']) {
        let (week, day) = match extended {
            Some(_) => week.split_once('-')?,
            None => week.split_at_checked(2)?,
        };
        let day = number(day, 1).filter(|day| (1..=7).contains(day))?;
        return NaiveDate::from_isoywd_opt(year, number(week, 2)?, Weekday::try_from(day as u8 - 1).ok()?);
    }
    match extended {
        Some(day) if day.len() == 3 => NaiveDate::from_yo_opt(year, number(day, 3)?),
        Some(rest) => {
            let (month, day) = rest.split_once('-')?;
            NaiveDate::from_ymd_opt(year, number(month, 2)?, number(day, 2)?)
        }
        None => {
            let (month, day) = rest.split_at_checked(2)?;
            NaiveDate::from_ymd_opt(year, number(month, 2)?, number(day, 2)?)
        }
    }
}

/// From midnight in UTC: `15:00:00.5Z`, `15:00-08`, `1500+0530`, `15`.
fn seconds(text: &str) -> Option<i64> {
    let end = text.find(|sign: char| !sign.is_ascii_digit() && sign != ':').unwrap_or(text.len());
    let (time, mut zone) = text.split_at(end);
    let part = |from: usize| time.get(from..from + 2).and_then(|part| number(part, 2));
    let (hour, minute, second) = match (time.len(), time.contains(':')) {
        (2, false) => (part(0)?, 0, 0),
        (4, false) => (part(0)?, part(2)?, 0),
        (6, false) => (part(0)?, part(2)?, part(4)?),
        (5, true) => (part(0)?, part(3)?, 0),
        (8, true) => (part(0)?, part(3)?, part(6)?),
        _ => return None,
    };
    // Fractions of a second do not count; those of an hour or a minute are not used.
    if let Some(fraction) = zone.strip_prefix('.').filter(|_| matches!(time.len(), 6 | 8)) {
        let end = fraction.find(|sign: char| !sign.is_ascii_digit()).filter(|end| *end > 0);
        zone = match end {
            Some(end) => &fraction[end..],
            None if !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit()) => "",
            None => return None,
        };
    }
    // The midnight that ends a day.
    let ends_day = (hour, minute, second) == (24, 0, 0);
    if !ends_day {
        NaiveTime::from_hms_opt(hour, minute, second)?;
    }
    Some(i64::from(hour * 3600 + minute * 60 + second) - offset(zone.trim_start())?)
}

/// Seconds east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.is_empty() || ["z", "utc", "gmt"].iter().any(|utc| utc.eq_ignore_ascii_case(zone)) {
        return Some(0);
    }
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (number(hours, 2)?, number(minutes, 2)?),
        None if digits.len() == 2 => (number(digits, 2)?, 0),
        None => (number(digits, 4)? / 100, number(digits, 4)? % 100),
    };
    // No place is further from UTC.
    (hours <= 14 && minutes < 60).then_some(sign * i64::from(hours * 3600 + minutes * 60))
}
