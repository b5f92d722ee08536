//! A document as bytes: UTF-8, LF, no BOM, deterministic.

use super::Document;

/// The size that every crawler reads (RFC 9309 section 2.5: at least 500 KiB).
pub const MAX_BYTES: usize = 500 * 1024;

/// Writes the document. Each group gets an explicit rule: without one, weak parsers glue it to the next.
pub fn render(document: &Document) -> String {
    let _ = document;
    todo!()
}
