//! [`EvidenceRecorder`]: the handle by which other modules add entries to the evidence log. Adding
//! an entry takes a short lock, and never waits for the disk.
//!
//! If the log is open, a thread (`writer`) writes the entries. If the log could not be opened,
//! entries are counted as lost and dropped. If the settings do not enable a log, entries are
//! ignored.

use super::database::LogDamage;
use super::opening::open_for_writing;
use super::writer::LogWriter;
use super::{ChainName, DatabaseError, EvidenceWriterShared, NewEntry, OpenError};
use crate::finding::Finding;
use crate::locks::lock;
use crate::settings::{AddressDetail, EvidenceSettings};
use crate::threads::spawn;
use prometheus::IntCounter;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// A handle to the evidence log. Cheap to clone. The default keeps nothing.
#[derive(Clone, Default)]
pub struct EvidenceRecorder(Arc<EvidenceRecorderInner>);

/// The default is a disabled recorder.
#[derive(Default)]
struct EvidenceRecorderInner {
    shared: Arc<EvidenceWriterShared>,
    /// How much of a client's address is kept; `None` if the recorder is disabled.
    addresses: Option<AddressDetail>,
    /// The directory and the settings of the log; `None` if it could not be opened.
    location: Option<(PathBuf, EvidenceSettings)>,
    /// The writer thread, and the channel that keeps it running.
    thread: Mutex<Option<WriterThread>>,
}

/// The thread confirms a hand-over by the sender that it gets.
type WriterThread = (Sender<Sender<()>>, JoinHandle<()>);

impl EvidenceRecorder {
    /// Opens the log in a directory and starts the writer thread. If that fails, entries are counted
    /// as lost, and [`EvidenceRecorder::problem`] says why.
    pub fn open(
        directory: &Path,
        settings: &EvidenceSettings,
        addresses: AddressDetail,
    ) -> EvidenceRecorder {
        let shared = Arc::<EvidenceWriterShared>::default();
        let thread = start_writer(directory, &shared, settings)
            .map_err(|why| shared.record_failure(0, &why))
            .ok();
        let location = thread
            .as_ref()
            .map(|_| (directory.to_owned(), settings.clone()));
        EvidenceRecorder(Arc::new(EvidenceRecorderInner {
            shared,
            addresses: Some(addresses),
            location,
            thread: Mutex::new(thread),
        }))
    }

    /// The counters of written and of lost entries.
    pub fn counters(&self) -> [IntCounter; 2] {
        [&self.0.shared.entries, &self.0.shared.lost].map(IntCounter::clone)
    }

    /// Whether the settings enable evidence, also if the log could not be opened.
    pub fn is_enabled(&self) -> bool {
        self.0.addresses.is_some()
    }

    /// How much of a client's address is kept.
    pub fn address_detail(&self) -> AddressDetail {
        self.0.addresses.unwrap_or(AddressDetail::None)
    }

    /// Adds an entry about a crawler, unless the rate limit or the queue is exceeded: then it is
    /// counted as lost, and `make` is not called. `is_passed` is for a request that simply passed: it
    /// gets at most half of the log.
    pub fn record(
        &self,
        site: &str,
        crawler: &str,
        now: SystemTime,
        is_passed: bool,
        make: impl FnOnce() -> NewEntry,
    ) {
        if !self.is_enabled() {
            return;
        }
        let EvidenceRecorderInner {
            shared, location, ..
        } = &*self.0;
        let second = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        let chain = ChainName::of_crawler(site, crawler);
        if location.is_none() {
            shared.lost.inc();
        } else if lock(&shared.queue).try_admit(&chain, second, is_passed) {
            let record = make();
            lock(&shared.queue).push(chain, record);
        }
    }

    /// Adds an entry about a publication, without a rate limit.
    pub fn record_publication(&self, site: &str, record: NewEntry) {
        if self.0.location.is_some() {
            lock(&self.0.shared.queue).push(ChainName::of_site(site), record);
        }
    }

    /// Why entries are being lost, or else why checkpoints get no timestamps, or else why a new log
    /// began.
    pub fn problem(&self) -> Option<Finding> {
        let shared = &self.0.shared;
        let Some(problem) = lock(&shared.problem).clone() else {
            if let Some(problem) = lock(&shared.timestamp_problem).clone() {
                return Some(Finding::new("evidence-timestamps", problem));
            }
            let because = (*lock(&shared.former_damage))?;
            return Some(Finding::new("evidence-new-log", new_log_message(because)));
        };
        let lost = self.lost_count();
        Some(Finding::new(
            "evidence",
            format!(
                "evidence cannot be written: {problem}. Requests are served as usual, but {lost} entries are missing since the \
                 start. The log will say how many"
            ),
        ))
    }

    /// Sets why checkpoints get no timestamps; `None` clears it.
    pub fn set_timestamp_problem(&self, problem: Option<String>) {
        *lock(&self.0.shared.timestamp_problem) = problem;
    }

    /// Entries that were written since the start.
    #[cfg(test)]
    pub fn written_count(&self) -> u64 {
        self.0.shared.entries.get()
    }

    /// Entries that were lost since the start.
    pub fn lost_count(&self) -> u64 {
        self.0.shared.lost.get()
    }

    /// Hands the log over to another process. Waits until the thread has written its queue and the
    /// end of this run. The thread then appends only what this process still records.
    pub fn hand_over(&self) {
        if let Some((sender, _)) = &*lock(&self.0.thread) {
            let (done, is_done) = channel();
            // A thread that panicked has logged it.
            let _ = sender.send(done);
            let _ = is_done.recv();
        }
    }

    /// Opens the log again after [`EvidenceRecorder::hand_over`], as a new run: the other process has
    /// ended.
    pub fn reopen(&self) {
        let Some((directory, settings)) = &self.0.location else {
            return;
        };
        self.close();
        let thread = start_writer(directory, &self.0.shared, settings);
        *lock(&self.0.thread) = thread
            .map_err(|why| self.0.shared.record_failure(0, &why))
            .ok();
    }

    /// Writes the end of the run, with a checkpoint. Later entries are not written.
    pub fn close(&self) {
        let thread = lock(&self.0.thread).take();
        if let Some((sender, thread)) = thread {
            drop(sender);
            // A thread that panicked has logged it.
            let _ = thread.join();
        }
    }
}

/// Why the log cannot be written in this run.
#[derive(Debug, thiserror::Error)]
enum StartLogError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot write the log: {0}")]
    Database(#[from] DatabaseError),
    #[error("cannot begin this run: {0}")]
    Begin(#[from] std::io::Error),
}

/// Opens the log, stores the timestamp authorities of the settings, begins a run and starts the
/// writer thread.
fn start_writer(
    directory: &Path,
    shared: &Arc<EvidenceWriterShared>,
    settings: &EvidenceSettings,
) -> Result<WriterThread, StartLogError> {
    let mut log = open_for_writing(directory, SystemTime::now())?;
    if let Some(because) = log.former_damage {
        tracing::warn!("{}", new_log_message(because));
        *lock(&shared.former_damage) = Some(because);
    }
    log.database
        .write(|log| log.set_timestamp_authorities(&settings.timestamps))?;
    let writer = LogWriter::begin_run(log, directory, shared.clone(), settings.clone())?;
    let (sender, receiver) = channel();
    Ok((sender, spawn("evidence", move || writer.run(&receiver))?))
}

fn new_log_message(because: LogDamage) -> String {
    format!(
        "a new evidence log began at the start: {because}. The files of the former log were renamed; publish the new key. \
         The next start ends this message"
    )
}
