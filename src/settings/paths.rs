//! A path in `crawlgate.yaml`.

use crate::yaml::{Decoder, Node};
use std::path::PathBuf;

/// A file or directory; relative ones are relative to the settings.
pub(super) fn path(node: &Node, decoder: &mut Decoder<'_>) -> Option<PathBuf> {
    let text = decoder.text(node, "a path")?;
    if text.is_empty() || text.contains('\0') {
        decoder.error("bad-path", node.span, "this is not a path");
        return None;
    }
    Some(PathBuf::from(text))
}
