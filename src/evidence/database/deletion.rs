//! [`Writing::prune`] deletes entries that are too old, and [`Writing::forget`] deletes personal values that an operator
//! withdraws.

use super::rows::{Rows, all, first};
use super::writing::Writing;
use super::{DatabaseError, EvidenceDatabase};
use crate::evidence::{Document, Entry};
use rusqlite::params;

/// Entries that one transaction deletes: a writer that waits for it waits for a moment.
const DELETED_AT_ONCE: u64 = 20_000;

/// The row of a chain, and the number of an entry.
pub type EntryPlace = (i64, i64);

/// What one transaction deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Entries.
    pub entries: u64,
    /// Whether nothing is left that is too old.
    pub is_complete: bool,
}

impl Writing<'_> {
    /// Deletes what is older than a moment, or a part of it: the beginnings of chains, with all that stands beside them. The
    /// last entry of a chain stays, without its personal values.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn prune(&self, before: &str) -> Result<Deletion, DatabaseError> {
        let mut left = DELETED_AT_ONCE;
        let first_kept = "SELECT number FROM entries WHERE chain = ?1 AND time >= ?2 ORDER BY time, number LIMIT 1";
        for chain in self.chains()? {
            let kept: Option<u64> = first(self.0, first_kept, params![chain.id, before], |row| row.get(0))?;
            let wanted = kept.unwrap_or(chain.head.entries.saturating_sub(1));
            let begin = wanted.min(chain.first.saturating_add(left));
            if begin > chain.first {
                self.0.execute("DELETE FROM entries WHERE chain = ?1 AND number < ?2", params![chain.id, begin])?;
                self.0.execute("UPDATE chains SET first = ?2 WHERE id = ?1", params![chain.id, begin])?;
                left -= begin - chain.first;
            }
            let forgotten = begin + u64::from(kept.is_none() && begin == wanted);
            self.0.execute("DELETE FROM personal WHERE chain = ?1 AND number < ?2", params![chain.id, forgotten])?;
            if begin < wanted {
                return Ok(Deletion { entries: DELETED_AT_ONCE - left, is_complete: false });
            }
        }
        self.use_what_last_entries_name(before)?;
        self.0.execute("DELETE FROM documents WHERE used < ?1", [before])?;
        // The last checkpoint stays, with its proofs: the next one names its hash.
        let older = "time < ?1 AND number < (SELECT max(number) FROM checkpoints)";
        for table in ["heads", "timestamps"] {
            let row = format!("DELETE FROM {table} WHERE checkpoint IN (SELECT number FROM checkpoints WHERE {older})");
            self.0.execute(&row, [before])?;
        }
        self.0.execute(&format!("DELETE FROM checkpoints WHERE {older}"), [before])?;
        Ok(Deletion { entries: DELETED_AT_ONCE - left, is_complete: true })
    }

    /// The last entries of chains stay, so what they name stays: what is published, and what a crawler was judged by last.
    fn use_what_last_entries_name(&self, time: &str) -> Result<(), DatabaseError> {
        let query = "SELECT line FROM entries JOIN chains ON chains.id = entries.chain AND number = chains.entries - 1 WHERE \
                     entries.time < ?1";
        for line in all(self.0, query, [time], |row| row.get::<_, String>(0))? {
            for document in Entry::read(&line).iter().flat_map(Document::all_of) {
                let row = "UPDATE documents SET used = max(used, ?2) WHERE sha256 = ?1";
                self.0.execute(row, params![document.hash.0, time])?;
            }
        }
        Ok(())
    }

    /// Deletes the personal values of entries. Returns how many.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn forget(&self, entries: &[EntryPlace]) -> Result<usize, DatabaseError> {
        let mut row = self.0.prepare("DELETE FROM personal WHERE chain = ?1 AND number = ?2")?;
        let deleted = entries.iter().map(|(chain, number)| row.execute(params![chain, number]));
        Ok(deleted.sum::<Result<usize, _>>()?)
    }
}

impl EvidenceDatabase {
    /// The next entries after a place that have personal values and this address, or are older than a moment, or are both: as
    /// many as one transaction deletes.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn personal_after(
        &self,
        after: EntryPlace,
        address: Option<&str>,
        before: Option<&str>,
    ) -> Result<Vec<EntryPlace>, DatabaseError> {
        let query = "SELECT DISTINCT chain, number FROM personal WHERE (chain, number) > (?1, ?2) AND (?3 IS NULL OR (name = \
                     'client' AND value = ?3)) AND (?4 IS NULL OR EXISTS (SELECT 1 FROM entries WHERE entries.chain = \
                     personal.chain AND entries.number = personal.number AND time < ?4)) ORDER BY chain, number LIMIT ?5";
        let parameters = params![after.0, after.1, address, before, DELETED_AT_ONCE];
        all(&self.connection, query, parameters, |row| row.try_into())
    }
}
