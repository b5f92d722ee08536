//! Reads access logs of web servers for `audit` and `diff`. [`LineFormat`] reads a line, and [`Record`] is what the
//! line says about one request. The formats are Combined, Common, the JSON of crawlgate, nginx, Caddy and Traefik, and
//! any that nginx's `log_format` describes.

mod clf;
mod format;
mod json;
mod moment;

pub use format::FormatString;

use crate::time::Timestamp;
use std::borrow::Cow;
use std::str::FromStr;

/// One request, as a log tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The host that was asked, where the format has it.
    pub host: Option<Octets<'a>>,
    /// The client's address as it is written, where the format has it.
    pub client: Option<Octets<'a>>,
    /// The time of the line.
    pub time: Timestamp,
    /// GET, HEAD, ...
    pub method: Octets<'a>,
    /// Path and query as sent.
    pub target: Octets<'a>,
    /// Zero where the log does not say it.
    pub status: u16,
    /// Octets sent; zero where the log does not say it.
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
    /// A connection without a request that could be read: TLS on a plain port, a timeout, a scanner.
    NoRequest,
}

/// How lines are read.
#[derive(Clone, Debug, Default)]
pub enum LineFormat {
    /// A line that begins with `{` is JSON; any other is Combined or Common.
    #[default]
    Detect,
    /// As nginx's `log_format` describes them.
    FormatString(FormatString),
}

impl LineFormat {
    /// Reads a line without its end. `None` where it cannot be read.
    ///
    /// ```
    /// use crawlgate::internals::logs::{Line, LineFormat};
    /// let line = br#"192.0.2.7 - - [22/Nov/2026:10:00:00 +0000] "GET /cart/ HTTP/1.1" 200 5120 "-" "GPTBot/1.2""#;
    /// let Some(Line::Request(record)) = LineFormat::Detect.read(line) else { panic!("a request") };
    /// assert_eq!((&*record.target, record.bytes), (b"/cart/".as_slice(), 5120));
    /// ```
    pub fn read<'a>(&self, line: &'a [u8]) -> Option<Line<'a>> {
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
    /// A target without its query, in front of [`Field::Arguments`].
    Path,
    Arguments,
    Host,
    Client,
    Status,
    Bytes,
    ContentType,
    UserAgent,
    /// An object with more fields.
    Headers,
    Other,
}

const FIELDS: usize = Field::Other as usize + 1;

/// Text of a log for a terminal or a page: nothing in it moves a cursor, ends a line or turns the direction of writing.
/// (Unicode's control characters, its `Bidi_Control`, and the separators of lines and paragraphs.)
pub fn printable(text: &[u8]) -> String {
    let is_hidden = |sign: char| {
        let turns =
            matches!(sign, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        turns || sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    String::from_utf8_lossy(text).chars().map(|sign| if is_hidden(sign) { '\u{fffd}' } else { sign }).collect()
}

/// A field as logs write it: `-` stands for nothing.
fn or_empty(field: Octets<'_>) -> Octets<'_> {
    if *field == *b"-" { Cow::Borrowed(b"") } else { field }
}

/// The same, where nothing counts as no field.
fn not_empty(field: Option<Octets<'_>>) -> Option<Octets<'_>> {
    field.map(or_empty).filter(|field| !field.is_empty())
}

/// A number of octets or a status; `-` and what is no number count as zero.
fn number<N: FromStr + Default>(field: &[u8]) -> N {
    std::str::from_utf8(field).ok().and_then(|field| field.parse().ok()).unwrap_or_default()
}

/// Method and target of a request line; `None` where it is no request line.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    let (method, rest) = (&line[..space], &line[space + 1..]);
    let target = match memchr::memrchr(b' ', rest) {
        Some(end) if rest[end + 1..].starts_with(b"HTTP/") => &rest[..end],
        // HTTP/0.9, and targets with blanks in them.
        _ => rest,
    };
    let is_method = !method.is_empty() && method.iter().all(|octet| octet.is_ascii_alphabetic() || *octet == b'-');
    (is_method && !target.is_empty()).then_some((method, target))
}

/// Octets of a line, or what they stand for without their escapes.
pub type Octets<'a> = Cow<'a, [u8]>;

/// As [`request_line`], of a field that may own its octets.
fn owned_request_line(line: Octets<'_>) -> Option<(Octets<'_>, Octets<'_>)> {
    match line {
        Cow::Borrowed(line) => request_line(line).map(|(method, target)| (method.into(), target.into())),
        Cow::Owned(line) => {
            let (method, target) = request_line(&line)?;
            Some((Cow::Owned(method.to_vec()), Cow::Owned(target.to_vec())))
        }
    }
}

/// Takes the escapes out of a field: `\xHH` and `\"` of nginx and Apache, and Apache's `\n`, `\t` and the like.
fn unescape(field: &[u8]) -> Octets<'_> {
    let Some(first) = memchr::memchr(b'\\', field) else { return Cow::Borrowed(field) };
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

fn digit(octet: u8) -> Option<u8> {
    char::from(octet).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests;
