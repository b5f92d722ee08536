//! [`FieldValue`]: the value of one field of a request in the access log, the event log and tables:
//! a number, a text, an address or a time. Long texts from clients are truncated, so that a client
//! cannot fill the logs. A value borrows its text from the request if it is written at once, and
//! owns the text if it is kept longer.

use crate::policy::RobotsVersionId;
use crate::time::Timestamp;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// The most bytes of a text that a client sent: a log does not grow with its input.
const MAX_TEXT: usize = 2048;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum FieldValue<'a> {
    Nothing,
    Flag(bool),
    Number(u64),
    Decimal(f64),
    /// A fixed word.
    Word(&'static str),
    Text(Cow<'a, str>),
    Address(IpAddr),
    /// RFC 3339 with milliseconds, UTC.
    Time(SystemTime),
    /// RFC 3339 in whole seconds, UTC.
    Moment(Timestamp),
    Version(RobotsVersionId),
    Versions(Vec<RobotsVersionId>),
}

impl<'a> FieldValue<'a> {
    /// The beginning of bytes that a client sent, as text. What is not UTF-8 is replaced.
    pub fn from_bytes(bytes: &'a [u8]) -> FieldValue<'a> {
        FieldValue::Text(String::from_utf8_lossy(truncate_field(bytes)))
    }

    /// A borrowed text of crawlgate's own.
    pub fn from_text(text: &'a str) -> FieldValue<'a> {
        FieldValue::Text(text.into())
    }

    /// An owned text.
    pub fn from_string(text: String) -> FieldValue<'a> {
        FieldValue::Text(text.into())
    }

    /// A duration in milliseconds, to the microsecond.
    pub fn from_duration(duration: Duration) -> FieldValue<'a> {
        FieldValue::Decimal((duration.as_secs_f64() * 1e6).round() / 1e3)
    }

    /// The value without borrows.
    pub fn into_owned(self) -> FieldValue<'static> {
        use FieldValue::*;

        match self {
            Text(text) => FieldValue::from_string(text.into_owned()),
            Nothing => Nothing,
            Flag(flag) => Flag(flag),
            Number(number) => Number(number),
            Decimal(number) => Decimal(number),
            Word(word) => Word(word),
            Address(address) => Address(address),
            Time(time) => Time(time),
            Moment(moment) => Moment(moment),
            Version(version) => Version(version),
            Versions(versions) => Versions(versions),
        }
    }

    /// The value as text; empty for `Nothing`.
    pub fn to_text(&self) -> Cow<'_, str> {
        use FieldValue::*;

        match self {
            Nothing => Cow::default(),
            Word(word) => Cow::Borrowed(word),
            Text(text) => Cow::Borrowed(text),
            Flag(flag) => flag.to_string().into(),
            Number(number) => number.to_string().into(),
            Decimal(number) => number.to_string().into(),
            Address(address) => address.to_string().into(),
            Time(time) => Timestamp::from(*time).to_string().into(),
            Moment(moment) => moment.to_string().into(),
            Version(version) => version.to_string().into(),
            Versions(versions) => versions
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
                .into(),
        }
    }

    /// Whether the value is `Nothing` or `false`.
    pub fn is_empty(&self) -> bool {
        matches!(self, FieldValue::Nothing | FieldValue::Flag(false))
    }
}

impl Serialize for FieldValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use FieldValue::*;

        match self {
            Nothing => serializer.serialize_none(),
            Flag(flag) => serializer.serialize_bool(*flag),
            Number(number) => serializer.serialize_u64(*number),
            Decimal(number) => serializer.serialize_f64(*number),
            Address(address) => address.serialize(serializer),
            Time(time) => time_with_milliseconds(time, serializer),
            Versions(versions) => serializer.collect_seq(versions.iter().map(ToString::to_string)),
            Word(_) | Text(_) | Moment(_) | Version(_) => serializer.serialize_str(&self.to_text()),
        }
    }
}

/// Serializes a time as `2026-01-02T03:04:05.678Z`: UTC, milliseconds rounded down.
fn time_with_milliseconds<S: Serializer>(
    time: &SystemTime,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let time = DateTime::<Utc>::from(*time);
    serializer.serialize_str(&time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// The beginning of these bytes, as many as a field of a log has at most.
pub fn truncate_field(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_TEXT)]
}
