//! Tags as field lines.

use super::Tags;

impl Tags {
    /// Field values, one per line to send: unscoped first, one line per scope, `unavailable_after` on its own line in
    /// ISO 8601 (it has no comma), never folded.
    pub fn lines(&self) -> Vec<String> {
        todo!()
    }
}
