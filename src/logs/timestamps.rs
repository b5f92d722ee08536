//! Parses the times of access logs, to the second. [`parse_clf_time`] is for the Common and
//! Combined formats; [`parse_any_time`] is for JSON.

use crate::time::Timestamp;
use chrono::{NaiveDate, NaiveDateTime};
use smallvec::SmallVec;

/// The length of `10/Oct/2000:13:55:36 -0700`.
pub const CLF_LENGTH: usize = 26;

/// The months as logs write them.
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// Parses `10/Oct/2000:13:55:36 -0700`, as Apache and nginx (`$time_local`) write it. May show a leap
/// second.
pub fn parse_clf_time(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; CLF_LENGTH] = text.try_into().ok()?;
    if [2, 6, 11, 14, 17, 20].map(|place| text[place]) != *b"//::: " {
        return None;
    }
    let (months, _) = MONTHS.as_chunks::<3>();
    let month = 1 + months.iter().position(|month| *month == text[3..6])? as u32;
    let year = parse_digits(&text[7..11])? as i32;
    let day = NaiveDate::from_ymd_opt(year, month, parse_digits(&text[..2])?)?;
    let minute = day.and_hms_opt(
        parse_digits(&text[12..14])?,
        parse_digits(&text[15..17])?,
        0,
    )?;
    let second = parse_digits(&text[18..20]).filter(|second| *second <= 60)?;
    let local = minute.and_utc().timestamp() + i64::from(second);
    let zone = i64::from(parse_digits(&text[22..24])? * 3_600 + parse_digits(&text[24..26])? * 60);
    let time = match text[21] {
        b'+' => local - zone,
        b'-' => local + zone,
        _ => return None,
    };
    Timestamp(time).within_rfc3339()
}

/// Parses a day like `2000-10-10` and a clock like `13:55:36` or `13:55:36.123` in UTC.
pub fn parse_utc(day: &[u8], clock: &[u8]) -> Option<Timestamp> {
    let parts = [day, b"T", clock, b"Z"].into_iter().flatten();
    let text: SmallVec<[u8; 32]> = parts.copied().collect();
    Timestamp::parse(std::str::from_utf8(&text).ok()?)
}

/// Parses a time in any form that JSON logs use: RFC 3339, that of [`parse_clf_time`], Caddy's
/// `2006/01/02 15:04:05` (taken for UTC), or a number. Square brackets around it are ignored. A day
/// without a time of day gives `None`.
pub fn parse_any_time(text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.trim_matches(['[', ']']);
    // Nanoseconds have more digits than a floating point number.
    let number = text
        .parse::<i64>()
        .or_else(|_| text.parse::<f64>().map(|number| number as i64));
    if let Ok(number) = number {
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
fn from_epoch_number(number: i64) -> Option<Timestamp> {
    let mut seconds = [1, 1_000, 1_000_000, 1_000_000_000]
        .into_iter()
        .map(|unit| number / unit);
    let seconds = seconds.find(|seconds| (1_000_000_000..4_130_000_000).contains(seconds));
    seconds.map(Timestamp)
}

/// Whether a text begins with a shape: `0` stands for a digit, `a` for a letter.
pub fn begins_with_shape(text: &[u8], shape: &[u8]) -> bool {
    text.len() >= shape.len()
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
