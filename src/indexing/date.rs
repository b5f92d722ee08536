//! [`parse_date`] parses the date of the robots directive `unavailable_after`: the forms that
//! Google documents (RFC 822, RFC 850, ISO 8601), and common ones such as `June 25, 2030`.
//! Ambiguous dates are rejected: `06/07/2030`, `2030176`, abbreviations of time zones that several
//! countries use.

use crate::time::Timestamp;
use chrono::{Month, NaiveDate, NaiveTime};

/// The longest dates in use have some forty characters.
const MAX_DATE_BYTES: usize = 64;
/// The year by which years of two digits are completed. A constant, because the engine reads no
/// clock.
const REFERENCE_YEAR: i32 = 2026;

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
/// Unambiguous names of zones with their offset in hours: those of RFC 822 section 5.1 (which settles
/// `CST`) and of Europe. `BST` and `IST` have several meanings.
const ZONES: [(&str, i64); 18] = [
    ("UTC", 0),
    ("GMT", 0),
    ("UT", 0),
    ("Z", 0),
    ("EST", -5),
    ("EDT", -4),
    ("CST", -6),
    ("CDT", -5),
    ("MST", -7),
    ("MDT", -6),
    ("PST", -8),
    ("PDT", -7),
    ("WET", 0),
    ("WEST", 1),
    ("CET", 1),
    ("CEST", 2),
    ("EET", 2),
    ("EEST", 3),
];

/// Other names of zones, some of them ambiguous. A date with one is kept as text.
const OTHER_ZONES: [&str; 20] = [
    "IST", "BST", "JST", "KST", "AEST", "AEDT", "ACST", "ACDT", "AWST", "NZST", "NZDT", "SGT",
    "HKT", "MSK", "BRT", "ART", "AKST", "AKDT", "HST", "SAST",
];

/// Parses a date. A day without a time is its midnight, a time without a zone is UTC. `None` if it
/// has more than 64 bytes, or a year that RFC 3339 cannot write.
pub fn parse_date(text: &str) -> Option<Timestamp> {
    let text = text.trim_matches([' ', '\t']);
    if text.len() > MAX_DATE_BYTES {
        return None;
    }
    Timestamp::parse(text)
        .or_else(|| parse_iso_date(text))
        .or_else(|| parse_worded_date(text))
        .and_then(Timestamp::within_rfc3339)
}

/// The time `seconds` after the midnight (UTC) of a day.
fn timestamp_on(day: NaiveDate, seconds: i64) -> Timestamp {
    Timestamp(day.and_time(NaiveTime::MIN).and_utc().timestamp() + seconds)
}

/// ISO 8601: `2030-06-25T15:00:00Z`, `20300625T1500-08`, `2030-W26-2`, `2030-176`.
fn parse_iso_date(text: &str) -> Option<Timestamp> {
    let end = text.find(['T', 't', ' ', ',']);
    let (day, time) = end.map_or((text, None), |end| {
        (&text[..end], Some(text[end + 1..].trim_start()))
    });
    let day = day.to_ascii_uppercase();
    let shape: String = day
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    let form = match shape.as_str() {
        "00000000" => "%Y%m%d",
        "0000-000" => "%Y-%j",
        "0000-W00-0" => "%G-W%V-%u",
        "0000W000" => "%GW%V%u",
        _ if shape.starts_with("0000-") => "%Y-%m-%d",
        _ => return None,
    };
    let day = NaiveDate::parse_from_str(&day, form).ok()?;
    Some(timestamp_on(
        day,
        time.map_or(Some(0), |time| parse_time_of_day(time, true))?,
    ))
}

/// A date in words: `Friday, 25-Jun-30 15:00:00 GMT`, `Jun 25 2030 15:00 EST`, `Jun 25 15:00:00 PST
/// 2030`.
fn parse_worded_date(text: &str) -> Option<Timestamp> {
    // Browsers write the zone's name behind its offset, in parentheses.
    let text = text.split_once(" (").map_or(text, |(date, _)| date);
    let mut words: Vec<&str> = text
        .split([' ', ',', '\t'])
        .filter(|word| !word.is_empty())
        .collect();
    if is_weekday(words.first()?) {
        words.remove(0);
    }
    if let Some(first) = words.first().copied().filter(|first| first.contains('-')) {
        drop(words.splice(..1, first.split('-')));
    }
    if words.len() > 3 && words[2].contains(':') {
        words[2..].rotate_right(1);
    }
    let (&[one, other, year], time) = words.split_first_chunk::<3>()?;
    let (day, month) = match (parse_month(one), parse_month(other)) {
        (Some(month), None) => (other, month),
        (None, Some(month)) => (one, month),
        _ => return None,
    };
    let day = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|end| day.strip_suffix(end))
        .unwrap_or(day);
    let day = NaiveDate::from_ymd_opt(parse_year(year)?, month, parse_digits(day)?)?;
    Some(timestamp_on(
        day,
        if time.is_empty() {
            0
        } else {
            parse_time_of_day(&time.join(" "), false)?
        },
    ))
}

/// Parses a number of at most four digits.
fn parse_digits(text: &str) -> Option<u32> {
    (text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// Parses a year of four or two digits. Two digits mean the latest such year up to 50 years after
/// 2026 (RFC 9110 section 5.6.7), so `69` is 2069, not 1969 as in RFC 2822.
fn parse_year(text: &str) -> Option<i32> {
    let year = i32::try_from(parse_digits(text)?).ok()?;
    match text.len() {
        4 => Some(year),
        2 => Some(REFERENCE_YEAR + 50 - (REFERENCE_YEAR + 50 - year).rem_euclid(100)),
        _ => None,
    }
}

/// Parses a time and an optional zone, as seconds from midnight in UTC. With `may_be_bare`, `15` and
/// `1500` are times; without it, a zone may come alone.
fn parse_time_of_day(text: &str, may_be_bare: bool) -> Option<i64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != ':')
        .unwrap_or(text.len());
    let (time, mut rest) = text.split_at(end);
    // Fractions of a second are ignored. Fractions of an hour or a minute are not in use.
    if let Some(fraction) = rest.strip_prefix('.').filter(|_| time.len() > 5) {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        (rest.len() < fraction.len()).then_some(())?;
    }
    let is_bare = !time.contains(':');
    let parts: Vec<&str> = match time.len() {
        2 | 4 | 6 if is_bare && may_be_bare => (0..time.len())
            .step_by(2)
            .map(|from| &time[from..from + 2])
            .collect(),
        0 if !may_be_bare => Vec::new(),
        _ if is_bare => return None,
        _ => time.split(':').collect(),
    };
    if parts.len() > 3 {
        return None;
    }
    let mut numbers = [0; 3];
    for (place, part) in numbers.iter_mut().zip(&parts) {
        *place = parse_digits(part).filter(|_| part.len() <= 2)?;
    }
    let [hour, minute, second] = numbers;
    // 24:00:00 is the end of a day, and second 60 a leap second.
    let is_time = (hour, minute, second) == (24, 0, 0) || hour < 24 && minute < 60 && second <= 60;
    let zone = parse_zone_offset(rest.trim_start())?;
    is_time.then_some(i64::from(hour * 3600 + minute * 60 + second) - zone)
}

/// Parses `PST`, `+02`, `+0200`, `+02:00` or `GMT+0200` as seconds east of UTC. An empty zone is UTC.
/// `None` for an unknown name, and for more than 14 hours.
fn parse_zone_offset(zone: &str) -> Option<i64> {
    if let Some((_, hours)) = [("", 0)]
        .iter()
        .chain(&ZONES)
        .find(|(name, _)| name.eq_ignore_ascii_case(zone))
    {
        return Some(hours * 3600);
    }
    let offset = zone
        .strip_prefix("GMT")
        .or_else(|| zone.strip_prefix("UTC"))
        .unwrap_or(zone);
    let east = offset.strip_prefix('+');
    let digits = east
        .or_else(|| offset.strip_prefix('-'))?
        .replacen(':', "", 1);
    let (hours, minutes) = match digits.len() {
        2 => (parse_digits(&digits)?, 0),
        4 => (parse_digits(&digits)? / 100, parse_digits(&digits)? % 100),
        _ => return None,
    };
    let seconds = i64::from(hours * 3600 + minutes * 60);
    // No place is further from UTC.
    (seconds <= 14 * 3600 && minutes < 60).then_some(if east.is_some() {
        seconds
    } else {
        -seconds
    })
}

/// Parses a month as a number from 1: its name or at least its first three letters, with an optional
/// dot.
fn parse_month(word: &str) -> Option<u32> {
    let lower = word.trim_end_matches('.').to_ascii_lowercase();
    let month: Month = lower.get(..3)?.parse().ok()?;
    month
        .name()
        .to_ascii_lowercase()
        .starts_with(&lower)
        .then(|| month.number_from_month())
}

/// Whether a member of a line can only be a part of a date: it begins with a number, an offset, a
/// month, a weekday, AM, PM or a zone.
pub(super) fn is_date_fragment(member: &str) -> bool {
    let first = member
        .split(|c: char| !c.is_ascii_alphanumeric())
        .next()
        .unwrap_or("");
    let number = member.strip_prefix(['+', '-']).unwrap_or(member);
    if number.starts_with(|c: char| c.is_ascii_digit())
        || parse_month(first).is_some()
        || is_weekday(first)
    {
        return true;
    }
    let zones = ZONES.iter().map(|(zone, _)| *zone).chain(OTHER_ZONES);
    let mut words = zones.chain(["AM", "PM"]);
    words.any(|word| word.eq_ignore_ascii_case(first))
}

/// Whether a word is a weekday or at least its first three letters, with an optional dot.
fn is_weekday(word: &str) -> bool {
    let lower = word.trim_end_matches('.').to_ascii_lowercase();
    lower.len() >= 3 && WEEKDAYS.iter().any(|day| day.starts_with(&lower))
}
