//! [`FieldLines`]: the header lines of an HTTP message that the forwarder passes on. Lines that
//! were received are borrowed, not copied; only lines that crawlgate adds are owned.

use crate::forwarding::{EditableHead, valid_field_value};
use LineValue::*;
use http::HeaderName;
use smallvec::SmallVec;

enum LineValue<'b> {
    /// As it came.
    Original(&'b [u8]),
    /// Begin and end in the added bytes.
    Added(usize, usize),
}

/// The field lines of a head, in their order.
#[derive(Default)]
pub struct FieldLines<'b> {
    lines: SmallVec<[(&'b str, LineValue<'b>); 32]>,
    added: SmallVec<[u8; 256]>,
}

impl<'b> FieldLines<'b> {
    /// Adds fields with their values as they came. Not a constructor: lines take more than a
    /// kilobyte, which a return would copy.
    pub fn extend(&mut self, fields: impl Iterator<Item = (&'b str, &'b [u8])>) {
        self.lines
            .extend(fields.map(|(name, value)| (name, Original(value))));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> + Clone {
        self.lines
            .iter()
            .map(|(name, value)| (*name, self.value_bytes(value)))
    }

    /// Writes all lines, each with its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (name, value) in self.iter() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn value_bytes<'s>(&'s self, value: &LineValue<'s>) -> &'s [u8] {
        match *value {
            Original(bytes) => bytes,
            Added(begin, end) => &self.added[begin..end],
        }
    }

    /// Removes the lines of a field. Most heads have none, and a search costs less than rewriting
    /// all lines.
    fn remove_named(&mut self, name: &str) {
        if self
            .lines
            .iter()
            .any(|(own, _)| own.eq_ignore_ascii_case(name))
        {
            self.lines
                .retain(|(own, _)| !own.eq_ignore_ascii_case(name));
        }
    }
}

impl EditableHead for FieldLines<'_> {
    fn lines(&self, name: HeaderName) -> impl Iterator<Item = &[u8]> {
        self.lines
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name.as_str()))
            .map(|(_, value)| self.value_bytes(value))
    }

    /// The new line is the last one. If the value is invalid, the old lines are removed all the
    /// same.
    fn set(&mut self, name: &'static str, value: &[u8]) {
        self.remove_named(name);
        self.add(name, value);
    }

    fn add(&mut self, name: &'static str, value: &[u8]) {
        if is_plain(value) || valid_field_value(name, value).is_some() {
            let begin = self.added.len();
            self.added.extend_from_slice(value);
            self.lines.push((name, Added(begin, self.added.len())));
        }
    }

    fn remove(&mut self, name: &HeaderName) {
        self.remove_named(name.as_str());
    }

    fn remove_if(&mut self, is_unwanted: impl Fn(&str) -> bool) {
        self.lines.retain(|(own, _)| !is_unwanted(own));
    }
}

/// Whether these bytes are visible ASCII and spaces, so that every field may have them. `fold`, so
/// that many bytes are compared at a time.
fn is_plain(value: &[u8]) -> bool {
    value.iter().fold(true, |is_plain, byte| {
        is_plain & (b' '..=b'~').contains(byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [(&str, &[u8]); 4] = [
        ("Host", b"a.example"),
        ("X-A", b"1"),
        ("connection", b"close"),
        ("x-a", b"\xff"),
    ];

    fn written(lines: &FieldLines<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        lines.write(&mut out);
        out
    }

    #[test]
    fn lines_keep_their_order_and_spelling() {
        let mut lines = FieldLines::default();
        lines.extend(FIELDS.into_iter().filter(|(name, _)| *name != "connection"));
        assert_eq!(
            written(&lines),
            b"Host: a.example\r\nX-A: 1\r\nx-a: \xff\r\n"
        );
        assert_eq!(
            lines
                .lines(HeaderName::from_static("x-a"))
                .collect::<Vec<_>>(),
            [b"1".as_slice(), b"\xff"]
        );
    }

    #[test]
    fn lines_are_changed_whatever_their_case() {
        let mut lines = FieldLines::default();
        lines.extend(FIELDS.into_iter());
        lines.set("x-A", b"2");
        lines.add("X-B", b"3");
        lines.add("X-B", b"4\r\nX-C: 5");
        lines.remove(&HeaderName::from_static("host"));
        lines.remove(&HeaderName::from_static("connection"));
        assert_eq!(written(&lines), b"x-A: 2\r\nX-B: 3\r\n");
        assert!(!lines.has(HeaderName::from_static("host")));
    }
}
