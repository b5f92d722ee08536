//! [`ColumnCursor`] takes the columns of a log line one by one. It is for formats whose columns are
//! separated by single blanks and may stand in quotes or brackets.

use super::{FieldBytes, FieldResult, UnreadableReason::*, unescape};
use memchr::{memchr, memchr2};

/// The rest of a line.
pub struct ColumnCursor<'a>(pub &'a [u8]);

impl<'a> ColumnCursor<'a> {
    /// Takes a column without quotes.
    ///
    /// # Errors
    /// The line has ended.
    pub fn word(&mut self) -> FieldResult<&'a [u8]> {
        let end = memchr(b' ', self.0).unwrap_or(self.0.len());
        if end == 0 {
            return Err(CutOff);
        }
        let (word, rest) = self.0.split_at(end);
        self.skip_to(rest)?;
        Ok(word)
    }

    /// Takes several columns without quotes, and returns the last one.
    ///
    /// # Errors
    /// The line has ended.
    pub fn nth_word(&mut self, count: usize) -> FieldResult<&'a [u8]> {
        for _ in 1..count {
            self.word()?;
        }
        self.word()
    }

    /// Takes a column in double quotes, and returns it without escapes.
    ///
    /// # Errors
    /// It is not in quotes, or the line ends before the second one.
    pub fn escaped(&mut self) -> FieldResult<FieldBytes<'a>> {
        let column = Quoted::split(self.0)?;
        self.skip_to(column.rest)?;
        Ok(column.unescape())
    }

    /// Takes a column between `open` and the first `close`.
    ///
    /// # Errors
    /// It does not begin with `open`, or the line ends before `close`.
    pub fn between(&mut self, open: u8, close: u8) -> FieldResult<&'a [u8]> {
        let text = strip_first(self.0, open)?;
        let end = memchr(close, text).ok_or(CutOff)?;
        self.skip_to(&text[end + 1..])?;
        Ok(&text[..end])
    }

    /// Takes a column between double quotes that has no escapes.
    ///
    /// # Errors
    /// It is not in quotes, or the line ends before the second one.
    pub fn quoted(&mut self) -> FieldResult<&'a [u8]> {
        self.between(b'"', b'"')
    }

    /// Goes on behind a column, after the blank there.
    ///
    /// # Errors
    /// Another byte than a blank follows, so the column has ended too early.
    fn skip_to(&mut self, rest: &'a [u8]) -> FieldResult<()> {
        self.0 = match rest {
            [] | [b' ', ..] => rest.get(1..).unwrap_or_default(),
            _ => return Err(OtherFormat),
        };
        Ok(())
    }
}

/// A quoted text, and the rest of the line.
pub struct Quoted<'a> {
    pub text: &'a [u8],
    has_backslash: bool,
    pub rest: &'a [u8],
}

impl<'a> Quoted<'a> {
    /// Splits a text that begins with a quote. A backslash escapes the byte after it, as nginx and
    /// Apache write it.
    ///
    /// # Errors
    /// It does not begin with a quote, or ends before the second one.
    pub fn split(text: &'a [u8]) -> FieldResult<Quoted<'a>> {
        let text = strip_first(text, b'"')?;
        let mut from = 0;
        loop {
            let rest = text.get(from..).unwrap_or_default();
            let place = from + memchr2(b'"', b'\\', rest).ok_or(CutOff)?;
            if text[place] == b'"' {
                return Ok(Quoted {
                    text: &text[..place],
                    has_backslash: from > 0,
                    rest: &text[place + 1..],
                });
            }
            from = place + 2;
        }
    }

    /// The text without escapes.
    pub fn unescape(&self) -> FieldBytes<'a> {
        if self.has_backslash {
            unescape(self.text)
        } else {
            self.text.into()
        }
    }
}

/// The text after its first byte.
///
/// # Errors
/// It is empty, or begins with another byte.
fn strip_first(text: &[u8], open: u8) -> FieldResult<&[u8]> {
    match text.split_first() {
        Some((first, rest)) if *first == open => Ok(rest),
        Some(_) => Err(OtherFormat),
        None => Err(CutOff),
    }
}
