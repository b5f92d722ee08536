//! [`Lines`]: the fields of a head that the lane forwards. They refer to the octets that arrived,
//! together with crawlgate's changes, and are written all at once.

use crate::forwarding::{Head, field_value};
use http::HeaderName;
use smallvec::SmallVec;

#[derive(Clone, Copy)]
enum Value<'b> {
    /// As it came.
    Kept(&'b [u8]),
    /// Its place in the added octets.
    Added(usize, usize),
}

/// Lines of a head.
#[derive(Default)]
pub struct Lines<'b> {
    lines: SmallVec<[(&'b str, Value<'b>); 32]>,
    added: SmallVec<[u8; 256]>,
}

impl<'b> Lines<'b> {
    /// Adds these fields, with their values as they came. Not a constructor: lines take more than a
    /// kilobyte, which a return would copy.
    pub fn take(&mut self, fields: impl Iterator<Item = (&'b str, &'b [u8])>) {
        self.lines
            .extend(fields.map(|(name, value)| (name, Value::Kept(value))));
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> + Clone {
        self.lines
            .iter()
            .map(|(name, value)| (*name, self.octets(value)))
    }

    /// Writes them, each with its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        for (name, value) in self.iter() {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        }
    }

    fn octets<'s>(&'s self, value: &Value<'s>) -> &'s [u8] {
        match *value {
            Value::Kept(octets) => octets,
            Value::Added(begin, end) => &self.added[begin..end],
        }
    }

    /// Removes the lines of a field. Most heads have none of it, and looking for one costs less
    /// than rewriting all lines.
    fn remove_named(&mut self, name: &str) {
        if self.lines.iter().any(|(own, _)| is_named(own, name)) {
            self.lines.retain(|(own, _)| !is_named(own, name));
        }
    }
}

fn is_named(own: &str, name: &str) -> bool {
    own.len() == name.len() && own.eq_ignore_ascii_case(name)
}

impl Head for Lines<'_> {
    fn lines(&self, name: HeaderName) -> impl Iterator<Item = &[u8]> {
        let length = name.as_str().len();
        let lines = self
            .lines
            .iter()
            .filter(move |(own, _)| own.len() == length && is_named(own, name.as_str()));
        lines.map(|(_, value)| self.octets(value))
    }

    /// Replaces all lines of the field by one, at the end. A value that no field may have is left
    /// out, but the old lines are removed all the same.
    fn set(&mut self, name: &'static str, value: &[u8]) {
        self.remove_named(name);
        self.add(name, value);
    }

    /// Adds a line at the end, unless no field may have this value.
    fn add(&mut self, name: &'static str, value: &[u8]) {
        if is_plain(value) || field_value(name, value).is_some() {
            let begin = self.added.len();
            self.added.extend_from_slice(value);
            self.lines
                .push((name, Value::Added(begin, self.added.len())));
        }
    }

    fn remove(&mut self, name: &HeaderName) {
        self.remove_named(name.as_str());
    }

    fn remove_if(&mut self, is_unwanted: impl Fn(&str) -> bool) {
        self.lines.retain(|(own, _)| !is_unwanted(own));
    }
}

/// Whether these octets are visible ASCII and spaces, so that every field may have them. All are
/// looked at, many at a time.
fn is_plain(value: &[u8]) -> bool {
    value.iter().fold(true, |is_plain, octet| {
        is_plain & (b' '..=b'~').contains(octet)
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

    fn written(lines: &Lines<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        lines.write(&mut out);
        out
    }

    #[test]
    fn lines_keep_their_order_and_spelling() {
        let mut lines = Lines::default();
        lines.take(FIELDS.into_iter().filter(|(name, _)| *name != "connection"));
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
    fn lines_are_replaced_added_and_removed_whatever_their_case() {
        let mut lines = Lines::default();
        lines.take(FIELDS.into_iter());
        lines.set("x-A", b"2");
        lines.add("X-B", b"3");
        lines.add("X-B", b"4\r\nX-C: 5");
        lines.remove(&HeaderName::from_static("host"));
        lines.remove(&HeaderName::from_static("connection"));
        assert_eq!(written(&lines), b"x-A: 2\r\nX-B: 3\r\n");
        assert!(!lines.has(HeaderName::from_static("host")));
    }
}
