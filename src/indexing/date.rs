//! [`parse_date`] parses the date of the robots directive `unavailable_after`: the forms that
//! Google documents (RFC 822, RFC 850, and of ISO 8601 those with year, month and day). All others
//! are rejected.

use crate::time::Timestamp;
use chrono::{DateTime, NaiveDate, NaiveTime, Weekday};

/// The longest dates in use have some forty characters.
const MAX_DATE_BYTES: usize = 64;
/// Forms of ISO 8601 beside those of RFC 3339.
const ISO_FORMS: [&str; 3] = [
    "%Y-%m-%dT%H:%M:%S%.f%#z",
    "%Y-%m-%dT%H:%M%#z",
    "%Y%m%dT%H%M%S%#z",
];

/// Parses a date. A day without a time is its midnight. In ISO 8601 a time without a zone is UTC.
/// `None` if it has more than 64 bytes, or a year that RFC 3339 cannot write.
pub fn parse_date(text: &str) -> Option<Timestamp> {
    let text = text.trim_matches([' ', '\t']);
    if text.len() > MAX_DATE_BYTES {
        return None;
    }
    Timestamp::parse(text)
        .or_else(|| parse_iso_date(text))
        .or_else(|| parse_rfc_date(text))
        .and_then(Timestamp::within_rfc3339)
}

fn parse_iso_date(text: &str) -> Option<Timestamp> {
    if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let day = NaiveDate::parse_from_str(text, "%Y%m%d").ok()?;
        return Some(Timestamp(
            day.and_time(NaiveTime::MIN).and_utc().timestamp(),
        ));
    }
    let text = text.replacen(' ', "T", 1);
    let in_utc = format!("{text}Z");
    ISO_FORMS.iter().find_map(|form| {
        let moment = DateTime::parse_from_str(&text, form)
            .or_else(|_| DateTime::parse_from_str(&in_utc, form));
        Some(Timestamp(moment.ok()?.timestamp()))
    })
}

/// Parses RFC 822 (`Fri, 25 Jun 2010 15:00:00 PST`) and RFC 850 (`Friday, 25-Jun-10 15:00:00 PST`),
/// with or without the day of the week. A year of two digits from 50 on is of the 20th century.
fn parse_rfc_date(text: &str) -> Option<Timestamp> {
    let date = match text.split_once(", ") {
        Some((weekday, date)) if weekday.parse::<Weekday>().is_ok() => date,
        _ => text,
    };
    let (day, time) = date.split_once(' ')?;
    let day = day.replace('-', " ");
    let time = time.replace("UTC", "GMT");
    let moment = DateTime::parse_from_rfc2822(&format!("{day} {time}")).ok()?;
    Some(Timestamp(moment.timestamp()))
}
