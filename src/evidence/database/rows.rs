//! [`TABLES`]: the tables of the file. [`Rows`]: the queries that work in a transaction and without one.

use super::DatabaseError;
use crate::evidence::{ChainName, Hash, Head};
use rusqlite::{Connection, OptionalExtension, Params, Result as SqlResult, Row};

/// The tables.
pub const TABLES: &str = "
CREATE TABLE IF NOT EXISTS log (
  one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, runs INTEGER NOT NULL, committed TEXT NOT NULL,
  clean INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS chains (
  id INTEGER PRIMARY KEY, site TEXT NOT NULL, crawler TEXT NOT NULL, first INTEGER NOT NULL, entries INTEGER NOT NULL,
  head BLOB NOT NULL, time TEXT NOT NULL, UNIQUE (site, crawler)
) STRICT;
CREATE TABLE IF NOT EXISTS entries (
  chain INTEGER NOT NULL, number INTEGER NOT NULL, time TEXT NOT NULL, kind TEXT NOT NULL, line TEXT NOT NULL,
  PRIMARY KEY (chain, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_by_time ON entries (chain, time);
CREATE INDEX IF NOT EXISTS entries_by_kind ON entries (chain, kind, number);
CREATE TABLE IF NOT EXISTS personal (
  chain INTEGER NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, salt BLOB NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (chain, number, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (sha256 BLOB PRIMARY KEY, bytes BLOB NOT NULL, used TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS checkpoints (number INTEGER PRIMARY KEY, time TEXT NOT NULL, note TEXT NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS checkpoints_by_time ON checkpoints (time);
CREATE TABLE IF NOT EXISTS heads (
  checkpoint INTEGER NOT NULL, place INTEGER NOT NULL, chain INTEGER NOT NULL, entries INTEGER NOT NULL,
  hash BLOB NOT NULL, PRIMARY KEY (checkpoint, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS keys (number INTEGER PRIMARY KEY, note TEXT NOT NULL, key TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS authorities (url TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS timestamps (
  checkpoint INTEGER NOT NULL, authority TEXT NOT NULL, response BLOB NOT NULL, PRIMARY KEY (checkpoint, authority)
) STRICT, WITHOUT ROWID;
";

/// A stored chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its row.
    pub id: i64,
    /// The number of the oldest entry that is kept.
    pub first: u64,
    /// Its head.
    pub head: Head,
    /// The time of the last entry.
    pub time: String,
}

/// The first row of a query.
///
/// # Errors
/// The file cannot be read.
pub fn first<T>(
    connection: &Connection,
    query: &str,
    parameters: impl Params,
    read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
) -> Result<Option<T>, DatabaseError> {
    Ok(connection.prepare_cached(query)?.query_row(parameters, read).optional()?)
}

/// All rows of a query.
///
/// # Errors
/// The file cannot be read.
pub fn all<T>(
    connection: &Connection,
    query: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> SqlResult<T>,
) -> Result<Vec<T>, DatabaseError> {
    let mut statement = connection.prepare_cached(query)?;
    Ok(statement.query_map(parameters, read)?.collect::<SqlResult<_>>()?)
}

/// Queries that work in a transaction and without one.
pub trait Rows {
    /// The connection that is read.
    fn connection(&self) -> &Connection;

    /// The public key that signs now, if the key was ever changed.
    ///
    /// # Errors
    /// The file cannot be read; so for the others.
    fn changed_key(&self) -> Result<Option<String>, DatabaseError> {
        first(self.connection(), "SELECT key FROM keys ORDER BY number DESC LIMIT 1", [], |row| row.get(0))
    }

    /// A chain.
    ///
    /// # Errors
    /// The file cannot be read.
    fn chain(&self, name: &ChainName) -> Result<Option<Chain>, DatabaseError> {
        let query = "SELECT id, first, site, crawler, entries, head, time FROM chains WHERE site = ?1 AND crawler = ?2";
        first(self.connection(), query, [&name.site, &name.crawler], chain)
    }

    /// All chains.
    ///
    /// # Errors
    /// The file cannot be read.
    fn chains(&self) -> Result<Vec<Chain>, DatabaseError> {
        all(self.connection(), "SELECT id, first, site, crawler, entries, head, time FROM chains", [], chain)
    }

    /// The last checkpoint: its number, its time, its signed note.
    ///
    /// # Errors
    /// The file cannot be read.
    fn last_checkpoint(&self) -> Result<Option<(u64, String, String)>, DatabaseError> {
        let query = "SELECT number, time, note FROM checkpoints ORDER BY number DESC LIMIT 1";
        first(self.connection(), query, [], |row| row.try_into())
    }
}

fn chain(row: &Row<'_>) -> SqlResult<Chain> {
    let chain = ChainName { site: row.get(2)?, crawler: row.get(3)? };
    let head = Head { chain, entries: row.get(4)?, hash: Hash(row.get(5)?) };
    Ok(Chain { id: row.get(0)?, first: row.get(1)?, head, time: row.get(6)? })
}
