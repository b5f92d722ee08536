//! YAML as a tree that knows where everything stands, and mistakes shown in their place the way rustc shows them.
//!
//! This room knows neither policies nor settings: it reads text, decodes values, and collects what is wrong. Decoding
//! accumulates: a derived deserializer stops at the first mistake, these decoders go on.

mod decode;
mod diagnostic;
mod tree;

pub use decode::{Decoder, Fields, nearest, parse_duration};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use tree::{Document, Mapping, Node, Span, Value};

use std::sync::Arc;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located<T> {
    /// The value.
    pub value: T,
    /// Its place in the file.
    pub span: Span,
}

/// A file as it was read: its name for messages, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as the person gave it.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
}

#[cfg(test)]
mod tests;
