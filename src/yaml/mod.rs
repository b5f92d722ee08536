//! YAML as a tree that knows where everything stands, and mistakes shown in their place the way rustc shows them.
//!
//! This room knows neither policies nor settings: it reads text, decodes values, and collects what is wrong. Decoding
//! accumulates: a derived deserializer stops at the first mistake, these decoders go on.

mod decode;
mod diagnostic;
mod place;
mod tree;

pub use decode::{Decoder, Fields, nearest, parse_duration};
pub use diagnostic::{Diagnostic, Diagnostics, Related, Severity};
pub use place::{Located, Source, Span};
pub use tree::{Document, Mapping, Node, Value};

#[cfg(test)]
mod tests;
