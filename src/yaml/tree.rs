//! The tree: nodes with spans, aliases resolved (with a budget), merge keys applied, duplicate keys kept for the
//! decoder to complain about.

use super::{Diagnostics, Source};

/// Where something stands, as byte offsets and as a person counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

/// A node of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where it stands.
    pub span: Span,
}

/// What a node can be. Scalars stay text: their type is what the field wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A scalar; `plain` when unquoted (so that `yes`, `~` and `12` may be more than text).
    Scalar {
        /// The text, escapes resolved.
        text: String,
        /// Unquoted.
        plain: bool,
    },
    /// A list.
    Sequence(Vec<Node>),
    /// A map.
    Mapping(Mapping),
}

/// Entries in the order of the file, duplicates included.
pub type Mapping = Vec<(Node, Node)>;

/// A file as a tree; `root` is `None` for an empty file.
#[derive(Clone, Debug)]
pub struct Document {
    /// The root node.
    pub root: Option<Node>,
}

impl Document {
    /// Reads a file. A syntax error goes to `diagnostics` and there is no document.
    pub fn parse(source: &Source, diagnostics: &mut Diagnostics) -> Option<Document> {
        let _ = (source, diagnostics);
        todo!()
    }
}
