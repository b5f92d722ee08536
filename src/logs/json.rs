//! [`parse_json_line`] parses a JSON line of an access log, from crawlgate, Caddy, Traefik, or
//! nginx with usual names in its `log_format` ([`field_for_key`]). If a line has several keys for
//! the same field, the key with the lowest rank counts. Caddy nests values in the objects `request`
//! and `headers`; these replace values of the line itself.

use super::fields::field_for_key;
use super::{
    FIELD_COUNT, FieldBytes, LineResult, LogField, LogLine, LogRecord, RequestLine,
    UnreadableReason, dash_to_empty, fields, non_empty, request, timestamps,
};
use serde_json::{Map, Value};

/// Parses a line. Bytes that are not UTF-8 become replacement characters.
pub fn parse_json_line(line: &[u8]) -> LineResult<'static> {
    match serde_json::from_str(&String::from_utf8_lossy(line)) {
        Ok(object) => FieldSlots::from_object(object).into_line(),
        Err(_) => Err(UnreadableReason::CutOff),
    }
}

/// The best value of each field, with its rank.
#[derive(Default)]
struct FieldSlots([Option<(usize, Value)>; FIELD_COUNT]);

impl FieldSlots {
    /// Collects the values of a line. Unknown keys and values without text are left out.
    fn from_object(object: Map<String, Value>) -> FieldSlots {
        let mut slots = FieldSlots::default();
        let mut inner = Vec::new();
        for (key, value) in object {
            let Some((field, rank)) = field_for_key(&key) else {
                continue;
            };
            match (field, value) {
                // Caddy's `request` and its `headers` are objects.
                (LogField::Request | LogField::Headers, Value::Object(object)) => {
                    inner.push((field, object))
                }
                (LogField::Headers, _) => {}
                // A null user agent means that the request had none.
                (LogField::UserAgent, value) if value_text(&value).is_none() => {
                    slots.mark_headers_present()
                }
                (field, value) => {
                    let slot = &mut slots.0[field as usize];
                    let is_better = slot.as_ref().is_none_or(|(known, _)| rank < *known);
                    if is_better && value_text(&value).is_some() {
                        *slot = Some((rank, value));
                    }
                }
            }
        }
        for (field, object) in inner {
            for (own, theirs) in slots.0.iter_mut().zip(FieldSlots::from_object(object).0) {
                // The inner objects describe the request more exactly than the line's own keys.
                *own = theirs.or(own.take());
            }
            if field == LogField::Headers {
                slots.mark_headers_present();
            }
        }
        slots
    }

    /// Records that the line has the fields of the request's head. Then a missing user agent means
    /// that the request had none.
    fn mark_headers_present(&mut self) {
        self.0[LogField::Headers as usize] = Some((0, Value::Null));
    }

    fn take_text(&mut self, field: LogField) -> Option<String> {
        self.0[field as usize]
            .take()
            .and_then(|(_, value)| value_text(&value))
    }

    fn take_bytes(&mut self, field: LogField) -> Option<FieldBytes<'static>> {
        self.take_text(field).map(|text| text.into_bytes().into())
    }

    /// # Errors
    /// The value is no number.
    fn take_number(&mut self, field: LogField) -> Result<Option<u64>, UnreadableReason> {
        self.take_text(field)
            .map_or(Ok(None), |text| fields::parse_number(text.as_bytes()))
    }

    /// Makes a line of its values. A request must have a time, and a user agent or the object that
    /// would have one.
    ///
    /// # Errors
    /// The line cannot be read for certain.
    fn into_line(mut self) -> LineResult<'static> {
        // Caddy also writes requests into lines about errors and handlers.
        let logger = self.take_bytes(LogField::Logger).unwrap_or_default();
        if logger.starts_with(b"http.") && !logger.starts_with(b"http.log.access") {
            return Ok(LogLine::ServerMessage);
        }
        let line = self.take_bytes(LogField::Request);
        let path = self.take_bytes(LogField::Path);
        let url = self.take_bytes(LogField::Target).or(path);
        if line.is_none() && url.is_none() {
            return if self.is_server_message() {
                Ok(LogLine::ServerMessage)
            } else {
                Err(UnreadableReason::BadRequest)
            };
        }
        let time = self
            .take_text(LogField::Time)
            .and_then(|time| timestamps::parse_any_time(&time))
            .ok_or(UnreadableReason::BadTime)?;
        let status = fields::check_status(self.take_number(LogField::Status)?)?;
        let bytes = self.take_number(LogField::Bytes)?.unwrap_or(0);
        let line = line.unwrap_or_default();
        let Some(parsed) = self.request_line(&line, url) else {
            return request::classify_bad_request(&line, status);
        };
        let user_agent = match self.take_bytes(LogField::UserAgent) {
            Some(user_agent) => fields::check_user_agent(user_agent)?,
            None if self.0[LogField::Headers as usize].is_some() => FieldBytes::default(),
            None => return Err(UnreadableReason::NoUserAgent),
        };
        Ok(LogLine::Request(LogRecord {
            host: parsed.host.or_else(|| {
                non_empty(self.take_bytes(LogField::Host)).filter(|host| **host != *b"_")
            }),
            client: non_empty(self.take_bytes(LogField::Client)),
            x_forwarded_for: non_empty(self.take_bytes(LogField::Forwarded)),
            time,
            method: parsed.method,
            target: parsed.target,
            status: status.unwrap_or(0),
            bytes,
            content_type: non_empty(self.take_bytes(LogField::ContentType)),
            user_agent: Some(user_agent),
        }))
    }

    /// Whether a line without a request is a message of a server: it has a level or a text for
    /// people. It must not have any field of a request, because the access logs of some applications
    /// have a level.
    fn is_server_message(&self) -> bool {
        let of_requests = [
            LogField::Method,
            LogField::Status,
            LogField::Client,
            LogField::UserAgent,
            LogField::Headers,
        ];
        let is_of_request = of_requests
            .iter()
            .any(|field| self.0[*field as usize].is_some());
        !is_of_request
            && matches!(
                self.0[LogField::Message as usize],
                Some((_, Value::String(_)))
            )
    }

    /// The request: from the request line if it has a method, else from `url` (or the line) and the
    /// separate fields for method and query. The request line goes first, because nginx may have
    /// rewritten `uri`.
    fn request_line(
        &mut self,
        line: &FieldBytes<'static>,
        url: Option<FieldBytes<'static>>,
    ) -> Option<RequestLine<'static>> {
        let by_line = RequestLine::parse(line);
        if by_line
            .as_ref()
            .is_some_and(|parsed| !parsed.method.is_empty())
        {
            return by_line;
        }
        let method = self.take_bytes(LogField::Method).unwrap_or_default();
        let query = self
            .take_bytes(LogField::Arguments)
            .map(dash_to_empty)
            .unwrap_or_default();
        Some(
            RequestLine::from_target(method, url.unwrap_or_else(|| line.clone()))?
                .with_query(&query),
        )
    }
}

/// A value as text; `None` for null, a boolean, an object or an empty list. Caddy writes the lines
/// of a header field as a list: together they are one value (RFC 9110 section 5.3).
fn value_text(value: &Value) -> Option<String> {
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
