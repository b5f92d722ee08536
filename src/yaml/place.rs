//! [`Source`]: the name and the text of a file. [`Span`]: a place in the file. [`Located`]: a value
//! with its place.

use std::ops::Deref;
use std::sync::Arc;

/// A place in a file, as byte offsets and as a person counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// A value and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its place in the file.
    pub span: Span,
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The values of a list, without their places.
pub fn values<T: Clone>(list: &[Located<T>]) -> Vec<T> {
    list.iter().map(|located| located.value.clone()).collect()
}

/// A file as it was read: its name for messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as the person gave it.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}
