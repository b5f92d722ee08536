//! [`read`] reads a line of JSON by crawlgate, Caddy, Traefik, or nginx's `log_format` with usual names. The table
//! [`KEYS`] says which key means which field. If a line has several keys for one field, the key that the table ranks
//! highest counts, and of equals the first in the line. Values inside `request` and `headers` (Caddy) replace those
//! that were read before.

use super::{FIELDS, Field, Line, Octets, Record, moment, not_empty, or_empty, owned_request_line};
use crate::time::Timestamp;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::fmt;

/// What keys mean, without regard to case; of one field those with the lowest rank first.
const KEYS: &[(Field, &[&[&str]])] = &[
    (
        Field::Time,
        &[&["StartUTC"], &["time_iso8601"], &["msec", "ts"], &["time"], &["timestamp"], &["@timestamp", "time_local"]],
    ),
    (Field::Request, &[&["request"], &["request_line"]]),
    (Field::Method, &[&["request_method", "RequestMethod"], &["method"]]),
    (Field::Target, &[&["request_uri", "RequestPath", "target"], &["uri"], &["url"], &["path"]]),
    (Field::Host, &[&["http_host", "RequestHost"], &["host"], &["vhost", "virtual_host"], &["server_name"]]),
    (Field::Client, &[&["client_ip", "ClientHost", "remote_addr"], &["remote_ip", "client"]]),
    (Field::Status, &[&["status", "DownstreamStatus"], &["status_code"]]),
    (Field::Bytes, &[&["body_bytes_sent", "DownstreamContentSize"], &["bytes", "size"], &["bytes_sent"]]),
    (Field::ContentType, &[&["sent_http_content_type", "downstream_Content-Type"]]),
    (
        Field::UserAgent,
        &[&["http_user_agent", "request_User-Agent"], &["user_agent", "User-Agent"], &["useragent"], &["agent"]],
    ),
    (Field::Headers, &[&["headers"]]),
];

/// Reads a line. In a line that is not UTF-8 throughout, replacement characters stand for what is not.
pub fn read(line: &[u8]) -> Option<Line<'_>> {
    if let Ok(Value::Object(slots)) = serde_json::from_slice(line) {
        return slots.line();
    }
    if std::str::from_utf8(line).is_ok() {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let Ok(Value::Object(slots)) = serde_json::from_str(&text) else { return None };
    let own = |value| match value {
        Value::Text(text) => Value::Text(text.into_owned().into()),
        Value::Number(number) => Value::Number(number),
        Value::Object(_) | Value::Nothing => Value::Nothing,
    };
    Slots(slots.0.map(|slot| slot.map(|(rank, value)| (rank, own(value))))).line()
}

enum Value<'a> {
    Text(Cow<'a, str>),
    Number(f64),
    Object(Box<Slots<'a>>),
    Nothing,
}

/// The best value of each field so far, with its rank.
#[derive(Default)]
struct Slots<'a>([Option<(usize, Value<'a>)>; FIELDS]);

impl<'a> Slots<'a> {
    fn put(&mut self, field: Field, rank: usize, value: Value<'a>) {
        match (field, value) {
            (_, Value::Nothing) => {}
            // Caddy's `request` and its `headers` are objects.
            (Field::Request | Field::Headers, Value::Object(inner)) => {
                for (own, theirs) in self.0.iter_mut().zip(inner.0) {
                    // What stands deeper says more of the request than the line's own keys do.
                    *own = theirs.or(own.take());
                }
            }
            (Field::Headers, _) | (_, Value::Object(_)) => {}
            (field, value) => {
                let slot = &mut self.0[field as usize];
                if slot.as_ref().is_none_or(|(known, _)| rank < *known) {
                    *slot = Some((rank, value));
                }
            }
        }
    }

    fn take(&mut self, field: Field) -> Option<Value<'a>> {
        self.0[field as usize].take().map(|(_, value)| value)
    }

    fn text(&mut self, field: Field) -> Option<Octets<'a>> {
        match self.take(field)? {
            Value::Text(Cow::Borrowed(text)) => Some(text.as_bytes().into()),
            Value::Text(Cow::Owned(text)) => Some(text.into_bytes().into()),
            _ => None,
        }
    }

    fn number(&mut self, field: Field) -> u64 {
        match self.take(field) {
            Some(Value::Number(number)) => number as u64,
            Some(Value::Text(text)) => super::number(text.as_bytes()),
            _ => 0,
        }
    }

    fn time(&mut self) -> Option<Timestamp> {
        match self.take(Field::Time)? {
            Value::Number(number) => moment::epoch(number),
            Value::Text(text) => moment::any(&text),
            _ => None,
        }
    }

    fn line(mut self) -> Option<Line<'a>> {
        let time = self.time()?;
        let (method, target) = match (self.text(Field::Target), self.text(Field::Request)) {
            (Some(target), request) => {
                let method = self.text(Field::Method).or_else(|| Some(owned_request_line(request?)?.0));
                (method.unwrap_or_default(), target)
            }
            (None, Some(request)) => match owned_request_line(request) {
                Some(parts) => parts,
                None => return Some(Line::NoRequest),
            },
            (None, None) => return None,
        };
        if target.is_empty() {
            return Some(Line::NoRequest);
        }
        Some(Line::Request(Record {
            host: not_empty(self.text(Field::Host)),
            client: self.text(Field::Client),
            time,
            method,
            target,
            status: u16::try_from(self.number(Field::Status)).unwrap_or(0),
            bytes: self.number(Field::Bytes),
            content_type: not_empty(self.text(Field::ContentType)),
            user_agent: Some(self.text(Field::UserAgent).map(or_empty).unwrap_or_default()),
        }))
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(text.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value<'de>, E> {
        Ok(Value::Text(text.to_owned().into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value<'de>, E> {
        Ok(Value::Number(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value<'de>, E> {
        Ok(Value::Nothing)
    }

    fn visit_unit<E>(self) -> Result<Value<'de>, E> {
        Ok(Value::Nothing)
    }

    /// Its first item: Caddy writes the lines of a header field as a list.
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'de>, A::Error> {
        let first = items.next_element()?.unwrap_or(Value::Nothing);
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value<'de>, A::Error> {
        let mut slots = Box::<Slots<'de>>::default();
        while let Some(Key(key)) = map.next_key()? {
            let is_one = |names: &&[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(&key));
            match KEYS.iter().find_map(|(field, ranks)| Some((*field, ranks.iter().position(is_one)?))) {
                Some((field, rank)) => slots.put(field, rank, map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Value::Object(slots))
    }
}

#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
