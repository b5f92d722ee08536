//! [`write_combined`] writes a line of the access log in the Combined format of nginx and Apache, for tools that read no
//! JSON. [`write_vhost_combined`] writes the host before it. The format has no place for the site, the crawler, the kind
//! and the rule. `crawlgate audit` reads the lines back.

use super::access_record::{AccessRecord, Octets};
use chrono::{DateTime, Datelike, Timelike, Utc};
use std::io::Write;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `client - - [time] "request" status bytes "referer" "user agent"`.
pub fn write_combined(record: &AccessRecord<'_>, line: &mut Vec<u8>) -> std::io::Result<()> {
    match record.client {
        Some(address) => write!(line, "{address}")?,
        None => line.push(b'-'),
    }
    let at = DateTime::<Utc>::from(record.time);
    let (month, year) = (MONTHS.get(at.month0() as usize).unwrap_or(&"Jan"), at.year().clamp(0, 9_999));
    write!(line, " - - [{:02}/{month}/{year:04}:", at.day())?;
    write!(line, "{:02}:{:02}:{:02} +0000] \"", at.hour(), at.minute(), at.second())?;
    write_request(record, line)?;
    write!(line, "\" {:03} {} \"", record.status, record.bytes)?;
    write_field(record.referer, line)?;
    line.extend_from_slice(b"\" \"");
    write_field(record.user_agent, line)?;
    line.push(b'"');
    Ok(())
}

/// `host:port ` and the Combined line, as Apache's `vhost_combined` (`%v:%p`).
pub fn write_vhost_combined(record: &AccessRecord<'_>, line: &mut Vec<u8>) -> std::io::Result<()> {
    write_host(record, line)?;
    line.push(b' ');
    write_combined(record, line)
}

/// The host as the client named it, with the scheme's port where it named none. Spaces are escaped too: nothing in the
/// line says where the host ends.
fn write_host(record: &AccessRecord<'_>, line: &mut Vec<u8>) -> std::io::Result<()> {
    let host = record.host.0;
    if host.is_empty() {
        line.push(b'-');
    }
    for octet in host.chunks(1) {
        if octet == b" " { line.extend_from_slice(br"\x20") } else { write_escaped(octet, line)? }
    }
    let names_port = host.iter().rposition(|octet| *octet == b':').is_some_and(|colon| {
        let port = &host[colon + 1..];
        !port.is_empty() && port.iter().all(u8::is_ascii_digit)
    });
    match (names_port, record.tls) {
        (true, _) => Ok(()),
        (false, None) => line.write_all(b":80"),
        (false, Some(_)) => line.write_all(b":443"),
    }
}

/// The request line; `-` for what was no request.
fn write_request(record: &AccessRecord<'_>, line: &mut Vec<u8>) -> std::io::Result<()> {
    if record.method.0.is_empty() || record.target.0.is_empty() {
        line.push(b'-');
        return Ok(());
    }
    write_escaped(record.method.0, line)?;
    line.push(b' ');
    write_escaped(record.target.0, line)?;
    // Tools know HTTP/2 as nginx and Apache write it.
    write!(line, " HTTP/{}", if record.http == "2" { "2.0" } else { record.http })
}

fn write_field(field: Option<Octets<'_>>, line: &mut Vec<u8>) -> std::io::Result<()> {
    match field {
        Some(field) => write_escaped(field.0, line),
        None => {
            line.push(b'-');
            Ok(())
        }
    }
}

/// Escapes what nginx escapes (ngx_http_log_escape): quotes, backslashes and octets that are no printable ASCII. No
/// client can end a field or a line, or reach a terminal.
fn write_escaped(octets: &[u8], line: &mut Vec<u8>) -> std::io::Result<()> {
    for &octet in octets {
        match octet {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => write!(line, "\\x{octet:02X}")?,
            _ => line.push(octet),
        }
    }
    Ok(())
}
