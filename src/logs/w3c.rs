//! Parses the extended log format of the W3C (<https://www.w3.org/TR/WD-logfile.html>), which IIS
//! and Amazon CloudFront write. A line `#Fields:` names the columns of the lines after it, and may
//! appear again anywhere in a log. [`ColumnHeader`] is the latest such line. If parts of a log are
//! parsed separately, each part needs the header from before it.

use super::values::FieldValues;
use super::{
    FieldBytes, FieldResult, LineResult, LogField, UnreadableReason::*, decode, decode_hex,
    timestamps,
};
use LogField::*;
use std::borrow::Cow;
use std::sync::Arc;

/// The beginning of a header.
const FIELDS: &[u8] = b"#Fields:";

/// The other lines that are no requests.
const DIRECTIVES: &str = "#Version: #Software: #Date: #Start-Date: #End-Date: #Remark:";

/// A longer header is no header.
const MAX_HEADER: usize = 16 * 1_024;

/// The names of each column, the best first: `cs(Host)` of CloudFront is not the host that the client
/// asked for.
const COLUMN_NAMES: [(LogField, &str); 15] = [
    (Date, "date"),
    (Time, "time"),
    (Method, "cs-method"),
    (Path, "cs-uri-stem cs-uri"),
    (Arguments, "cs-uri-query"),
    (Host, "x-host-header cs-host cs(host)"),
    (Client, "c-ip"),
    (Forwarded, "x-forwarded-for cs(x-forwarded-for)"),
    (Status, "sc-status"),
    (Bytes, "sc-bytes"),
    (Seconds, "time-to-first-byte seconds-taken"),
    (Milliseconds, "time-taken"),
    (ContentType, "sc-content-type"),
    (Referer, "cs(referer)"),
    (UserAgent, "cs(user-agent)"),
];

/// The columns that a header names.
pub struct Columns {
    /// What each column is.
    columns: Vec<LogField>,
    /// CloudFront encodes values like URLs; IIS writes `+` for a blank.
    is_percent_encoded: bool,
}

/// The header in force, if there was one.
#[derive(Clone, Default)]
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
            let mut directives = DIRECTIVES.split(' ');
            return directives.any(|directive| line.starts_with(directive.as_bytes()));
        };
        self.0 = Columns::parse(names).map(Arc::new);
        true
    }

    /// The columns that the header names, if there was one.
    pub(super) fn columns(&self) -> Option<&Columns> {
        self.0.as_deref()
    }
}

impl Columns {
    /// Parses the names of a header. `None` if there are none, or it is too long.
    fn parse(names: &[u8]) -> Option<Columns> {
        if names.len() > MAX_HEADER {
            return None;
        }
        let mut names = String::from_utf8_lossy(names).to_ascii_lowercase();
        let is_percent_encoded = names.contains("x-edge-");
        if is_percent_encoded {
            // CloudFront writes seconds there, IIS milliseconds.
            names = names.replace("time-taken", "seconds-taken");
        }
        let names: Vec<&str> = names.split_ascii_whitespace().collect();
        let mut columns = vec![Other; names.len()];
        for (column, known) in COLUMN_NAMES {
            let mut known = known.split(' ');
            let place = known.find_map(|known| names.iter().position(|name| *name == known));
            if let Some(place) = place {
                columns[place] = column;
            }
        }
        (!columns.is_empty()).then_some(Columns {
            columns,
            is_percent_encoded,
        })
    }

    /// # Errors
    /// The line has another number of columns, or a value that its column cannot have.
    pub fn parse_line<'a>(&self, line: &'a [u8]) -> LineResult<'a> {
        let mut values = self.split(line)?;
        let date = values.take(Date).unwrap_or_default();
        let clock = values.take(Time).unwrap_or_default();
        values.time = timestamps::parse_utc(&date, &clock);
        let mut method = values.get(Method).unwrap_or_default().iter();
        if !method.all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(byte)) {
            return Err(BadRequest);
        }
        values.into_checked_line()
    }

    /// Splits a line at tabs, or at blanks if it has no tab.
    ///
    /// # Errors
    /// The number of columns is not that of the header.
    fn split<'a>(&self, line: &'a [u8]) -> FieldResult<FieldValues<'a>> {
        let line = line.strip_suffix(b"\t").unwrap_or(line);
        let separator = if memchr::memchr(b'\t', line).is_some() {
            b'\t'
        } else {
            b' '
        };
        let mut values = FieldValues::default();
        let mut columns = self.columns.iter();
        for value in line.split(|byte| *byte == separator) {
            match columns.next().ok_or(OtherFormat)? {
                Other => {}
                column => values.set(*column, self.decode(*column, value)),
            }
        }
        // An empty value is written as `-`.
        if columns.next().is_some() || line.last() == Some(&separator) {
            return Err(CutOff);
        }
        Ok(values)
    }

    /// Decodes a value. IIS writes `+` for a blank in user agents and referers only.
    fn decode<'a>(&self, column: LogField, field: &'a [u8]) -> FieldBytes<'a> {
        match column {
            _ if self.is_percent_encoded => decode_hex(field, b'%'),
            UserAgent | Referer => decode(field, b'+', |_| Some((b' ', 0))),
            _ => Cow::Borrowed(field),
        }
    }
}
