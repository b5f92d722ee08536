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
    /// about (a sitemap). For a policy, the defaults of its directory may follow after a line that
    /// begins with `--- # the defaults: `.
    pub text: Arc<str>,
}

/// The file with the fields that the policies of a directory share. It is no site.
pub const DEFAULTS: &str = "defaults.yaml";

/// Begins the line between a policy's own text and the defaults of its directory. The name of the
/// file with the defaults follows. It begins a YAML document.
pub const DEFAULTS_MARK: &str = "--- # the defaults: ";

/// Where the defaults begin in the text of a policy.
#[derive(Clone, Debug)]
pub struct DefaultsStart {
    /// The line with the mark.
    line: u32,
    /// The file with the defaults.
    file: Arc<str>,
}

impl DefaultsStart {
    /// `file:line` of a line of the whole text. `None` if it is the policy's own.
    pub fn place(&self, line: u32) -> Option<String> {
        (line > self.line).then(|| format!("{}:{}", self.file, line - self.line))
    }
}

impl SourceFile {
    /// Appends defaults to the text of a policy.
    pub(crate) fn append_defaults(&mut self, name: &str, text: &str) {
        let text = text.trim_start_matches('\u{feff}');
        self.text = format!("{}\n{DEFAULTS_MARK}{name}\n{text}", self.text).into();
    }

    /// Finds the defaults in the text, if there are any.
    pub(crate) fn defaults(&self) -> Option<DefaultsStart> {
        (1..).zip(self.text.lines()).find_map(|(line, text)| {
            let file = text.strip_prefix(DEFAULTS_MARK)?.into();
            Some(DefaultsStart { line, file })
        })
    }
}
