//! Reads YAML into a tree with places, decodes its values, and shows mistakes in their place as
//! rustc does ([`Diagnostic`]). A derived deserializer stops at the first mistake; these decoders
//! go on and collect all.

mod decode;
mod diagnostic;
mod place;
pub(crate) mod tree;

pub use diagnostic::{Diagnostic, Diagnostics, Related, Severity};
pub use place::{Source, Span};

pub(crate) use decode::{Decoder, Fields, Reader, is_word, nearest, parse_duration, read};
pub(crate) use place::{Located, values};
pub(crate) use tree::{Document, Mapping, Node, Value};

#[cfg(test)]
mod tests;
