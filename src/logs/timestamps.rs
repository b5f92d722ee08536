//! Parses the times of access logs, to the second. [`parse_clf_time`] is for the Common and
//! Combined formats; [`parse_any_time`] and [`from_epoch_number`] are for JSON.

use crate::time::Timestamp;
use chrono::{NaiveDate, NaiveDateTime};

/// The length of `10/Oct/2000:13:55:36 -0700`.
pub const CLF_LENGTH: usize = 26;

/// The months as logs write them.
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Parses `10/Oct/2000:13:55:36 -0700`, as Apache and nginx (`$time_local`) write it.
pub fn parse_clf_time(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; CLF_LENGTH] = text.try_into().ok()?;
    if [text[2], text[6], text[11], text[20]] != *b"//: " {
        return None;
    }
    let month = 1 + MONTHS.iter().position(|month| **month == text[3..6])? as u32;
    let local = unix_seconds(
        [
            parse_digits(&text[7..11])?,
            month,
            parse_digits(&text[..2])?,
        ],
        &text[12..20],
    )?;
    let zone = i64::from(parse_digits(&text[22..24])? * 3_600 + parse_digits(&text[24..26])? * 60);
    match text[21] {
        b'+' => Timestamp(local - zone).within_rfc3339(),
        b'-' => Timestamp(local + zone).within_rfc3339(),
        _ => None,
    }
}

/// Parses `10/Oct/2000:13:55:36`, which has no zone, as UTC.
pub fn parse_clf_utc(text: &[u8]) -> Option<Timestamp> {
    parse_clf_time(&[text, b" +0000"].concat())
}

/// Parses a day like `2000-10-10` and a clock like `13:55:36` or `13:55:36.123` in UTC.
pub fn parse_utc(day: &[u8], clock: &[u8]) -> Option<Timestamp> {
    if !matches_shape(day, b"0000-00-00") {
        return None;
    }
    let (clock, fraction) = clock.split_at_checked(b"00:00:00".len())?;
    if !fraction.is_empty() && !fraction.starts_with(b".") {
        return None;
    }
    let date = [
        parse_digits(&day[..4])?,
        parse_digits(&day[5..7])?,
        parse_digits(&day[8..])?,
    ];
    Timestamp(unix_seconds(date, clock)?).within_rfc3339()
}

/// Parses a time as [`parse_any_time`] does. `None` also for a text that is not UTF-8.
pub fn parse_utf8_time(text: &[u8]) -> Option<Timestamp> {
    parse_any_time(std::str::from_utf8(text).ok()?)
}

/// Parses a time in any form that JSON logs use: RFC 3339, that of [`parse_clf_time`], Caddy's
/// `2006/01/02 15:04:05` (taken for UTC), or a number. Square brackets around it are ignored. A day
/// without a time of day gives `None`.
pub fn parse_any_time(text: &str) -> Option<Timestamp> {
    let text = text.trim_matches(['[', ']']);
    // Nanoseconds have more digits than a floating point number.
    if let Ok(number) = text.parse::<i64>() {
        return from_epoch_integer(number);
    }
    if let Ok(number) = text.parse() {
        return from_epoch_number(number);
    }
    // Without a zone, UTC is the only guess that is the same everywhere.
    parse_clf_time(text.as_bytes())
        .or_else(|| Timestamp::parse(text).filter(|_| text.contains(':')))
        .or_else(|| {
            let plain = text.replace('/', "-").replace('T', " ");
            let (clock, rest) =
                NaiveDateTime::parse_and_remainder(&plain, "%Y-%m-%d %H:%M:%S").ok()?;
            (!rest.contains(['+', '-', 'Z'])).then(|| Timestamp(clock.and_utc().timestamp()))
        })
}

/// Converts seconds, milliseconds, microseconds or nanoseconds since 1970: the unit that gives a
/// year from 2001 to 2100. `None` if no unit does; then the number is a duration, a year or a date.
pub fn from_epoch_number(number: f64) -> Option<Timestamp> {
    let seconds = [1.0, 1e3, 1e6, 1e9].map(|unit| number / unit);
    let seconds = seconds
        .into_iter()
        .find(|seconds| (1e9..4.13e9).contains(seconds))?;
    Some(Timestamp(seconds as i64))
}

/// As [`from_epoch_number`], exactly.
fn from_epoch_integer(number: i64) -> Option<Timestamp> {
    let seconds = [1, 1_000, 1_000_000, 1_000_000_000].map(|unit| number / unit);
    let mut seconds = seconds.into_iter();
    let seconds = seconds.find(|seconds| (1_000_000_000..4_130_000_000).contains(seconds))?;
    Some(Timestamp(seconds))
}

/// Seconds since 1970 for a date and a clock like `13:55:36`, which may show a leap second.
fn unix_seconds([year, month, day]: [u32; 3], clock: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock else {
        return None;
    };
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let minute = date.and_hms_opt(parse_digits(&[*h1, *h2])?, parse_digits(&[*m1, *m2])?, 0)?;
    let second = parse_digits(&[*s1, *s2]).filter(|second| *second <= 60)?;
    Some(minute.and_utc().timestamp() + i64::from(second))
}

/// Whether a text matches a shape: `0` stands for a digit, `a` for a letter.
pub fn matches_shape(text: &[u8], shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text.iter().zip(shape).all(|(byte, sign)| match sign {
            b'0' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_alphabetic(),
            sign => byte == sign,
        })
}

/// `None` if a byte is no digit.
fn parse_digits(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + u32::from(byte - b'0'))
    })
}
