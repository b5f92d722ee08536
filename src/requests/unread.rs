//! [`UnreadHead`]: a malformed or incomplete head, as far as it can be read. Its parts are only
//! recorded: nothing is decided by them.

use super::head::RequestHead;
use crate::heads::HeadFields;
use http::{HeaderMap, HeaderName};
use std::borrow::Cow;

pub struct UnreadHead<'a> {
    method: &'a [u8],
    target: &'a [u8],
    /// What follows the first line, up to the end of the head.
    rest: &'a [u8],
}

impl<'a> UnreadHead<'a> {
    /// Reads method and target from the first line of `octets`, and the lines after it up to the
    /// end of the head. What is missing is empty.
    pub fn new(octets: &'a [u8]) -> UnreadHead<'a> {
        let octets = octets.trim_ascii_start();
        let octets = &octets[..memchr::memmem::find(octets, b"\r\n\r\n").unwrap_or(octets.len())];
        let end = memchr::memchr2(b'\r', b'\n', octets).unwrap_or(octets.len());
        let (line, rest) = octets.split_at(end);
        let mut words = line.split(|octet| *octet == b' ');
        UnreadHead {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            rest,
        }
    }

    /// The lines that have a name: name and value. A line without a colon, or whose name is no
    /// text, is left out.
    fn lines(&self) -> impl DoubleEndedIterator<Item = (&'a str, &'a [u8])> {
        self.rest
            .split(|octet| matches!(octet, b'\r' | b'\n'))
            .filter_map(|line| {
                let colon = memchr::memchr(b':', line)?;
                Some((
                    std::str::from_utf8(&line[..colon]).ok()?,
                    line[colon + 1..].trim_ascii(),
                ))
            })
    }

    /// The values of a field.
    fn named(&self, wanted: &str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.lines()
            .filter(move |(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value)
    }
}

impl RequestHead for UnreadHead<'_> {
    /// The parts that can be read. The version is taken as 1.1, and a host that is missing as
    /// empty.
    fn fields(&self) -> HeadFields<'_> {
        let host = self.named("host").next().unwrap_or_default();
        let mut fields = HeadFields {
            method: self.method,
            target: self.target,
            host,
            http: "1.1",
            ..HeadFields::default()
        };
        for (name, value) in self.lines() {
            fields.note(name, value);
        }
        fields
    }

    fn values(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.named(name.as_str())
    }

    /// None, so that the answer is plain text.
    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(HeaderMap::new())
    }
}
