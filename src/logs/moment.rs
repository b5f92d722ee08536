//! Moments as logs write them, to the second. Knows no lines.

use crate::time::Timestamp;

/// Octets of `10/Oct/2000:13:55:36 -0700`.
pub const CLF_LENGTH: usize = 26;

/// `10/Oct/2000:13:55:36 -0700`, as Apache and nginx (`$time_local`) write it.
pub fn clf(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; CLF_LENGTH] = text.try_into().ok()?;
    let signs = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    if signs.iter().any(|&(place, sign)| text[place] != sign) {
        return None;
    }
    let month = match &text[3..6] {
        b"Jan" => 1,
        b"Feb" => 2,
        b"Mar" => 3,
        b"Apr" => 4,
        b"May" => 5,
        b"Jun" => 6,
        b"Jul" => 7,
        b"Aug" => 8,
        b"Sep" => 9,
        b"Oct" => 10,
        b"Nov" => 11,
        b"Dec" => 12,
        _ => return None,
    };
    let local = seconds([digits(&text[7..11])?, month, digits(&text[..2])?], &text[12..20])?;
    let zone = digits(&text[22..24])? * 3_600 + digits(&text[24..26])? * 60;
    match text[21] {
        b'+' => Timestamp(local - zone).writable(),
        b'-' => Timestamp(local + zone).writable(),
        _ => None,
    }
}

/// A moment in any form that JSON logs use: RFC 3339, that of [`clf`], Caddy's `2006/01/02 15:04:05`, or a number.
pub fn any(text: &str) -> Option<Timestamp> {
    let octets = text.trim_matches(['[', ']']).as_bytes();
    if let Ok(number) = text.parse() {
        return epoch(number);
    }
    let wall = || match octets {
        // A wall clock without a zone: UTC, which is the only guess that is the same everywhere.
        [_, _, _, _, b'/' | b'-', _, _, b'/' | b'-', _, _, b' ' | b'T', clock @ ..] if clock.len() >= 8 => {
            let day = [digits(&octets[..4])?, digits(&octets[5..7])?, digits(&octets[8..10])?];
            let zoned = clock[8..].iter().any(|octet| matches!(octet, b'+' | b'-' | b'Z'));
            if zoned { None } else { seconds(day, &clock[..8]).map(Timestamp) }
        }
        _ => None,
    };
    clf(octets).or_else(|| Timestamp::parse(text)).or_else(wall)
}

/// A number of seconds since 1970, or of milliseconds, microseconds or nanoseconds: numbers so large are no seconds.
pub fn epoch(number: f64) -> Option<Timestamp> {
    let seconds = match number {
        number if !(0.0..1e21).contains(&number) => return None,
        number if number < 1e11 => number,
        number if number < 1e14 => number / 1e3,
        number if number < 1e17 => number / 1e6,
        number => number / 1e9,
    };
    Timestamp(seconds as i64).writable()
}

/// Seconds since 1970 of a day (year, month, day) and a clock (`13:55:36`).
fn seconds([year, month, day]: [i64; 3], clock: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, b':', s1, s2] = clock else { return None };
    let (hour, minute, second) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?, digits(&[*s1, *s2])?);
    let is_moment = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    is_moment.then(|| days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second)
}

/// Days since 1970 of a date of the Gregorian calendar. The year begins in March, so that the leap day is its last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn digits(text: &[u8]) -> Option<i64> {
    text.iter().try_fold(0, |number, octet| octet.is_ascii_digit().then(|| number * 10 + i64::from(octet - b'0')))
}
