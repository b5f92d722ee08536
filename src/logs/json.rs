//! Parses access logs with a JSON object in each line. [`parse_any_line`] reads the usual keys
//! ([`field_for_key`]): those of crawlgate, Caddy, Traefik and nginx. [`parse_known_line`] reads
//! the lines of services with keys of their own. For any other log, the user gives the keys in a
//! [`KeyMap`].
//!
//! If several usual keys of a line stand for one field, the key that [`field_for_key`] ranks best
//! counts. Values inside Caddy's objects `request` and `headers` replace values of the line itself.

use super::fields::field_for_key;
use super::values::{FIELD_COUNT, FieldValues};
use super::{
    FieldBytes, FieldResult, LineResult, LogField, LogLine, LogRecord, UnreadableReason::*, fields,
    request,
};
use LogField::*;
use serde_json::{Map, Value};

/// Parses the object of a line. Bytes that are not UTF-8 become replacement characters.
pub fn parse_object(line: &[u8]) -> FieldResult<Map<String, Value>> {
    serde_json::from_str(&String::from_utf8_lossy(line)).map_err(|_| {
        if line.trim_ascii_start().starts_with(b"{") {
            CutOff
        } else {
            OtherFormat
        }
    })
}

/// Reads an object by the usual names.
pub fn parse_any_line(object: Map<String, Value>) -> LineResult<'static> {
    into_line(values_of_usual_keys(object))
}

/// Reads an object by the keys of a service. An entry without a target is a connection without a
/// request.
pub fn parse_known_line(object: &Map<String, Value>, keys: &KeyMap) -> LineResult<'static> {
    let mut values = FieldValues::default();
    for (field, paths) in &keys.0 {
        set_from_path(&mut values, *field, object, paths);
    }
    if values.get(Target).is_none() {
        return request::classify_bad_request(b"", values.status()?);
    }
    into_line(values)
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
    #[error("there is no field \"{0}\"; possible fields: {names}", names = MAPPED_FIELDS.map(|(name, _)| name).join(", "))]
    UnknownField(String),
    /// A field has two keys.
    #[error("the field \"{0}\" has two keys")]
    Twice(String),
}

/// The fields that a [`KeyMap`] may name.
const MAPPED_FIELDS: [(&str, LogField); 15] = [
    ("time", Time),
    ("client", Client),
    ("x_forwarded_for", Forwarded),
    ("request", Request),
    ("method", Method),
    ("path", Target),
    ("host", Host),
    ("status", Status),
    ("bytes", Bytes),
    ("seconds", Seconds),
    ("milliseconds", Milliseconds),
    ("microseconds", Microseconds),
    ("content_type", ContentType),
    ("referer", Referer),
    ("user_agent", UserAgent),
];

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
        let mut values = values_of_usual_keys(object.clone());
        let mut fields = self.0.iter().map(|(field, _)| field);
        if fields.any(|field| matches!(field, Request | Target)) {
            // The usual names of a request do not count beside a mapped one.
            for field in [Request, Target, Path, Arguments] {
                values.take(field);
            }
        }
        let mut is_missing = false;
        for (field, path) in &self.0 {
            values.take(*field);
            // Without the others a line is readable.
            is_missing |= !set_from_path(&mut values, *field, &object, path)
                && matches!(field, Time | Request | Target | UserAgent);
        }
        match into_line(values) {
            Err(_) if is_missing => Err(MissingKey),
            parsed => parsed,
        }
    }
}

/// The value at a path: a key as it is, or keys of nested objects with dots between them.
fn value_at<'a>(object: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    object.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        value_at(object.get(first)?.as_object()?, rest)
    })
}

/// The best value of each field. Unknown keys and values without text are left out.
fn values_of_usual_keys(object: Map<String, Value>) -> FieldValues<'static> {
    let mut values = FieldValues::default();
    let mut ranks = [usize::MAX; FIELD_COUNT];
    let mut inner = Vec::new();
    for (key, value) in object {
        let Some((field, rank)) = field_for_key(&key) else {
            continue;
        };
        match (field, value) {
            // Caddy's `request` and its `headers` are objects.
            (Request | Headers, Value::Object(object)) => {
                inner.push((field, object));
            }
            (Headers, _) => {}
            (field, value) => match value_text(value) {
                None if field == UserAgent => mark_headers_present(&mut values),
                Some(text) if rank < ranks[field as usize] => {
                    ranks[field as usize] = rank;
                    values.set(field, text.into_bytes());
                }
                _ => {}
            },
        }
    }
    for (field, object) in inner {
        // The inner objects describe the request more exactly than the line's own keys.
        values.update(values_of_usual_keys(object));
        if field == Headers {
            mark_headers_present(&mut values);
        }
    }
    values
}

/// Records that the line has the fields of the request's head, or a user agent that is null. Then a
/// missing user agent means that the request had none.
fn mark_headers_present(values: &mut FieldValues<'_>) {
    values.set(Headers, FieldBytes::default());
}

/// Sets a field to the first value at several paths, separated by bars. Returns whether there is
/// one.
fn set_from_path(
    values: &mut FieldValues<'_>,
    field: LogField,
    object: &Map<String, Value>,
    paths: &str,
) -> bool {
    let value = paths.split('|').find_map(|path| value_at(object, path));
    match value.cloned().map(value_text) {
        Some(Some(text)) => values.set(field, text.into_bytes()),
        Some(None) if field == UserAgent => mark_headers_present(values),
        _ => {}
    }
    value.is_some()
}

/// Makes a line of the values of an object. A request must have a user agent, or the object that
/// would have one.
///
/// # Errors
/// The line cannot be read for certain.
fn into_line(mut values: FieldValues<'static>) -> LineResult<'static> {
    // Caddy also writes requests into lines about errors and handlers.
    let logger = values.get(Logger).unwrap_or_default();
    if logger.starts_with(b"http.") && !logger.starts_with(b"http.log.access") {
        return Ok(LogLine::ServerMessage);
    }
    let has_any = |fields: &[LogField]| fields.iter().any(|field| values.get(*field).is_some());
    if !has_any(&[Request, Target, Path]) {
        // The access logs of some applications have a level, which may be a number.
        let message = values.get(Message);
        let is_message = message.is_some_and(|text| fields::parse_number(text).is_err());
        return if is_message && !has_any(&REQUEST_FIELDS) {
            Ok(LogLine::ServerMessage)
        } else {
            Err(BadRequest)
        };
    }
    if let Some(request) = values.get(Request)
        && !has_any(&[Target, Path])
    {
        // It may be a URL or a path alone.
        values.set(Target, request.to_vec());
    }
    if values.get(UserAgent).is_none() && values.get(Headers).is_some() {
        values.set(UserAgent, FieldBytes::default());
    }
    match values.into_line()? {
        LogLine::Request(LogRecord {
            user_agent: None, ..
        }) => Err(NoUserAgent),
        line => Ok(line),
    }
}

/// A line with one of these is no message of a server.
const REQUEST_FIELDS: [LogField; 5] = [Method, Status, Client, UserAgent, Headers];

/// A value as text; `None` for null, a boolean, an object or an empty list. Caddy writes the lines
/// of a header field as a list: together they are one value (RFC 9110 section 5.3).
fn value_text(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(lines) => {
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            (!lines.is_empty()).then(|| lines.join(", "))
        }
        _ => None,
    }
}
