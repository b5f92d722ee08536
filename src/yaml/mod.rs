//! Reads YAML files, and keeps the source position of each value. A parser makes a tree, decoders
//! make Rust values from it, and [`Diagnostic`]s show mistakes as rustc does. Unlike serde's
//! deserializers, the decoders go on after a mistake and collect all mistakes.

mod decode;
mod diagnostic;
mod source;
pub(crate) mod tree;

pub use diagnostic::{Diagnostic, Diagnostics, RelatedSpan, Severity};
pub use source::{SourceFile, SourceSpan};

pub(crate) use decode::{
    Decoder, MapFields, NodeReader, decode_file, is_beginning, is_plain_word, nearest_word,
    parse_duration, strip_http_scheme,
};
pub(crate) use source::{DEFAULTS, DefaultsStart, Located, located_values};
pub(crate) use tree::{Mapping, Node, NodeValue, YamlDocument, saturating_u32};

#[cfg(test)]
mod tests;
