//! Reads access logs of web servers for `audit` and `diff`. [`LineFormat`] reads a line, and
//! [`Record`] is what the line says about one request. It recognises Combined, Common, and the JSON
//! of crawlgate, nginx, Caddy and Traefik. [`FormatString`] is any that nginx's `log_format`
//! describes. A line that cannot be read for certain is [`Unreadable`], because a line that is read
//! wrongly hides or accuses somebody.

mod clf;
mod client;
mod fields;
mod format;
mod json;
mod messages;
mod moment;
mod prefixes;
mod request;

pub use format::FormatString;

use crate::time::Timestamp;
use request::Asked;
use std::borrow::Cow;
use std::ops::Range;
use strum::IntoStaticStr;

/// One request, as a log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The host that was asked, where the format has it or the URL names it.
    pub host: Option<Octets<'a>>,
    /// The client's column as it is written, where the format has it: see
    /// [`Record::client_address`].
    pub client: Option<Octets<'a>>,
    /// X-Forwarded-For as it is written, where the format has it apart from the client.
    pub forwarded: Option<Octets<'a>>,
    /// The time of the line.
    pub time: Timestamp,
    /// GET, HEAD, ...; empty where the log does not say it.
    pub method: Octets<'a>,
    /// Path and query as sent.
    pub target: Octets<'a>,
    /// Zero where the log does not say it.
    pub status: u16,
    /// Bytes sent; zero where the log does not say it.
    pub bytes: u64,
    /// The type of the response, where the format has it.
    pub content_type: Option<Octets<'a>>,
    /// Empty where the request had none; `None` where the format has no such field.
    pub user_agent: Option<Octets<'a>>,
}

/// A line that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A request.
    Request(Record<'a>),
    /// A connection without a request that could be read: TLS on a plain port, a timeout, a
    /// scanner.
    NoRequest,
    /// No line of an access log: what a server writes when it starts, or of an error.
    ServerMessage,
}

impl Line<'_> {
    /// The same line with texts of its own, which outlive the text that it was read from.
    fn into_owned(self) -> Line<'static> {
        match self {
            Line::NoRequest => Line::NoRequest,
            Line::ServerMessage => Line::ServerMessage,
            Line::Request(record) => Line::Request(Record {
                host: record.host.map(own),
                client: record.client.map(own),
                forwarded: record.forwarded.map(own),
                method: own(record.method),
                target: own(record.target),
                content_type: record.content_type.map(own),
                user_agent: record.user_agent.map(own),
                ..record
            }),
        }
    }
}

fn own(field: Octets<'_>) -> Octets<'static> {
    Cow::Owned(field.into_owned())
}

/// Why a line cannot be read for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, thiserror::Error)]
#[strum(serialize_all = "snake_case")]
pub enum Unreadable {
    /// It is of no format that is known, or not of the one that was given.
    #[error("of another format")]
    OtherFormat,
    /// It ends too early.
    #[error("cut off")]
    CutOff,
    /// It has no time, or one without a time of day.
    #[error("no time that can be read")]
    BadTime,
    /// The columns before the time are not host, client, identity and user.
    #[error("other columns before the time")]
    BadColumns,
    /// What should be a host is none.
    #[error("no host in the column of the host")]
    BadHost,
    /// What should be a client is none.
    #[error("no address in the column of the client")]
    BadClient,
    /// What should be a request is none, and the server did not refuse it.
    #[error("no request")]
    BadRequest,
    /// The status or the number of bytes is no number.
    #[error("no number for status or bytes")]
    BadNumber,
    /// What should be a user agent is a number, an address or a URL.
    #[error("a number, an address or a URL in the column of the user agent")]
    BadUserAgent,
    /// No key that is known to hold the user agent.
    #[error("no known key for the user agent")]
    NoUserAgent,
}

impl Unreadable {
    /// The name of this reason in JSON and for programs.
    pub fn id(self) -> &'static str {
        self.into()
    }
}

type Reading<'a> = Result<Line<'a>, Unreadable>;

/// How lines are read.
#[derive(Clone, Debug, Default)]
pub enum LineFormat {
    /// By one of the known formats.
    #[default]
    Detect,
    /// As nginx's `log_format` describes them.
    FormatString(FormatString),
}

impl LineFormat {
    /// Reads a line without its end, with or without the prefix of a log collector (CRI, Docker,
    /// syslog, ...).
    ///
    /// # Errors
    /// It cannot be read for certain.
    ///
    /// ```
    /// use crawlgate::internals::logs::{Line, LineFormat};
    /// let line = br#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /cart/ HTTP/1.1" 200 5120 "-" "GPTBot/1.2""#;
    /// let Ok(Line::Request(record)) = LineFormat::Detect.read(line) else { panic!("a request") };
    /// assert_eq!((&*record.target, record.bytes), (b"/cart/".as_slice(), 5120));
    /// ```
    pub fn read<'a>(&self, line: &'a [u8]) -> Reading<'a> {
        let as_it_is = self.read_without_prefix(line);
        if matches!(as_it_is, Ok(Line::Request(_) | Line::NoRequest)) {
            return as_it_is;
        }
        self.read_behind_prefix(line, as_it_is)
    }

    /// Reads a line that was not read as it is: without its prefixes, one after the other.
    /// `as_it_is` is what reading it whole gave, which is the result if it has no prefix. If
    /// nothing can be read but the line looks like a server's message, it is one.
    #[cold]
    fn read_behind_prefix<'a>(&self, line: &'a [u8], as_it_is: Reading<'a>) -> Reading<'a> {
        let read = match prefixes::strip(line) {
            Some(Cow::Borrowed(rest)) => self.read(rest),
            Some(Cow::Owned(rest)) => self.read(&rest).map(Line::into_owned),
            None => as_it_is.clone(),
        };
        match read {
            Err(_) if as_it_is == Ok(Line::ServerMessage) || messages::is_message(line) => {
                Ok(Line::ServerMessage)
            }
            read => read,
        }
    }

    /// Reads a line as it is: by the given format, else as JSON if it begins with `{`, else as
    /// Common or Combined.
    fn read_without_prefix<'a>(&self, line: &'a [u8]) -> Reading<'a> {
        match self {
            LineFormat::FormatString(pattern) => pattern.read(line),
            LineFormat::Detect if line.trim_ascii_start().starts_with(b"{") => json::read(line),
            LineFormat::Detect => clf::read(line),
        }
    }
}

/// What a field of a line says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Time,
    Request,
    Method,
    Target,
    /// A target that may stand without its query, in front of [`Field::Arguments`].
    Path,
    Arguments,
    Host,
    Client,
    Forwarded,
    Status,
    Bytes,
    ContentType,
    UserAgent,
    /// An object with more fields; that there was one.
    Headers,
    /// Which part of a server writes the line.
    Logger,
    /// How grave the line is, and what it says to people.
    Message,
    Other,
}

const FIELDS: usize = Field::Other as usize + 1;

/// A field as logs write it: `-` stands for nothing and becomes empty.
fn or_empty(field: Octets<'_>) -> Octets<'_> {
    if *field == *b"-" {
        Cow::Borrowed(b"")
    } else {
        field
    }
}

/// The field, or `None` if it is empty or `-`.
fn not_empty(field: Option<Octets<'_>>) -> Option<Octets<'_>> {
    field.map(or_empty).filter(|field| !field.is_empty())
}

/// Bytes of a line, or what they stand for without their escapes.
pub type Octets<'a> = Cow<'a, [u8]>;

/// A part of a field.
fn part<'a>(field: &Octets<'a>, range: Range<usize>) -> Octets<'a> {
    match field {
        Cow::Borrowed(field) => Cow::Borrowed(&field[range]),
        Cow::Owned(field) => Cow::Owned(field[range].to_vec()),
    }
}

/// Takes the escapes out of a field: `\xHH` and `\"` of nginx and Apache, and Apache's `\n`, `\t`
/// and the like.
fn unescape(field: &[u8]) -> Octets<'_> {
    let Some(first) = memchr::memchr(b'\\', field) else {
        return Cow::Borrowed(field);
    };
    let mut out = field[..first].to_vec();
    let mut rest = &field[first..];
    while let Some((&octet, after)) = rest.split_first() {
        let (written, after) = match (octet, after) {
            (b'\\', [b'x', high, low, after @ ..]) => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => (octet, &rest[1..]),
            },
            (b'\\', [b'n', after @ ..]) => (b'\n', after),
            (b'\\', [b't', after @ ..]) => (b'\t', after),
            (b'\\', [b'r', after @ ..]) => (b'\r', after),
            (b'\\', [sign @ (b'"' | b'\\' | b'/'), after @ ..]) => (*sign, after),
            _ => (octet, after),
        };
        out.push(written);
        rest = after;
    }
    Cow::Owned(out)
}

/// The value of a hexadecimal digit; `None` for another byte.
fn digit(octet: u8) -> Option<u8> {
    char::from(octet)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests;
