//! [`UnreadHead`]: octets that are no proper head, or not a whole one, as far as they can be read. They are only recorded:
//! nothing is decided by them.

use super::head::{HeadFields, RequestHead};
use http::HeaderMap;
use std::borrow::Cow;

/// What was seen of a head.
pub(super) struct UnreadHead<'a> {
    method: &'a [u8],
    target: &'a [u8],
    /// What follows the first line, up to the end of the head.
    fields: &'a [u8],
}

impl<'a> UnreadHead<'a> {
    pub fn new(octets: &'a [u8]) -> UnreadHead<'a> {
        let octets = octets.trim_ascii_start();
        let octets = &octets[..memchr::memmem::find(octets, b"\r\n\r\n").unwrap_or(octets.len())];
        let end = memchr::memchr2(b'\r', b'\n', octets).unwrap_or(octets.len());
        let (line, fields) = octets.split_at(end);
        let mut words = line.split(|octet| *octet == b' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        UnreadHead { method, target, fields }
    }

    /// The values of a field.
    fn values(&self, wanted: &str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        self.fields.split(|octet| matches!(octet, b'\r' | b'\n')).filter_map(move |line| {
            let (name, value) = line.split_at_checked(wanted.len())?;
            let value = value.strip_prefix(b":").filter(|_| name.eq_ignore_ascii_case(wanted.as_bytes()))?;
            Some(value.trim_ascii())
        })
    }
}

impl RequestHead for UnreadHead<'_> {
    fn method(&self) -> &[u8] {
        self.method
    }

    fn target(&self) -> &[u8] {
        self.target
    }

    fn host(&self) -> &[u8] {
        self.values("host").next().unwrap_or_default()
    }

    fn http(&self) -> &'static str {
        "1.1"
    }

    fn fields(&self) -> HeadFields<'_> {
        let first = |name: &str| self.values(name).next();
        let (user_agent, referer, request_id) = (first("user-agent"), first("referer"), first("x-request-id"));
        let mut fields = HeadFields { user_agent, referer, request_id, ..HeadFields::default() };
        self.values("traceparent").for_each(|value| fields.note_traceparent(value));
        fields
    }

    fn forwarded_for(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.values("x-forwarded-for")
    }

    fn answer_fields(&self) -> Cow<'_, HeaderMap> {
        Cow::Owned(HeaderMap::new())
    }
}
