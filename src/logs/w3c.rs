//! The extended log format of the W3C (<https://www.w3.org/TR/WD-logfile.html>), as IIS and Amazon
//! CloudFront write it. A line `#Fields:` names the columns of the lines after it, and may come again
//! anywhere. [`ColumnHeader`] is the last one, so it has to travel with each part of a log.

use super::{
    FIELD_COUNT, FieldBytes, LineResult, LogField, LogRecord, RequestLine, UnreadableReason,
    decode_hex, fields, non_empty, request, timestamps,
};
use std::borrow::Cow;
use std::sync::Arc;

/// The beginning of a header.
const FIELDS: &[u8] = b"#Fields:";

/// The other lines that are no requests.
const DIRECTIVES: [&[u8]; 6] = [
    b"#Version:",
    b"#Software:",
    b"#Date:",
    b"#Start-Date:",
    b"#End-Date:",
    b"#Remark:",
];

/// A longer header is no header.
const MAX_HEADER: usize = 16 * 1_024;

/// The names of each column, the best first: `cs(Host)` of CloudFront is not the host that the client
/// asked for.
const COLUMN_NAMES: [(LogField, &[&str]); 13] = [
    (LogField::Date, &["date"]),
    (LogField::Time, &["time"]),
    (LogField::Method, &["cs-method"]),
    (LogField::Path, &["cs-uri-stem", "cs-uri"]),
    (LogField::Arguments, &["cs-uri-query"]),
    (LogField::Host, &["x-host-header", "cs-host", "cs(host)"]),
    (LogField::Client, &["c-ip"]),
    (
        LogField::Forwarded,
        &["x-forwarded-for", "cs(x-forwarded-for)"],
    ),
    (LogField::Status, &["sc-status"]),
    (LogField::Bytes, &["sc-bytes"]),
    (LogField::ContentType, &["sc-content-type"]),
    (LogField::Referer, &["cs(referer)"]),
    (LogField::UserAgent, &["cs(user-agent)"]),
];

/// The columns that a header names.
#[derive(Debug)]
struct Columns {
    /// What each column is; `None` for those that are not read.
    columns: Vec<Option<LogField>>,
    has_user_agent: bool,
    /// CloudFront encodes values like URLs; IIS writes `+` for a blank.
    is_percent_encoded: bool,
}

/// The header in force, if there was one.
#[derive(Clone, Debug, Default)]
pub struct ColumnHeader(Option<Arc<Columns>>);

impl ColumnHeader {
    /// Takes over the last header among whole lines.
    pub fn update(&mut self, lines: &[u8]) {
        let header = memchr::memrchr_iter(b'#', lines).find(|place| {
            let (before, rest) = lines.split_at(*place);
            let begins_line =
                before.is_empty() || before.ends_with(b"\n") || before == super::BYTE_ORDER_MARK;
            begins_line && rest.starts_with(FIELDS)
        });
        if let Some(place) = header {
            let line = lines[place..].split(|byte| *byte == b'\n').next();
            self.read_directive(line.unwrap_or_default());
        }
    }

    /// Takes over a header. Returns whether the line is one, or another line that is no request.
    pub(super) fn read_directive(&mut self, line: &[u8]) -> bool {
        let Some(names) = line.strip_prefix(FIELDS) else {
            return DIRECTIVES
                .iter()
                .any(|directive| line.starts_with(directive));
        };
        self.0 = Columns::parse(names).map(Arc::new);
        true
    }

    /// Whether there is a header.
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// Parses a line by the header.
    ///
    /// # Errors
    /// There was no header, or the line cannot be read by it.
    pub(super) fn parse_line<'a>(&self, line: &'a [u8]) -> LineResult<'a> {
        let columns = self.0.as_ref().ok_or(UnreadableReason::NoHeader)?;
        columns.parse_line(line)
    }
}

impl Columns {
    /// Parses the names of a header. `None` if there are none, or it is too long.
    fn parse(names: &[u8]) -> Option<Columns> {
        let names = names.get(..names.len().min(MAX_HEADER + 1))?;
        let names = String::from_utf8_lossy(names).to_ascii_lowercase();
        if names.len() > MAX_HEADER {
            return None;
        }
        let names: Vec<&str> = names.split_ascii_whitespace().collect();
        let mut columns = vec![None; names.len()];
        for (column, known) in COLUMN_NAMES {
            let place = known
                .iter()
                .find_map(|known| names.iter().position(|name| name == known));
            if let Some(place) = place {
                columns[place] = Some(column);
            }
        }
        (!columns.is_empty()).then(|| Columns {
            has_user_agent: columns.contains(&Some(LogField::UserAgent)),
            columns,
            is_percent_encoded: names.iter().any(|name| name.starts_with("x-edge-")),
        })
    }

    /// # Errors
    /// The line has another number of columns, or a value that its column cannot have.
    fn parse_line<'a>(&self, line: &'a [u8]) -> LineResult<'a> {
        let values = self.split(line)?;
        let raw = |column: LogField| values[column as usize];
        let time = timestamps::parse_utc(raw(LogField::Date), raw(LogField::Time));
        let time = time.ok_or(UnreadableReason::BadTime)?;
        let client = fields::check_client(raw(LogField::Client))?;
        let host = fields::check_host(raw(LogField::Host))?;
        let status = fields::check_status(fields::parse_number(raw(LogField::Status))?)?;
        let bytes = fields::parse_number(raw(LogField::Bytes))?;
        let user_agent = self.decode_words(raw(LogField::UserAgent));
        let user_agent = fields::check_user_agent(user_agent)?;
        let method = raw(LogField::Method);
        if !method
            .iter()
            .all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(byte))
        {
            return Err(UnreadableReason::BadRequest);
        }
        let target = self.decode(raw(LogField::Path));
        let query = super::dash_to_empty(self.decode(raw(LogField::Arguments)));
        let parsed = RequestLine::from_target(method.into(), target);
        let parsed = parsed.map(|parsed| parsed.with_query(&query));
        let record = LogRecord {
            host: host.map(Into::into),
            client: client.map(Into::into),
            x_forwarded_for: non_empty(Some(self.decode(raw(LogField::Forwarded)))),
            time,
            bytes: bytes.unwrap_or(0),
            content_type: non_empty(Some(self.decode(raw(LogField::ContentType)))),
            referer: non_empty(Some(self.decode_words(raw(LogField::Referer)))),
            user_agent: self.has_user_agent.then_some(user_agent),
            ..LogRecord::default()
        };
        request::into_line(parsed, raw(LogField::Path), status, record)
    }

    /// Splits a line at tabs, or at blanks if it has no tab, and returns the value of each
    /// [`LogField`]; `-` for one that the header does not name.
    ///
    /// # Errors
    /// The number of columns is not that of the header.
    fn split<'a>(&self, line: &'a [u8]) -> Result<[&'a [u8]; FIELD_COUNT], UnreadableReason> {
        let line = line.strip_suffix(b"\t").unwrap_or(line);
        let separator = if memchr::memchr(b'\t', line).is_some() {
            b'\t'
        } else {
            b' '
        };
        let mut values = [b"-".as_slice(); FIELD_COUNT];
        let mut start = 0;
        let ends = memchr::memchr_iter(separator, line).chain([line.len()]);
        let mut columns = self.columns.iter();
        for end in ends {
            let column = columns.next().ok_or(UnreadableReason::OtherFormat)?;
            if let Some(column) = column {
                values[*column as usize] = &line[start..end];
            }
            start = end + 1;
        }
        // An empty value is written as `-`.
        if columns.next().is_some() || line.last() == Some(&separator) {
            return Err(UnreadableReason::CutOff);
        }
        Ok(values)
    }

    /// Decodes a value in which IIS writes blanks as they are.
    fn decode<'a>(&self, field: &'a [u8]) -> FieldBytes<'a> {
        if self.is_percent_encoded {
            decode_hex(field, b'%')
        } else {
            Cow::Borrowed(field)
        }
    }

    /// Decodes a value in which IIS writes `+` for a blank.
    fn decode_words<'a>(&self, field: &'a [u8]) -> FieldBytes<'a> {
        if self.is_percent_encoded || !field.contains(&b'+') {
            return self.decode(field);
        }
        let blanks = field
            .iter()
            .map(|byte| if *byte == b'+' { b' ' } else { *byte });
        Cow::Owned(blanks.collect())
    }
}
