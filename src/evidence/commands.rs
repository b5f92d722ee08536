//! Commands on the evidence log: [`rotate_key`] gives it a new key, [`forget`] deletes personal
//! values such as addresses of clients, and [`status`] shows its state. They also work while a
//! running crawlgate writes to the log.

use super::{DatabaseError, NoteError, OpenLog, VerifyKey, read_key, time_text};
use serde::Serialize;
use serde_json::json;
use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

/// Why the key was not changed.
#[derive(Debug, thiserror::Error)]
pub enum RotateError {
    /// No key can be made.
    #[error("cannot make a key: {0}; the key stays as it is")]
    Key(#[from] NoteError),
    /// The log cannot be written.
    #[error("cannot write the evidence log: {0}; the key stays as it is")]
    Database(#[from] DatabaseError),
    /// The private key cannot be written.
    #[error("cannot write the new private key: {0}; the key stays as it is")]
    File(#[from] std::io::Error),
}

/// Gives the log a new key. The old one signs a last checkpoint and, with the new one, a note about
/// the change. The running crawlgate takes the new key with its next checkpoint.
///
/// # Errors
/// See [`RotateError`].
pub fn rotate_key(
    directory: &Path,
    log: &mut OpenLog,
    now: SystemTime,
) -> Result<VerifyKey, RotateError> {
    let fresh = log.key.successor()?;
    let moment = time_text(now);
    let key = fresh.verify_key();
    super::opening::write_next_key(directory, &fresh)?;
    log.database.write(|writing| {
        let from = writing.checkpoint(&log.key, &moment)? + 1;
        writing.change_key(&key.line(), |number| {
            super::keys::change_note(number, from, &log.key, &fresh, &moment)
        })?;
        writing.note("key", json!({"key": key.line(), "from": from}), &moment)
    })?;
    log.key = read_key(directory, &key.name, Some(&key.line())).unwrap_or(fresh);
    Ok(key)
}

/// Deletes personal values: of requests from an address, or of entries before a moment, or of what
/// is both; with neither, all. Returns how many values. The log says that it was done, in an entry
/// for each transaction. Also empties the write-ahead log.
///
/// # Errors
/// The log cannot be written.
pub fn forget(
    log: &mut OpenLog,
    address: Option<IpAddr>,
    before: Option<SystemTime>,
    now: SystemTime,
) -> Result<usize, DatabaseError> {
    let address = address.map(|address| address.to_string());
    let before = before.map(time_text);
    let mut forgotten = 0;
    let mut after = (0, -1);
    loop {
        // Reading takes long, and locks nobody out.
        let entries = log
            .database
            .personal_after(after, address.as_deref(), before.as_deref())?;
        let Some(last) = entries.last() else { break };
        after = *last;
        forgotten += log.database.write(|writing| {
            let forgotten = writing.forget(&entries)?;
            writing.note(
                "gap",
                json!({"reason": "withdrawn", "entries": forgotten}),
                &time_text(now),
            )?;
            Ok(forgotten)
        })?;
    }
    log.database.truncate_journal()?;
    Ok(forgotten)
}

/// The state of the log.
#[derive(Debug, Serialize)]
pub struct LogStatus {
    /// The public key.
    pub key: String,
    /// The time of the last transaction of the process that writes it.
    pub complete_until: String,
    /// Its size in bytes.
    pub octets: u64,
    /// The number and the time of the last checkpoint.
    pub last_checkpoint: Option<(u64, String)>,
    /// The chains.
    pub chains: Vec<ChainStatus>,
}

/// The state of a chain.
#[derive(Debug, Serialize)]
pub struct ChainStatus {
    /// The site; empty for the log itself.
    pub site: String,
    /// The crawler; empty for publications.
    pub crawler: String,
    /// Entries that it has had.
    pub entries: u64,
    /// The number of the oldest one that is kept.
    pub first: u64,
    /// The time of the last one.
    pub last: String,
}

/// The state of the log.
///
/// # Errors
/// The log cannot be read.
pub fn status(log: &OpenLog) -> Result<LogStatus, DatabaseError> {
    let chains = log.database.chains()?.into_iter().map(|chain| ChainStatus {
        site: chain.head.chain.site,
        crawler: chain.head.chain.crawler,
        entries: chain.head.entries,
        first: chain.first,
        last: chain.time,
    });
    Ok(LogStatus {
        key: log.key.verify_key().line(),
        complete_until: log.state.committed.clone(),
        octets: log.database.octets()?,
        last_checkpoint: log
            .database
            .last_checkpoint()?
            .map(|(number, time, _)| (number, time)),
        chains: chains.collect(),
    })
}
