//! The dates of `unavailable_after`, in the forms that Google's page names (RFC 822, RFC 850, ISO 8601) and as people
//! write them. What could be two moments (`06/07/2030`, a zone that two countries call so) is none. Reads only: dates
//! are written as [`Timestamp`] writes itself, in ISO 8601.

use super::iso8601;
use crate::time::Timestamp;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

/// The longest dates in use have some forty characters.
const MAX_BYTES: usize = 64;

const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// Zones that are called so in one part of the world only, in hours: those of RFC 822 section 5.1 and those of Europe.
/// `BST`, `IST` and `CST` of elsewhere are why others are not here; RFC 822 has settled `CST`.
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

/// Zones that are ambiguous, or not among those above. A date that names one is kept as it was written.
const OTHER_ZONES: [&str; 20] = [
    "IST", "BST", "JST", "KST", "AEST", "AEDT", "ACST", "ACDT", "AWST", "NZST", "NZDT", "SGT", "HKT", "MSK", "BRT",
    "ART", "AKST", "AKDT", "HST", "SAST",
];

/// With an offset of their own.
const WITH_OFFSET: [&str; 4] = ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S %z", "%Y-%m-%dT%H:%M%z", "%Y%m%dT%H%M%S%z"];
/// In UTC, because nothing else is said.
const WITHOUT_OFFSET: [&str; 8] = [
    "%d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%b %d %Y %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y%m%dT%H%M%S",
];
const DAYS: [&str; 2] = ["%d %b %Y", "%b %d %Y"];

/// The moment that a text says, if it is one that can be written again.
pub fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim_matches([' ', '\t']);
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    any_moment(text).and_then(Timestamp::writable)
}

fn any_moment(text: &str) -> Option<Timestamp> {
    if let Some(moment) = Timestamp::parse(text).or_else(|| iso8601::moment(text)) {
        return Some(moment);
    }
    let plain = plain(text);
    // A year of two digits was one of a century then, which others tell otherwise.
    let whole = whole_year(&plain);
    if whole.is_none()
        && let Some(moment) = Timestamp::from_http_date(text)
    {
        return Some(moment);
    }
    let plain = whole.unwrap_or(plain);
    let instant = |moment: DateTime<chrono::FixedOffset>| Timestamp(moment.timestamp());
    if let Ok(moment) = DateTime::parse_from_rfc2822(&plain) {
        return Some(instant(moment));
    }
    if let Some(moment) = WITH_OFFSET.iter().find_map(|form| DateTime::parse_from_str(&plain, form).ok()) {
        return Some(instant(moment));
    }
    let bare = ["UTC", "GMT", "Z", "z"].iter().find_map(|zone| plain.strip_suffix(zone)).unwrap_or(&plain).trim_end();
    let moment = WITHOUT_OFFSET.iter().find_map(|form| NaiveDateTime::parse_from_str(bare, form).ok());
    let day = || DAYS.iter().find_map(|form| NaiveDate::parse_from_str(bare, form).ok()?.and_hms_opt(0, 0, 0));
    moment.or_else(day).map(|moment| Timestamp(moment.and_utc().timestamp())).or_else(|| written_out(&plain))
}

/// The year from which years of two digits are told: here is no clock.
const NOW: i32 = 2026;

/// A date that has a year of two digits, with the whole year: of those that end so the latest that is no more than 50
/// years ahead (RFC 9110 section 5.6.7). For a page on the web `69` does not mean 1969, as RFC 2822 has it.
fn whole_year(plain: &str) -> Option<String> {
    let mut words: Vec<&str> = plain.split(' ').collect();
    let digits = |word: &str| word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit());
    let day =
        |word: &str| digits(["st", "nd", "rd", "th"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word));
    let dated = match words.as_slice() {
        [one, other, ..] => day(one) && month(other).is_some() || month(one).is_some() && day(other),
        _ => false,
    };
    let year: i32 = words.get(2).filter(|year| dated && year.len() == 2 && digits(year))?.parse().ok()?;
    let latest = NOW + 50;
    let whole = (latest - (latest - year).rem_euclid(100)).to_string();
    words[2] = &whole;
    Some(words.join(" "))
}

/// A date in words: `Jun 25 2030 3:00 PM EST`, `25 Jun 2030 15:00 CEST`, `Jun 25 15:00:00 PST 2030`.
fn written_out(plain: &str) -> Option<Timestamp> {
    // Browsers write the zone's name behind its offset, in parentheses.
    let plain = plain.split_once(" (").map_or(plain, |(date, _)| date);
    let mut words: Vec<&str> = plain.split(' ').filter(|word| !word.is_empty()).collect();
    if words.len() > 3 && words[2].contains(':') {
        words[2..].rotate_right(1);
    }
    let (date, rest) = words.split_first_chunk::<3>()?;
    let (day, month) = match (month(date[0]), month(date[1])) {
        (Some(month), None) => (date[1], month),
        (None, Some(month)) => (date[0], month),
        _ => return None,
    };
    let day = ["st", "nd", "rd", "th"].iter().find_map(|end| day.strip_suffix(end)).unwrap_or(day);
    let year = date[2].parse().ok().filter(|_| date[2].len() == 4)?;
    let date = NaiveDate::from_ymd_opt(year, month, day.parse().ok()?)?;
    let seconds = match rest.split_first() {
        None => 0,
        Some((time, rest)) => {
            // `3:00PM`, `15:00Z`, `15:00:00+02:00`.
            let end = time.find(|sign: char| !sign.is_ascii_digit() && sign != ':').unwrap_or(time.len());
            let (time, attached) = time.split_at(end);
            let rest = Some(attached).filter(|word| !word.is_empty()).into_iter().chain(rest.iter().copied());
            seconds(time, &rest.collect::<Vec<_>>())?
        }
    };
    Some(Timestamp(date.and_time(NaiveTime::MIN).and_utc().timestamp() + seconds))
}

/// From midnight in UTC: a time, then AM or PM, then a zone, the last two if they are there.
fn seconds(time: &str, words: &[&str]) -> Option<i64> {
    let half = words.first().filter(|word| ["am", "pm"].iter().any(|half| half.eq_ignore_ascii_case(word)));
    let zone = match &words[usize::from(half.is_some())..] {
        [] => 0,
        [zone] => zone_seconds(zone)?,
        _ => return None,
    };
    let digits = |part: &str| part.parse::<u32>().ok().filter(|_| part.len() <= 2);
    let mut parts = time.split(':');
    let hour = digits(parts.next()?)?;
    let minute = match parts.next() {
        Some(minute) => digits(minute)?,
        None => half.map(|_| 0)?,
    };
    let second = parts.next().map_or(Some(0), digits)?;
    let hour = match half {
        None => hour,
        Some(half) if (1..=12).contains(&hour) => hour % 12 + if half.eq_ignore_ascii_case("pm") { 12 } else { 0 },
        Some(_) => return None,
    };
    if parts.next().is_some() {
        return None;
    }
    NaiveTime::from_hms_opt(hour, minute, second)?;
    Some(i64::from(hour * 3600 + minute * 60 + second) - zone)
}

/// `PST`, `+0200`, `+02:00`, `GMT+0200`: seconds east of UTC.
fn zone_seconds(zone: &str) -> Option<i64> {
    if let Some((_, hours)) = ZONES.iter().find(|(name, _)| name.eq_ignore_ascii_case(zone)) {
        return Some(hours * 3600);
    }
    let offset = zone.strip_prefix("GMT").or_else(|| zone.strip_prefix("UTC")).unwrap_or(zone);
    let (sign, digits) = match offset.split_at_checked(1)? {
        ("+", digits) => (1, digits.replace(':', "")),
        ("-", digits) => (-1, digits.replace(':', "")),
        _ => return None,
    };
    if digits.len() != 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    (number <= 1_400 && number % 100 < 60).then_some(sign * (number / 100 * 3600 + number % 100 * 60))
}

/// The number of a month, whole or by its first letters.
fn month(word: &str) -> Option<u32> {
    let lower = word.trim_end_matches('.').to_ascii_lowercase();
    let known = (1..).zip(MONTHS).find(|(_, month)| month.starts_with(&lower));
    known.map(|(number, _)| number).filter(|_| lower.len() >= 3)
}

/// Whether a member of a line can only be a piece of a date: a number, an offset, a month, a day of the week, half of a
/// day or a zone comes first.
pub(super) fn is_piece(member: &str) -> bool {
    let first = member.split(|sign: char| !sign.is_ascii_alphanumeric()).next().unwrap_or("");
    let words = || ZONES.iter().map(|(zone, _)| *zone).chain(OTHER_ZONES).chain(["AM", "PM"]);
    let known = || words().any(|word| word.eq_ignore_ascii_case(first));
    let number = member.strip_prefix(['+', '-']).unwrap_or(member);
    number.starts_with(|sign: char| sign.is_ascii_digit()) || month(first).is_some() || is_weekday(first) || known()
}

fn is_weekday(word: &str) -> bool {
    let lower = word.trim_end_matches('.').to_ascii_lowercase();
    lower.len() >= 3 && WEEKDAYS.iter().any(|day| day.starts_with(&lower))
}

/// Without the day of the week, commas, runs of blanks, and the hyphens of `25-Jun-2010`; months in three letters.
fn plain(text: &str) -> String {
    let mut words: Vec<String> =
        text.split([' ', ',', '\t']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if words.len() > 1 && words.first().is_some_and(|word| is_weekday(word)) {
        words.remove(0);
    }
    if let Some(first) = words.first_mut()
        && first.bytes().any(|byte| byte.is_ascii_alphabetic() && !matches!(byte, b'T' | b't' | b'Z' | b'z'))
        && first.starts_with(|sign: char| sign.is_ascii_digit())
    {
        *first = first.replace('-', " ");
    }
    for word in &mut words {
        if MONTHS.iter().any(|month| month.eq_ignore_ascii_case(word)) {
            word.truncate(3);
        }
    }
    words.join(" ")
}
