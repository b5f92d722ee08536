//! [`parse_haproxy_line`] parses a line of HAProxy's HTTP log (`option httplog`). A line has the
//! user agent only if HAProxy is configured to capture this header field. Captured fields stand in
//! braces without their names, so [`set_captures`] recognises them by their form.

use super::columns::ColumnCursor;
use super::timestamps::{begins_with_shape, parse_clf_time};
use super::values::FieldValues;
use super::{
    FieldResult, LineResult, LogField::*, LogLine, UnreadableReason::*, client, decode_hex, fields,
    request,
};

/// HAProxy writes quotes, braces, bars and bytes that cannot be printed like `#22`.
const ESCAPE: u8 = b'#';
/// The beginning of a time with milliseconds.
const TIME: &[u8] = b"[00/aaa/0000:00:00:00.";

/// Whether the second column of a line, without the tag of syslog, is a time with milliseconds in
/// brackets.
pub fn is_haproxy_line(line: &[u8]) -> bool {
    let mut cursor = ColumnCursor(strip_tag(line));
    cursor.word().is_ok() && begins_with_shape(cursor.0, TIME)
}

/// Parses a line. Connections that failed before a request have a text in place of the columns.
pub fn parse_haproxy_line(line: &[u8]) -> LineResult<'_> {
    let mut cursor = ColumnCursor(strip_tag(line));
    let mut values = FieldValues::default();
    let client = cursor.word()?;
    fields::check_client(client)?;
    values.set(Client, client);
    let time = cursor.between(b'[', b']')?;
    let time = time.get(..TIME.len() - 2).unwrap_or_default();
    values.time = parse_clf_time(&[time, b" +0000"].concat());
    if values.time.is_none() {
        return Err(BadTime);
    }
    if cursor.word()?.ends_with(b":") {
        return Ok(LogLine::NoRequest);
    }
    // The server and the durations.
    let durations = cursor.nth_word(2)?;
    let mut durations = durations.rsplit(|byte| *byte == b'/');
    // The last is that of the whole request.
    values.set(Milliseconds, durations.next().unwrap_or_default());
    if durations.count() < 3 {
        // The log of a TCP proxy has fewer.
        return Err(OtherFormat);
    }
    values.set(Status, without_sign(cursor.word()?));
    values.set(Bytes, without_sign(cursor.word()?));
    // Cookies, the end of the session, connections and queues.
    cursor.nth_word(5)?;
    if cursor.0.starts_with(b"{") {
        set_captures(&mut values, cursor.between(b'{', b'}')?)?;
        if cursor.0.starts_with(b"{") {
            cursor.between(b'{', b'}')?;
        }
    }
    values.set(Request, decode_hex(cursor.quoted()?, ESCAPE));
    values.into_checked_line()
}

/// Strips `haproxy[14389]: `, which is left of syslog where its time and host are missing.
fn strip_tag(line: &[u8]) -> &[u8] {
    let after = line.strip_prefix(b"haproxy[").and_then(|rest| {
        let end = memchr::memchr(b']', rest)?;
        rest[end..].strip_prefix(b"]: ")
    });
    after.unwrap_or(line)
}

/// A number without the plus sign that it has while the session is going on. HAProxy writes -1 if
/// there is none.
fn without_sign(field: &[u8]) -> &[u8] {
    match field {
        b"-1" => b"0",
        [b'+', number @ ..] => number,
        number => number,
    }
}

/// Recognises captured values, which bars separate: one with a product and version is the user agent,
/// a URL is the referer, a list of addresses is X-Forwarded-For, and a name with a dot is the host.
///
/// # Errors
/// Several values may be the same field.
fn set_captures<'a>(values: &mut FieldValues<'a>, block: &'a [u8]) -> FieldResult<()> {
    for value in block.split(|byte| *byte == b'|') {
        let field = if client::is_client_list(value) {
            Forwarded
        } else if request::authority_start(value).is_some() {
            Referer
        } else if begins_with_product(value) {
            UserAgent
        } else if value.contains(&b'.') && fields::check_host(value).is_ok() {
            Host
        } else {
            continue;
        };
        if values.get(field).is_some() {
            return Err(BadUserAgent);
        }
        values.set(field, decode_hex(value, ESCAPE));
    }
    Ok(())
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
