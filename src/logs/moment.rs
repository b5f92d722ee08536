//! Reads times as logs write them, to the second: [`clf`] those of the Common and Combined formats,
//! [`any`] and [`epoch`] those of JSON.

use crate::time::Timestamp;
use chrono::{NaiveDate, NaiveDateTime};

/// Octets of `10/Oct/2000:13:55:36 -0700`.
pub const CLF_LENGTH: usize = 26;

/// The months as logs write them, three letters each.
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";

/// Reads `10/Oct/2000:13:55:36 -0700`, as Apache and nginx (`$time_local`) write it; `None` for any
/// other text.
pub fn clf(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; CLF_LENGTH] = text.try_into().ok()?;
    let signs = [
        (2, b'/'),
        (6, b'/'),
        (11, b':'),
        (14, b':'),
        (17, b':'),
        (20, b' '),
    ];
    if signs.iter().any(|&(place, sign)| text[place] != sign) {
        return None;
    }
    let month = 1 + MONTHS.chunks(3).position(|month| *month == text[3..6])? as u32;
    let local = seconds(
        [digits(&text[7..11])?, month, digits(&text[..2])?],
        &text[12..20],
    )?;
    let zone = i64::from(digits(&text[22..24])? * 3_600 + digits(&text[24..26])? * 60);
    match text[21] {
        b'+' => Timestamp(local - zone).writable(),
        b'-' => Timestamp(local + zone).writable(),
        _ => None,
    }
}

/// Reads a moment in any form that JSON logs use: RFC 3339, that of [`clf`], Caddy's
/// `2006/01/02 15:04:05` (taken for UTC, as it has no zone), or a number (`epoch`). Square brackets
/// around it are ignored. A day alone is no moment.
pub fn any(text: &str) -> Option<Timestamp> {
    let text = text.trim_matches(['[', ']']);
    if let Ok(number) = text.parse() {
        return epoch(number);
    }
    // A wall clock without a zone: UTC, which is the only guess that is the same everywhere.
    clf(text.as_bytes())
        .or_else(|| Timestamp::parse(text).filter(|_| text.contains(':')))
        .or_else(|| {
            let plain = text.replace('/', "-").replace('T', " ");
            let (clock, rest) =
                NaiveDateTime::parse_and_remainder(&plain, "%Y-%m-%d %H:%M:%S").ok()?;
            (!rest.contains(['+', '-', 'Z'])).then(|| Timestamp(clock.and_utc().timestamp()))
        })
}

/// Reads a number of seconds since 1970, or of milliseconds, microseconds or nanoseconds: the unit
/// that gives a year from 2001 to 2100. `None` if none does: then it is a duration, a year or a
/// date without signs.
pub fn epoch(number: f64) -> Option<Timestamp> {
    let seconds = [1.0, 1e3, 1e6, 1e9].map(|unit| number / unit);
    let seconds = seconds
        .into_iter()
        .find(|seconds| (1e9..4.13e9).contains(seconds))?;
    Some(Timestamp(seconds as i64))
}

/// Seconds since 1970 of a day (year, month, day) and a clock (`13:55:36`), which may show a leap
/// second.
fn seconds([year, month, day]: [u32; 3], clock: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock else {
        return None;
    };
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    let minute = date.and_hms_opt(digits(&[*h1, *h2])?, digits(&[*m1, *m2])?, 0)?;
    let second = digits(&[*s1, *s2]).filter(|second| *second <= 60)?;
    Some(minute.and_utc().timestamp() + i64::from(second))
}

/// Whether a text has a shape, in which `0` stands for a digit, `a` for a letter and `?` for any
/// sign.
pub fn is_like(text: &[u8], shape: &[u8]) -> bool {
    text.len() == shape.len()
        && text.iter().zip(shape).all(|(byte, sign)| match sign {
            b'0' => byte.is_ascii_digit(),
            b'a' => byte.is_ascii_alphabetic(),
            b'?' => true,
            sign => byte == sign,
        })
}

/// The number that these digits write; `None` if another byte is among them.
fn digits(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |number, octet| {
        octet
            .is_ascii_digit()
            .then(|| number * 10 + u32::from(octet - b'0'))
    })
}
