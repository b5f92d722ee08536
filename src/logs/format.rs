//! [`LogFormatString`]: the format of an access log, given as in nginx's `log_format` and parsed
//! into literals and variables. The value of a variable ends at the first occurrence of the literal
//! after it. This is safe for values in double quotes, because nginx escapes `"`; other values must
//! not contain that literal. Each value is checked against its variable, so that a line of another
//! format is not misread.

use super::client::is_address;
use super::{
    FIELD_COUNT, LineResult, LogField, LogRecord, RequestLine, UnreadableReason, dash_to_empty,
    fields, non_empty, request, timestamps, unescape,
};
use memchr::memmem;

/// A parsed log format.
#[derive(Clone, Debug)]
pub struct LogFormatString {
    /// The literal before the first variable.
    start: Box<[u8]>,
    /// Each variable with the literal after it; the last literal may be empty.
    variables: Vec<(LogField, memmem::Finder<'static>)>,
}

/// Why a format cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Two variables have no literal between them.
    #[error("put something between \"${0}\" and the variable after it")]
    NoSeparator(String),
    /// A variable is missing.
    #[error("the format has no {0}")]
    Missing(&'static str),
}

impl LogFormatString {
    /// Parses a format, like `$remote_addr [$time_local] "$request" $status "$http_user_agent"`.
    ///
    /// # Errors
    /// It has no time, no request or no user agent, or no literal between two variables.
    pub fn parse(format: &str) -> Result<LogFormatString, FormatError> {
        let mut pieces = format.split('$');
        let start = pieces.next().unwrap_or_default().as_bytes().into();
        let mut variables: Vec<(LogField, memmem::Finder<'static>)> = Vec::new();
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            let (name, literal) = match piece
                .strip_prefix('{')
                .and_then(|rest| rest.split_once('}'))
            {
                Some(parts) => parts,
                None => {
                    let end = piece.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
                    piece.split_at(end.unwrap_or(piece.len()))
                }
            };
            if literal.is_empty() && pieces.peek().is_some() {
                return Err(FormatError::NoSeparator(name.to_owned()));
            }
            let field = fields::field_for_key(name).map_or(LogField::Other, |(field, _)| field);
            variables.push((field, memmem::Finder::new(literal.as_bytes()).into_owned()));
        }
        let needed: [(&[LogField], &str); 3] = [
            (
                &[LogField::Time],
                "time: add \"$time_local\", \"$time_iso8601\" or \"$msec\"",
            ),
            (
                &[LogField::Request, LogField::Target, LogField::Path],
                "request: add \"$request\" or \"$request_uri\"",
            ),
            (
                &[LogField::UserAgent],
                "user agent: add \"$http_user_agent\"",
            ),
        ];
        for (fields, missing) in needed {
            if !variables.iter().any(|(field, _)| fields.contains(field)) {
                return Err(FormatError::Missing(missing));
            }
        }
        Ok(LogFormatString { start, variables })
    }

    /// Parses a line. Of several variables for the same field the last counts, but for the host the
    /// first.
    ///
    /// # Errors
    /// The line is of another format, or a value cannot be one of its variable.
    pub(super) fn parse_line<'a>(&self, line: &'a [u8]) -> LineResult<'a> {
        let mut rest = line
            .strip_prefix(&*self.start)
            .ok_or(UnreadableReason::OtherFormat)?;
        let mut found = FieldValues::default();
        for (variable, literal) in &self.variables {
            let end = match literal.needle() {
                [] => rest.len(),
                _ => literal.find(rest).ok_or(UnreadableReason::OtherFormat)?,
            };
            let value = &mut found[*variable as usize];
            // Of several hosts the first counts.
            if *variable != LogField::Host || value.is_none() {
                *value = Some(&rest[..end]);
            }
            rest = &rest[end + literal.needle().len()..];
        }
        // Only a line of another format has more.
        if rest.is_empty() {
            line_from_values(&found)
        } else {
            Err(UnreadableReason::OtherFormat)
        }
    }
}

/// The value of each field, by [`LogField`].
type FieldValues<'a> = [Option<&'a [u8]>; FIELD_COUNT];

/// Makes a line of its values. The request line counts before separate variables for target, method
/// and query.
fn line_from_values<'a>(found: &FieldValues<'a>) -> LineResult<'a> {
    let raw = |variable: LogField| found[variable as usize];
    let text = |variable| raw(variable).map(unescape);
    let time = raw(LogField::Time).and_then(timestamps::parse_utf8_time);
    let time = time.ok_or(UnreadableReason::BadTime)?;
    let host = raw(LogField::Host).map_or(Ok(None), fields::check_host)?;
    let client = raw(LogField::Client).map_or(Ok(None), fields::check_client)?;
    // Host and client are swapped.
    if host.is_some_and(is_address)
        && client.is_none()
        && raw(LogField::Client).is_some_and(|client| client != b"-")
    {
        return Err(UnreadableReason::BadClient);
    }
    let status =
        fields::check_status(raw(LogField::Status).map_or(Ok(None), fields::parse_number)?)?;
    let bytes = raw(LogField::Bytes).map_or(Ok(None), fields::parse_number)?;
    let user_agent = text(LogField::UserAgent)
        .map(fields::check_user_agent)
        .transpose()?;
    let line = text(LogField::Request).unwrap_or_default();
    let parsed = RequestLine::parse(&line).or_else(|| {
        let target = text(LogField::Target).or_else(|| text(LogField::Path))?;
        let method = raw(LogField::Method).unwrap_or_default().into();
        let query = text(LogField::Arguments)
            .map(dash_to_empty)
            .unwrap_or_default();
        Some(RequestLine::from_target(method, target)?.with_query(&query))
    });
    let record = LogRecord {
        host: host.map(Into::into),
        client: client.map(Into::into),
        x_forwarded_for: non_empty(raw(LogField::Forwarded).map(Into::into)),
        time,
        bytes: bytes.unwrap_or(0),
        content_type: non_empty(text(LogField::ContentType)),
        referer: non_empty(raw(LogField::Referer).map(Into::into)),
        user_agent,
        ..LogRecord::default()
    };
    request::into_line(parsed, &line, status, record)
}
