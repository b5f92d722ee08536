//! The tables of the file, and rows that reading and writing share.

use super::DatabaseError;
use crate::evidence::canonical::Hash;
use crate::evidence::checkpoint::Head;
use crate::evidence::entry::ChainName;
use rusqlite::{Connection, OptionalExtension};

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

/// The public key that signs now, if the key was ever changed.
///
/// # Errors
/// The file cannot be read.
pub fn changed_key(connection: &Connection) -> Result<Option<String>, DatabaseError> {
    let query = "SELECT key FROM keys ORDER BY number DESC LIMIT 1";
    Ok(connection.prepare_cached(query)?.query_row([], |row| row.get(0)).optional()?)
}

/// A chain.
///
/// # Errors
/// The file cannot be read.
pub fn chain(connection: &Connection, name: &ChainName) -> Result<Option<Chain>, DatabaseError> {
    let query = "SELECT id, first, site, crawler, entries, head, time FROM chains WHERE site = ?1 AND crawler = ?2";
    let row = connection.prepare_cached(query)?.query_row([&name.site, &name.crawler], chain_row).optional()?;
    row.map(whole).transpose()
}

/// All chains.
///
/// # Errors
/// The file cannot be read.
pub fn chains(connection: &Connection) -> Result<Vec<Chain>, DatabaseError> {
    let query = "SELECT id, first, site, crawler, entries, head, time FROM chains";
    let mut statement = connection.prepare_cached(query)?;
    let rows = statement.query_map([], chain_row)?;
    rows.map(|row| whole(row?)).collect()
}

fn chain_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<(Chain, Vec<u8>)> {
    let head =
        Head { chain: ChainName { site: row.get(2)?, crawler: row.get(3)? }, entries: row.get(4)?, hash: Hash::NONE };
    Ok((Chain { id: row.get(0)?, first: row.get(1)?, head, time: row.get(6)? }, row.get(5)?))
}

fn whole((mut chain, head): (Chain, Vec<u8>)) -> Result<Chain, DatabaseError> {
    chain.head.hash = Hash::from_octets(&head).ok_or(DatabaseError::Damaged("a chain has no head"))?;
    Ok(chain)
}

/// The last checkpoint: its number, its time, its signed note.
///
/// # Errors
/// The file cannot be read.
pub fn last_checkpoint(connection: &Connection) -> Result<Option<(u64, String, String)>, DatabaseError> {
    let query = "SELECT number, time, note FROM checkpoints ORDER BY number DESC LIMIT 1";
    Ok(connection.prepare_cached(query)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()?)
}
