//! Parses access logs in the default text formats of Envoy and Istio. Envoy escapes nothing, so a
//! client could send a quote and shift the columns. A line is accepted only if all of its quoted
//! columns are where they belong.

use super::columns::ColumnCursor;
use super::timestamps::begins_with_shape;
use super::values::FieldValues;
use super::{LineResult, LogField::*, UnreadableReason, fields};

/// Whether a line begins with a time of RFC 3339 in brackets.
pub fn is_envoy_line(line: &[u8]) -> bool {
    begins_with_shape(line, b"[0000-00-00T00:00:00")
}

/// Parses a line: time, request, status, flags, in Istio's format three columns about errors, four
/// numbers, and X-Forwarded-For, user agent, request id, authority and upstream in quotes. Istio adds
/// six columns, of which the fourth is the client.
pub fn parse_envoy_line(line: &[u8]) -> LineResult<'_> {
    let mut cursor = ColumnCursor(line);
    let mut values = FieldValues::default();
    values.set(Time, cursor.between(b'[', b']')?);
    values.set(Request, cursor.quoted()?);
    values.set(Status, cursor.word()?);
    let mut received = cursor.nth_word(2)?;
    let is_istio = !received.iter().all(u8::is_ascii_digit);
    if is_istio {
        // How the connection ended, and why the upstream failed.
        cursor.word()?;
        cursor.quoted()?;
        received = cursor.word()?;
    }
    fields::parse_number(received)?;
    values.set(Bytes, cursor.word()?);
    // The duration, and that of the upstream.
    values.set(Milliseconds, cursor.word()?);
    cursor.word()?;
    let forwarded = cursor.quoted()?;
    let has_addresses = fields::check_client(forwarded)?;
    // Envoy adds the address of its client to X-Forwarded-For. The client chooses the rest.
    if has_addresses {
        values.set(Client, forwarded);
    }
    values.set(UserAgent, cursor.quoted()?);
    cursor.quoted()?;
    values.set(Host, cursor.quoted()?);
    cursor.quoted()?;
    if is_istio {
        let client = cursor.nth_word(4)?;
        if fields::check_client(client) == Ok(true) {
            values.set(Client, client);
            if has_addresses {
                values.set(Forwarded, forwarded);
            }
        }
        cursor.nth_word(2)?;
    }
    if !cursor.0.is_empty() {
        return Err(UnreadableReason::OtherFormat);
    }
    values.into_checked_line()
}
