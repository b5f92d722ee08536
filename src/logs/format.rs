//! Formats as nginx's `log_format` writes them: [`FormatString`] is a list of literals and variables. A variable ends where the
//! literal behind it begins, which nginx's escapes make safe. Variables that say nothing of the request are passed over.

use super::{Line, Record, moment, number, or_empty, owned_request_line, unescape};
use memchr::memmem;
use std::borrow::Cow;

/// A format, ready to read lines.
#[derive(Clone, Debug)]
pub struct FormatString {
    /// What lines begin with.
    start: Box<[u8]>,
    /// Each variable with the literal behind it; the last one may have none.
    variables: Vec<(Variable, memmem::Finder<'static>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    Time,
    Request,
    Method,
    Target,
    /// `$uri`, in front of [`Variable::Arguments`].
    Path,
    Arguments,
    Host,
    Client,
    Status,
    Bytes,
    ContentType,
    UserAgent,
    Other,
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
        let mut variables: Vec<(Variable, memmem::Finder<'static>)> = Vec::new();
        let mut pieces = pieces.peekable();
        while let Some(piece) = pieces.next() {
            let (name, literal) = match piece.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                Some(parts) => parts,
                None => {
                    let end = piece.find(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
                    piece.split_at(end.unwrap_or(piece.len()))
                }
            };
            if literal.is_empty() && pieces.peek().is_some() {
                return Err(FormatError::NoSeparator(name.to_owned()));
            }
            variables.push((variable(name), memmem::Finder::new(literal.as_bytes()).into_owned()));
        }
        let has = |wanted: &[Variable]| variables.iter().any(|(variable, _)| wanted.contains(variable));
        if !has(&[Variable::Time]) {
            return Err(FormatError::Missing("time: add `$time_local`, `$time_iso8601` or `$msec`"));
        }
        if !has(&[Variable::Request, Variable::Target, Variable::Path]) {
            return Err(FormatError::Missing("request: add `\"$request\"` or `$request_uri`"));
        }
        if !has(&[Variable::UserAgent]) {
            return Err(FormatError::Missing("user agent: add `\"$http_user_agent\"`"));
        }
        Ok(FormatString { start, variables })
    }

    /// Reads a line.
    pub(super) fn read<'a>(&self, line: &'a [u8]) -> Option<Line<'a>> {
        let mut rest = line.strip_prefix(&*self.start)?;
        let mut found = Found::default();
        for (variable, literal) in &self.variables {
            let end = match literal.needle() {
                [] => rest.len(),
                _ => literal.find(rest)?,
            };
            found.put(*variable, &rest[..end])?;
            rest = &rest[end + literal.needle().len()..];
        }
        // What is left over belongs to another format.
        if rest.is_empty() { found.line() } else { None }
    }
}

fn variable(name: &str) -> Variable {
    match name {
        "time_local" | "time_iso8601" | "msec" => Variable::Time,
        "request" => Variable::Request,
        "request_method" => Variable::Method,
        "request_uri" => Variable::Target,
        "uri" | "document_uri" => Variable::Path,
        "args" | "query_string" => Variable::Arguments,
        "host" | "http_host" | "server_name" => Variable::Host,
        "remote_addr" => Variable::Client,
        "status" => Variable::Status,
        "body_bytes_sent" | "bytes_sent" => Variable::Bytes,
        "sent_http_content_type" => Variable::ContentType,
        "http_user_agent" => Variable::UserAgent,
        _ => Variable::Other,
    }
}

/// What the variables of a line hold.
#[derive(Default)]
struct Found<'a> {
    time: Option<crate::time::Timestamp>,
    request: Option<Cow<'a, [u8]>>,
    method: Option<Cow<'a, [u8]>>,
    target: Option<Cow<'a, [u8]>>,
    path: Option<Cow<'a, [u8]>>,
    arguments: Cow<'a, [u8]>,
    host: Option<Cow<'a, [u8]>>,
    client: Option<Cow<'a, [u8]>>,
    status: u16,
    bytes: u64,
    content_type: Cow<'a, [u8]>,
    user_agent: Cow<'a, [u8]>,
}

impl<'a> Found<'a> {
    /// `None` where the value cannot be one of the variable's.
    fn put(&mut self, variable: Variable, value: &'a [u8]) -> Option<()> {
        match variable {
            Variable::Time => self.time = Some(moment::any(std::str::from_utf8(value).ok()?)?),
            Variable::Request => self.request = Some(unescape(value)),
            Variable::Method => self.method = Some(value.into()),
            Variable::Target => self.target = Some(unescape(value)),
            Variable::Path => self.path = Some(unescape(value)),
            Variable::Arguments => self.arguments = or_empty(unescape(value)),
            Variable::Host => self.host = self.host.take().or_else(|| Some(or_empty(value.into()))),
            Variable::Client => self.client = Some(value.into()),
            Variable::Status => self.status = u16::try_from(number(value)).unwrap_or(0),
            Variable::Bytes => self.bytes = number(value),
            Variable::ContentType => self.content_type = or_empty(unescape(value)),
            Variable::UserAgent => self.user_agent = or_empty(unescape(value)),
            Variable::Other => {}
        }
        Some(())
    }

    fn line(self) -> Option<Line<'a>> {
        let path = self.path.map(|path| match self.arguments.is_empty() {
            true => path,
            false => Cow::Owned([&*path, b"?", &self.arguments].concat()),
        });
        let by_line = self.request.and_then(owned_request_line);
        let (method, target) = match (by_line, self.target.or(path)) {
            (Some(parts), _) => parts,
            (None, Some(target)) => (self.method.unwrap_or_default(), target),
            (None, None) => return Some(Line::NoRequest),
        };
        if target.is_empty() {
            return Some(Line::NoRequest);
        }
        Some(Line::Request(Record {
            host: self.host.filter(|host| !host.is_empty()),
            client: self.client,
            time: self.time?,
            method,
            target,
            status: self.status,
            bytes: self.bytes,
            content_type: Some(self.content_type).filter(|media| !media.is_empty()),
            user_agent: Some(self.user_agent),
        }))
    }
}
