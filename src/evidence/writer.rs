//! The thread that writes the log: [`Writer`]. Each second it writes what waits, in one transaction. What cannot be written is
//! dropped and counted, and the next transaction that succeeds writes the number as a `gap`.

use super::database::{DatabaseError, EvidenceDatabase, FILE, Record, Writing};
use super::entry::{ChainName, time_text};
use super::note::SigningKey;
use super::opening::{OpenLog, read_key, write_runs};
use super::proofs::WrittenProofs;
use super::queue::Batch;
use super::shared::Shared;
use serde_json::{Value, json};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime};

/// How often what waits is written.
const ROUND: Duration = Duration::from_secs(1);
/// How often the time of the log is written where nothing else is.
const IDLE: Duration = Duration::from_secs(30);
/// How often a checkpoint is made.
const DAY: Duration = Duration::from_secs(86_400);
/// How often what is too old is deleted.
const PRUNED_EVERY: Duration = Duration::from_secs(3_600);
/// A step of the clock that is worth a note.
const STEP: Duration = Duration::from_secs(2);

/// How much is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// For how long.
    pub keep: Duration,
    /// How many bytes.
    pub octets: u64,
}

/// Why a round wrote nothing.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("{FILE} was deleted, moved or replaced")]
    Gone,
    #[error("the log has {0} MiB, as much as `evidence.megabytes` allows; allow more or keep it for a shorter time")]
    Full(u64),
    #[error("the number of processes cannot be written: {0}")]
    Runs(#[from] io::Error),
}

/// Writes the log.
pub struct Writer {
    shared: Arc<Shared>,
    database: EvidenceDatabase,
    key: SigningKey,
    file: PathBuf,
    inode: Option<u64>,
    bounds: Bounds,
    /// The clock at the last round, and the time that had passed.
    seen: (SystemTime, Instant),
    wrote: Instant,
    pruned: Option<Instant>,
    checkpoint_due: Option<Instant>,
    /// Records that could not be written.
    lost: u64,
    proofs: WrittenProofs,
}

impl Writer {
    /// Begins a run: the log says what it lacks since the last one.
    pub fn begin(mut log: OpenLog, directory: &Path, shared: Arc<Shared>, bounds: Bounds) -> Result<Writer, io::Error> {
        let wall = SystemTime::now();
        let (now, state) = (time_text(wall), &log.state);
        let is_first = state.runs == 0;
        let gap = record(
            "gap",
            json!({
                "from": state.committed, "until": now, "reason": if state.clean { "stop" } else { "crash" },
            }),
        );
        let start = record(
            "start",
            json!({
                "software": concat!("crawlgate ", env!("CARGO_PKG_VERSION")),
                "run": state.runs + 1,
                "begun_anew": log.begun_anew,
            }),
        );
        let written = log.database.write(|log| {
            log.begin_run()?;
            if !is_first {
                log.append(&ChainName::of_log(), gap, &now)?;
            }
            log.append(&ChainName::of_log(), start, &now)?;
            log.set_committed(&now, false)
        });
        written.map_err(io::Error::other)?;
        write_runs(directory, state.runs + 1)?;
        let (file, at) = (directory.join(FILE), Instant::now());
        Ok(Writer {
            shared,
            database: log.database,
            key: log.key,
            inode: inode(&file),
            file,
            bounds,
            seen: (wall, at),
            wrote: at,
            pruned: None,
            checkpoint_due: None,
            lost: 0,
            proofs: WrittenProofs::default(),
        })
    }

    /// Writes until the sender is gone; then the end of the run.
    pub fn run(mut self, alive: &Receiver<()>) {
        loop {
            let ends = alive.recv_timeout(ROUND) != Err(RecvTimeoutError::Timeout);
            let batch = self.shared.take();
            let lost = batch.records.len() as u64 + batch.left_out.iter().map(|(_, number)| number).sum::<u64>();
            let written = batch.records.len() as u64;
            match self.round(batch, ends) {
                Ok(()) => {
                    self.lost = 0;
                    self.shared.wrote(written);
                }
                Err(error) => {
                    // Some of them may be in the transaction that failed.
                    self.proofs = WrittenProofs::default();
                    self.lost += lost;
                    self.shared.failed(lost, &error.to_string());
                }
            }
            if ends {
                return;
            }
        }
    }

    fn round(&mut self, batch: Batch, ends: bool) -> Result<(), RoundError> {
        if inode(&self.file) != self.inode {
            return Err(RoundError::Gone);
        }
        let (wall, at) = (SystemTime::now(), Instant::now());
        let step = clock_step(self.seen, (wall, at));
        self.seen = (wall, at);
        let makes_checkpoint = ends || self.checkpoint_due.is_none_or(|due| at >= due);
        let is_idle = batch.records.is_empty() && batch.left_out.is_empty() && self.lost == 0;
        if is_idle && step.is_none() && !makes_checkpoint && at.duration_since(self.wrote) < IDLE {
            return Ok(());
        }
        let octets = self.database.octets()?;
        if octets >= self.bounds.octets && !is_idle {
            self.prune(wall, at)?;
            return Err(RoundError::Full(octets >> 20));
        }
        let (lost, key, proofs) = (self.lost, &mut self.key, &mut self.proofs);
        let directory = self.file.parent().unwrap_or(Path::new("."));
        self.database.write(|log| {
            let now = time_text(wall);
            write_batch(log, batch, (lost, step), proofs, &now)?;
            if ends {
                log.append(&ChainName::of_log(), record("stop", json!({})), &now)?;
            }
            if makes_checkpoint {
                // A command may have changed the key.
                let name = key.verify_key().name().to_owned();
                if let Some(changed) = log.changed_key()?.filter(|changed| key.verify_key().line() != *changed) {
                    *key = read_key(directory, &name, Some(&changed)).ok_or(DatabaseError::NoKey)?;
                }
                log.checkpoint(key, &now)?;
            }
            log.set_committed(&now, ends)
        })?;
        self.wrote = at;
        if makes_checkpoint {
            self.checkpoint_due = at.checked_add(DAY);
        }
        self.prune(wall, at)
    }

    fn prune(&mut self, wall: SystemTime, at: Instant) -> Result<(), RoundError> {
        if self.pruned.is_some_and(|pruned| at.duration_since(pruned) < PRUNED_EVERY) {
            return Ok(());
        }
        self.pruned = Some(at);
        if let Some(before) = wall.checked_sub(self.bounds.keep) {
            self.database.write(|log| log.prune(&time_text(before)))?;
        }
        Ok(())
    }
}

fn write_batch(
    log: &Writing<'_>,
    batch: Batch,
    (lost, step): (u64, Option<i64>),
    proofs: &mut WrittenProofs,
    now: &str,
) -> Result<(), DatabaseError> {
    if let Some(milliseconds) = step {
        let gap = json!({"reason": "clock", "milliseconds": milliseconds});
        log.append(&ChainName::of_log(), record("gap", gap), now)?;
    }
    if lost > 0 {
        let gap = json!({"reason": "not_written", "entries": lost});
        log.append(&ChainName::of_log(), record("gap", gap), now)?;
    }
    for (chain, mut record) in batch.records {
        if let Some(proof) = record.proof.take() {
            let written = proofs.write(log, &chain, *proof, now)?;
            let place = json!({"number": written.number, "sha256": written.hash.to_string()});
            record.data.insert("proof_entry".to_owned(), place);
        }
        log.append(&chain, record, now)?;
    }
    for (chain, entries) in batch.left_out {
        log.append(&chain, record("gap", json!({"reason": "too_many", "entries": entries})), now)?;
    }
    Ok(())
}

fn record(kind: &'static str, data: Value) -> Record {
    let mut data = data.as_object().cloned().unwrap_or_default();
    data.retain(|_, value| !value.is_null());
    Record { kind, data, ..Record::default() }
}

/// By how many milliseconds the clock was set, where that is worth a note.
fn clock_step(before: (SystemTime, Instant), now: (SystemTime, Instant)) -> Option<i64> {
    let expected = before.0.checked_add(now.1.duration_since(before.1))?;
    match now.0.duration_since(expected) {
        Ok(ahead) if ahead > STEP => i64::try_from(ahead.as_millis()).ok(),
        Ok(_) => None,
        Err(behind) if behind.duration() > STEP => i64::try_from(behind.duration().as_millis()).ok().map(|by| -by),
        Err(_) => None,
    }
}

fn inode(file: &Path) -> Option<u64> {
    std::fs::metadata(file).ok().map(|file| file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let (wall, at) = (SystemTime::now(), Instant::now());
        let later = at + Duration::from_secs(10);
        let step = |wall_later: SystemTime| clock_step((wall, at), (wall_later, later));
        assert_eq!(step(wall + Duration::from_secs(11)), None);
        assert_eq!(step(wall + Duration::from_secs(40)), Some(30_000));
        assert_eq!(step(wall - Duration::from_secs(20)), Some(-30_000));
    }
}
