//! [`AccessLog`]: the access log, with one line for each request, in JSON or in the Combined format
//! of nginx and Apache.

use super::log_writer::LogWriter;
use crate::finding::Finding;
use crate::policy::site::split_host_port;
use crate::record::{RecordField, RecordLine, RequestCopy, RequestRecord, Sink, truncate_field};
use crate::settings::{AccessFormat, AddressDetail, LogDestination};
use chrono::{DateTime, Utc};
use std::io::{self, Write};
use std::ops::Deref;

/// The access log; cheap to clone.
#[derive(Clone)]
pub struct AccessLog {
    writer: LogWriter,
    format: AccessFormat,
    /// How much of a client's address is written.
    addresses: AddressDetail,
}

impl AccessLog {
    /// Opens the destination and starts the writer. A file that cannot be opened is a problem.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn open(
        destination: &LogDestination,
        format: AccessFormat,
        addresses: AddressDetail,
    ) -> io::Result<AccessLog> {
        Ok(AccessLog {
            writer: LogWriter::open("access-log", destination)?,
            format,
            addresses,
        })
    }

    /// A log that is not written.
    pub fn off() -> AccessLog {
        AccessLog {
            writer: LogWriter::off(),
            format: AccessFormat::default(),
            addresses: AddressDetail::None,
        }
    }
}

impl Sink for AccessLog {
    /// Lines are being lost.
    fn problem(&self) -> Option<Finding> {
        self.writer.problem()
    }

    /// Formats the line of a request and hands it to the writer thread, without waiting for the
    /// disk. The line is dropped and counted if too many bytes wait already; nothing happens if the
    /// log is off.
    fn record(&self, request: &RequestRecord) {
        if !self.writer.is_enabled() {
            return;
        }
        let line = RecordLine {
            record: request,
            fields: ACCESS_FIELDS,
            addresses: self.addresses,
        };
        if self.format == AccessFormat::Json {
            self.writer.write(&line);
        } else {
            self.writer
                .write_line(|text| write_combined(line, self.format, text).is_ok());
        }
    }
}

impl Deref for AccessLog {
    type Target = LogWriter;

    fn deref(&self) -> &LogWriter {
        &self.writer
    }
}

/// The fields of a line in JSON.
pub const ACCESS_FIELDS: &[RecordField] = {
    use RecordField::*;
    &[
        Time,
        Client,
        Method,
        Host,
        Target,
        Http,
        Tls,
        Status,
        Bytes,
        Milliseconds,
        OriginMilliseconds,
        Server,
        UserAgent,
        Referer,
        Site,
        Crawler,
        Identity,
        Doubt,
        Verdict,
        Kind,
        OlderUntil,
        NeverFetched,
        Rule,
        RuleSource,
        Action,
        Would,
        Observed,
        Version,
        RequestId,
        TraceId,
        LicenseToken,
        Error,
    ]
};

/// A line in the Combined format of nginx and Apache, for tools that read no JSON: `client - -
/// [time] "request" status bytes "referer" "user agent"`. Such a line has no site, crawler, kind or
/// rule. `crawlgate audit` reads the lines back. Like Apache's `vhost_combined` (`%v:%p`), `format`
/// may put `host:port ` in front.
fn write_combined(
    line: RecordLine<'_>,
    format: AccessFormat,
    text: &mut Vec<u8>,
) -> io::Result<()> {
    let RequestRecord {
        request, response, ..
    } = line.record;
    if format == AccessFormat::VhostCombined {
        write_host(request, text)?;
        text.push(b' ');
    }
    match request.address_for_log(line.addresses) {
        Some(address) => write!(text, "{address}")?,
        None => text.push(b'-'),
    }
    write!(
        text,
        "{}",
        DateTime::<Utc>::from(request.arrival.arrived).format(" - - [%d/%b/%Y:%H:%M:%S +0000] \"")
    )?;
    write_request(request, text)?;
    write!(text, "\" {:03} {} \"", response.status, response.body_bytes)?;
    write_field(request.referer(), text)?;
    text.extend_from_slice(b"\" \"");
    write_field(request.user_agent(), text)?;
    text.write_all(b"\"")
}

/// The host as the client sent it, with the scheme's port if it has none. Spaces are escaped too,
/// because a space ends the host in the line.
fn write_host(request: &RequestCopy, line: &mut Vec<u8>) -> io::Result<()> {
    let host = truncate_field(request.host());
    if host.is_empty() {
        line.push(b'-');
    }
    for byte in host.chunks(1) {
        if byte == b" " {
            line.extend_from_slice(br"\x20")
        } else {
            write_escaped(byte, line)?
        }
    }
    match (split_host_port(host), request.tls) {
        ((_, Some(_)), _) => Ok(()),
        (_, None) => line.write_all(b":80"),
        (_, Some(_)) => line.write_all(b":443"),
    }
}

/// The request line, `GET /a HTTP/1.1`; `-` for a malformed request without a method or a target.
fn write_request(request: &RequestCopy, line: &mut Vec<u8>) -> io::Result<()> {
    let method = request.method();
    let target = request.target();
    if method.is_empty() || target.is_empty() {
        return line.write_all(b"-");
    }
    write_escaped(truncate_field(method), line)?;
    line.push(b' ');
    write_escaped(truncate_field(target), line)?;
    // Tools know HTTP/2 as nginx and Apache write it.
    let version = if request.http == "2" {
        "2.0"
    } else {
        request.http
    };
    write!(line, " HTTP/{version}")
}

/// The escaped value of a field; `-` if the request has no such field.
fn write_field(field: Option<&[u8]>, line: &mut Vec<u8>) -> io::Result<()> {
    match field {
        Some(field) => write_escaped(truncate_field(field), line),
        None => line.write_all(b"-"),
    }
}

/// Escapes what nginx escapes (ngx_http_log_escape): quotes, backslashes and bytes that are no
/// printable ASCII. No client can end a field or a line, or reach a terminal.
fn write_escaped(bytes: &[u8], line: &mut Vec<u8>) -> io::Result<()> {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => write!(line, "\\x{byte:02X}")?,
            _ => line.push(byte),
        }
    }
    Ok(())
}
