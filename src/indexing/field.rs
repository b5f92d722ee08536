//! The field as origins send it.

use super::Tags;

/// Reads `X-Robots-Tag` field values. Lenient: what cannot be read is kept as an unknown directive, never re-scoped.
pub fn parse_lines<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Tags {
    let _ = lines.into_iter().count();
    todo!()
}
