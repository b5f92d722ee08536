//! Parses JSON lines of access logs. [`parse_any_line`] is for crawlgate, Caddy, Traefik, and nginx's
//! `log_format` with usual names ([`field_for_key`]): if a line has several keys for one field, the
//! one with the lowest rank counts, and values inside `request` and `headers` (Caddy) replace the
//! line's own. [`parse_known_line`] is for services with keys of their own, and a [`KeyMap`] gives
//! the keys of any other line.

use super::fields::field_for_key;
use super::{
    FIELD_COUNT, FieldBytes, LineResult, LogField, LogLine, LogRecord, RequestLine,
    UnreadableReason, dash_to_empty, fields, non_empty, request, timestamps,
};
use serde_json::{Map, Value};

/// Parses the object of a line. Bytes that are not UTF-8 become replacement characters.
pub fn parse_object(line: &[u8]) -> Result<Map<String, Value>, UnreadableReason> {
    serde_json::from_str(&String::from_utf8_lossy(line)).map_err(|_| {
        if line.trim_ascii_start().starts_with(b"{") {
            UnreadableReason::CutOff
        } else {
            UnreadableReason::OtherFormat
        }
    })
}

/// Reads an object by the usual names.
pub fn parse_any_line(object: Map<String, Value>) -> LineResult<'static> {
    FieldSlots::from_object(object).into_line()
}

/// Reads an object by the keys of a service. An entry without a target is a connection without a
/// request.
pub fn parse_known_line(object: &Map<String, Value>, keys: &KeyMap) -> LineResult<'static> {
    let mut slots = FieldSlots::default();
    for (field, paths) in &keys.0 {
        slots.set_from_path(*field, object, paths);
    }
    if slots.0[LogField::Target as usize].is_none() {
        let status = fields::check_status(slots.take_number(LogField::Status)?)?;
        return request::classify_bad_request(b"", status);
    }
    slots.into_line()
}

/// The keys of some fields, as `--map` gives them: `user_agent=ua,path=http.url`. Alternatives are
/// separated by bars, and a dot leads into an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyMap(Vec<(LogField, String)>);

/// Why keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyMapError {
    /// A pair is not like `field=key`.
    #[error(
        "\"{0}\" is not a field with its key. Write user_agent=ua, with commas between such pairs"
    )]
    NoKey(String),
    /// There is no such field.
    #[error("there is no field \"{0}\"; possible fields: {names}", names = field_names())]
    UnknownField(String),
    /// A field has two keys.
    #[error("the field \"{0}\" has two keys")]
    Twice(String),
}

/// The fields that a [`KeyMap`] may name.
const MAPPED_FIELDS: [(&str, LogField); 12] = [
    ("time", LogField::Time),
    ("client", LogField::Client),
    ("x_forwarded_for", LogField::Forwarded),
    ("request", LogField::Request),
    ("method", LogField::Method),
    ("path", LogField::Target),
    ("host", LogField::Host),
    ("status", LogField::Status),
    ("bytes", LogField::Bytes),
    ("content_type", LogField::ContentType),
    ("referer", LogField::Referer),
    ("user_agent", LogField::UserAgent),
];

fn field_names() -> String {
    MAPPED_FIELDS.map(|(name, _)| name).join(", ")
}

impl KeyMap {
    /// The keys of a known format.
    #[expect(clippy::expect_used, reason = "the keys are part of the program")]
    pub(super) fn builtin(text: &str) -> KeyMap {
        KeyMap::parse(text).expect("keys that are tested")
    }

    /// Parses pairs of fields and keys.
    ///
    /// # Errors
    /// A pair has no key, or a field that does not exist or was given before.
    pub fn parse(text: &str) -> Result<KeyMap, KeyMapError> {
        let mut keys: Vec<(LogField, String)> = Vec::new();
        for pair in text.split(',') {
            let parts = pair.split_once('=').filter(|(_, key)| !key.is_empty());
            let (name, key) = parts.ok_or_else(|| KeyMapError::NoKey(pair.to_owned()))?;
            let name = name.trim();
            let known = MAPPED_FIELDS.iter().find(|(known, _)| *known == name);
            let (_, field) = known.ok_or_else(|| KeyMapError::UnknownField(name.to_owned()))?;
            if keys.iter().any(|(before, _)| before == field) {
                return Err(KeyMapError::Twice(name.to_owned()));
            }
            keys.push((*field, key.to_owned()));
        }
        Ok(KeyMap(keys))
    }

    /// Parses a line. Fields without a key here are searched under their usual names.
    pub(super) fn parse_line(&self, line: &[u8]) -> LineResult<'static> {
        let object = parse_object(line)?;
        let mut slots = FieldSlots::from_object(object.clone());
        let is_request = |field| [LogField::Request, LogField::Target].contains(field);
        if self.0.iter().any(|(field, _)| is_request(field)) {
            // The usual names of a request do not count beside a mapped one.
            for field in [
                LogField::Request,
                LogField::Target,
                LogField::Path,
                LogField::Arguments,
            ] {
                slots.0[field as usize] = None;
            }
        }
        for (field, path) in &self.0 {
            slots.0[*field as usize] = None;
            slots.set_from_path(*field, &object, path);
        }
        // Without the others a line is readable.
        let needed = [
            LogField::Time,
            LogField::Request,
            LogField::Target,
            LogField::UserAgent,
        ];
        let mut keys = self.0.iter().filter(|(field, _)| needed.contains(field));
        let is_missing = keys.any(|(_, path)| value_at(&object, path).is_none());
        slots.into_line().map_err(|reason| {
            if is_missing {
                UnreadableReason::MissingKey
            } else {
                reason
            }
        })
    }
}

/// The value at a path: a key as it is, or keys of nested objects with dots between them.
fn value_at<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    object.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        value_at(object.get(first)?.as_object()?, rest)
    })
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

    /// Takes the value of a field from the first of several paths, separated by bars, that has one.
    fn set_from_path(&mut self, field: LogField, object: &Map<String, Value>, paths: &str) {
        let mut values = paths.split('|').filter_map(|path| value_at(object, path));
        match (field, values.next()) {
            (_, None) => {}
            (LogField::UserAgent, Some(value)) if value_text(value).is_none() => {
                self.mark_headers_present();
            }
            (field, Some(value)) => {
                self.0[field as usize] = value_text(value).map(|_| (0, value.clone()));
            }
        }
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
        let record = LogRecord {
            host: non_empty(self.take_bytes(LogField::Host)).filter(|host| **host != *b"_"),
            client: non_empty(self.take_bytes(LogField::Client)),
            x_forwarded_for: non_empty(self.take_bytes(LogField::Forwarded)),
            time,
            bytes,
            content_type: non_empty(self.take_bytes(LogField::ContentType)),
            referer: non_empty(self.take_bytes(LogField::Referer)),
            user_agent: Some(user_agent),
            ..LogRecord::default()
        };
        request::into_line(Some(parsed), &line, status, record)
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
