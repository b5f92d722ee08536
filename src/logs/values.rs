//! [`FieldValues`]: the values in one line of an access log by their meaning, such as status or
//! user agent. The parser of a format fills in the values, which then become the [`LogRecord`] of
//! the request. Only the parser of the Common and Combined formats makes the record directly: most
//! logs have these formats, and this way is faster.

use super::{
    FieldBytes, FieldResult, LineResult, LogField, LogRecord, RequestLine, UnreadableReason::*,
    client, dash_to_empty, fields, non_empty, request, timestamps,
};
use crate::time::Timestamp;
use LogField::*;

pub const FIELD_COUNT: usize = LogField::Other as usize + 1;

/// The values of a line, without escapes.
#[derive(Default)]
pub struct FieldValues<'a> {
    /// The time, if it is not that of [`LogField::Time`].
    pub time: Option<Timestamp>,
    values: [Option<FieldBytes<'a>>; FIELD_COUNT],
}

impl<'a> FieldValues<'a> {
    pub fn get(&self, field: LogField) -> Option<&[u8]> {
        self.values[field as usize].as_deref()
    }

    pub fn set(&mut self, field: LogField, value: impl Into<FieldBytes<'a>>) {
        self.values[field as usize] = Some(value.into());
    }

    pub fn take(&mut self, field: LogField) -> Option<FieldBytes<'a>> {
        self.values[field as usize].take()
    }

    /// Sets the fields that `other` has.
    pub fn update(&mut self, other: FieldValues<'a>) {
        for (own, other) in self.values.iter_mut().zip(other.values) {
            *own = other.or(own.take());
        }
    }

    /// The status; `None` if the line has none.
    ///
    /// # Errors
    /// The value is no number of three digits.
    pub fn status(&self) -> FieldResult<Option<u16>> {
        self.get(Status).map_or(Ok(None), fields::parse_status)
    }

    /// How long the response took; `None` if the line does not say that: AWS writes `-1` for an unknown
    /// time. CloudFront's seconds stand beside a column that IIS uses for milliseconds.
    fn milliseconds(&self) -> Option<u32> {
        for (field, unit) in [(Seconds, 1e3), (Milliseconds, 1.0), (Microseconds, 1e-3)] {
            if let Some(text) = self.get(field) {
                let text = String::from_utf8_lossy(text);
                let number: f64 = text.trim_end_matches('s').parse().ok()?;
                return (number.is_finite() && number >= 0.0).then_some((number * unit) as u32);
            }
        }
        None
    }

    /// Makes a line of columns without names. A column of the host or the client that has something
    /// else shows that they were misread.
    ///
    /// # Errors
    /// The line cannot be read for certain.
    pub fn into_checked_line(mut self) -> LineResult<'a> {
        let host = self.get(Host);
        let client = self.get(Client);
        let has_host = host.map_or(Ok(false), fields::check_host)?;
        let has_address = client.map_or(Ok(false), fields::check_client)?;
        // Host and client are swapped.
        if !has_address
            && client.is_some_and(|client| client != b"-")
            && host.is_some_and(client::is_address)
        {
            return Err(BadClient);
        }
        if !has_host {
            self.take(Host);
        }
        if !has_address {
            self.take(Client);
        }
        self.into_line()
    }

    /// Makes a line of the values. The request line counts before separate fields for target, method
    /// and query, because nginx may have rewritten them.
    ///
    /// # Errors
    /// The line cannot be read for certain.
    pub fn into_line(mut self) -> LineResult<'a> {
        let time = self
            .time
            .or_else(|| timestamps::parse_any_time(self.get(Time)?));
        let time = time.ok_or(BadTime)?;
        let status = self.status()?;
        let bytes = self.get(Bytes);
        let bytes = bytes.map_or(Ok(None), fields::parse_number)?;
        let user_agent = self
            .take(UserAgent)
            .map(fields::check_user_agent)
            .transpose()?;
        let mut text = self.take(Request).unwrap_or_default();
        // Envoy writes `- - -` for no request, and AWS `- http://shop.example:80- -`.
        let mut parsed = RequestLine::parse(&text).filter(|parsed| *parsed.method != *b"-");
        let has_method = parsed
            .as_ref()
            .is_some_and(|parsed| !parsed.method.is_empty());
        let target = self.take(Target);
        if let Some(target) = target.or_else(|| self.take(Path))
            && !has_method
        {
            if text.is_empty() {
                text = target.clone();
            }
            let method = self.take(Method).unwrap_or_default();
            let query = self.take(Arguments).map(dash_to_empty);
            parsed = RequestLine::from_target(method, target)
                .map(|parsed| parsed.with_query(&query.unwrap_or_default()));
        }
        let record = LogRecord {
            host: non_empty(self.take(Host)).filter(|host| **host != *b"_"),
            client: non_empty(self.take(Client)),
            x_forwarded_for: non_empty(self.take(Forwarded)),
            time,
            bytes: bytes.unwrap_or(0),
            milliseconds: self.milliseconds(),
            content_type: non_empty(self.take(ContentType)),
            referer: non_empty(self.take(Referer)),
            user_agent,
            ..LogRecord::default()
        };
        request::into_line(parsed, &text, status, record)
    }
}
