//! What is deleted: entries that are too old, and personal values that are to be forgotten.

use super::DatabaseError;
use super::rows::chains;
use super::writing::Writing;
use crate::evidence::canonical::Hash;
use crate::evidence::entry::Entry;
use rusqlite::{OptionalExtension, params};

/// Entries that one transaction deletes of a chain.
const DELETED_AT_ONCE: u64 = 20_000;

impl Writing<'_> {
    /// Deletes what is older than a moment: the beginnings of chains, with all that stands beside them. The last entry of
    /// a chain stays.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn prune(&self, before: &str) -> Result<(), DatabaseError> {
        for chain in chains(self.0)? {
            let query = "SELECT number FROM entries WHERE chain = ?1 AND time >= ?2 ORDER BY time, number LIMIT 1";
            let kept: Option<u64> =
                self.0.prepare(query)?.query_row(params![chain.id, before], |row| row.get(0)).optional()?;
            let last = chain.head.entries.saturating_sub(1);
            let first = kept.unwrap_or(last).min(chain.first.saturating_add(DELETED_AT_ONCE));
            if first > chain.first {
                self.0.execute("DELETE FROM entries WHERE chain = ?1 AND number < ?2", params![chain.id, first])?;
                self.0.execute("DELETE FROM personal WHERE chain = ?1 AND number < ?2", params![chain.id, first])?;
                self.0.execute("UPDATE chains SET first = ?2 WHERE id = ?1", params![chain.id, first])?;
            }
        }
        self.use_what_is_published(before)?;
        self.0.execute("DELETE FROM documents WHERE used < ?1", [before])?;
        // The last checkpoint stays, with its proofs: the next one names its hash.
        let older = "time < ?1 AND number < (SELECT max(number) FROM checkpoints)";
        for table in ["heads", "timestamps"] {
            let row = format!("DELETE FROM {table} WHERE checkpoint IN (SELECT number FROM checkpoints WHERE {older})");
            self.0.execute(&row, [before])?;
        }
        self.0.execute(&format!("DELETE FROM checkpoints WHERE {older}"), [before])?;
        Ok(())
    }

    /// The last entries of all publications name what is still published.
    fn use_what_is_published(&self, time: &str) -> Result<(), DatabaseError> {
        let query = "SELECT line FROM entries JOIN chains ON chains.id = entries.chain AND number = chains.entries - 1 WHERE \
                     crawler = '' AND kind = 'published'";
        let mut statement = self.0.prepare(query)?;
        let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
        for line in lines {
            let line = line?;
            let Some(hash) = Entry::read(&line).and_then(|entry| Hash::parse(entry.text("sha256")?)) else { continue };
            self.0.execute("UPDATE documents SET used = max(used, ?2) WHERE sha256 = ?1", params![hash.0, time])?;
        }
        Ok(())
    }

    /// Deletes personal values: of entries with this address, or all of entries before a moment. Returns how many.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&self, address: Option<&str>, before: Option<&str>) -> Result<usize, DatabaseError> {
        let row = "DELETE FROM personal WHERE (chain, number) IN (SELECT chain, number FROM entries WHERE (?2 IS NULL OR \
                   time < ?2)) AND (?1 IS NULL OR (chain, number) IN (SELECT chain, number FROM personal WHERE name = \
                   'client' AND value = ?1))";
        Ok(self.0.execute(row, params![address, before])?)
    }
}
