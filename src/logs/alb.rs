//! Parses the access log of the Application Load Balancer of AWS. A line has a type, a time, 10
//! other columns, the request with its whole URL, the user agent, and any number of further
//! columns.

use super::columns::ColumnCursor;
use super::timestamps::begins_with_shape;
use super::values::FieldValues;
use super::{LineResult, LogField::*};

/// The types of requests and connections.
const TYPES: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// Whether a line begins with a type and a time.
pub fn is_alb_line(line: &[u8]) -> bool {
    // A quick test: nearly every line of other formats begins with a digit.
    if !matches!(line.first(), Some(b'g' | b'h' | b'w')) {
        return false;
    }
    let mut cursor = ColumnCursor(line);
    cursor.word().is_ok_and(|kind| TYPES.contains(&kind))
        && begins_with_shape(cursor.0, b"0000-00-00T")
}

/// Parses a line.
pub fn parse_alb_line(line: &[u8]) -> LineResult<'_> {
    let mut cursor = ColumnCursor(line);
    let mut values = FieldValues::default();
    values.set(Time, cursor.nth_word(2)?);
    values.set(Client, cursor.nth_word(2)?);
    // The target and three durations, of which the second is the target's.
    values.set(Seconds, cursor.nth_word(3)?);
    values.set(Status, cursor.nth_word(2)?);
    // The status of the target and the bytes received.
    values.set(Bytes, cursor.nth_word(3)?);
    values.set(Request, cursor.escaped()?);
    values.set(UserAgent, cursor.escaped()?);
    // The cipher, the protocol and the target group; then the trace.
    cursor.nth_word(3)?;
    cursor.escaped()?;
    values.into_checked_line()
}
