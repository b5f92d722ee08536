//! [`Evidence`]: the handle that records go through. A record costs a short lock and no waiting.
//!
//! The handle is off, open, or failed to open. While it is open, a thread writes the records (`writer`). If the opening failed,
//! records are counted and dropped.

use super::opening::open;
use super::writer::{HandOver, Writer};
use super::{Bounds, ChainName, DatabaseError, OpenError, Record, Shared};
use crate::locks::lock;
use crate::settings::AddressDetail;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::SystemTime;

/// The handle; cheap to clone.
#[derive(Clone, Default)]
pub struct Evidence(Option<Arc<Handle>>);

struct Handle {
    shared: Arc<Shared>,
    addresses: AddressDetail,
    /// Whether the log could be opened.
    is_open: bool,
    /// Where the log is, how much is kept, and who is asked for timestamps.
    place: (PathBuf, Bounds, Vec<String>),
    /// The thread, and what it lives by.
    thread: Mutex<Option<Thread>>,
}

type Thread = (Sender<HandOver>, JoinHandle<Writer>);

impl Evidence {
    /// No evidence is kept.
    pub fn off() -> Evidence {
        Evidence::default()
    }

    /// Opens the log in a directory and starts its thread. Where that fails, requests go on and nothing is kept:
    /// [`Evidence::problem`] says why.
    pub fn open(directory: &Path, bounds: Bounds, addresses: AddressDetail, authorities: &[String]) -> Evidence {
        let shared = Arc::<Shared>::default();
        let thread = start(directory, &shared, bounds, authorities).map_err(|why| shared.failed(0, &why)).ok();
        let is_open = thread.is_some();
        let place = (directory.to_owned(), bounds, authorities.to_vec());
        Evidence(Some(Arc::new(Handle { shared, addresses, is_open, place, thread: Mutex::new(thread) })))
    }

    /// Whether anything is kept.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// How much of a client's address is kept.
    pub fn addresses(&self) -> AddressDetail {
        self.0.as_ref().map_or(AddressDetail::None, |handle| handle.addresses)
    }

    /// Records what a crawler did, if there is room in this second; `make` is called only then.
    pub fn record(&self, site: &str, crawler: &str, now: SystemTime, make: impl FnOnce() -> Record) {
        let Some(handle) = &self.0 else { return };
        let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        if !handle.is_open {
            handle.shared.lose(1);
        } else if lock(&handle.shared.queue).admits(site, crawler, second) {
            let record = make();
            lock(&handle.shared.queue).add(ChainName::of_crawler(site, crawler), record);
        }
    }

    /// Records what a site published.
    pub fn published(&self, site: &str, record: Record) {
        if let Some(handle) = self.0.as_ref().filter(|handle| handle.is_open) {
            lock(&handle.shared.queue).add(ChainName::of_site(site), record);
        }
    }

    /// Why evidence is being lost, where it is.
    pub fn problem(&self) -> Option<String> {
        let handle = self.0.as_ref()?;
        let Some(problem) = lock(&handle.shared.problem).clone() else {
            return lock(&handle.shared.stamp_problem).clone();
        };
        let lost = self.lost();
        Some(format!(
            "evidence cannot be written: {problem}; requests are served, and {lost} entries are missing since the start. \
             The log will say how many"
        ))
    }

    /// Says why checkpoints get no timestamps, or that they do.
    pub fn set_stamp_problem(&self, problem: Option<String>) {
        if let Some(handle) = &self.0 {
            *lock(&handle.shared.stamp_problem) = problem;
        }
    }

    /// Entries that were written since the start.
    pub fn entries(&self) -> u64 {
        self.0.as_ref().map_or(0, |handle| handle.shared.entries.load(Ordering::Relaxed))
    }

    /// Entries that were left out since the start.
    pub fn lost(&self) -> u64 {
        self.0.as_ref().map_or(0, |handle| handle.shared.lost.load(Ordering::Relaxed))
    }

    /// Another process writes the log from now on. What this one still records is written beside it.
    pub fn hand_over(&self) {
        let Some(handle) = &self.0 else { return };
        let mut thread = lock(&handle.thread);
        let Some((told, former)) = thread.take() else { return };
        // A thread that panicked hears nothing, and has said so.
        let _ = told.send(HandOver);
        let Ok(writer) = former.join() else { return };
        match spawn(writer) {
            Ok(former) => *thread = Some(former),
            Err(why) => handle.shared.failed(0, &why),
        }
    }

    /// Opens the log again after [`Evidence::hand_over`], as a run of its own: the other process has ended.
    pub fn reopen(&self) {
        let Some(handle) = self.0.as_ref().filter(|handle| handle.is_open) else { return };
        self.close();
        let (directory, bounds, authorities) = &handle.place;
        match start(directory, &handle.shared, *bounds, authorities) {
            Ok(thread) => *lock(&handle.thread) = Some(thread),
            Err(why) => handle.shared.failed(0, &why),
        }
    }

    /// Writes the end of the run, with a checkpoint. Nothing is written after it.
    pub fn close(&self) {
        let Some(handle) = &self.0 else { return };
        let thread = lock(&handle.thread).take();
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

fn start(directory: &Path, shared: &Arc<Shared>, bounds: Bounds, authorities: &[String]) -> Result<Thread, StartError> {
    let mut log = open(directory, SystemTime::now())?;
    if let Some(because) = log.begun_anew {
        tracing::warn!("a new evidence log begins, because {because}; the files of the one before were renamed");
    }
    log.database.write(|log| log.set_authorities(authorities))?;
    let writer = Writer::begin(log, directory, shared.clone(), bounds)?;
    Ok(spawn(writer)?)
}

fn spawn(writer: Writer) -> Result<Thread, std::io::Error> {
    let (tell, told) = channel();
    let run = move || writer.run(&told);
    Ok((tell, std::thread::Builder::new().name("evidence".into()).spawn(run)?))
}
