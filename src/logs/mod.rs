//! Parses access logs of web servers for the commands `audit` and `diff`. [`LineFormat`] parses a
//! line into a [`LogLine`], and [`LogRecord`] is one request of a log. The known formats are
//! detected ([`KnownFormat`]). The user can describe others: a text format as for nginx's
//! `log_format` ([`LogFormatString`]), or the keys of JSON lines ([`KeyMap`]). A [`LineReader`]
//! reads the lines of one log; in some formats a header line names the columns of the lines after
//! it ([`ColumnHeader`]). A doubtful line is an error ([`UnreadableReason`]) and never a guess,
//! because a wrong guess may accuse a crawler.

mod alb;
mod clf;
mod client;
mod columns;
mod envoy;
mod fields;
mod format;
mod haproxy;
mod json;
mod known;
mod messages;
mod prefixes;
mod request;
mod timestamps;
mod values;
mod w3c;

pub use format::LogFormatString;
pub use json::KeyMap;
pub use known::KnownFormat;
pub use w3c::ColumnHeader;

use crate::time::Timestamp;
use LineFormat::*;
use LogLine::*;
use request::RequestLine;
use std::borrow::Cow::{self, Borrowed, Owned};
use std::ops::Range;
use strum::IntoStaticStr;

/// One request of an access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRecord<'a> {
    /// The requested host, where the format has it or the URL names it.
    pub host: Option<FieldBytes<'a>>,
    /// The client's column as it is written, where the format has it: see
    /// [`LogRecord::client_address`].
    pub client: Option<FieldBytes<'a>>,
    /// X-Forwarded-For as it is written, where the format has a column for it.
    pub x_forwarded_for: Option<FieldBytes<'a>>,
    /// When the line was written.
    pub time: Timestamp,
    /// GET, HEAD, ...; empty where the log does not have it.
    pub method: FieldBytes<'a>,
    /// Path and query as sent.
    pub target: FieldBytes<'a>,
    /// Zero where the log does not have it.
    pub status: u16,
    /// Bytes sent; zero where the log does not have them.
    pub bytes: u64,
    /// How long the response took, where the format has that.
    pub milliseconds: Option<u32>,
    /// The type of the response, where the format has it.
    pub content_type: Option<FieldBytes<'a>>,
    /// The Referer field as it is written; `None` where the request had none or the format does not
    /// have it.
    pub referer: Option<FieldBytes<'a>>,
    /// Empty where the request had none; `None` where the format has no such field.
    pub user_agent: Option<FieldBytes<'a>>,
    /// Whether the line ends with columns that are not read.
    pub has_unread_columns: bool,
}

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every line is a request, and a box for each would cost more"
)]
pub enum LogLine<'a> {
    /// A request.
    Request(LogRecord<'a>),
    /// A connection without a valid request: TLS on a plain port, a timeout, a scanner.
    NoRequest,
    /// A message of a server about its start or an error.
    ServerMessage,
}

impl LogLine<'_> {
    /// Copies the borrowed fields.
    fn into_owned(self) -> LogLine<'static> {
        match self {
            NoRequest => NoRequest,
            ServerMessage => ServerMessage,
            Request(record) => Request(LogRecord {
                host: record.host.map(to_owned_field),
                client: record.client.map(to_owned_field),
                x_forwarded_for: record.x_forwarded_for.map(to_owned_field),
                method: to_owned_field(record.method),
                target: to_owned_field(record.target),
                content_type: record.content_type.map(to_owned_field),
                referer: record.referer.map(to_owned_field),
                user_agent: record.user_agent.map(to_owned_field),
                ..record
            }),
        }
    }
}

fn to_owned_field(field: FieldBytes<'_>) -> FieldBytes<'static> {
    Owned(field.into_owned())
}

/// Why a line cannot be parsed for certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum UnreadableReason {
    /// It is of no known format, or not of the given one.
    OtherFormat,
    /// It ends too early.
    CutOff,
    /// It has no time, or one without a time of day.
    BadTime,
    /// The columns before the time are not host, client, identity and user.
    BadColumns,
    /// The column of the host has no host.
    BadHost,
    /// The column of the client has no address.
    BadClient,
    /// The column of the request has none, and the server did not reject it.
    BadRequest,
    /// The status or the number of bytes is no number.
    BadNumber,
    /// The column of the user agent has a number, an address or a URL.
    BadUserAgent,
    /// No known key has the user agent.
    NoUserAgent,
    /// A key of `--map` is not in the line.
    MissingKey,
    /// No `#Fields:` line came before it.
    NoHeader,
    /// Every second byte is zero.
    Utf16,
}

impl UnreadableReason {
    /// The name of this reason in JSON and for programs.
    pub fn id(self) -> &'static str {
        self.into()
    }
}

/// A part of a line, or why the line cannot be read.
type FieldResult<T> = Result<T, UnreadableReason>;
type LineResult<'a> = FieldResult<LogLine<'a>>;

/// How lines are parsed.
#[derive(Clone, Debug, Default)]
pub enum LineFormat {
    /// The format is detected for each line.
    #[default]
    Detect,
    /// A format as in nginx's `log_format`.
    FormatString(LogFormatString),
    /// A format that would be detected, too.
    Known(&'static KnownFormat),
    /// JSON with these keys.
    Mapped(KeyMap),
}

impl LineFormat {
    /// Parses a line without its end, with or without the prefix of a log collector (CRI, Docker,
    /// syslog, ...).
    ///
    /// # Errors
    /// The line cannot be parsed for certain.
    ///
    /// ```
    /// use crawlgate::internals::logs::{LineFormat, LogLine};
    /// let line = br#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /cart/ HTTP/1.1" 200 5120 "-" "GPTBot/1.2""#;
    /// let Ok(LogLine::Request(record)) = LineFormat::Detect.parse(line) else { panic!("a request") };
    /// assert_eq!((&*record.target, record.bytes), (b"/cart/".as_slice(), 5120));
    /// ```
    pub fn parse<'a>(&self, line: &'a [u8]) -> LineResult<'a> {
        self.parse_line_below_header(line, &ColumnHeader::default())
    }

    /// Parses a line that comes below `header`.
    fn parse_line_below_header<'a>(&self, line: &'a [u8], header: &ColumnHeader) -> LineResult<'a> {
        let mut parsed = match self {
            Detect => known::parse_detected(line, header),
            FormatString(pattern) => pattern.parse_line(line),
            Known(format) => format.parse_line(line, header),
            Mapped(keys) => keys.parse_line(line),
        };
        if !matches!(parsed, Ok(Request(_) | NoRequest)) {
            parsed = self.parse_after_prefix(line, parsed);
        }
        parsed
    }

    /// Parses the line without its prefixes. `whole` is the result for the whole line, and is
    /// returned if the line has no prefix. A line that fails but looks like a server's message is
    /// one.
    #[cold]
    fn parse_after_prefix<'a>(&self, line: &'a [u8], whole: LineResult<'a>) -> LineResult<'a> {
        let parsed = match prefixes::strip_first_prefix(line) {
            Some(Borrowed(rest)) => self.parse(rest),
            Some(Owned(rest)) => self.parse(&rest).map(LogLine::into_owned),
            None => whole.clone(),
        };
        match parsed {
            Err(_) if whole == Ok(ServerMessage) || messages::is_server_message(line) => {
                Ok(ServerMessage)
            }
            Err(_) if is_utf16(line) => Err(UnreadableReason::Utf16),
            parsed => parsed,
        }
    }
}

/// Parses the lines of one log in their order.
#[derive(Clone)]
pub struct LineReader<'f> {
    format: &'f LineFormat,
    header: ColumnHeader,
}

impl<'f> LineReader<'f> {
    /// A reader that goes on with the lines below `header`.
    pub fn new(format: &'f LineFormat, header: ColumnHeader) -> LineReader<'f> {
        LineReader { format, header }
    }

    /// Parses the next line, without its end.
    ///
    /// # Errors
    /// The line cannot be parsed for certain.
    pub fn parse<'a>(&mut self, line: &'a [u8]) -> LineResult<'a> {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        let may_have_header = matches!(self.format, Detect | Known(KnownFormat::Columns));
        if line.starts_with(b"#") && may_have_header && self.header.read_directive(line) {
            return Ok(ServerMessage);
        }
        self.format.parse_line_below_header(line, &self.header)
    }
}

/// What Windows writes in front of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether about half of the bytes are zero, as in text in UTF-16.
fn is_utf16(line: &[u8]) -> bool {
    let zeros = memchr::memchr_iter(0, line).count();
    (line.len() / 3..=line.len() * 2 / 3).contains(&zeros) && zeros > 0
}

/// What a column or key of a log means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogField {
    /// The day of a [`LogField::Time`] that has none.
    Date,
    Time,
    Request,
    Method,
    Target,
    /// A target whose query may be in [`LogField::Arguments`].
    Path,
    Arguments,
    Host,
    Client,
    Forwarded,
    Status,
    Bytes,
    /// How long the response took.
    Seconds,
    Milliseconds,
    Microseconds,
    ContentType,
    Referer,
    UserAgent,
    /// An object with the fields of the request's head.
    Headers,
    /// The part of a server that writes the line.
    Logger,
    /// The level of the line, or a text for people.
    Message,
    Other,
}

/// Logs write `-` for an empty field.
fn dash_to_empty(field: FieldBytes<'_>) -> FieldBytes<'_> {
    if *field == *b"-" {
        Borrowed(b"")
    } else {
        field
    }
}

/// `None` for a field that is empty or `-`.
fn non_empty(field: Option<FieldBytes<'_>>) -> Option<FieldBytes<'_>> {
    field.map(dash_to_empty).filter(|field| !field.is_empty())
}

/// Bytes of a line, or a copy without escapes.
pub type FieldBytes<'a> = Cow<'a, [u8]>;

/// A part of a field.
fn slice_field<'a>(field: &FieldBytes<'a>, range: Range<usize>) -> FieldBytes<'a> {
    match field {
        Borrowed(field) => Borrowed(&field[range]),
        Owned(field) => Owned(field[range].to_vec()),
    }
}

/// Decodes escapes: `\xHH` and `\"` of nginx and Apache, and Apache's `\n`, `\t` and the like.
fn unescape(field: &[u8]) -> FieldBytes<'_> {
    decode(field, b'\\', |after| match after {
        [b'x', digits @ ..] => Some((hex_byte(digits)?, 3)),
        [b'n', ..] => Some((b'\n', 1)),
        [b't', ..] => Some((b'\t', 1)),
        [b'r', ..] => Some((b'\r', 1)),
        [sign @ (b'"' | b'\\' | b'/'), ..] => Some((*sign, 1)),
        _ => None,
    })
}

/// Decodes a sign with two hexadecimal digits after it, like `%20`, once.
fn decode_hex(field: &[u8], sign: u8) -> FieldBytes<'_> {
    decode(field, sign, |after| Some((hex_byte(after)?, 2)))
}

/// Decodes what `sign` begins. `decode_after` gets the text after a sign, and returns the byte that
/// is meant and the length of its code; `None` for a sign that is meant itself.
fn decode(
    field: &[u8],
    sign: u8,
    decode_after: impl Fn(&[u8]) -> Option<(u8, usize)>,
) -> FieldBytes<'_> {
    let Some(first) = memchr::memchr(sign, field) else {
        return Borrowed(field);
    };
    let mut out = field[..first].to_vec();
    let mut rest = &field[first..];
    while let Some((&byte, after)) = rest.split_first() {
        let decoded = (byte == sign).then(|| decode_after(after));
        let (written, length) = decoded.flatten().unwrap_or((byte, 0));
        out.push(written);
        rest = &after[length..];
    }
    Owned(out)
}

/// The byte that two hexadecimal digits at the beginning of a text stand for.
fn hex_byte(text: &[u8]) -> Option<u8> {
    let digits = text.first_chunk::<2>()?;
    let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
    Some((high? << 4 | low?) as u8)
}

#[cfg(test)]
mod service_tests;
#[cfg(test)]
mod tests;
