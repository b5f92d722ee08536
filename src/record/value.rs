//! [`Value`]: the value of a field, borrowed from a record or owned.

use crate::policy::Version;
use crate::time::Timestamp;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::net::IpAddr;
use std::time::SystemTime;

/// Bytes of a text from outside that are kept: a log does not grow with its input.
const MAX_TEXT: usize = 2048;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value<'a> {
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
    Version(Version),
    Versions(Vec<Version>),
}

impl<'a> Value<'a> {
    /// The beginning of bytes that a client sent, as text. What is not UTF-8 is replaced.
    pub fn bytes(bytes: &'a [u8]) -> Value<'a> {
        Value::Text(String::from_utf8_lossy(cut(bytes)))
    }

    /// A text of crawlgate's own.
    pub fn text(text: &'a str) -> Value<'a> {
        Value::Text(text.into())
    }

    /// A text that was made for it.
    pub fn text_of(text: String) -> Value<'a> {
        Value::Text(text.into())
    }

    /// The value if there is one.
    pub fn of<T>(value: Option<T>, some: impl FnOnce(T) -> Value<'a>) -> Value<'a> {
        value.map_or(Value::Nothing, some)
    }

    /// The same value with a text of its own.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Text(text) => Value::Text(text.into_owned().into()),
            Value::Nothing => Value::Nothing,
            Value::Flag(flag) => Value::Flag(flag),
            Value::Number(number) => Value::Number(number),
            Value::Decimal(number) => Value::Decimal(number),
            Value::Word(word) => Value::Word(word),
            Value::Address(address) => Value::Address(address),
            Value::Time(time) => Value::Time(time),
            Value::Moment(moment) => Value::Moment(moment),
            Value::Version(version) => Value::Version(version),
            Value::Versions(versions) => Value::Versions(versions),
        }
    }

    /// The value as text; empty where there is nothing to say.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Value::Nothing => Cow::default(),
            Value::Word(word) => Cow::Borrowed(word),
            Value::Text(text) => Cow::Borrowed(text),
            Value::Flag(flag) => flag.to_string().into(),
            Value::Number(number) => number.to_string().into(),
            Value::Decimal(number) => number.to_string().into(),
            Value::Address(address) => address.to_string().into(),
            Value::Time(time) => Timestamp::from(*time).to_string().into(),
            Value::Moment(moment) => moment.to_string().into(),
            Value::Version(version) => version.to_string().into(),
            Value::Versions(versions) => versions
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
                .into(),
        }
    }

    /// Whether there is nothing to say.
    pub fn is_nothing(&self) -> bool {
        matches!(self, Value::Nothing | Value::Flag(false))
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Nothing => serializer.serialize_none(),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => serializer.serialize_u64(*number),
            Value::Decimal(number) => serializer.serialize_f64(*number),
            Value::Word(word) => serializer.serialize_str(word),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Address(address) => address.serialize(serializer),
            Value::Time(time) => time_with_milliseconds(time, serializer),
            Value::Moment(moment) => serializer.collect_str(moment),
            Value::Version(version) => serializer.collect_str(version),
            Value::Versions(versions) => {
                serializer.collect_seq(versions.iter().map(ToString::to_string))
            }
        }
    }
}

/// Serializes a time as `2026-01-02T03:04:05.678Z`: UTC, milliseconds rounded down.
pub fn time_with_milliseconds<S: Serializer>(
    time: &SystemTime,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let at = DateTime::<Utc>::from(*time);
    serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// The beginning of these bytes, as many as a field of a log may have.
pub fn cut(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(MAX_TEXT)]
}
