//! [`LogFormatString`]: the format of an access log, which a user gives as in nginx's `log_format`.
//! It is parsed into variables (such as `$status`) and the text between them. The value of a
//! variable ends where the text after the variable first occurs. This is safe for values in double
//! quotes, because nginx escapes quotes inside them. Other values must not contain that text. Each
//! value is checked (a status is a number, for example), so that a line of another format is not
//! misread.

use super::values::FieldValues;
use super::{LineResult, LogField, UnreadableReason::*, fields, unescape};
use LogField::*;
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
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
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
            let field = fields::field_for_key(name).map_or(Other, |(field, _)| field);
            variables.push((field, memmem::Finder::new(literal.as_bytes()).into_owned()));
        }
        let needed: [(&[LogField], &str); 3] = [
            (
                &[Time],
                "time: add \"$time_local\", \"$time_iso8601\" or \"$msec\"",
            ),
            (
                &[Request, Target, Path],
                "request: add \"$request\" or \"$request_uri\"",
            ),
            (&[UserAgent], "user agent: add \"$http_user_agent\""),
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
        let mut rest = line.strip_prefix(&*self.start).ok_or(OtherFormat)?;
        let mut values = FieldValues::default();
        for (variable, literal) in &self.variables {
            let end = match literal.needle() {
                [] => rest.len(),
                _ => literal.find(rest).ok_or(OtherFormat)?,
            };
            // Of several hosts the first counts.
            if *variable != Host || values.get(Host).is_none() {
                values.set(*variable, unescape(&rest[..end]));
            }
            rest = &rest[end + literal.needle().len()..];
        }
        // Only a line of another format has more.
        if rest.is_empty() {
            values.into_checked_line()
        } else {
            Err(OtherFormat)
        }
    }
}
