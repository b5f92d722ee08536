//! [`path`] decodes a path in `crawlgate.yaml`.

use crate::yaml::{Decoder, Node};
use std::path::PathBuf;

/// A file or directory; relative ones are relative to the settings.
pub(super) fn path(decoder: &mut Decoder, node: &Node) -> Option<PathBuf> {
    let text = decoder.text(node, "a path")?;
    let is_path = !text.is_empty() && !text.contains('\0');
    if !is_path {
        decoder.error("bad-path", node.span, "this is not a path");
    }
    is_path.then(|| text.into())
}
