//! [`ColumnCursor`]: takes the columns of a line one by one, for formats whose columns are separated
//! by single blanks and may stand in quotes or brackets.

use super::UnreadableReason;
use memchr::{memchr, memchr2};

/// The rest of a line.
pub struct ColumnCursor<'a>(pub &'a [u8]);

impl<'a> ColumnCursor<'a> {
    /// Takes a column without quotes.
    ///
    /// # Errors
    /// The line has ended.
    pub fn word(&mut self) -> Result<&'a [u8], UnreadableReason> {
        let end = memchr(b' ', self.0).unwrap_or(self.0.len());
        if end == 0 {
            return Err(UnreadableReason::CutOff);
        }
        self.take(0, end, end)
    }

    /// Takes several columns without quotes, and returns the last one.
    ///
    /// # Errors
    /// The line has ended.
    pub fn last_of(&mut self, count: usize) -> Result<&'a [u8], UnreadableReason> {
        for _ in 1..count {
            self.word()?;
        }
        self.word()
    }

    /// Takes a column in double quotes, in which a backslash escapes the byte after it.
    ///
    /// # Errors
    /// It is not in quotes, or the line ends before the second one.
    pub fn escaped(&mut self) -> Result<&'a [u8], UnreadableReason> {
        self.check_begin(b'"')?;
        let mut from = 1;
        loop {
            let rest = self.0.get(from..).unwrap_or_default();
            let place = from + memchr2(b'"', b'\\', rest).ok_or(UnreadableReason::CutOff)?;
            if self.0[place] == b'"' {
                return self.take(1, place, place + 1);
            }
            from = place + 2;
        }
    }

    /// Takes a column between `open` and the first `close`.
    ///
    /// # Errors
    /// It does not begin with `open`, or the line ends before `close`.
    pub fn between(&mut self, open: u8, close: u8) -> Result<&'a [u8], UnreadableReason> {
        self.check_begin(open)?;
        let end = memchr(close, &self.0[1..]).ok_or(UnreadableReason::CutOff)? + 1;
        self.take(1, end, end + 1)
    }

    /// Takes a column between double quotes that has no escapes.
    ///
    /// # Errors
    /// It is not in quotes, or the line ends before the second one.
    pub fn quoted(&mut self) -> Result<&'a [u8], UnreadableReason> {
        self.between(b'"', b'"')
    }

    fn check_begin(&self, open: u8) -> Result<(), UnreadableReason> {
        match self.0.first() {
            Some(first) if *first == open => Ok(()),
            Some(_) => Err(UnreadableReason::OtherFormat),
            None => Err(UnreadableReason::CutOff),
        }
    }

    /// Returns the bytes from `start` to `end`, and goes on behind `behind` and the blank there.
    ///
    /// # Errors
    /// Another byte than a blank follows, so the column has ended too early.
    fn take(
        &mut self,
        start: usize,
        end: usize,
        behind: usize,
    ) -> Result<&'a [u8], UnreadableReason> {
        let column = &self.0[start..end];
        self.0 = match self.0.get(behind) {
            Some(b' ') => &self.0[behind + 1..],
            Some(_) => return Err(UnreadableReason::OtherFormat),
            None => &[],
        };
        Ok(column)
    }
}
