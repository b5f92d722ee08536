//! [`Writer`]: the thread that writes the evidence log. Each second it writes the waiting records
//! in one transaction. Records that cannot be written are dropped and counted, and the next
//! transaction that succeeds records the number as a `gap`. Publications wait in the queue until
//! they are written; only beyond 1,000 of them are they dropped.

use super::database::{FILE, RunEnd};
use super::proofs::WrittenProofs;
use super::{
    Batch, DatabaseError, EvidenceDatabase, OpenLog, Record, Shared, SigningKey, Writing, read_key,
    time_text,
};
use crate::settings::EvidenceSettings;
use serde_json::json;
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
/// How often a checkpoint is made, and what is too old is deleted.
const DAY: Duration = Duration::from_secs(86_400);
/// How often what is too old is deleted, where the log has as much as it may have. Else it is once
/// a day.
const HOUR: Duration = Duration::from_secs(3_600);
/// A step of the clock that is worth a note.
const STEP: Duration = Duration::from_secs(2);

/// Why a round wrote nothing.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("{FILE} was deleted, moved or replaced")]
    Gone,
    #[error(
        "the log has {0} MiB, as much as `evidence.megabytes` allows; allow more or keep it for a shorter time"
    )]
    Full(u64),
}

/// A moment by the clock of the machine, and by the time that passes.
#[derive(Clone, Copy)]
struct Tick {
    wall: SystemTime,
    at: Instant,
}

impl Tick {
    fn now() -> Tick {
        Tick {
            wall: SystemTime::now(),
            at: Instant::now(),
        }
    }
}

/// Writes the log.
pub struct Writer {
    shared: Arc<Shared>,
    database: EvidenceDatabase,
    key: SigningKey,
    file: PathBuf,
    inode: Option<u64>,
    settings: EvidenceSettings,
    /// The clock at the last round, and the time that had passed.
    seen: Tick,
    wrote: Instant,
    /// When what is too old was deleted, and the moment up to which that goes on.
    pruned: Option<Instant>,
    pruning: Option<String>,
    checkpoint_due: Option<Instant>,
    /// Records that could not be written.
    lost: u64,
    proofs: WrittenProofs,
    /// Another process writes the log: this one adds what its last requests leave.
    is_former: bool,
}

/// The message that another process writes the log from now on.
pub struct HandOver;

impl Writer {
    /// Begins a run. The log gets a `gap` entry about the time since the last run, if there was
    /// one, and a `start` entry; the file that counts runs is written after that.
    pub fn begin(
        mut log: OpenLog,
        directory: &Path,
        shared: Arc<Shared>,
        settings: EvidenceSettings,
    ) -> Result<Writer, io::Error> {
        let begun = Tick::now();
        let now = time_text(begun.wall);
        let state = &log.state;
        let software = concat!("crawlgate ", env!("CARGO_PKG_VERSION"));
        let written = log.database.write(|writing| {
            writing.begin_run()?;
            if state.runs > 0 {
                let reason = state.end.map_or("crash", RunEnd::name);
                writing.note(
                    "gap",
                    json!({"from": state.committed, "until": now, "reason": reason}),
                    &now,
                )?;
            }
            let start =
                json!({"software": software, "run": state.runs + 1, "begun_anew": log.begun_anew.map(<&str>::from)});
            writing.note("start", start, &now)?;
            writing.set_committed(&now, None)
        });
        written.map_err(io::Error::other)?;
        super::opening::write_runs(directory, state.runs + 1)?;
        let file = directory.join(FILE);
        Ok(Writer {
            shared,
            database: log.database,
            key: log.key,
            inode: inode(&file),
            file,
            settings,
            seen: begun,
            wrote: begun.at,
            pruned: None,
            pruning: None,
            checkpoint_due: None,
            lost: 0,
            proofs: WrittenProofs::default(),
            is_former: false,
        })
    }

    /// Writes what waits once a second. When it is told to hand over, or the sender is dropped, it
    /// writes the end of the run and returns the writer. After a hand-over the writer is a former
    /// one: it only appends what waits.
    pub fn run(mut self, told: &Receiver<HandOver>) -> Writer {
        loop {
            let end = match told.recv_timeout(ROUND) {
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => Some(RunEnd::Stopped),
                Ok(HandOver) => Some(RunEnd::HandedOver),
            };
            self.write_what_waits(end);
            self.is_former |= end == Some(RunEnd::HandedOver);
            if end.is_some() {
                return self;
            }
        }
    }

    /// Writes what waits, and the end of the run if there is one; then deletes what is too old. If
    /// the write fails, publications wait again, and the other records are dropped and counted.
    fn write_what_waits(&mut self, end: Option<RunEnd>) {
        let batch = self.shared.take();
        let written = batch.records.len() as u64;
        let publications = batch.publications();
        let left_out = batch.left_out();
        match self.round(batch, end) {
            Ok(()) => {
                self.lost = 0;
                self.shared.wrote(written);
                if let Err(error) = self.prune(Tick::now(), DAY) {
                    self.shared.failed(0, &error);
                }
            }
            Err(error) => {
                // Some of them may be in the transaction that failed.
                self.proofs = WrittenProofs::default();
                let lost =
                    written - crate::locks::lock(&self.shared.queue).wait_again(publications);
                self.lost += lost + left_out;
                self.shared.failed(lost, &error);
            }
        }
    }

    /// Writes a batch in one transaction, with what is due beside it: a step of the clock, a
    /// checkpoint (once a day and at the end), the time until which the log is complete. If there
    /// is nothing to write, it writes only every 30 seconds. A former writer writes only the batch.
    ///
    /// # Errors
    /// The file is gone or replaced, the log is full (then it is pruned), or nothing can be
    /// written.
    fn round(&mut self, batch: Batch, end: Option<RunEnd>) -> Result<(), RoundError> {
        if inode(&self.file) != self.inode {
            return Err(RoundError::Gone);
        }
        let tick = Tick::now();
        let Tick { wall, at } = tick;
        let step = clock_step(self.seen, tick).filter(|_| !self.is_former);
        self.seen = tick;
        let makes_checkpoint = end.is_some() || self.checkpoint_due.is_none_or(|due| at >= due);
        let is_idle = batch.records.is_empty() && batch.left_out.is_empty() && self.lost == 0;
        let has_news = step.is_some() || makes_checkpoint || at.duration_since(self.wrote) >= IDLE;
        if is_idle && (self.is_former || !has_news) {
            return Ok(());
        }
        let octets = self.database.octets()?;
        if octets >= self.settings.size && !is_idle {
            self.prune(tick, HOUR)?;
            return Err(RoundError::Full(octets >> 20));
        }
        let lost = self.lost;
        let is_former = self.is_former;
        let key = &mut self.key;
        let proofs = &mut self.proofs;
        let directory = self.file.parent().unwrap_or(Path::new("."));
        self.database.write(|log| {
            let now = time_text(wall);
            write_batch(log, batch, lost, step, proofs, &now)?;
            if is_former {
                return Ok(());
            }
            if end == Some(RunEnd::Stopped) {
                log.note("stop", json!({}), &now)?;
            }
            if makes_checkpoint {
                // A command may have changed the key.
                let name = key.verify_key().name;
                if let Some(changed) = log
                    .changed_key()?
                    .filter(|changed| key.verify_key().line() != *changed)
                {
                    *key =
                        read_key(directory, &name, Some(&changed)).ok_or(DatabaseError::NoKey)?;
                }
                log.checkpoint(key, &now)?;
            }
            log.set_committed(&now, end)
        })?;
        self.wrote = at;
        if makes_checkpoint {
            self.checkpoint_due = at.checked_add(DAY);
        }
        Ok(())
    }

    /// Deletes a part of what is older than the settings keep, if `every` has passed since the last
    /// time or that one left a rest. The log says up to which moment, so that a case without these
    /// entries is not one that somebody shortened. A former writer deletes nothing.
    fn prune(&mut self, now: Tick, every: Duration) -> Result<(), RoundError> {
        let Tick { wall, at } = now;
        let is_due = self
            .pruned
            .is_none_or(|pruned| at.duration_since(pruned) >= every)
            || self.pruning.is_some();
        let Some(oldest) = wall
            .checked_sub(self.settings.keep)
            .filter(|_| is_due && !self.is_former)
        else {
            return Ok(());
        };
        // Where it fails, it is not tried again at once.
        self.pruned = Some(at);
        let begins = self.pruning.is_none();
        let before = self.pruning.take().unwrap_or_else(|| time_text(oldest));
        let deletion = self.database.write(|log| {
            let deletion = log.prune(&before)?;
            if begins && deletion.entries > 0 {
                log.note(
                    "gap",
                    json!({"reason": "too_old", "before": before}),
                    &time_text(wall),
                )?;
            }
            Ok(deletion)
        })?;
        self.pruning = (!deletion.is_complete).then_some(before);
        Ok(())
    }
}

/// Writes gaps for a step of the clock (`step`, in milliseconds) and for records that could not be
/// written before (`lost`), then the records, each after the proof that it names, and then how many
/// records each chain lacks.
fn write_batch(
    log: &Writing<'_>,
    batch: Batch,
    lost: u64,
    step: Option<i64>,
    proofs: &mut WrittenProofs,
    now: &str,
) -> Result<(), DatabaseError> {
    if let Some(milliseconds) = step {
        log.note(
            "gap",
            json!({"reason": "clock", "milliseconds": milliseconds}),
            now,
        )?;
    }
    if lost > 0 {
        log.note(
            "gap",
            json!({"reason": "not_written", "entries": lost}),
            now,
        )?;
    }
    for (chain, mut record) in batch.records {
        if let Some(proof) = record.proof.take() {
            let written = proofs.write(log, &chain, *proof, now)?;
            let place = json!({"number": written.number, "sha256": written.hash});
            record.data.insert("proof_entry".to_owned(), place);
        }
        log.append(&chain, record, now)?;
    }
    for (chain, entries) in batch.left_out {
        log.append(
            &chain,
            Record::of("gap", json!({"reason": "too_many", "entries": entries})),
            now,
        )?;
    }
    Ok(())
}

/// By how many milliseconds the wall clock was set between two moments (negative: back). `None` up
/// to 2 seconds.
fn clock_step(before: Tick, now: Tick) -> Option<i64> {
    let passed = now.at.duration_since(before.at);
    let expected = before.wall.checked_add(passed)?;
    let (step, sign) = match now.wall.duration_since(expected) {
        Ok(ahead) => (ahead, 1),
        Err(behind) => (behind.duration(), -1),
    };
    i64::try_from(step.as_millis())
        .ok()
        .filter(|_| step > STEP)
        .map(|by| sign * by)
}

fn inode(file: &Path) -> Option<u64> {
    std::fs::metadata(file).ok().map(|file| file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        let before = Tick::now();
        let at = before.at + Duration::from_secs(10);
        for (seconds, step) in [(11, None), (40, Some(30_000)), (-20, Some(-30_000))] {
            let passed = Duration::from_secs(u64::from(i32::unsigned_abs(seconds)));
            let wall = if seconds < 0 {
                before.wall - passed
            } else {
                before.wall + passed
            };
            assert_eq!(clock_step(before, Tick { wall, at }), step, "{seconds}");
        }
    }
}
