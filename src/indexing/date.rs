//! The dates of `unavailable_after`, in the forms that Google's page names (RFC 822, RFC 850, ISO 8601) and as people
//! write them. Reads only: dates are written as [`Timestamp`] writes itself, in ISO 8601.

use crate::time::Timestamp;
use chrono::{DateTime, NaiveDate, NaiveDateTime};

/// The longest date that anybody writes has some forty characters.
const MAX_BYTES: usize = 64;

const WEEKDAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const LONG_MONTHS: [&str; 11] =
    ["january", "february", "march", "april", "june", "july", "august", "september", "october", "november", "december"];

/// With an offset of their own.
const WITH_OFFSET: [&str; 4] = ["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S %z", "%Y-%m-%dT%H:%M%z", "%Y%m%dT%H%M%S%z"];
/// In UTC, because nothing else is said. The years of two digits first: `%Y` would take them for the first century.
const WITHOUT_OFFSET: [&str; 9] = [
    "%d %b %y %H:%M:%S",
    "%d %b %Y %H:%M:%S",
    "%d %b %Y %H:%M",
    "%b %d %Y %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y%m%dT%H%M%S",
];
const DAYS: [&str; 3] = ["%d %b %y", "%d %b %Y", "%b %d %Y"];

/// The moment that a text says, if it is one that can be written again.
pub fn moment(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    any_moment(text).and_then(Timestamp::writable)
}

fn any_moment(text: &str) -> Option<Timestamp> {
    if let Some(moment) = Timestamp::parse(text).or_else(|| Timestamp::from_http_date(text)) {
        return Some(moment);
    }
    let plain = plain(text);
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
    moment.or_else(day).map(|moment| Timestamp(moment.and_utc().timestamp()))
}

/// Without the day of the week, commas, runs of blanks, and the hyphens of `25-Jun-2010`; months in three letters.
fn plain(text: &str) -> String {
    let mut words: Vec<String> =
        text.split([' ', ',', '\t']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let is_weekday = |word: &String| {
        let lower = word.to_ascii_lowercase();
        word.bytes().all(|byte| byte.is_ascii_alphabetic()) && WEEKDAYS.iter().any(|day| lower.starts_with(day))
    };
    if words.len() > 1 && words.first().is_some_and(is_weekday) {
        words.remove(0);
    }
    if let Some(first) = words.first_mut()
        && first.bytes().any(|byte| byte.is_ascii_alphabetic() && !matches!(byte, b'T' | b't' | b'Z' | b'z'))
        && first.starts_with(|sign: char| sign.is_ascii_digit())
    {
        *first = first.replace('-', " ");
    }
    for word in &mut words {
        if LONG_MONTHS.iter().any(|month| month.eq_ignore_ascii_case(word)) {
            word.truncate(3);
        }
    }
    words.join(" ")
}
