//! [`Timestamp`]: a time in whole seconds since 1970, parsed and formatted as RFC 3339 and
//! HTTP-date. No function here reads a clock: callers pass the current time.

mod zone;

pub(crate) use zone::{Recurrence, Zone};

use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whole seconds since 1970-01-01T00:00:00Z. Serialised as a number for crawlgate itself, and as RFC
/// 3339 (`rfc3339`) for people and other programs. Both forms are deserialised.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "TimestampRepr")]
pub struct Timestamp(pub i64);

/// 9999-12-31T23:59:59Z.
const MAX_HTTP_DATE: u64 = 253_402_300_799;

impl Timestamp {
    /// Parses RFC 3339 (`2026-12-01T01:00:00Z`), or a date alone, which means midnight UTC.
    /// Fractions of a second are cut off.
    ///
    /// ```
    /// use crawlgate::time::Timestamp;
    /// assert_eq!(Timestamp::parse("1970-01-02"), Some(Timestamp(86_400)));
    /// assert_eq!(Timestamp::parse("1970-01-01T01:00:00+01:00"), Some(Timestamp(0)));
    /// assert_eq!(Timestamp::parse("soon"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Timestamp> {
        if let Ok(moment) = chrono::DateTime::parse_from_rfc3339(text) {
            return Timestamp(moment.timestamp()).within_rfc3339();
        }
        let day = chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        Timestamp(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp()).within_rfc3339()
    }

    /// The timestamp itself if its year has four digits, else `None`: RFC 3339 has no other years
    /// (section 1).
    pub fn within_rfc3339(self) -> Option<Timestamp> {
        (-62_167_219_200..=253_402_300_799)
            .contains(&self.0)
            .then_some(self)
    }

    /// This timestamp plus a duration; saturates.
    pub fn plus(self, duration: Duration) -> Timestamp {
        Timestamp(
            self.0
                .saturating_add(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)),
        )
    }

    /// The time from `earlier` to this timestamp; zero if `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_secs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The day in UTC: `2026-11-22`.
    pub(crate) fn format_day(self) -> String {
        self.to_string().chars().take(10).collect()
    }

    /// Day and minute in UTC: `2026-11-22 10:00`.
    pub(crate) fn format_minute(self) -> String {
        self.format_with("%F %R")
    }

    /// Day and minute for people, with the zone: `29 Nov 2026, 06:00 UTC`.
    pub(crate) fn human_readable(self) -> String {
        self.format_with("%-d %b %Y, %H:%M UTC")
    }

    /// Formats it in UTC with a [`strftime`](chrono::format::strftime) pattern. Timestamps beyond
    /// chrono's calendar are formatted by `Display`.
    pub(crate) fn format_with(self, format: &str) -> String {
        let moment = chrono::DateTime::from_timestamp(self.0, 0);
        moment.map_or_else(
            || self.to_string(),
            |moment| moment.format(format).to_string(),
        )
    }

    /// The HTTP-date of RFC 9110 section 5.6.7, as in `Last-Modified`, clamped to the years 1970 to
    /// 9999.
    pub fn to_http_date(self) -> String {
        let seconds = u64::try_from(self.0).unwrap_or(0).min(MAX_HTTP_DATE);
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    /// Parses an HTTP-date in any of its three forms.
    pub fn from_http_date(text: &str) -> Option<Timestamp> {
        httpdate::parse_http_date(text).ok().map(Timestamp::from)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(moment: SystemTime) -> Timestamp {
        match moment.duration_since(UNIX_EPOCH) {
            Ok(after) => Timestamp(i64::try_from(after.as_secs()).unwrap_or(i64::MAX)),
            Err(before) => {
                Timestamp(-i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX))
            }
        }
    }
}

/// Serialises a timestamp, or an optional one, as RFC 3339. For `#[serde(serialize_with)]`.
///
/// # Errors
/// Those of the serializer.
pub(crate) fn rfc3339<M: Copy + Into<Option<Timestamp>>, S: Serializer>(
    moment: &M,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let moment: Option<Timestamp> = (*moment).into();
    match moment {
        Some(moment) => serializer.collect_str(&moment),
        None => serializer.serialize_none(),
    }
}

/// The two serialised forms of a timestamp.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected seconds since 1970, or a time like 2026-11-29T06:00:00Z"
)]
enum TimestampRepr {
    Seconds(i64),
    Text(String),
}

/// The error for a text that is no timestamp.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is no time like 2026-11-29T06:00:00Z")]
struct InvalidTimestamp(String);

impl TryFrom<TimestampRepr> for Timestamp {
    type Error = InvalidTimestamp;

    fn try_from(spelling: TimestampRepr) -> Result<Timestamp, InvalidTimestamp> {
        match spelling {
            TimestampRepr::Seconds(seconds) => Ok(Timestamp(seconds)),
            TimestampRepr::Text(text) => {
                // `Display` formats a timestamp beyond chrono's calendar as `@` and its seconds.
                let moment = Timestamp::parse(&text)
                    .or_else(|| text.strip_prefix('@')?.parse().ok().map(Timestamp));
                moment.ok_or(InvalidTimestamp(text))
            }
        }
    }
}

/// RFC 3339 in UTC, to the second.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match chrono::DateTime::from_timestamp(self.0, 0) {
            Some(moment) => f.write_str(&moment.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)),
            None => write!(f, "@{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
