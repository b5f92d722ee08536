//! A moment in time and its spellings (RFC 3339, HTTP-date). The engine takes moments as arguments: nothing here reads
//! a clock.

mod zone;

pub use zone::{Recurrence, Zone};

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serializer};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Whole seconds since 1970-01-01T00:00:00Z. Written as such where only crawlgate reads; what people and their programs
/// read has [`rfc3339`]. Either is understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// 9999-12-31T23:59:59Z.
const LAST_HTTP_SECOND: u64 = 253_402_300_799;

impl Timestamp {
    /// Reads RFC 3339 (`2026-12-01T01:00:00Z`), or a date alone, which means midnight UTC.
    ///
    /// ```
    /// use crawlgate::time::Timestamp;
    /// assert_eq!(Timestamp::parse("1970-01-02"), Some(Timestamp(86_400)));
    /// assert_eq!(Timestamp::parse("1970-01-01T01:00:00+01:00"), Some(Timestamp(0)));
    /// assert_eq!(Timestamp::parse("soon"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Timestamp> {
        if let Ok(moment) = chrono::DateTime::parse_from_rfc3339(text) {
            return Timestamp(moment.timestamp()).writable();
        }
        let day = chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        Timestamp(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp()).writable()
    }

    /// Itself, when its year has four digits: other years have no spelling that everybody reads (RFC 3339 section 1).
    pub fn writable(self) -> Option<Timestamp> {
        (-62_167_219_200..=253_402_300_799).contains(&self.0).then_some(self)
    }

    /// This moment plus a duration; saturates.
    pub fn plus(self, duration: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)))
    }

    /// Whole seconds from `earlier` to this moment; zero when `earlier` is later.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_secs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Its day in UTC: `2026-11-22`.
    pub fn day(self) -> String {
        self.to_string().chars().take(10).collect()
    }

    /// The HTTP-date of RFC 9110 section 5.6.7, as in `Last-Modified`. A moment before 1970 is written as the first
    /// second of 1970, one after 9999 (which the four digits cannot hold) as the last second of 9999.
    pub fn to_http_date(self) -> String {
        let seconds = u64::try_from(self.0).unwrap_or(0).min(LAST_HTTP_SECOND);
        httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    /// Reads an HTTP-date in any of its three forms.
    pub fn from_http_date(text: &str) -> Option<Timestamp> {
        httpdate::parse_http_date(text).ok().map(Timestamp::from)
    }
}

impl From<SystemTime> for Timestamp {
    fn from(moment: SystemTime) -> Timestamp {
        match moment.duration_since(UNIX_EPOCH) {
            Ok(after) => Timestamp(i64::try_from(after.as_secs()).unwrap_or(i64::MAX)),
            Err(before) => Timestamp(-i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX)),
        }
    }
}

/// Writes a moment, or one that may be absent, as RFC 3339.
///
/// # Errors
/// Those of the serializer.
pub fn rfc3339<M: Copy + Into<Option<Timestamp>>, S: Serializer>(moment: &M, serializer: S) -> Result<S::Ok, S::Error> {
    let moment: Option<Timestamp> = (*moment).into();
    match moment {
        Some(moment) => serializer.collect_str(&moment),
        None => serializer.serialize_none(),
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        struct Moment;
        impl Visitor<'_> for Moment {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds since 1970, or a moment as in RFC 3339")
            }

            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Timestamp, E> {
                Ok(Timestamp(seconds))
            }

            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Timestamp, E> {
                i64::try_from(seconds).map(Timestamp).map_err(|_| E::custom("too many seconds"))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                // As a moment is displayed that RFC 3339 has no words for.
                let seconds = || text.strip_prefix('@')?.parse().ok().map(Timestamp);
                Timestamp::parse(text)
                    .or_else(seconds)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Moment)
    }
}

/// RFC 3339 in UTC, to the second.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match chrono::DateTime::from_timestamp(self.0, 0) {
            Some(moment) => write!(f, "{}", moment.format("%Y-%m-%dT%H:%M:%SZ")),
            None => write!(f, "@{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests;
