//! [`HeadScanner`] finds the end of an HTTP/1 request's head (request line and header lines) while
//! the bytes arrive. It reports some errors before the end: lines without a carriage return, folded
//! lines, and heads beyond the size limits.

use crate::requests::HeadError;
use crate::settings::Limits;
use std::ops::Range;

/// The most bytes of a method. The longest registered one has 17.
const MAX_METHOD_BYTES: usize = 64;
/// Bytes of a request line beside method and target: two spaces and the version.
const REQUEST_LINE_EXTRA: usize = 16;

/// The state of the search in a head that arrives.
#[derive(Debug)]
pub struct HeadScanner<'l> {
    limits: &'l Limits,
    /// Where the line begins that is not complete yet.
    line: usize,
    /// How many bytes were searched.
    position: usize,
    /// Where the request line begins: an empty line before it is skipped (RFC 9112 section 2.2).
    start: usize,
    lines: usize,
}

impl<'l> HeadScanner<'l> {
    /// A scanner for a head with these limits.
    pub fn new(limits: &'l Limits) -> HeadScanner<'l> {
        HeadScanner {
            limits,
            line: 0,
            position: 0,
            start: 0,
            lines: 0,
        }
    }

    /// The range of the head in `bytes`, with the empty line that ends it; `None` if it is not
    /// complete. The next call gets the same bytes and those that came since.
    ///
    /// # Errors
    /// The first error in the head so far.
    pub fn scan(&mut self, bytes: &[u8]) -> Result<Option<Range<usize>>, HeadError> {
        use HeadError::*;
        while let Some(end) =
            memchr::memchr(b'\n', &bytes[self.position..]).map(|index| self.position + index)
        {
            if end == 0 || bytes[end - 1] != b'\r' || end == self.line {
                return Err(BareLineFeed);
            }
            let line = &bytes[self.line..end - 1];
            self.line = end + 1;
            self.position = end + 1;
            match (line, self.lines) {
                // A client may send an empty line after a body. Two are no request.
                ([], 0) if self.start == 0 => {
                    self.start = end + 1;
                    continue;
                }
                ([], 0) => return Err(RequestLine),
                ([], _) => return Ok(Some(self.start..end + 1)),
                ([b' ' | b'\t', ..], 1..) => return Err(FoldedLine),
                _ => self.lines += 1,
            }
            self.check_sizes(bytes)?;
        }
        self.position = bytes.len();
        self.check_sizes(bytes)?;
        Ok(None)
    }

    /// Fails for a head that is too large so far. `MAX_METHOD_BYTES` and `REQUEST_LINE_EXTRA` come
    /// on top of the limits, so that this may pass a little more than they allow: `http1_head`
    /// checks exactly.
    fn check_sizes(&self, bytes: &[u8]) -> Result<(), HeadError> {
        use HeadError::*;
        let Limits {
            target,
            headers,
            fields,
            ..
        } = *self.limits;
        let line = if self.lines == 0 {
            bytes.len()
        } else {
            self.line
        };
        if self.lines <= 1 && line - self.start > MAX_METHOD_BYTES + target + REQUEST_LINE_EXTRA {
            return Err(TargetTooLong);
        }
        if self.lines > fields + 1 {
            return Err(TooManyFields);
        }
        // What follows the head is not a part of it.
        let head = if self.lines == 0 {
            bytes.len()
        } else {
            self.position
        };
        if head - self.start > MAX_METHOD_BYTES + target + REQUEST_LINE_EXTRA + headers {
            return Err(HeadersTooLarge);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::LazyLock;

    static LIMITS: LazyLock<Limits> = LazyLock::new(|| Limits {
        target: 64,
        headers: 256,
        fields: 4,
        ..Limits::default()
    });

    /// The range of the head: the same in one piece and byte by byte.
    fn scan(bytes: &[u8]) -> Result<Option<Range<usize>>, HeadError> {
        let whole = HeadScanner::new(&LIMITS).scan(bytes);
        let mut scanner = HeadScanner::new(&LIMITS);
        let singly = (1..=bytes.len())
            .find_map(|end| scanner.scan(&bytes[..end]).transpose())
            .transpose();
        assert_eq!(singly, whole, "{:?}", String::from_utf8_lossy(bytes));
        whole
    }

    #[test]
    fn head_ends_at_its_first_empty_line() {
        for (bytes, head) in [
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
            assert_eq!(scan(bytes.as_bytes()), Ok(head), "{bytes:?}");
        }
    }

    #[test]
    fn bytes_after_the_head_do_not_belong_to_it() {
        for before in ["", "\r\n"] {
            let head = format!("{before}GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            let bytes = [head.as_bytes(), &[b'x'; 5_000]].concat();
            assert_eq!(
                HeadScanner::new(&LIMITS).scan(&bytes),
                Ok(Some(before.len()..head.len())),
                "{before:?}"
            );
        }
    }

    #[test]
    fn ambiguous_line_ends_are_errors() {
        for (bytes, error) in [
            ("GET / HTTP/1.1\nHost: a\r\n\r\n", HeadError::BareLineFeed),
            ("\n", HeadError::BareLineFeed),
            ("GET / HTTP/1.1\r\nHost: a\r\n\n", HeadError::BareLineFeed),
            ("GET / HTTP/1.1\r\n folded\r\n", HeadError::FoldedLine),
            (
                "GET / HTTP/1.1\r\nA: b\r\n\tfolded\r\n",
                HeadError::FoldedLine,
            ),
            ("\r\n\r\n", HeadError::RequestLine),
        ] {
            assert_eq!(scan(bytes.as_bytes()), Err(error), "{bytes:?}");
        }
    }

    #[test]
    fn large_head_is_an_error_before_its_end() {
        assert_eq!(scan(&[b'a'; 64 + 64 + 17]), Err(HeadError::TargetTooLong));
        let fields = format!("GET / HTTP/1.1\r\n{}", "a: b\r\n".repeat(5));
        assert_eq!(scan(fields.as_bytes()), Err(HeadError::TooManyFields));
        let large = format!("GET / HTTP/1.1\r\na: {}", "b".repeat(400));
        assert_eq!(scan(large.as_bytes()), Err(HeadError::HeadersTooLarge));
    }
}
