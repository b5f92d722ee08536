//! Small decoders over the tree. Each takes a node, complains into the diagnostics, and goes on.

use super::{Diagnostics, Node};

/// Collects complaints while decoding.
#[derive(Debug)]
pub struct Decoder<'a> {
    /// What was found so far.
    pub diagnostics: &'a mut Diagnostics,
}

/// The fields of a mapping, each taken once; what is left at the end is unknown.
#[derive(Debug)]
pub struct Fields<'n> {
    node: &'n Node,
}

impl<'n> Fields<'n> {
    /// The mapping itself.
    pub fn node(&self) -> &'n Node {
        self.node
    }
}
