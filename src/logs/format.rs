//! [`FormatString`]: a log format as nginx's `log_format` writes it, parsed into literals and
//! variables. The value of a variable ends at the first occurrence of the literal after it. This is
//! safe for values in double quotes, because nginx escapes `"`; other values must not contain that
//! literal. Variables that do not describe the request are ignored. A value that cannot be one of
//! its variable shows that the line is of another format.

use super::client::is_address;
use super::{
    Asked, FIELDS, Field, Line, Reading, Record, Unreadable, fields, moment, not_empty, or_empty,
    request, unescape,
};
use memchr::memmem;

/// A format, ready to read lines.
#[derive(Clone, Debug)]
pub struct FormatString {
    /// What lines begin with.
    start: Box<[u8]>,
    /// Each variable with the literal behind it; the last one may have none.
    variables: Vec<(Field, memmem::Finder<'static>)>,
}

/// Why a format cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// Where one variable ends cannot be told.
    #[error("nothing separates `${0}` from the variable behind it")]
    NoSeparator(String),
    /// Something is missing.
    #[error("the format has no {0}")]
    Missing(&'static str),
}

impl FormatString {
    /// Reads a format, like `$remote_addr [$time_local] "$request" $status "$http_user_agent"`.
    ///
    /// # Errors
    /// It has no time, no request or no user agent, or two variables stand side by side.
    pub fn parse(format: &str) -> Result<FormatString, FormatError> {
        let mut pieces = format.split('$');
        let start = pieces.next().unwrap_or_default().as_bytes().into();
        let mut variables: Vec<(Field, memmem::Finder<'static>)> = Vec::new();
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
            let field = fields::named(name).map_or(Field::Other, |(field, _)| field);
            variables.push((field, memmem::Finder::new(literal.as_bytes()).into_owned()));
        }
        let needed: [(&[Field], &str); 3] = [
            (
                &[Field::Time],
                "time: add `$time_local`, `$time_iso8601` or `$msec`",
            ),
            (
                &[Field::Request, Field::Target, Field::Path],
                "request: add `\"$request\"` or `$request_uri`",
            ),
            (
                &[Field::UserAgent],
                "user agent: add `\"$http_user_agent\"`",
            ),
        ];
        for (fields, missing) in needed {
            if !variables.iter().any(|(field, _)| fields.contains(field)) {
                return Err(FormatError::Missing(missing));
            }
        }
        Ok(FormatString { start, variables })
    }

    /// Reads a line by this format. Of several variables for the same field the last counts, for
    /// the host the first.
    ///
    /// # Errors
    /// The line is of another format, or a value cannot be one of its variable.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> Reading<'a> {
        let mut rest = line
            .strip_prefix(&*self.start)
            .ok_or(Unreadable::OtherFormat)?;
        let mut found = Found::default();
        for (variable, literal) in &self.variables {
            let end = match literal.needle() {
                [] => rest.len(),
                _ => literal.find(rest).ok_or(Unreadable::OtherFormat)?,
            };
            let value = &mut found[*variable as usize];
            // Of several hosts the first counts.
            if *variable != Field::Host || value.is_none() {
                *value = Some(&rest[..end]);
            }
            rest = &rest[end + literal.needle().len()..];
        }
        // What is left over belongs to another format.
        if rest.is_empty() {
            read(&found)
        } else {
            Err(Unreadable::OtherFormat)
        }
    }
}

/// What the variables of a line hold.
type Found<'a> = [Option<&'a [u8]>; FIELDS];

/// Makes a line of what its variables hold. The request line counts before target, method and query
/// in variables of their own. A status or number of bytes that the log does not have is zero.
fn read<'a>(found: &Found<'a>) -> Reading<'a> {
    let raw = |variable: Field| found[variable as usize];
    let text = |variable| raw(variable).map(unescape);
    let time = raw(Field::Time).and_then(|time| moment::any(std::str::from_utf8(time).ok()?));
    let time = time.ok_or(Unreadable::BadTime)?;
    let host = raw(Field::Host).map_or(Ok(None), fields::host)?;
    let client = raw(Field::Client).map_or(Ok(None), fields::client)?;
    // The two columns are in the other order.
    if host.is_some_and(is_address)
        && client.is_none()
        && raw(Field::Client).is_some_and(|client| client != b"-")
    {
        return Err(Unreadable::BadClient);
    }
    let status = fields::status(raw(Field::Status).map_or(Ok(None), fields::number)?)?;
    let bytes = raw(Field::Bytes).map_or(Ok(None), fields::number)?;
    let user_agent = text(Field::UserAgent).map(fields::user_agent).transpose()?;
    let line = text(Field::Request).unwrap_or_default();
    let asked = Asked::line(&line).or_else(|| {
        let target = text(Field::Target).or_else(|| text(Field::Path))?;
        let method = raw(Field::Method).unwrap_or_default().into();
        let query = text(Field::Arguments).map(or_empty).unwrap_or_default();
        Some(Asked::url(method, target)?.with_query(&query))
    });
    let Some(asked) = asked else {
        return request::none(&line, status);
    };
    Ok(Line::Request(Record {
        host: asked.host.or(host.map(Into::into)),
        client: client.map(Into::into),
        forwarded: not_empty(raw(Field::Forwarded).map(Into::into)),
        time,
        method: asked.method,
        target: asked.target,
        status: status.unwrap_or(0),
        bytes: bytes.unwrap_or(0),
        content_type: not_empty(text(Field::ContentType)),
        user_agent,
    }))
}
