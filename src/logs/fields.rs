//! Which keys name a field ([`named`]), and what it must look like. A field that looks otherwise is
//! that of another column, and the line is not read.

use super::{Asked, Field, Octets, Unreadable, client, moment, or_empty, request};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What keys mean, without regard to case. Of the keys of one field the first counts; a bar stands
/// between keys of the same rank.
const KEYS: [(Field, &str); 16] = [
    (
        Field::Time,
        "StartUTC time_iso8601 msec|ts time timestamp @timestamp|time_local",
    ),
    (Field::Request, "request request_line"),
    (Field::Method, "request_method|RequestMethod method"),
    (Field::Target, "request_uri|RequestPath|target"),
    (Field::Path, "uri url path|document_uri"),
    (Field::Arguments, "args query_string"),
    (
        Field::Host,
        "http_host|RequestHost host vhost|virtual_host server_name",
    ),
    (
        Field::Client,
        "client_ip|ClientHost|remote_addr remote_ip|client",
    ),
    (
        Field::Forwarded,
        "http_x_forwarded_for|request_X-Forwarded-For X-Forwarded-For|x_forwarded_for proxy_add_x_forwarded_for",
    ),
    (Field::Status, "status|DownstreamStatus status_code"),
    (
        Field::Bytes,
        "body_bytes_sent|DownstreamContentSize bytes|size bytes_sent",
    ),
    (
        Field::ContentType,
        "sent_http_content_type|downstream_Content-Type",
    ),
    (
        Field::UserAgent,
        "http_user_agent|request_User-Agent user_agent|User-Agent useragent agent",
    ),
    (Field::Headers, "headers"),
    (Field::Logger, "logger"),
    (Field::Message, "level msg"),
];

/// The field that a key of JSON or a variable of nginx names, and its rank among the keys of that
/// field: zero is the best. `None` for an unknown key.
pub fn named(key: &str) -> Option<(Field, usize)> {
    static FIELDS: LazyLock<HashMap<String, (Field, usize)>> = LazyLock::new(|| {
        let mut fields = HashMap::new();
        for (field, ranks) in KEYS {
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

/// Checks a host, which may be followed by a port, and returns it with the port. `None` for `-`,
/// nginx's `_`, and nothing.
///
/// # Errors
/// It is neither a name with a letter nor an address.
pub fn host(field: &[u8]) -> Result<Option<&[u8]>, Unreadable> {
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
        b"" | b"-" | b"_" => Ok(None),
        _ if name.len() <= MAX_HOST
            && name
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte))
            && name.iter().any(u8::is_ascii_alphabetic) =>
        {
            Ok(Some(field))
        }
        _ if client::is_address(name) || client::is_address(field) => Ok(Some(field)),
        _ => Err(Unreadable::BadHost),
    }
}

/// Bytes of a name in the DNS (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 255;

/// Checks the client's column, and returns it if it is an address or a list of them. `None` where
/// the log has its name, `-`, or `unix:` (nginx, for who comes through a socket of the machine).
///
/// # Errors
/// It is neither.
pub fn client(field: &[u8]) -> Result<Option<&[u8]>, Unreadable> {
    if client::is_client(field) {
        return Ok(Some(field));
    }
    // nginx writes `unix:` for who comes through a socket of the machine.
    if field == b"unix:" {
        return Ok(None);
    }
    host(field).map(|_| None).map_err(|_| Unreadable::BadClient)
}

/// The number as a status.
///
/// # Errors
/// It has more than three digits.
pub fn status(number: Option<u64>) -> Result<Option<u16>, Unreadable> {
    match number {
        Some(status @ 0..=999) => Ok(Some(status as u16)),
        Some(_) => Err(Unreadable::BadNumber),
        None => Ok(None),
    }
}

/// Reads a status or a number of bytes; `None` for `-`. A number that is too large becomes the
/// largest.
///
/// # Errors
/// It is empty, or has another sign than digits.
pub fn number(field: &[u8]) -> Result<Option<u64>, Unreadable> {
    if field == b"-" {
        return Ok(None);
    }
    let mut number = 0_u64;
    for byte in field {
        let digit = byte
            .checked_sub(b'0')
            .filter(|digit| *digit < 10)
            .ok_or(Unreadable::BadNumber)?;
        number = number.saturating_mul(10).saturating_add(u64::from(digit));
    }
    if field.is_empty() {
        Err(Unreadable::BadNumber)
    } else {
        Ok(Some(number))
    }
}

/// Checks the user agent, and returns it; `-` becomes empty.
///
/// # Errors
/// It is a number, a time, an address, a URL or a request line, and so the value of another column.
pub fn user_agent(field: Octets<'_>) -> Result<Octets<'_>, Unreadable> {
    let field = or_empty(field);
    let is_other = match field.first() {
        None => false,
        Some(first) if first.is_ascii_digit() || b"[.:-+".contains(first) => {
            is_number_or_moment(&field)
        }
        Some(first) if first.is_ascii_hexdigit() && client::is_client(&field) => true,
        Some(_) => request::authority_start(&field).is_some() || is_request(&field),
    };
    if is_other {
        Err(Unreadable::BadUserAgent)
    } else {
        Ok(field)
    }
}

/// Whether the field is a number, a time, or an address or a list of them.
fn is_number_or_moment(field: &[u8]) -> bool {
    let text = std::str::from_utf8(field).unwrap_or_default();
    text.parse::<f64>().is_ok() || moment::any(text).is_some() || client::is_client(field)
}

/// Whether the field is a request line with a method, a target and a version like ` HTTP/1.1`.
fn is_request(field: &[u8]) -> bool {
    let version = &field[field.len().saturating_sub(b" HTTP/1.1".len())..];
    version.starts_with(b" HTTP/")
        && Asked::line(&Cow::Borrowed(field)).is_some_and(|asked| !asked.method.is_empty())
}
