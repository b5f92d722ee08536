//! [`LogWriter`]: the thread that writes the evidence log. Each second it writes all waiting
//! entries in one transaction. If the transaction fails, up to 1,000 entries about what sites
//! published are queued again, and all other entries are dropped. The next transaction that
//! succeeds also records the number of dropped entries, as a `gap`. Requests that are left out of a
//! half full log get one `gap` an hour, so that gaps do not fill the other half.

use super::case::SOFTWARE;
use super::database::{DATABASE_FILE, RunEnd};
use super::proofs::WrittenProofs;
use super::{
    DatabaseError, EntryBatch, EvidenceDatabase, EvidenceWriterShared, NewEntry, OpenEvidenceLog,
    SigningKey, WriteTransaction, format_time, read_signing_key,
};
use crate::files::{file_identity, parent_directory};
use crate::locks::lock;
use crate::settings::EvidenceSettings;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

const WRITE_INTERVAL: Duration = Duration::from_secs(1);
/// How often the time of the log is written if nothing else is.
const IDLE_WRITE_INTERVAL: Duration = Duration::from_secs(30);
/// How often a checkpoint is made, and old entries are deleted.
const DAY: Duration = Duration::from_secs(86_400);
/// How often old entries are deleted while the log is full, and how often a half full log records the
/// number of requests that it lacks.
const HOUR: Duration = Duration::from_secs(3_600);
/// Smaller steps of the clock are not recorded.
const MIN_CLOCK_STEP: Duration = Duration::from_secs(2);

/// Why a batch was not written.
#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("the file {DATABASE_FILE} was deleted, moved or replaced")]
    Gone,
    #[error("the log is full ({0} MiB): raise evidence.megabytes, or lower evidence.keep")]
    Full(u64),
}

/// The wall clock and the monotonic clock, read together.
#[derive(Clone, Copy)]
struct ClockReading {
    wall: SystemTime,
    monotonic: Instant,
}

impl ClockReading {
    fn now() -> ClockReading {
        ClockReading {
            wall: SystemTime::now(),
            monotonic: Instant::now(),
        }
    }
}

/// Writes one run of the log.
pub struct LogWriter {
    shared: Arc<EvidenceWriterShared>,
    database: EvidenceDatabase,
    key: SigningKey,
    file: PathBuf,
    /// Of the opened file: SQLite keeps writing to a deleted file.
    identity: Option<(u64, u64)>,
    settings: EvidenceSettings,
    /// The clocks at the last batch.
    last_clock: ClockReading,
    last_write: Instant,
    /// When old entries were last deleted, and the time before which that is unfinished.
    last_prune: Option<Instant>,
    unfinished_prune: Option<String>,
    checkpoint_due: Option<Instant>,
    /// Entries that were dropped since the last transaction.
    lost: u64,
    /// Requests that were left out of a half full log since the last `gap` about them, and when the
    /// next is due.
    left_out_half_full: u64,
    /// Before the first of these.
    half_full_since: String,
    half_full_gap_due: Option<Instant>,
    /// The time of the last transaction.
    complete_until: String,
    proofs: WrittenProofs,
    /// Another process writes the log: this one only appends the entries of its last requests.
    is_handed_over: bool,
}

impl LogWriter {
    /// Begins a run with a `gap` entry about the time since the last run, and a `start` entry. Then
    /// updates the file that counts runs.
    pub fn begin_run(
        mut log: OpenEvidenceLog,
        directory: &Path,
        shared: Arc<EvidenceWriterShared>,
        settings: EvidenceSettings,
    ) -> Result<LogWriter, io::Error> {
        let begun = ClockReading::now();
        let now = format_time(begun.wall);
        let state = &log.state;
        let written = log.database.write(|writing| {
            writing.increment_runs()?;
            if state.run_count > 0 {
                let reason = state.last_end.map_or("crash", <&str>::from);
                writing.append_to_log_chain(
                    "gap",
                    json!({"from": state.complete_until, "until": now, "reason": reason}),
                    &now,
                )?;
            }
            let start =
                json!({"software": SOFTWARE, "run": state.run_count + 1, "begun_anew": log.former_damage.map(<&str>::from)});
            writing.append_to_log_chain("start", start, &now)?;
            writing.set_complete_until(&now, None)
        });
        written.map_err(io::Error::other)?;
        super::opening::write_run_count(directory, state.run_count + 1)?;
        let file = directory.join(DATABASE_FILE);
        Ok(LogWriter {
            shared,
            database: log.database,
            key: log.key,
            identity: file_identity(&file),
            file,
            settings,
            last_clock: begun,
            last_write: begun.monotonic,
            last_prune: None,
            unfinished_prune: None,
            checkpoint_due: None,
            lost: 0,
            left_out_half_full: 0,
            half_full_since: String::new(),
            half_full_gap_due: None,
            complete_until: now,
            proofs: WrittenProofs::default(),
            is_handed_over: false,
        })
    }

    /// Writes the queue once a second. For each hand-over, writes the end of the run and confirms it;
    /// from then on only appends entries. Ends when the sender is dropped.
    pub fn run(mut self, hand_overs: &Receiver<Sender<()>>) {
        loop {
            match hand_overs.recv_timeout(WRITE_INTERVAL) {
                Err(RecvTimeoutError::Timeout) => self.write_queue(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return self.write_queue(Some(RunEnd::Stopped));
                }
                Ok(done) => {
                    self.write_queue(Some(RunEnd::HandedOver));
                    self.is_handed_over = true;
                    let _ = done.send(());
                }
            }
        }
    }

    /// Writes the queue, and the end of the run if given; then deletes old entries. If writing fails,
    /// requeues publications and drops the other entries. A full log still gets the end of the run.
    fn write_queue(&mut self, end: Option<RunEnd>) {
        let batch = lock(&self.shared.queue).drain();
        let written = batch.entries.len() as u64;
        // Requeued if the batch cannot be written: there are few, and a case without them would be misread.
        let publications = batch
            .entries
            .iter()
            .filter(|(chain, _)| chain.crawler.is_empty())
            .cloned()
            .collect();
        let left_out: u64 = batch.left_out.values().sum();
        self.shared.lost.inc_by(left_out + batch.left_out_half_full);
        match self.write_batch(batch, end) {
            Ok(()) => {
                self.lost = 0;
                self.shared.record_written(written);
                if let Err(error) = self.prune(ClockReading::now(), DAY) {
                    self.shared.record_failure(0, &error);
                }
            }
            Err(error) => {
                // Some may be in the transaction that failed.
                self.proofs = WrittenProofs::default();
                let lost = written - lock(&self.shared.queue).requeue(publications);
                self.lost += lost + left_out;
                self.shared.record_failure(lost, &error);
                if end.is_some() && matches!(error, WriteError::Full(_)) {
                    self.write_end_into_full_log(end);
                }
            }
        }
    }

    /// Writes publications, the number of dropped entries and the end of the run, whatever the size.
    /// They need little space, and without them the next run would report a crash.
    fn write_end_into_full_log(&mut self, end: Option<RunEnd>) {
        let limit = std::mem::replace(&mut self.settings.size, u64::MAX);
        let publications = lock(&self.shared.queue).drain();
        if self.write_batch(publications, end).is_ok() {
            self.lost = 0;
        }
        self.settings.size = limit;
    }

    /// Writes a batch in one transaction, with a step of the clock, a due checkpoint (once a day and
    /// at the end), and the time until which the log is complete. An empty batch is written only
    /// every 30 seconds. After a hand-over only the batch is written.
    ///
    /// # Errors
    /// The file is gone or replaced, the log is full (then it is pruned), or SQLite fails.
    fn write_batch(&mut self, batch: EntryBatch, end: Option<RunEnd>) -> Result<(), WriteError> {
        if batch.left_out_half_full > 0 && self.left_out_half_full == 0 {
            self.half_full_since.clone_from(&self.complete_until);
        }
        self.left_out_half_full += batch.left_out_half_full;
        if file_identity(&self.file) != self.identity {
            return Err(WriteError::Gone);
        }
        let clock = ClockReading::now();
        let ClockReading { wall, monotonic } = clock;
        let step = clock_step(self.last_clock, clock).filter(|_| !self.is_handed_over);
        self.last_clock = clock;
        let is_due = |due: Option<Instant>| end.is_some() || due.is_none_or(|due| monotonic >= due);
        let makes_checkpoint = is_due(self.checkpoint_due);
        let is_idle = batch.entries.is_empty()
            && batch.left_out.is_empty()
            && self.lost == 0
            && (end.is_none() || self.left_out_half_full == 0);
        let has_news = step.is_some()
            || makes_checkpoint
            || monotonic.duration_since(self.last_write) >= IDLE_WRITE_INTERVAL;
        if is_idle && (self.is_handed_over || !has_news) {
            return Ok(());
        }
        let bytes = self.database.size()?;
        lock(&self.shared.queue).is_log_half_full = bytes >= self.settings.size / 2;
        if bytes >= self.settings.size && !is_idle {
            self.prune(clock, HOUR)?;
            return Err(WriteError::Full(bytes >> 20));
        }
        let lost = (self.lost > 0).then(
            || json!({"reason": "not_written", "entries": self.lost, "from": self.complete_until}),
        );
        let left_out = self.left_out_half_full;
        let half_full = (left_out > 0 && is_due(self.half_full_gap_due)).then(
            || json!({"reason": "half_full", "entries": left_out, "from": self.half_full_since}),
        );
        let has_half_full_gap = half_full.is_some();
        let gaps = [lost, half_full].into_iter().flatten();
        let now = format_time(wall);
        let is_handed_over = self.is_handed_over;
        let key = &mut self.key;
        let proofs = &mut self.proofs;
        let directory = parent_directory(&self.file);
        self.database.write(|log| {
            append_batch(log, batch, gaps, step, proofs, &now)?;
            if is_handed_over {
                return Ok(());
            }
            if end == Some(RunEnd::Stopped) {
                log.append_to_log_chain("stop", json!({}), &now)?;
            }
            if makes_checkpoint {
                // A command may have changed the key.
                let name = key.verify_key().name;
                if let Some(changed) = log
                    .rotated_key()?
                    .filter(|changed| key.verify_key().to_line() != *changed)
                {
                    *key = read_signing_key(directory, &name, Some(&changed))
                        .ok_or(DatabaseError::RotatedKeyMissing)?;
                }
                log.create_checkpoint(key, &now)?;
            }
            log.set_complete_until(&now, end)
        })?;
        self.complete_until = now;
        self.last_write = monotonic;
        if makes_checkpoint {
            self.checkpoint_due = monotonic.checked_add(DAY);
        }
        if has_half_full_gap {
            self.left_out_half_full = 0;
            self.half_full_gap_due = monotonic.checked_add(HOUR);
        }
        Ok(())
    }

    /// Deletes entries that are older than the settings keep, if `every` has passed since the last
    /// time, or that time did not finish. Records it as a `gap`, so that a case without these entries
    /// does not look shortened. Does nothing after a hand-over.
    fn prune(&mut self, now: ClockReading, every: Duration) -> Result<(), WriteError> {
        let ClockReading { wall, monotonic } = now;
        let unfinished = self.unfinished_prune.take();
        let begins = unfinished.is_none();
        let is_due = self
            .last_prune
            .is_none_or(|pruned| monotonic.duration_since(pruned) >= every);
        let oldest = wall.checked_sub(self.settings.keep).map(format_time);
        let Some(before) = unfinished
            .or(oldest.filter(|_| is_due))
            .filter(|_| !self.is_handed_over)
        else {
            return Ok(());
        };
        // A failure is not retried at once.
        self.last_prune = Some(monotonic);
        let deletion = self.database.write(|log| {
            let deletion = log.prune(&before)?;
            if begins && deletion.entries > 0 {
                log.append_to_log_chain(
                    "gap",
                    json!({"reason": "too_old", "before": before}),
                    &format_time(wall),
                )?;
            }
            Ok(deletion)
        })?;
        self.unfinished_prune = (!deletion.is_complete).then_some(before);
        Ok(())
    }
}

/// Appends gaps for a step of the clock (in milliseconds) and for lost entries (`gaps`), then the
/// entries, each after its proof, and then a gap for each chain with dropped entries.
fn append_batch(
    log: &WriteTransaction<'_>,
    batch: EntryBatch,
    gaps: impl Iterator<Item = Value>,
    step: Option<i64>,
    proofs: &mut WrittenProofs,
    now: &str,
) -> Result<(), DatabaseError> {
    if let Some(milliseconds) = step {
        let gap = json!({"reason": "clock", "milliseconds": milliseconds});
        log.append_to_log_chain("gap", gap, now)?;
    }
    for gap in gaps {
        log.append_to_log_chain("gap", gap, now)?;
    }
    for (chain, mut record) in batch.entries {
        if let Some(proof) = record.proof.take() {
            let written = proofs.write_once(log, &chain, *proof, now)?;
            record.data.insert("proof_entry".to_owned(), json!(written));
        }
        log.append(&chain, record, now)?;
    }
    for (chain, entries) in batch.left_out {
        log.append(
            &chain,
            NewEntry::new("gap", json!({"reason": "too_many", "entries": entries})),
            now,
        )?;
    }
    Ok(())
}

/// By how many milliseconds the wall clock was set between two readings (negative: back). `None` up
/// to 2 seconds.
fn clock_step(before: ClockReading, now: ClockReading) -> Option<i64> {
    let passed = now.monotonic.duration_since(before.monotonic);
    let expected = before.wall.checked_add(passed)?;
    let (step, sign) = match now.wall.duration_since(expected) {
        Ok(ahead) => (ahead, 1),
        Err(behind) => (behind.duration(), -1),
    };
    i64::try_from(step.as_millis())
        .ok()
        .filter(|_| step > MIN_CLOCK_STEP)
        .map(|by| sign * by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_steps_are_measured() {
        let before = ClockReading::now();
        let monotonic = before.monotonic + Duration::from_secs(10);
        for (seconds, step) in [(11, None), (40, Some(30_000)), (-20, Some(-30_000))] {
            let passed = Duration::from_secs(u64::from(i32::unsigned_abs(seconds)));
            let wall = if seconds < 0 {
                before.wall - passed
            } else {
                before.wall + passed
            };
            assert_eq!(
                clock_step(before, ClockReading { wall, monotonic }),
                step,
                "{seconds}"
            );
        }
    }
}
