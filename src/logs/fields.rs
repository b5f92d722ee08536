//! The fields of a request in an access log, such as time and user agent. [`field_for_key`] finds
//! the field for the name that a server gives it: a JSON key, or a variable of nginx's
//! `log_format`. The other functions check values: a user agent that looks like a number or an
//! address shows that the columns were misread, so the line is rejected.

use super::{
    FieldBytes, FieldResult, LogField, RequestLine, UnreadableReason::*, client, dash_to_empty,
    request, timestamps,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The keys of each field, best rank first, in any case. A bar separates keys of the same rank.
const FIELD_KEYS: [(LogField, &str); 20] = {
    use LogField::*;
    [
        (
            Time,
            "StartUTC time_iso8601 msec|ts time timestamp @timestamp|time_local",
        ),
        (Request, "request request_line"),
        (Method, "request_method|RequestMethod method"),
        (Target, "request_uri|RequestPath|target"),
        (Path, "uri url path|document_uri"),
        (Arguments, "args query_string"),
        (
            Host,
            "http_host|RequestHost host vhost|virtual_host server_name",
        ),
        (Client, "client_ip|ClientHost|remote_addr remote_ip|client"),
        (
            Forwarded,
            "http_x_forwarded_for|request_X-Forwarded-For X-Forwarded-For|x_forwarded_for proxy_add_x_forwarded_for",
        ),
        (Status, "status|DownstreamStatus status_code"),
        (
            Bytes,
            "body_bytes_sent|DownstreamContentSize bytes|size bytes_sent",
        ),
        (Seconds, "request_time"),
        (Milliseconds, "milliseconds"),
        (Microseconds, "microseconds"),
        (
            ContentType,
            "sent_http_content_type|downstream_Content-Type",
        ),
        (Referer, "http_referer|request_Referer referer|Referrer"),
        (
            UserAgent,
            "http_user_agent|request_User-Agent user_agent|User-Agent useragent agent",
        ),
        (Headers, "headers"),
        (Logger, "logger"),
        (Message, "level msg"),
    ]
};

/// The field of a JSON key or a variable of nginx, and the rank of the key, of which 0 is the best.
/// `None` for an unknown key.
pub fn field_for_key(key: &str) -> Option<(LogField, usize)> {
    static FIELDS: LazyLock<HashMap<String, (LogField, usize)>> = LazyLock::new(|| {
        let mut fields = HashMap::new();
        for (field, ranks) in FIELD_KEYS {
            for (rank, keys) in ranks.split(' ').enumerate() {
                for key in keys.split('|') {
                    fields.insert(key.to_ascii_lowercase(), (field, rank));
                }
            }
        }
        fields
    });
    FIELDS.get(&key.to_ascii_lowercase()).copied()
}

/// Whether a column has a host, which may have a port. It has none with `-`, nginx's `_`, or if it is
/// empty.
///
/// # Errors
/// It is neither a name with a letter nor an address.
pub fn check_host(field: &[u8]) -> FieldResult<bool> {
    let colon = field.iter().rposition(|byte| *byte == b':');
    let name = match colon {
        Some(colon)
            if field[colon + 1..].iter().all(u8::is_ascii_digit) && colon + 1 < field.len() =>
        {
            &field[..colon]
        }
        _ => field,
    };
    match name {
        b"" | b"-" | b"_" => Ok(false),
        _ if is_host_name(name) || client::is_address(name) || client::is_address(field) => {
            Ok(true)
        }
        _ => Err(BadHost),
    }
}

/// Bytes of a name in the DNS (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 255;

fn is_host_name(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    name.len() <= MAX_HOST
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte))
        && name.iter().any(u8::is_ascii_alphabetic)
}

/// Whether the client's column has an address or a list of addresses. It has none with a host name,
/// `-`, or `unix:`, which nginx writes for a client of a Unix socket.
///
/// # Errors
/// It is none of these.
pub fn check_client(field: &[u8]) -> FieldResult<bool> {
    if client::is_client_list(field) {
        return Ok(true);
    }
    if field != b"unix:" {
        check_host(field).map_err(|_| BadClient)?;
    }
    Ok(false)
}

/// Parses a status; `None` for `-`.
///
/// # Errors
/// The field is no number, or has more than three digits.
pub fn parse_status(field: &[u8]) -> FieldResult<Option<u16>> {
    match parse_number(field)? {
        Some(status @ 0..=999) => Ok(Some(status as u16)),
        Some(_) => Err(BadNumber),
        None => Ok(None),
    }
}

/// The most bytes of a response: the sums of a log must not overflow.
const MAX_BYTES: u64 = 1 << 40;

/// Parses a number of bytes; `None` for `-`. More than [`MAX_BYTES`] count as so many.
///
/// # Errors
/// The field is empty, or has another byte than digits.
pub fn parse_number(field: &[u8]) -> FieldResult<Option<u64>> {
    if field == b"-" {
        return Ok(None);
    }
    let mut number = 0_u64;
    for byte in field {
        let digit = byte
            .checked_sub(b'0')
            .filter(|digit| *digit < 10)
            .ok_or(BadNumber)?;
        number = (number * 10 + u64::from(digit)).min(MAX_BYTES);
    }
    if field.is_empty() {
        Err(BadNumber)
    } else {
        Ok(Some(number))
    }
}

/// Checks the user agent, and returns it; `-` becomes empty.
///
/// # Errors
/// The value is of another column: a number, a time, an address, a URL or a request line.
pub fn check_user_agent(field: FieldBytes<'_>) -> FieldResult<FieldBytes<'_>> {
    let field = dash_to_empty(field);
    let is_other = match field.first() {
        None => false,
        // A quick test: nearly every user agent begins with it.
        Some(b'M') if field.starts_with(b"Mozilla/") => false,
        Some(first) if first.is_ascii_digit() || b"[.:-+".contains(first) => {
            is_number_time_or_address(&field)
        }
        Some(first) if first.is_ascii_hexdigit() && client::is_client_list(&field) => true,
        Some(_) => request::authority_start(&field).is_some() || is_request_line(&field),
    };
    if is_other {
        Err(BadUserAgent)
    } else {
        Ok(field)
    }
}

/// Whether the field is a number, a time, an address, or a list of addresses.
fn is_number_time_or_address(field: &[u8]) -> bool {
    let text = std::str::from_utf8(field).unwrap_or_default();
    text.parse::<f64>().is_ok()
        || timestamps::parse_any_time(field).is_some()
        || client::is_client_list(field)
}

/// Whether the field is a request line with a method, a target and a version like ` HTTP/1.1`.
fn is_request_line(field: &[u8]) -> bool {
    let version = &field[field.len().saturating_sub(b" HTTP/1.1".len())..];
    version.starts_with(b" HTTP/")
        && RequestLine::parse(&Cow::Borrowed(field)).is_some_and(|parsed| !parsed.method.is_empty())
}
