//! [`KNOWN_FORMATS`]: the formats that are recognised by themselves, one entry each. To read another
//! one, add an entry, its example in `docs/log-formats.md`, and its test.

use super::json::{self, KeyMap};
use super::{ColumnHeader, LineResult, UnreadableReason, alb, clf, envoy, haproxy};
use serde_json::{Map, Value};
use std::sync::LazyLock;

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
        keys: LazyLock<KeyMap>,
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
            keys: LazyLock::new(|| {
                KeyMap::builtin(
                    "time=EdgeStartTimestamp|EdgeEndTimestamp,client=ClientIP,\
                     method=ClientRequestMethod,path=ClientRequestURI|ClientRequestPath,\
                     host=ClientRequestHost,status=EdgeResponseStatus,\
                     bytes=EdgeResponseBytes,content_type=EdgeResponseContentType,\
                     referer=ClientRequestReferer,user_agent=ClientRequestUserAgent",
                )
            }),
        },
    },
    KnownFormat {
        name: "google-cloud",
        syntax: Syntax::Json {
            marker: "httpRequest",
            // A request without a user agent has none there.
            keys: LazyLock::new(|| {
                KeyMap::builtin(
                    "time=timestamp,client=httpRequest.remoteIp,\
                     method=httpRequest.requestMethod,path=httpRequest.requestUrl,\
                     status=httpRequest.status,bytes=httpRequest.responseSize,\
                     referer=httpRequest.referer,user_agent=httpRequest.userAgent|httpRequest",
                )
            }),
        },
    },
    KnownFormat {
        name: "envoy-json",
        syntax: Syntax::Json {
            marker: "response_flags",
            keys: LazyLock::new(|| {
                KeyMap::builtin(
                    "time=start_time,client=downstream_remote_address,\
                     x_forwarded_for=x_forwarded_for|x-forwarded-for,method=method,\
                     path=path|x-envoy-origin-path,host=authority|:authority,\
                     status=response_code,bytes=bytes_sent,referer=referer,\
                     user_agent=user_agent|user-agent",
                )
            }),
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
        match &self.syntax {
            Syntax::Text {
                is_of_format,
                parse,
            } => or_other_format(parse(line), || is_of_format(line)),
            Syntax::Columns => header.parse_line(line),
            Syntax::Json { marker, keys } => {
                let object = json::parse_object(line)?;
                or_other_format(json::parse_known_line(&object, keys), || {
                    object.contains_key(*marker)
                })
            }
            Syntax::AnyJson => json::parse_any_line(json::parse_object(line)?),
        }
    }
}

/// The result of a line that is taken to be of a format. What is wrong with a line that does not
/// look like the format says nothing: such a line is of another one.
fn or_other_format(parsed: LineResult<'_>, is_of_format: impl FnOnce() -> bool) -> LineResult<'_> {
    parsed.map_err(|reason| {
        if is_of_format() {
            reason
        } else {
            UnreadableReason::OtherFormat
        }
    })
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
        } = &format.syntax
            && is_of_format(line)
        {
            return parse(line);
        }
    }
    Err(UnreadableReason::OtherFormat)
}

fn parse_detected_object(object: Map<String, Value>) -> LineResult<'static> {
    for format in &KNOWN_FORMATS {
        if let Syntax::Json { marker, keys } = &format.syntax
            && object.contains_key(*marker)
        {
            return json::parse_known_line(&object, keys);
        }
    }
    json::parse_any_line(object)
}
