//! The default text formats of Envoy and Istio. Envoy escapes nothing, so a line is read only if all
//! of its quoted columns are where they belong.

use super::columns::ColumnCursor;
use super::timestamps::{self, matches_shape};
use super::{
    FieldBytes, LineResult, LogRecord, RequestLine, UnreadableReason, fields, non_empty, request,
};

/// Whether a line begins with a time of RFC 3339 in brackets.
pub fn is_envoy_line(line: &[u8]) -> bool {
    const BEGINNING: &[u8] = b"[0000-00-00T00:00:00";
    line.get(..BEGINNING.len())
        .is_some_and(|beginning| matches_shape(beginning, BEGINNING))
}

/// Parses a line: time, request, status, flags, in Istio's format three columns about errors, four
/// numbers, and X-Forwarded-For, user agent, request id, authority and upstream in quotes. Istio adds
/// six columns, of which the fourth is the client.
pub fn parse_envoy_line(line: &[u8]) -> LineResult<'_> {
    let mut cursor = ColumnCursor(line);
    let time = timestamps::parse_utf8_time(cursor.between(b'[', b']')?);
    let time = time.ok_or(UnreadableReason::BadTime)?;
    let request: FieldBytes<'_> = cursor.quoted()?.into();
    let status = fields::check_status(fields::parse_number(cursor.word()?)?)?;
    let mut received = cursor.last_of(2)?;
    let is_istio = !received.iter().all(u8::is_ascii_digit);
    if is_istio {
        // How the connection ended, and why the upstream failed.
        cursor.word()?;
        cursor.quoted()?;
        received = cursor.word()?;
    }
    fields::parse_number(received)?;
    let bytes = fields::parse_number(cursor.word()?)?;
    // The two durations.
    cursor.last_of(2)?;
    let forwarded = fields::check_client(cursor.quoted()?)?;
    let user_agent = fields::check_user_agent(cursor.quoted()?.into())?;
    cursor.quoted()?;
    let host = fields::check_host(cursor.quoted()?)?;
    cursor.quoted()?;
    let client = if is_istio {
        let client = fields::check_client(cursor.last_of(4)?).unwrap_or(None);
        cursor.last_of(2)?;
        client
    } else {
        None
    };
    if !cursor.0.is_empty() {
        return Err(UnreadableReason::OtherFormat);
    }
    let parsed = RequestLine::parse(&request).filter(|parsed| *parsed.method != *b"-");
    let record = LogRecord {
        host: host.map(Into::into),
        // Envoy adds the address of its client to X-Forwarded-For.
        client: client.or(forwarded).map(Into::into),
        x_forwarded_for: client.and(non_empty(forwarded.map(Into::into))),
        time,
        bytes: bytes.unwrap_or(0),
        user_agent: Some(user_agent),
        ..LogRecord::default()
    };
    request::into_line(parsed, &request, status, record)
}
