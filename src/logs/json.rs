//! [`read`] reads a line of JSON by crawlgate, Caddy, Traefik, or nginx's `log_format` with usual
//! names ([`named`]). If a line has several keys for one field, the one with the lowest rank
//! counts. Values inside `request` and `headers` (Caddy) replace the line's own.

use super::fields::named;
use super::{
    Asked, FIELDS, Field, Line, Octets, Reading, Record, Unreadable, fields, moment, not_empty,
    or_empty, request,
};
use serde_json::{Map, Value};

/// Reads a line. In a line that is not UTF-8 throughout, replacement characters stand for what is
/// not.
pub fn read(line: &[u8]) -> Reading<'static> {
    match serde_json::from_str(&String::from_utf8_lossy(line)) {
        Ok(object) => Slots::of(object).line(),
        Err(_) => Err(Unreadable::CutOff),
    }
}

/// The best value of each field, with its rank.
#[derive(Default)]
struct Slots([Option<(usize, Value)>; FIELDS]);

impl Slots {
    /// Sorts the values of a line into its fields. For one field the key with the lowest rank
    /// counts, and values in the objects `request` and `headers` count before the line's own.
    /// Unknown keys and values without text are left out.
    fn of(object: Map<String, Value>) -> Slots {
        let mut slots = Slots::default();
        let mut inner = Vec::new();
        for (key, value) in object {
            let Some((field, rank)) = named(&key) else {
                continue;
            };
            match (field, value) {
                // Caddy's `request` and its `headers` are objects.
                (Field::Request | Field::Headers, Value::Object(object)) => {
                    inner.push((field, object))
                }
                (Field::Headers, _) => {}
                // That a request had no user agent is known, too.
                (Field::UserAgent, value) if text(&value).is_none() => slots.set_headers(),
                (field, value) => {
                    let slot = &mut slots.0[field as usize];
                    let is_better = slot.as_ref().is_none_or(|(known, _)| rank < *known);
                    if is_better && text(&value).is_some() {
                        *slot = Some((rank, value));
                    }
                }
            }
        }
        for (field, object) in inner {
            for (own, theirs) in slots.0.iter_mut().zip(Slots::of(object).0) {
                // What stands deeper says more of the request than the line's own keys do.
                *own = theirs.or(own.take());
            }
            if field == Field::Headers {
                slots.set_headers();
            }
        }
        slots
    }

    /// Records that the line has fields of the request's head: then no user agent among them means
    /// that the request had none.
    fn set_headers(&mut self) {
        self.0[Field::Headers as usize] = Some((0, Value::Null));
    }

    /// Takes the value of a field out, as text.
    fn take(&mut self, field: Field) -> Option<String> {
        self.0[field as usize]
            .take()
            .and_then(|(_, value)| text(&value))
    }

    /// Takes the value of a field out, as bytes.
    fn text(&mut self, field: Field) -> Option<Octets<'static>> {
        self.take(field).map(|text| text.into_bytes().into())
    }

    /// Takes the value of a field out, as a number; `None` if the line has none.
    ///
    /// # Errors
    /// It is no number.
    fn number(&mut self, field: Field) -> Result<Option<u64>, Unreadable> {
        self.take(field)
            .map_or(Ok(None), |text| fields::number(text.as_bytes()))
    }

    /// Makes a line of its values. A line without a request is a message of the server if it looks
    /// like one. A request must have a time and a user agent, or the object that would hold one; a
    /// missing status or number of bytes is zero.
    ///
    /// # Errors
    /// It cannot be read for certain.
    fn line(mut self) -> Reading<'static> {
        // Caddy writes its errors and what its handlers do with the request that they are about.
        let logger = self.text(Field::Logger).unwrap_or_default();
        if logger.starts_with(b"http.") && !logger.starts_with(b"http.log.access") {
            return Ok(Line::ServerMessage);
        }
        let line = self.text(Field::Request);
        let path = self.text(Field::Path);
        let url = self.text(Field::Target).or(path);
        if line.is_none() && url.is_none() {
            return if self.is_message() {
                Ok(Line::ServerMessage)
            } else {
                Err(Unreadable::BadRequest)
            };
        }
        let time = self
            .take(Field::Time)
            .and_then(|time| moment::any(&time))
            .ok_or(Unreadable::BadTime)?;
        let status = fields::status(self.number(Field::Status)?)?;
        let bytes = self.number(Field::Bytes)?.unwrap_or(0);
        let line = line.unwrap_or_default();
        let Some(asked) = self.asked(&line, url) else {
            return request::none(&line, status);
        };
        let user_agent = match self.text(Field::UserAgent) {
            Some(user_agent) => fields::user_agent(user_agent)?,
            None if self.0[Field::Headers as usize].is_some() => Octets::default(),
            None => return Err(Unreadable::NoUserAgent),
        };
        Ok(Line::Request(Record {
            host: asked
                .host
                .or_else(|| not_empty(self.text(Field::Host)).filter(|host| **host != *b"_")),
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

    /// Whether a line without a request is a message of the server: it has a level or a text for
    /// people, and nothing of a request, because an application may write its own access log with a
    /// level.
    fn is_message(&self) -> bool {
        let of_requests = [
            Field::Method,
            Field::Status,
            Field::Client,
            Field::UserAgent,
            Field::Headers,
        ];
        let is_of_request = of_requests
            .iter()
            .any(|field| self.0[*field as usize].is_some());
        !is_of_request && matches!(self.0[Field::Message as usize], Some((_, Value::String(_))))
    }

    /// What was asked for: by the request line if it has a method, else by `url` (or the line) with
    /// the method and the query in fields of their own. nginx may have rewritten `uri`. `None` if
    /// neither can be read.
    fn asked(
        &mut self,
        line: &Octets<'static>,
        url: Option<Octets<'static>>,
    ) -> Option<Asked<'static>> {
        let by_line = Asked::line(line);
        if by_line
            .as_ref()
            .is_some_and(|asked| !asked.method.is_empty())
        {
            return by_line;
        }
        let method = self.text(Field::Method).unwrap_or_default();
        let query = self
            .text(Field::Arguments)
            .map(or_empty)
            .unwrap_or_default();
        Some(Asked::url(method, url.unwrap_or_else(|| line.clone()))?.with_query(&query))
    }
}

/// A value as text; `None` for null, a boolean, an object or an empty list. Caddy writes the lines
/// of a header field as a list: together they are one value (RFC 9110 section 5.3).
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(lines) => {
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            (!lines.is_empty()).then(|| lines.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}
