//! [`read`] reads a line of JSON by crawlgate, Caddy, Traefik, or nginx's `log_format` with usual names. The table
//! [`KEYS`] says which key means which field. If a line has several keys for one field, the key that the table ranks
//! highest counts, and of equals the first in the line. Values inside `request` and `headers` (Caddy) replace those
//! that were read before.

use super::{
    Asked, FIELDS, Field, Line, Octets, Reading, Record, Unreadable, fields, moment, not_empty, or_empty, request,
};
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
    (Field::Target, &[&["request_uri", "RequestPath", "target"]]),
    (Field::Path, &[&["uri"], &["url"], &["path", "document_uri"]]),
    (Field::Arguments, &[&["args"], &["query_string"]]),
    (Field::Host, &[&["http_host", "RequestHost"], &["host"], &["vhost", "virtual_host"], &["server_name"]]),
    (Field::Client, &[&["client_ip", "ClientHost", "remote_addr"], &["remote_ip", "client"]]),
    (
        Field::Forwarded,
        &[
            &["http_x_forwarded_for", "request_X-Forwarded-For"],
            &["X-Forwarded-For", "x_forwarded_for"],
            &["proxy_add_x_forwarded_for"],
        ],
    ),
    (Field::Status, &[&["status", "DownstreamStatus"], &["status_code"]]),
    (Field::Bytes, &[&["body_bytes_sent", "DownstreamContentSize"], &["bytes", "size"], &["bytes_sent"]]),
    (Field::ContentType, &[&["sent_http_content_type", "downstream_Content-Type"]]),
    (
        Field::UserAgent,
        &[&["http_user_agent", "request_User-Agent"], &["user_agent", "User-Agent"], &["useragent"], &["agent"]],
    ),
    (Field::Headers, &[&["headers"]]),
    (Field::Logger, &[&["logger"]]),
    (Field::Message, &[&["level"], &["msg"]]),
];

/// Reads a line. In a line that is not UTF-8 throughout, replacement characters stand for what is not.
pub fn read(line: &[u8]) -> Reading<'_> {
    if let Ok(Value::Object(slots)) = serde_json::from_slice(line) {
        return slots.line();
    }
    if std::str::from_utf8(line).is_ok() {
        return Err(Unreadable::CutOff);
    }
    match serde_json::from_str(&String::from_utf8_lossy(line)) {
        Ok(Value::Object(slots)) => slots.line().map(Line::into_owned),
        _ => Err(Unreadable::CutOff),
    }
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
            // That a request had no user agent is known, too.
            (Field::UserAgent, Value::Nothing) => self.0[Field::Headers as usize] = Some((0, Value::Nothing)),
            (_, Value::Nothing) => {}
            // Caddy's `request` and its `headers` are objects.
            (Field::Request | Field::Headers, Value::Object(inner)) => {
                for (own, theirs) in self.0.iter_mut().zip(inner.0) {
                    // What stands deeper says more of the request than the line's own keys do.
                    *own = theirs.or(own.take());
                }
                if field == Field::Headers {
                    self.0[Field::Headers as usize] = Some((0, Value::Nothing));
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

    fn number(&mut self, field: Field) -> Result<Option<u64>, Unreadable> {
        match self.take(field) {
            Some(Value::Number(number)) => Ok(Some(number as u64)),
            Some(Value::Text(text)) => fields::number(text.as_bytes()),
            _ => Ok(None),
        }
    }

    fn time(&mut self) -> Option<Timestamp> {
        match self.take(Field::Time)? {
            Value::Number(number) => moment::epoch(number),
            Value::Text(text) => moment::any(&text),
            _ => None,
        }
    }

    fn line(mut self) -> Reading<'a> {
        // Caddy writes its errors and what its handlers do with the request that they are about.
        let logger = self.text(Field::Logger).unwrap_or_default();
        if logger.starts_with(b"http.") && !logger.starts_with(b"http.log.access") {
            return Ok(Line::ServerMessage);
        }
        let line = self.text(Field::Request);
        let path = self.text(Field::Path);
        let url = self.text(Field::Target).or(path);
        if line.is_none() && url.is_none() {
            return if self.is_message() { Ok(Line::ServerMessage) } else { Err(Unreadable::BadRequest) };
        }
        let time = self.time().ok_or(Unreadable::BadTime)?;
        let status = fields::status(self.number(Field::Status)?)?;
        let bytes = self.number(Field::Bytes)?.unwrap_or(0);
        let line = line.unwrap_or_default();
        let Some(asked) = self.asked(&line, url) else { return request::none(&line, status) };
        let user_agent = match self.text(Field::UserAgent) {
            Some(user_agent) => fields::user_agent(user_agent)?,
            None if self.take(Field::Headers).is_some() => Octets::default(),
            None => return Err(Unreadable::NoUserAgent),
        };
        Ok(Line::Request(Record {
            host: asked.host.or_else(|| not_empty(self.text(Field::Host)).filter(|host| **host != *b"_")),
            client: not_empty(self.text(Field::Client)),
            forwarded: not_empty(self.text(Field::Forwarded)),
            time,
            method: asked.method,
            target: asked.target,
            status: status.unwrap_or(0),
            bytes,
            content_type: not_empty(self.text(Field::ContentType)),
            user_agent: Some(user_agent),
        }))
    }

    /// Whether a line without a request is a message. It is not where it has something else of a request: an application
    /// may write its own access log with a level.
    fn is_message(&self) -> bool {
        let of_requests = [Field::Method, Field::Status, Field::Client, Field::UserAgent, Field::Headers];
        let is_of_request = of_requests.iter().any(|field| self.0[*field as usize].is_some());
        !is_of_request && matches!(self.0[Field::Message as usize], Some((_, Value::Text(_))))
    }

    /// What was asked for, by the request line or else by the parts of it. nginx may have rewritten `uri`.
    fn asked(&mut self, line: &Octets<'a>, url: Option<Octets<'a>>) -> Option<Asked<'a>> {
        let by_line = Asked::line(line);
        if by_line.as_ref().is_some_and(|asked| !asked.method.is_empty()) {
            return by_line;
        }
        let method = self.text(Field::Method).unwrap_or_default();
        let query = self.text(Field::Arguments).map(or_empty).unwrap_or_default();
        Some(Asked::url(method, url.unwrap_or_else(|| line.clone()))?.with_query(&query))
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

    /// Caddy writes the lines of a header field as a list. Together they are one value (RFC 9110 section 5.3).
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'de>, A::Error> {
        let mut value = items.next_element()?.unwrap_or(Value::Nothing);
        while let Some(item) = items.next_element()? {
            if let (Value::Text(text), Value::Text(line)) = (&mut value, item) {
                let text = text.to_mut();
                text.push_str(", ");
                text.push_str(&line);
            }
        }
        Ok(value)
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
