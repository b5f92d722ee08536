//! Commands on the evidence log: [`rotate_key`] replaces the signing key,
//! [`delete_personal_values`] deletes values such as addresses of clients, and [`log_status`] shows
//! the state. The commands also work while a running crawlgate writes to the log.

use super::{
    DatabaseError, NoteKeyError, OpenEvidenceLog, VerifyKey, format_time, read_signing_key,
};
use serde::Serialize;
use serde_json::json;
use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

/// Why the key was not rotated.
#[derive(Debug, thiserror::Error)]
pub enum RotateKeyError {
    /// The new key cannot be made.
    #[error("cannot make a key: {0}; the key stays as it is")]
    Key(#[from] NoteKeyError),
    /// The log cannot be written.
    #[error("cannot write the evidence log: {0}; the key stays as it is")]
    Database(#[from] DatabaseError),
    /// The new private key cannot be written.
    #[error("cannot write the new private key: {0}; the key stays as it is")]
    File(#[from] std::io::Error),
}

/// Replaces the key of the log, and returns the new public key. The old key signs a last checkpoint;
/// both sign a note about the change. A running crawlgate uses the new key from its next checkpoint
/// on.
///
/// # Errors
/// See [`RotateKeyError`].
pub fn rotate_key(
    directory: &Path,
    log: &mut OpenEvidenceLog,
    now: SystemTime,
) -> Result<VerifyKey, RotateKeyError> {
    let fresh = log.key.generate_successor()?;
    let moment = format_time(now);
    let key = fresh.verify_key();
    super::opening::write_next_key(directory, &fresh)?;
    log.database.write(|writing| {
        let from = writing.create_checkpoint(&log.key, &moment)? + 1;
        writing.store_key_change(&key.to_line(), |number| {
            super::keys::key_change_note(number, from, &log.key, &fresh, &moment)
        })?;
        writing.append_to_log_chain("key", json!({"key": key.to_line(), "from": from}), &moment)
    })?;
    log.key = read_signing_key(directory, &key.name, Some(&key.to_line())).unwrap_or(fresh);
    Ok(key)
}

/// Deletes the personal values of entries from this address and before this time, where these are
/// given, and returns their number. Each transaction adds a `gap` entry. Empties the write-ahead
/// log.
///
/// # Errors
/// The log cannot be written.
pub fn delete_personal_values(
    log: &mut OpenEvidenceLog,
    address: Option<IpAddr>,
    before: Option<SystemTime>,
    now: SystemTime,
) -> Result<usize, DatabaseError> {
    let address = address.map(|address| address.to_string());
    let before = before.map(format_time);
    let mut forgotten = 0;
    let mut after = (0, -1);
    loop {
        // Outside of the transaction: reading takes long.
        let entries =
            log.database
                .personal_entries_after(after, address.as_deref(), before.as_deref())?;
        let Some(last) = entries.last() else { break };
        after = *last;
        forgotten += log.database.write(|writing| {
            let forgotten = writing.delete_personal_values(&entries)?;
            writing.append_to_log_chain(
                "gap",
                json!({"reason": "withdrawn", "entries": forgotten}),
                &format_time(now),
            )?;
            Ok(forgotten)
        })?;
    }
    log.database.truncate_wal()?;
    Ok(forgotten)
}

/// The state of the log for an operator.
#[derive(Serialize)]
pub struct LogStatus {
    /// The public key.
    pub key: String,
    /// The time of the last transaction of the process that writes it.
    pub complete_until: String,
    /// The size of the database.
    pub bytes: u64,
    /// The number and time of the last checkpoint, and the authority of its timestamp.
    pub last_checkpoint: Option<(u64, String, Option<String>)>,
    /// All chains, by site and crawler.
    pub chains: Vec<ChainStatus>,
}

/// The state of a chain.
#[derive(Serialize)]
pub struct ChainStatus {
    /// The site; empty for the log itself.
    pub site: String,
    /// The crawler; empty for publications.
    pub crawler: String,
    /// How many entries it has had.
    pub entries: u64,
    /// The number of the oldest entry that is kept.
    pub first: u64,
    /// The time of the last entry.
    pub last: String,
}

/// # Errors
/// The log cannot be read.
pub fn log_status(log: &OpenEvidenceLog) -> Result<LogStatus, DatabaseError> {
    let chains = log.database.chains()?;
    Ok(LogStatus {
        key: log.key.verify_key().to_line(),
        complete_until: log.state.complete_until.clone(),
        bytes: log.database.size()?,
        last_checkpoint: log
            .database
            .last_checkpoint()?
            .map(|(number, time, _, authority)| (number, time, authority)),
        chains: chains
            .into_iter()
            .map(|chain| ChainStatus {
                site: chain.head.chain.site,
                crawler: chain.head.chain.crawler,
                entries: chain.head.entries,
                first: chain.first_number,
                last: chain.last_time,
            })
            .collect(),
    })
}
