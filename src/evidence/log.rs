//! [`Evidence`]: the handle by which other modules write records to the evidence log. A record
//! costs a short lock, and never waits for the disk.
//!
//! The handle is off, open, or failed to open. While it is open, a thread writes the records
//! (`writer`). If the opening failed, records are counted and dropped.

use super::opening::open;
use super::writer::{HandOver, Writer};
use super::{ChainName, DatabaseError, OpenError, Record, Shared};
use crate::finding::Finding;
use crate::locks::lock;
use crate::settings::{AddressDetail, EvidenceSettings};
use prometheus::IntCounter;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// The handle; cheap to clone.
#[derive(Clone, Default)]
pub struct Evidence(Arc<Handle>);

/// Of evidence that is off, nothing is set.
#[derive(Default)]
struct Handle {
    shared: Arc<Shared>,
    /// How much of a client's address is kept; nothing where no evidence is.
    addresses: Option<AddressDetail>,
    /// Where the log is, and what the settings say of it; absent where the log could not be opened.
    place: Option<(PathBuf, EvidenceSettings)>,
    /// The thread, and what it lives by.
    thread: Mutex<Option<Thread>>,
}

type Thread = (Sender<HandOver>, JoinHandle<Writer>);

impl Evidence {
    /// No evidence is kept.
    pub fn off() -> Evidence {
        Evidence::default()
    }

    /// Opens the log in a directory and starts its thread. If that fails, requests go on and
    /// nothing is kept: records are counted as lost, and [`Evidence::problem`] says why.
    pub fn open(
        directory: &Path,
        settings: &EvidenceSettings,
        addresses: AddressDetail,
    ) -> Evidence {
        let shared = Arc::<Shared>::default();
        let thread = start(directory, &shared, settings)
            .map_err(|why| shared.failed(0, &why))
            .ok();
        let place = thread
            .as_ref()
            .map(|_| (directory.to_owned(), settings.clone()));
        Evidence(Arc::new(Handle {
            shared,
            addresses: Some(addresses),
            place,
            thread: Mutex::new(thread),
        }))
    }

    /// The counters of entries that were written and left out.
    pub fn counters(&self) -> [IntCounter; 2] {
        [&self.0.shared.entries, &self.0.shared.lost].map(IntCounter::clone)
    }

    /// Whether the settings ask for evidence, also if the log could not be opened.
    pub fn is_on(&self) -> bool {
        self.0.addresses.is_some()
    }

    /// How much of a client's address is kept; nothing where evidence is off.
    pub fn addresses(&self) -> AddressDetail {
        self.0.addresses.unwrap_or(AddressDetail::None)
    }

    /// Records what a crawler did, if there is room in this second; `make` is called only then. A
    /// record for which there is no room, or whose log could not be opened, is counted as lost.
    pub fn record(
        &self,
        site: &str,
        crawler: &str,
        now: SystemTime,
        make: impl FnOnce() -> Record,
    ) {
        if !self.is_on() {
            return;
        }
        let Handle { shared, place, .. } = &*self.0;
        let second = now
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |time| time.as_secs());
        if place.is_none() {
            shared.lose(1);
        } else if lock(&shared.queue).admits(site, crawler, second) {
            let record = make();
            lock(&shared.queue).add(ChainName::of_crawler(site, crawler), record);
        }
    }

    /// Records what a site published. There is always room for it. Does nothing if the log is not
    /// open.
    pub fn published(&self, site: &str, record: Record) {
        if self.0.place.is_some() {
            lock(&self.0.shared.queue).add(ChainName::of_site(site), record);
        }
    }

    /// Why evidence is being lost, or else why checkpoints get no timestamps. `None` if neither is
    /// so.
    pub fn problem(&self) -> Option<Finding> {
        let shared = &self.0.shared;
        let Some(problem) = lock(&shared.problem).clone() else {
            let problem = lock(&shared.stamp_problem).clone()?;
            return Some(Finding::new("evidence-timestamps", problem));
        };
        let lost = self.lost();
        Some(Finding::new(
            "evidence",
            format!(
                "evidence cannot be written: {problem}; requests are served, and {lost} entries are missing since the start. \
                 The log will say how many"
            ),
        ))
    }

    /// Records why checkpoints get no timestamps; `None` says that they do.
    pub fn set_stamp_problem(&self, problem: Option<String>) {
        *lock(&self.0.shared.stamp_problem) = problem;
    }

    /// Entries that were written since the start.
    #[cfg(test)]
    pub fn entries(&self) -> u64 {
        self.0.shared.entries.get()
    }

    /// Entries that were left out since the start.
    pub fn lost(&self) -> u64 {
        self.0.shared.lost.get()
    }

    /// Another process writes the log from now on. The thread writes what waits and the end of this
    /// run, and a new thread goes on to append only what this process still records. Waits for the
    /// first thread. Does nothing without a thread.
    pub fn hand_over(&self) {
        let mut thread = lock(&self.0.thread);
        let Some((told, former)) = thread.take() else {
            return;
        };
        // A thread that panicked hears nothing, and has said so.
        let _ = told.send(HandOver);
        let Ok(writer) = former.join() else { return };
        *thread = spawn(writer)
            .map_err(|why| self.0.shared.failed(0, &why))
            .ok();
    }

    /// Opens the log again after [`Evidence::hand_over`], as a run of its own: the other process
    /// has ended. Does nothing if the log was not open before.
    pub fn reopen(&self) {
        let Some((directory, settings)) = &self.0.place else {
            return;
        };
        self.close();
        let thread = start(directory, &self.0.shared, settings);
        *lock(&self.0.thread) = thread.map_err(|why| self.0.shared.failed(0, &why)).ok();
    }

    /// Writes the end of the run, with a checkpoint. Nothing is written after it.
    pub fn close(&self) {
        let thread = lock(&self.0.thread).take();
        if let Some((alive, thread)) = thread {
            drop(alive);
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

/// Why the log cannot be written in this run.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("cannot write the log: {0}")]
    Database(#[from] DatabaseError),
    #[error("cannot begin this run: {0}")]
    Begin(#[from] std::io::Error),
}

/// Opens the log, stores which authorities the settings name for timestamps, begins a run and
/// starts its thread.
fn start(
    directory: &Path,
    shared: &Arc<Shared>,
    settings: &EvidenceSettings,
) -> Result<Thread, StartError> {
    let mut log = open(directory, SystemTime::now())?;
    if let Some(because) = log.begun_anew {
        tracing::warn!(
            "a new evidence log begins, because {because}; the files of the one before were renamed"
        );
    }
    log.database
        .write(|log| log.set_authorities(&settings.timestamps))?;
    let writer = Writer::begin(log, directory, shared.clone(), settings.clone())?;
    Ok(spawn(writer)?)
}

/// Starts the thread of a writer. The thread ends when the returned sender sends or is dropped.
fn spawn(writer: Writer) -> Result<Thread, std::io::Error> {
    let (tell, told) = channel();
    let thread = std::thread::Builder::new()
        .name("evidence".into())
        .spawn(move || writer.run(&told))?;
    Ok((tell, thread))
}
