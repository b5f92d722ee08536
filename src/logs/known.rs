//! [`KNOWN_FORMATS`]: the formats that are recognised by themselves, one entry each. To read another
//! one, add an entry, its example in `docs/audit.md`, and its test.

use super::json::{self, KnownKeys};
use super::{ColumnHeader, LineResult, LogField, UnreadableReason, alb, clf, envoy, haproxy};
use serde_json::{Map, Value};

/// A format with a name for `--log-format`.
#[derive(Debug)]
pub struct KnownFormat {
    name: &'static str,
    syntax: Syntax,
}

/// How the lines of a format are recognised and parsed.
#[derive(Debug)]
enum Syntax {
    /// Lines whose beginning shows their format.
    Text {
        is_of_format: fn(&[u8]) -> bool,
        parse: for<'a> fn(&'a [u8]) -> LineResult<'a>,
    },
    /// Lines after a header that names their columns.
    Columns,
    /// A JSON object with the key `marker`, which no other format has.
    Json {
        marker: &'static str,
        keys: KnownKeys,
    },
    /// A JSON object with the usual names.
    AnyJson,
}

/// The formats. The first one that recognises a line is its format; the last one takes every line.
pub static KNOWN_FORMATS: [KnownFormat; 9] = [
    KnownFormat {
        name: "w3c",
        syntax: Syntax::Columns,
    },
    KnownFormat {
        name: "cloudflare",
        syntax: Syntax::Json {
            marker: "ClientRequestMethod",
            keys: &[
                (LogField::Time, "EdgeStartTimestamp|EdgeEndTimestamp"),
                (LogField::Client, "ClientIP"),
                (LogField::Method, "ClientRequestMethod"),
                (LogField::Target, "ClientRequestURI|ClientRequestPath"),
                (LogField::Host, "ClientRequestHost"),
                (LogField::Status, "EdgeResponseStatus"),
                (LogField::Bytes, "EdgeResponseBytes"),
                (LogField::ContentType, "EdgeResponseContentType"),
                (LogField::Referer, "ClientRequestReferer"),
                (LogField::UserAgent, "ClientRequestUserAgent"),
            ],
        },
    },
    KnownFormat {
        name: "google-cloud",
        syntax: Syntax::Json {
            marker: "httpRequest",
            keys: &[
                (LogField::Time, "timestamp"),
                (LogField::Client, "httpRequest.remoteIp"),
                (LogField::Method, "httpRequest.requestMethod"),
                (LogField::Target, "httpRequest.requestUrl"),
                (LogField::Status, "httpRequest.status"),
                (LogField::Bytes, "httpRequest.responseSize"),
                (LogField::Referer, "httpRequest.referer"),
                (LogField::UserAgent, "httpRequest.userAgent"),
                // Empty fields are left out.
                (LogField::Headers, "httpRequest"),
            ],
        },
    },
    KnownFormat {
        name: "envoy-json",
        syntax: Syntax::Json {
            marker: "response_flags",
            keys: &[
                (LogField::Time, "start_time"),
                (LogField::Client, "downstream_remote_address"),
                (LogField::Forwarded, "x_forwarded_for|x-forwarded-for"),
                (LogField::Method, "method"),
                (LogField::Target, "path|x-envoy-origin-path"),
                (LogField::Host, "authority|:authority"),
                (LogField::Status, "response_code"),
                (LogField::Bytes, "bytes_sent"),
                (LogField::Referer, "referer"),
                (LogField::UserAgent, "user_agent|user-agent"),
            ],
        },
    },
    KnownFormat {
        name: "json",
        syntax: Syntax::AnyJson,
    },
    KnownFormat {
        name: "alb",
        syntax: Syntax::Text {
            is_of_format: alb::is_alb_line,
            parse: alb::parse_alb_line,
        },
    },
    KnownFormat {
        name: "envoy",
        syntax: Syntax::Text {
            is_of_format: envoy::is_envoy_line,
            parse: envoy::parse_envoy_line,
        },
    },
    KnownFormat {
        name: "haproxy",
        syntax: Syntax::Text {
            is_of_format: haproxy::is_haproxy_line,
            parse: haproxy::parse_haproxy_line,
        },
    },
    KnownFormat {
        name: "combined",
        syntax: Syntax::Text {
            is_of_format: |_| true,
            parse: clf::parse_clf_line,
        },
    },
];

impl KnownFormat {
    /// The format of this name.
    pub fn find(name: &str) -> Option<&'static KnownFormat> {
        KNOWN_FORMATS.iter().find(|format| format.name == name)
    }

    /// The names of all formats, for people.
    pub fn names() -> String {
        KNOWN_FORMATS
            .each_ref()
            .map(|format| format.name)
            .join(", ")
    }

    /// Whether the columns of its lines stand in a header.
    pub(super) fn has_header(&self) -> bool {
        matches!(self.syntax, Syntax::Columns)
    }

    /// Parses a line that is taken to be of this format.
    pub(super) fn parse_line<'a>(&self, line: &'a [u8], header: &ColumnHeader) -> LineResult<'a> {
        match self.syntax {
            Syntax::Text { parse, .. } => parse(line),
            Syntax::Columns => header.parse_line(line),
            Syntax::Json { keys, .. } => json::parse_known_line(&json::parse_object(line)?, keys),
            Syntax::AnyJson => json::parse_any_line(json::parse_object(line)?),
        }
    }
}

/// Parses a line of any format.
pub fn parse_detected<'a>(line: &'a [u8], header: &ColumnHeader) -> LineResult<'a> {
    if header.is_some() {
        return header.parse_line(line);
    }
    if line.trim_ascii_start().starts_with(b"{") {
        return parse_detected_object(json::parse_object(line)?);
    }
    for format in &KNOWN_FORMATS {
        if let Syntax::Text {
            is_of_format,
            parse,
        } = format.syntax
            && is_of_format(line)
        {
            return parse(line);
        }
    }
    Err(UnreadableReason::OtherFormat)
}

fn parse_detected_object(object: Map<String, Value>) -> LineResult<'static> {
    for format in &KNOWN_FORMATS {
        if let Syntax::Json { marker, keys } = format.syntax
            && object.contains_key(marker)
        {
            return json::parse_known_line(&object, keys);
        }
    }
    json::parse_any_line(object)
}
