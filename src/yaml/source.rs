//! [`SourceFile`]: the name and the text of a YAML file. [`SourceSpan`]: a range in that text.
//! [`Located`]: a value with the range that it was read from. By these ranges, messages point at
//! the right place in the file.

use std::ops::Deref;
use std::sync::Arc;

/// A range in a file, in bytes, and its first line and column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct SourceSpan {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A value and its range in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its range in the file.
    pub span: SourceSpan,
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The values of a list, without their places.
pub fn located_values<T: Clone>(list: &[Located<T>]) -> Vec<T> {
    list.iter().map(|located| located.value.clone()).collect()
}

/// A file: its name for messages, and its text.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceFile {
    /// The path as the user gave it.
    pub name: Arc<str>,
    /// The whole text. Empty for a file that is not kept, because its findings name what they are
    /// about (a sitemap).
    pub text: Arc<str>,
}
