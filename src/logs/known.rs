//! [`KNOWN_FORMATS`]: the log formats that crawlgate recognises by itself, with an entry for each.
//! A new format needs an entry here, an example in `docs/log-formats.md`, and a test.

use super::json::{self, KeyMap};
use super::{ColumnHeader, LineResult, UnreadableReason::*, alb, clf, envoy, haproxy};
use KnownFormat::{AnyJson, Columns, Json, Text};
use std::sync::LazyLock;

/// A format with a name for `--log-format`: how its lines are recognised and parsed.
#[derive(Debug)]
pub enum KnownFormat {
    /// Lines after a header that names their columns.
    Columns,
    /// A JSON object with a key that no other format has. The key, and those of the fields.
    Json(&'static str, LazyLock<KeyMap>),
    /// A JSON object with the usual names.
    AnyJson,
    /// Lines whose beginning shows their format: whether a line begins so, and how it is parsed.
    Text(fn(&[u8]) -> bool, for<'a> fn(&'a [u8]) -> LineResult<'a>),
}

/// The formats. The first one that recognises a line is its format; the last one takes every line.
static KNOWN_FORMATS: [(&str, KnownFormat); 9] = [
    ("w3c", Columns),
    (
        "cloudflare",
        Json(
            "ClientRequestMethod",
            LazyLock::new(|| {
                KeyMap::builtin(
                    "time=EdgeStartTimestamp|EdgeEndTimestamp,client=ClientIP,\
                     method=ClientRequestMethod,path=ClientRequestURI|ClientRequestPath,\
                     host=ClientRequestHost,status=EdgeResponseStatus,\
                     bytes=EdgeResponseBytes,milliseconds=EdgeTimeToFirstByteMs,content_type=EdgeResponseContentType,\
                     referer=ClientRequestReferer,user_agent=ClientRequestUserAgent",
                )
            }),
        ),
    ),
    (
        "google-cloud",
        Json(
            "httpRequest",
            // A request without a user agent has none there.
            LazyLock::new(|| {
                KeyMap::builtin(
                    "time=timestamp,client=httpRequest.remoteIp,\
                     method=httpRequest.requestMethod,path=httpRequest.requestUrl,\
                     status=httpRequest.status,bytes=httpRequest.responseSize,\
                     seconds=httpRequest.latency,\
                     referer=httpRequest.referer,user_agent=httpRequest.userAgent|httpRequest",
                )
            }),
        ),
    ),
    (
        "envoy-json",
        Json(
            "response_flags",
            LazyLock::new(|| {
                KeyMap::builtin(
                    "time=start_time,client=downstream_remote_address,\
                     x_forwarded_for=x_forwarded_for|x-forwarded-for,method=method,\
                     path=path|x-envoy-origin-path,host=authority|:authority,\
                     status=response_code,bytes=bytes_sent,milliseconds=duration,referer=referer,\
                     user_agent=user_agent|user-agent",
                )
            }),
        ),
    ),
    ("json", AnyJson),
    ("alb", Text(alb::is_alb_line, alb::parse_alb_line)),
    ("envoy", Text(envoy::is_envoy_line, envoy::parse_envoy_line)),
    (
        "haproxy",
        Text(haproxy::is_haproxy_line, haproxy::parse_haproxy_line),
    ),
    ("combined", Text(|_| true, clf::parse_clf_line)),
];

impl KnownFormat {
    /// The format of this name.
    pub fn find(name: &str) -> Option<&'static KnownFormat> {
        let (_, format) = KNOWN_FORMATS.iter().find(|(known, _)| *known == name)?;
        Some(format)
    }

    /// The names of all formats, for people.
    pub fn names() -> String {
        KNOWN_FORMATS.each_ref().map(|(name, _)| *name).join(", ")
    }

    /// Parses a line that is taken to be of this format.
    pub(super) fn parse_line<'a>(&self, line: &'a [u8], header: &ColumnHeader) -> LineResult<'a> {
        // What is wrong with a line that does not look like the format says nothing: such a line is
        // of another one.
        match self {
            Columns => {
                let columns = header.columns().ok_or(NoHeader)?;
                columns.parse_line(line)
            }
            AnyJson => json::parse_any_line(json::parse_object(line)?),
            Json(marker, keys) => {
                let object = json::parse_object(line)?;
                match json::parse_known_line(&object, keys) {
                    Err(_) if !object.contains_key(*marker) => Err(OtherFormat),
                    parsed => parsed,
                }
            }
            Text(is_of_format, parse) => match parse(line) {
                Err(_) if !is_of_format(line) => Err(OtherFormat),
                parsed => parsed,
            },
        }
    }
}

/// Parses a line of any format.
pub fn parse_detected<'a>(line: &'a [u8], header: &ColumnHeader) -> LineResult<'a> {
    if let Some(columns) = header.columns() {
        return columns.parse_line(line);
    }
    if line.trim_ascii_start().starts_with(b"{") {
        let object = json::parse_object(line)?;
        for (_, format) in &KNOWN_FORMATS {
            if let Json(marker, keys) = format
                && object.contains_key(*marker)
            {
                return json::parse_known_line(&object, keys);
            }
        }
        return json::parse_any_line(object);
    }
    for (_, format) in &KNOWN_FORMATS {
        if let Text(is_of_format, parse) = format
            && is_of_format(line)
        {
            return parse(line);
        }
    }
    Err(OtherFormat)
}
