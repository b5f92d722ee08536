//! [`PartialHead`]: what can be read of a malformed or incomplete HTTP request head. It is only for
//! the logs and metrics about the rejected request; no decision uses it.

use super::head::RequestHead;
use crate::heads::HeadFields;
use http::{HeaderMap, HeaderName};
use std::borrow::Cow;

pub struct PartialHead<'a> {
    method: &'a [u8],
    target: &'a [u8],
    /// What follows the first line, up to the end of the head.
    rest: &'a [u8],
}

impl<'a> PartialHead<'a> {
    /// Reads method and target from the first line of `bytes`, and the lines after it up to the
    /// end of the head. Missing parts are empty.
    pub fn new(bytes: &'a [u8]) -> PartialHead<'a> {
        let bytes = bytes.trim_ascii_start();
        let bytes = &bytes[..memchr::memmem::find(bytes, b"\r\n\r\n").unwrap_or(bytes.len())];
        let end = memchr::memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
        let (line, rest) = bytes.split_at(end);
        let mut words = line.split(|byte| *byte == b' ');
        PartialHead {
            method: words.next().unwrap_or_default(),
            target: words.next().unwrap_or_default(),
            rest,
        }
    }

    /// The name and value of each line. A line without a colon, or whose name is not UTF-8, is left
    /// out.
    fn lines(&self) -> impl DoubleEndedIterator<Item = (&'a str, &'a [u8])> {
        self.rest
            .split(|byte| matches!(byte, b'\r' | b'\n'))
            .filter_map(|line| {
                let colon = memchr::memchr(b':', line)?;
                Some((
                    std::str::from_utf8(&line[..colon]).ok()?,
                    line[colon + 1..].trim_ascii(),
                ))
            })
    }

    /// The values of a field.
    fn values_of(&self, wanted: &str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.lines()
            .filter(move |(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| value)
    }
}

impl RequestHead for PartialHead<'_> {
    /// The parts that can be read. The version is assumed to be 1.1; a missing host is empty.
    fn fields(&self) -> HeadFields<'_> {
        let host = self.values_of("host").next().unwrap_or_default();
        let mut fields = HeadFields {
            method: self.method,
            target: self.target,
            host,
            http: "1.1",
            ..HeadFields::default()
        };
        for (name, value) in self.lines() {
            fields.record_line(name, value);
        }
        fields
    }

    fn values(&self, name: &HeaderName) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.values_of(name.as_str())
    }

    /// No fields, so that the answer is plain text.
    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(HeaderMap::new())
    }
}
