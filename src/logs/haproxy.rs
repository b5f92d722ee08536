//! The HTTP log of HAProxy (`option httplog`). It has a user agent only if the configuration captures
//! the field; captured fields stand in braces without their names, so [`parse_captures`] recognises
//! them by their form.

use super::columns::ColumnCursor;
use super::timestamps::{self, matches_shape};
use super::{
    FieldBytes, LineResult, LogLine, LogRecord, RequestLine, UnreadableReason, client, decode_hex,
    fields, request,
};

/// A time without its brackets, up to the second.
const TIME_SHAPE: &[u8] = b"00/aaa/0000:00:00:00";

/// Whether the second column of a line, without the tag of syslog, is a time with milliseconds in
/// brackets.
pub fn is_haproxy_line(line: &[u8]) -> bool {
    let line = strip_tag(line);
    let Some(blank) = memchr::memchr(b' ', line) else {
        return false;
    };
    let Some(time) = line[blank + 1..].strip_prefix(b"[") else {
        return false;
    };
    let time = time.split_at_checked(TIME_SHAPE.len());
    time.is_some_and(|(time, rest)| matches_shape(time, TIME_SHAPE) && rest.starts_with(b"."))
}

/// Parses a line. Connections that failed before a request have a text in place of the columns.
pub fn parse_haproxy_line(line: &[u8]) -> LineResult<'_> {
    let mut cursor = ColumnCursor(strip_tag(line));
    let client = fields::check_client(cursor.word()?)?;
    let time = cursor.between(b'[', b']')?;
    let time = time
        .get(..TIME_SHAPE.len())
        .and_then(timestamps::parse_clf_utc)
        .ok_or(UnreadableReason::BadTime)?;
    if cursor.word()?.ends_with(b":") {
        return Ok(LogLine::NoRequest);
    }
    // The server and the durations.
    let durations = cursor.last_of(2)?;
    if durations.split(|byte| *byte == b'/').count() < 4 {
        // The log of a TCP proxy has fewer.
        return Err(UnreadableReason::OtherFormat);
    }
    let status = parse_signed(cursor.word()?)?;
    let status = fields::check_status(status.filter(|status| *status > 0))?;
    let bytes = parse_signed(cursor.word()?)?;
    // Cookies, the end of the session, connections and queues.
    cursor.last_of(5)?;
    let mut record = LogRecord::default();
    if cursor.0.starts_with(b"{") {
        record = parse_captures(cursor.between(b'{', b'}')?)?;
        if cursor.0.starts_with(b"{") {
            cursor.between(b'{', b'}')?;
        }
    }
    let request = decode(cursor.quoted()?);
    record.client = client.map(Into::into);
    record.time = time;
    record.bytes = bytes.unwrap_or(0);
    let parsed = RequestLine::parse(&request);
    request::into_line(parsed, &request, status.or(Some(0)), record)
}

/// Strips `haproxy[14389]: `, which is left of syslog where its time and host are missing.
fn strip_tag(line: &[u8]) -> &[u8] {
    let after = line.strip_prefix(b"haproxy[").and_then(|rest| {
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        rest[digits..].strip_prefix(b"]: ")
    });
    after.unwrap_or(line)
}

/// Parses a number that may be -1, or have a plus sign because the session was still going on.
fn parse_signed(field: &[u8]) -> Result<Option<u64>, UnreadableReason> {
    if field == b"-1" {
        return Ok(None);
    }
    fields::parse_number(field.strip_prefix(b"+").unwrap_or(field))
}

/// Decodes `#22`: so HAProxy writes quotes, braces, bars and bytes that cannot be printed.
fn decode(field: &[u8]) -> FieldBytes<'_> {
    decode_hex(field, b'#')
}

/// Recognises captured values, which bars separate: one with a product and version is the user agent,
/// a URL is the referer, a list of addresses is X-Forwarded-For, and a name with a dot is the host.
/// The record has nothing else.
///
/// # Errors
/// Several values may be the same field.
fn parse_captures(block: &[u8]) -> Result<LogRecord<'_>, UnreadableReason> {
    let mut found = LogRecord::default();
    for value in block.split(|byte| *byte == b'|') {
        let slot = if client::is_client_list(value) {
            &mut found.x_forwarded_for
        } else if request::authority_start(value).is_some() {
            &mut found.referer
        } else if begins_with_product(value) {
            &mut found.user_agent
        } else if value.contains(&b'.') && fields::check_host(value).is_ok() {
            &mut found.host
        } else {
            continue;
        };
        if slot.is_some() {
            return Err(UnreadableReason::BadUserAgent);
        }
        *slot = Some(decode(value));
    }
    Ok(found)
}

/// Whether a value begins with a product and its version, like `GPTBot/1.2` (RFC 9110 section
/// 10.1.5).
fn begins_with_product(value: &[u8]) -> bool {
    let slash = value
        .iter()
        .position(|byte| !byte.is_ascii_alphanumeric() && !b"-_.".contains(byte))
        .filter(|end| *end > 0 && value[*end] == b'/');
    slash.is_some_and(|slash| value.get(slash + 1).is_some_and(u8::is_ascii_digit))
}
