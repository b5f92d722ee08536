//! [`moment`] reads the dates of `unavailable_after`, in the forms that Google's page names (RFC
//! 822, RFC 850, ISO 8601) and as people write them. A text that can mean two moments is refused:
//! `06/07/2030`, `2030176`, an abbreviation of a time zone that several countries use.

use crate::time::Timestamp;
use chrono::{Month, NaiveDate, NaiveTime};

/// The longest dates in use have some forty characters.
const MAX_BYTES: usize = 64;
/// The year by which years of two digits are completed: this file reads no clock.
const NOW: i32 = 2026;

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];
/// Zones whose names have one meaning, in hours: those of RFC 822 section 5.1 and those of Europe.
/// `BST` and `IST` have several and are left out; RFC 822 has settled `CST`.
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

/// Zones that are ambiguous, or not among those above. A date that names one is kept as it was
/// written.
const OTHER_ZONES: [&str; 20] = [
    "IST", "BST", "JST", "KST", "AEST", "AEDT", "ACST", "ACDT", "AWST", "NZST", "NZDT", "SGT",
    "HKT", "MSK", "BRT", "ART", "AKST", "AKDT", "HST", "SAST",
];

/// The moment that a text names, if RFC 3339 can write it; `None` for other text, and for more than
/// 64 bytes. A day without a time is its midnight, a time without a zone is UTC.
pub fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim_matches([' ', '\t']);
    if text.len() > MAX_BYTES {
        return None;
    }
    Timestamp::parse(text)
        .or_else(|| in_digits(text))
        .or_else(|| in_words(text))
        .and_then(Timestamp::writable)
}

/// The moment so many seconds after the midnight (UTC) with which a day begins.
fn at(day: NaiveDate, seconds: i64) -> Timestamp {
    Timestamp(day.and_time(NaiveTime::MIN).and_utc().timestamp() + seconds)
}

/// ISO 8601: `2030-06-25T15:00:00Z`, `20300625T1500-08`, `2030-W26-2`, `2030-176`.
fn in_digits(text: &str) -> Option<Timestamp> {
    let end = text.find(['T', 't', ' ', ',']);
    let (day, time) = end.map_or((text, None), |end| {
        (&text[..end], Some(text[end + 1..].trim_start()))
    });
    let day = day.to_ascii_uppercase();
    let shape: String = day
        .chars()
        .map(|sign| if sign.is_ascii_digit() { '0' } else { sign })
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
    Some(at(day, time.map_or(Some(0), |time| seconds(time, true))?))
}

/// A date in words: `Friday, 25-Jun-30 15:00:00 GMT`, `Jun 25 2030 3:00 PM EST`, `Jun 25 15:00:00
/// PST 2030`.
fn in_words(text: &str) -> Option<Timestamp> {
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
    let (day, month) = match (month(one), month(other)) {
        (Some(month), None) => (other, month),
        (None, Some(month)) => (one, month),
        _ => return None,
    };
    let day = ["st", "nd", "rd", "th"]
        .iter()
        .find_map(|end| day.strip_suffix(end))
        .unwrap_or(day);
    let day = NaiveDate::from_ymd_opt(whole_year(year)?, month, number(day)?)?;
    Some(at(
        day,
        if time.is_empty() {
            0
        } else {
            seconds(&time.join(" "), false)?
        },
    ))
}

/// The number of at most four digits.
fn number(text: &str) -> Option<u32> {
    (text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// The year of four digits, or of two: the latest that ends in these and is no more than 50 years
/// after 2026 (RFC 9110 section 5.6.7). For a page on the web `69` does not mean 1969, as RFC 2822
/// has it. `None` for another number of digits.
fn whole_year(text: &str) -> Option<i32> {
    let year = i32::try_from(number(text)?).ok()?;
    match text.len() {
        4 => Some(year),
        2 => Some(NOW + 50 - (NOW + 50 - year).rem_euclid(100)),
        _ => None,
    }
}

/// The seconds from midnight in UTC that a text names: a time, then AM or PM, then a zone, the last
/// two if they are there. `15` and `1500` are times where `may_be_bare`; elsewhere a zone may stand
/// alone.
fn seconds(text: &str, may_be_bare: bool) -> Option<i64> {
    let end = text
        .find(|sign: char| !sign.is_ascii_digit() && sign != ':')
        .unwrap_or(text.len());
    let (time, mut rest) = text.split_at(end);
    // Fractions of a second do not count; those of an hour or a minute are not used.
    if let Some(fraction) = rest.strip_prefix('.').filter(|_| time.len() > 5) {
        rest = fraction.trim_start_matches(|sign: char| sign.is_ascii_digit());
        (rest.len() < fraction.len()).then_some(())?;
    }
    let rest = rest.trim_start();
    let (half, zone) = rest.split_at_checked(2).unwrap_or_default();
    let half = ["am", "pm"]
        .iter()
        .position(|known| known.eq_ignore_ascii_case(half));
    let zone = if half.is_some() {
        zone.trim_start()
    } else {
        rest
    };
    let is_bare = !time.contains(':') && half.is_none();
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
        *place = number(part).filter(|_| part.len() <= 2)?;
    }
    let [hour, minute, second] = numbers;
    let hour = match half {
        None => hour,
        Some(half) if (1..=12).contains(&hour) => hour % 12 + 12 * u32::try_from(half).ok()?,
        Some(_) => return None,
    };
    // The midnight that ends a day, and a second that was added to it.
    let is_time = (hour, minute, second) == (24, 0, 0) || hour < 24 && minute < 60 && second <= 60;
    let zone = zone_seconds(zone)?;
    is_time.then_some(i64::from(hour * 3600 + minute * 60 + second) - zone)
}

/// `PST`, `+02`, `+0200`, `+02:00`, `GMT+0200`: seconds east of UTC. An empty zone is UTC. `None`
/// for an unknown name, and for more than 14 hours.
fn zone_seconds(zone: &str) -> Option<i64> {
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
        2 => (number(&digits)?, 0),
        4 => (number(&digits)? / 100, number(&digits)? % 100),
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

/// The number of a month, from 1, by its name or its first three letters or more, perhaps with a
/// dot.
fn month(word: &str) -> Option<u32> {
    let lower = word.trim_end_matches('.').to_ascii_lowercase();
    let month: Month = lower.get(..3)?.parse().ok()?;
    month
        .name()
        .to_ascii_lowercase()
        .starts_with(&lower)
        .then(|| month.number_from_month())
}

/// Whether a member of a line can only be a piece of a date: a number, an offset, a month, a day of
/// the week, half of a day or a zone comes first.
pub(super) fn is_piece(member: &str) -> bool {
    let first = member
        .split(|sign: char| !sign.is_ascii_alphanumeric())
        .next()
        .unwrap_or("");
    let number = member.strip_prefix(['+', '-']).unwrap_or(member);
    if number.starts_with(|sign: char| sign.is_ascii_digit())
        || month(first).is_some()
        || is_weekday(first)
    {
        return true;
    }
    let zones = ZONES.iter().map(|(zone, _)| *zone).chain(OTHER_ZONES);
    let mut words = zones.chain(["AM", "PM"]);
    words.any(|word| word.eq_ignore_ascii_case(first))
}

/// Whether a word is the name of a day of the week or its first three letters or more, perhaps with
/// a dot.
fn is_weekday(word: &str) -> bool {
    let lower = word.trim_end_matches('.').to_ascii_lowercase();
    lower.len() >= 3 && WEEKDAYS.iter().any(|day| day.starts_with(&lower))
}
