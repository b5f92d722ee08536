//! [`AccessLog`]: the access log, in JSON or in the Combined format. It writes one [`AccessRecord`]
//! for each request.

use super::log_writer::LogWriter;
use crate::policy::Version;
use crate::policy::site::name_and_port;
use crate::settings::{AccessFormat, LogDestination};
use crate::time::{Timestamp, rfc3339};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use std::net::IpAddr;
use std::ops::Deref;
use std::time::SystemTime;

/// The access log; cheap to clone.
#[derive(Clone)]
pub struct AccessLog {
    writer: LogWriter,
    format: AccessFormat,
}

impl AccessLog {
    /// Opens the destination and starts the writer.
    ///
    /// # Errors
    /// The file cannot be opened for appending, or no thread can be started.
    pub fn open(destination: &LogDestination, format: AccessFormat) -> io::Result<AccessLog> {
        LogWriter::open("access-log", destination).map(|writer| AccessLog { writer, format })
    }

    /// A log that is not written.
    pub fn off() -> AccessLog {
        AccessLog {
            writer: LogWriter::off(),
            format: AccessFormat::default(),
        }
    }

    /// Formats the line of a request and hands it to the writer thread, without waiting for the
    /// disk. The line is dropped and counted if too many octets wait already; nothing happens if
    /// the log is off.
    pub fn write(&self, record: &AccessRecord<'_>) {
        match self.format {
            AccessFormat::Json => self.writer.write(record),
            AccessFormat::Combined => self
                .writer
                .write_line(|line| write_combined(record, line).is_ok()),
            AccessFormat::VhostCombined => self
                .writer
                .write_line(|line| write_vhost_combined(record, line).is_ok()),
        }
    }
}

impl Deref for AccessLog {
    type Target = LogWriter;

    fn deref(&self) -> &LogWriter {
        &self.writer
    }
}

/// Octets that a client sent. JSON has them as text, with a replacement for what is no UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Octets<'a>(pub &'a [u8]);

impl Serialize for Octets<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&String::from_utf8_lossy(self.0))
    }
}

/// The fields of a line.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct AccessRecord<'a> {
    /// RFC 3339 with milliseconds, UTC.
    #[serde(serialize_with = "moment")]
    pub time: SystemTime,
    pub client: Option<IpAddr>,
    pub method: Octets<'a>,
    pub host: Octets<'a>,
    pub target: Octets<'a>,
    pub http: &'static str,
    /// The version of TLS.
    pub tls: Option<&'static str>,
    pub status: u16,
    pub bytes: u64,
    pub milliseconds: f64,
    pub user_agent: Option<Octets<'a>>,
    pub referer: Option<Octets<'a>>,
    pub site: Option<&'a str>,
    /// The registry's id, the policy's token, or `other`; absent for a person.
    pub crawler: Option<&'a str>,
    /// What is proven of the crawler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<&'static str>,
    /// Why nothing is proven of a crawler that can be proven here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<&'static str>,
    pub verdict: Option<&'static str>,
    pub kind: Option<&'static str>,
    /// Until when, at the latest, requests like this one do not count.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339")]
    pub older_until: Option<Timestamp>,
    /// A violation of a crawler that was served no robots.txt here within the time that it may use
    /// a copy.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub never_fetched: bool,
    /// The rule that decided: `Disallow: /cart/`.
    pub rule: Option<String>,
    /// The place of the rule: `file:line:column`.
    pub rule_source: Option<String>,
    pub action: &'static str,
    /// The action that `enforce` would have taken.
    pub would: Option<&'static str>,
    /// Why crawlgate did not take it: `mode`, `unlisted` or `unverified`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<&'static str>,
    /// The version of robots.txt that the request was judged by.
    #[serde(serialize_with = "version")]
    pub version: Option<Version>,
    /// The id that the origin gets, and that a trusted proxy in front may give.
    pub request_id: Octets<'a>,
    /// The trace id of W3C Trace Context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<Octets<'a>>,
    pub error: Option<&'a str>,
}

/// Serializes a time as `2026-01-02T03:04:05.678Z`: UTC, milliseconds rounded down, a year outside
/// 0 to 9999 as the nearer of these. Written digit by digit, because the formatting machinery takes
/// longer than all the rest of a line.
pub fn moment<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let at = DateTime::<Utc>::from(*time);
    serializer.serialize_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// Serializes the number of a version as 16 hexadecimal digits; `null` without a version.
fn version<S: Serializer>(version: &Option<Version>, serializer: S) -> Result<S::Ok, S::Error> {
    match version {
        Some(version) => serializer.collect_str(&format_args!("{:016x}", version.number())),
        None => serializer.serialize_none(),
    }
}

/// A line in the Combined format of nginx and Apache, for tools that read no JSON: `client - -
/// [time] "request" status bytes "referer" "user agent"`. What such a line cannot say (site,
/// crawler, kind, rule) is left out. `crawlgate audit` reads the lines back.
fn write_combined(record: &AccessRecord<'_>, line: &mut Vec<u8>) -> io::Result<()> {
    match record.client {
        Some(address) => write!(line, "{address}")?,
        None => line.push(b'-'),
    }
    write!(
        line,
        "{}",
        DateTime::<Utc>::from(record.time).format(" - - [%d/%b/%Y:%H:%M:%S +0000] \"")
    )?;
    write_request(record, line)?;
    write!(line, "\" {:03} {} \"", record.status, record.bytes)?;
    write_field(record.referer, line)?;
    line.extend_from_slice(b"\" \"");
    write_field(record.user_agent, line)?;
    line.write_all(b"\"")
}

/// `host:port ` and the Combined line, as Apache's `vhost_combined` (`%v:%p`).
fn write_vhost_combined(record: &AccessRecord<'_>, line: &mut Vec<u8>) -> io::Result<()> {
    write_host(record, line)?;
    line.push(b' ');
    write_combined(record, line)
}

/// The host as the client named it, with the scheme's port where it named none. Spaces are escaped
/// too: nothing in the line says where the host ends.
fn write_host(record: &AccessRecord<'_>, line: &mut Vec<u8>) -> io::Result<()> {
    let host = record.host.0;
    if host.is_empty() {
        line.push(b'-');
    }
    for octet in host.chunks(1) {
        if octet == b" " {
            line.extend_from_slice(br"\x20")
        } else {
            write_escaped(octet, line)?
        }
    }
    match (name_and_port(host), record.tls) {
        ((_, Some(_)), _) => Ok(()),
        (_, None) => line.write_all(b":80"),
        (_, Some(_)) => line.write_all(b":443"),
    }
}

/// The request line, `GET /a HTTP/1.1`; `-` if the method or the target is empty, because what came
/// was no request.
fn write_request(record: &AccessRecord<'_>, line: &mut Vec<u8>) -> io::Result<()> {
    if record.method.0.is_empty() || record.target.0.is_empty() {
        return line.write_all(b"-");
    }
    write_escaped(record.method.0, line)?;
    line.push(b' ');
    write_escaped(record.target.0, line)?;
    // Tools know HTTP/2 as nginx and Apache write it.
    write!(
        line,
        " HTTP/{}",
        if record.http == "2" {
            "2.0"
        } else {
            record.http
        }
    )
}

/// The escaped value of a field; `-` if the request has no such field.
fn write_field(field: Option<Octets<'_>>, line: &mut Vec<u8>) -> io::Result<()> {
    match field {
        Some(field) => write_escaped(field.0, line),
        None => line.write_all(b"-"),
    }
}

/// Escapes what nginx escapes (ngx_http_log_escape): quotes, backslashes and octets that are no
/// printable ASCII. No client can end a field or a line, or reach a terminal.
fn write_escaped(octets: &[u8], line: &mut Vec<u8>) -> io::Result<()> {
    for &octet in octets {
        match octet {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => write!(line, "\\x{octet:02X}")?,
            _ => line.push(octet),
        }
    }
    Ok(())
}
