//! The access log of an Application Load Balancer of AWS: a type, a time, 10 columns, the request with
//! its whole URL, the user agent, and further columns, of which there may be more in future.

use super::columns::ColumnCursor;
use super::timestamps::{self, matches_shape};
use super::{LineResult, LogRecord, RequestLine, UnreadableReason, fields, request, unescape};

/// The types of requests and connections.
const TYPES: [&[u8]; 6] = [b"http", b"https", b"h2", b"grpcs", b"ws", b"wss"];

/// Whether a line begins with a type and a time.
pub fn is_alb_line(line: &[u8]) -> bool {
    const DAY: &[u8] = b"0000-00-00T";
    // A quick test: nearly every line of other formats begins with a digit.
    if !matches!(line.first(), Some(b'g' | b'h' | b'w')) {
        return false;
    }
    let mut cursor = ColumnCursor(line);
    cursor.word().is_ok_and(|kind| TYPES.contains(&kind))
        && cursor
            .0
            .get(..DAY.len())
            .is_some_and(|day| matches_shape(day, DAY))
}

/// Parses a line.
pub fn parse_alb_line(line: &[u8]) -> LineResult<'_> {
    let mut cursor = ColumnCursor(line);
    let time = cursor.last_of(2)?;
    let time = timestamps::parse_utf8_time(time).ok_or(UnreadableReason::BadTime)?;
    let client = fields::check_client(cursor.last_of(2)?)?;
    // The target and three durations.
    let status = fields::parse_number(cursor.last_of(5)?)?;
    let status = fields::check_status(status)?;
    // The status of the target and the bytes received.
    let bytes = fields::parse_number(cursor.last_of(3)?)?;
    let request = cursor.escaped()?;
    let user_agent = fields::check_user_agent(unescape(cursor.escaped()?))?;
    // The cipher, the protocol and the target group; then the trace.
    cursor.last_of(3)?;
    cursor.escaped()?;
    // `- http://shop.example:80- -` stands for a malformed request.
    let request = unescape(request);
    let parsed = RequestLine::parse(&request).filter(|parsed| *parsed.method != *b"-");
    let record = LogRecord {
        client: client.map(Into::into),
        time,
        bytes: bytes.unwrap_or(0),
        user_agent: Some(user_agent),
        ..LogRecord::default()
    };
    request::into_line(parsed, &request, status, record)
}
