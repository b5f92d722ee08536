//! [`Scanner`] finds the end of a request's head while the head arrives. It refuses some mistakes
//! before that end: lines that end without a carriage return, folded lines, and sizes beyond the
//! limits.

use crate::requests::Mistake;
use crate::settings::Limits;
use std::ops::Range;

/// Octets of a method. The longest that is registered has 17.
const METHOD: usize = 64;
/// Octets of a request line beside method and target: two spaces and the version.
const REST_OF_LINE: usize = 16;

/// A head that arrives.
#[derive(Debug)]
pub struct Scanner<'l> {
    limits: &'l Limits,
    /// The beginning of the line that is not complete yet.
    line: usize,
    /// How many octets were looked at.
    position: usize,
    /// Where the request line begins: empty lines before it are passed over (RFC 9112 section 2.2).
    start: usize,
    lines: usize,
}

impl<'l> Scanner<'l> {
    /// For a head with these limits.
    pub fn new(limits: &'l Limits) -> Scanner<'l> {
        Scanner {
            limits,
            line: 0,
            position: 0,
            start: 0,
            lines: 0,
        }
    }

    /// The place of the head in these bytes, without an empty line before it and with the one that
    /// ends it; `None` if it is not complete. Called again with the same bytes and those that came
    /// since.
    ///
    /// # Errors
    /// The first mistake in it so far.
    pub fn scan(&mut self, octets: &[u8]) -> Result<Option<Range<usize>>, Mistake> {
        while let Some(end) =
            memchr::memchr(b'\n', &octets[self.position..]).map(|place| self.position + place)
        {
            if end == 0 || octets[end - 1] != b'\r' || end == self.line {
                return Err(Mistake::BareLineFeed);
            }
            let line = &octets[self.line..end - 1];
            self.line = end + 1;
            self.position = end + 1;
            match (line, self.lines) {
                // A client may send an empty line after a body. Two are no request.
                ([], 0) if self.start == 0 => {
                    self.start = end + 1;
                    continue;
                }
                ([], 0) => return Err(Mistake::RequestLine),
                ([], _) => return Ok(Some(self.start..end + 1)),
                ([b' ' | b'\t', ..], 1..) => return Err(Mistake::FoldedLine),
                _ => self.lines += 1,
            }
            self.check_sizes(octets)?;
        }
        self.position = octets.len();
        self.check_sizes(octets)?;
        Ok(None)
    }

    /// Refuses a head that is too large so far. `METHOD` and `REST_OF_LINE` come on top of the
    /// limits, so that this may pass a little more than they allow: the exact check follows in
    /// `head`.
    fn check_sizes(&self, octets: &[u8]) -> Result<(), Mistake> {
        let Limits {
            target,
            headers,
            fields,
            ..
        } = *self.limits;
        let line = if self.lines == 0 {
            octets.len()
        } else {
            self.line
        };
        if self.lines <= 1 && line - self.start > METHOD + target + REST_OF_LINE {
            return Err(Mistake::TargetTooLong);
        }
        if self.lines > fields + 1 {
            return Err(Mistake::TooManyFields);
        }
        if octets.len() - self.start > METHOD + target + REST_OF_LINE + headers {
            // What follows the head is not a part of it.
            let head = if self.lines == 0 {
                octets.len()
            } else {
                self.position
            };
            if head - self.start > METHOD + target + REST_OF_LINE + headers {
                return Err(Mistake::HeadersTooLarge);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        target: 64,
        headers: 256,
        fields: 4,
        ..Limits::DEFAULT
    };

    /// Where the head is, however the octets come.
    fn scan(octets: &[u8]) -> Result<Option<Range<usize>>, Mistake> {
        let whole = Scanner::new(&LIMITS).scan(octets);
        let mut scanner = Scanner::new(&LIMITS);
        let singly = (1..=octets.len())
            .find_map(|end| scanner.scan(&octets[..end]).transpose())
            .transpose();
        assert_eq!(singly, whole, "{:?}", String::from_utf8_lossy(octets));
        whole
    }

    #[test]
    fn head_ends_at_its_first_empty_line() {
        for (octets, head) in [
            ("GET / HTTP/1.1\r\n\r\n", Some(0..18)),
            (
                "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\n",
                Some(0..27),
            ),
            ("\r\nGET / HTTP/1.1\r\n\r\nbody", Some(2..20)),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r", None),
            ("\r\n", None),
            ("", None),
        ] {
            assert_eq!(scan(octets.as_bytes()), Ok(head), "{octets:?}");
        }
    }

    #[test]
    fn what_follows_a_head_is_no_part_of_it() {
        for before in ["", "\r\n"] {
            let head = format!("{before}GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let octets = [head.as_bytes(), &[b'x'; 5_000]].concat();
            assert_eq!(
                Scanner::new(&LIMITS).scan(&octets),
                Ok(Some(before.len()..head.len())),
                "{before:?}"
            );
        }
    }

    #[test]
    fn lines_that_two_readers_could_read_differently_are_refused() {
        for (octets, mistake) in [
            ("GET / HTTP/1.1\nHost: a\r\n\r\n", Mistake::BareLineFeed),
            ("\n", Mistake::BareLineFeed),
            ("GET / HTTP/1.1\r\nHost: a\r\n\n", Mistake::BareLineFeed),
            ("GET / HTTP/1.1\r\n folded\r\n", Mistake::FoldedLine),
            (
                "GET / HTTP/1.1\r\nA: b\r\n\tfolded\r\n",
                Mistake::FoldedLine,
            ),
            ("\r\n\r\n", Mistake::RequestLine),
        ] {
            assert_eq!(scan(octets.as_bytes()), Err(mistake), "{octets:?}");
        }
    }

    #[test]
    fn head_that_is_too_large_is_refused_before_its_end() {
        assert_eq!(scan(&[b'a'; 64 + 64 + 17]), Err(Mistake::TargetTooLong));
        let fields = format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(5));
        assert_eq!(scan(fields.as_bytes()), Err(Mistake::TooManyFields));
        let large = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(400));
        assert_eq!(scan(large.as_bytes()), Err(Mistake::HeadersTooLarge));
    }
}
