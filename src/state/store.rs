//! [`StateStore`]: the interface of the store for other modules. It opens the state directory or
//! takes it over, and hands facts (changes of records) to the thread that writes (`writer.rs`).

use super::database::{Database, DatabaseError, FILE, set_aside};
use super::health::{StateError, StoreHealth};
use super::history::HistoryReader;
use super::lock::{Locking, ProcessLock};
use super::previous_run::{PreviousRun, Remembered};
use super::writer::{Now, Purpose, Request, Shared, Writer};
use crate::clock::Moment;
use crate::facts::{Fact, StoredFacts};
use crate::locks::lock;
use crate::threads::spawn;
use crate::time::Timestamp;
use std::fmt;
use std::fs;
use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The file of a state directory that its owner locks.
const LOCK: &str = "lock";

/// The store; cheap to clone.
#[derive(Clone)]
pub struct StateStore(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    /// The thread that writes. A store in memory has none.
    thread: Mutex<Option<JoinHandle<()>>>,
    history: HistoryReader,
    /// Of a directory that cannot be written: held until the process ends, where it could be had.
    _lock: Option<ProcessLock>,
}

impl Deref for StateStore {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0.shared
    }
}

impl fmt::Debug for StateStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateStore")
            .field("health", &self.health())
            .finish_non_exhaustive()
    }
}

impl StateStore {
    /// A store without a directory: it drops facts that are put, and its clock stands still at
    /// 1970.
    pub fn in_memory_only() -> (StateStore, Remembered) {
        StateStore::without_directory(Arc::new(|| Moment {
            now: Timestamp::default(),
            lived: Duration::ZERO,
        }))
    }

    /// A store without a directory, with a clock. It remembers nothing of a previous run.
    fn without_directory(now: Now) -> (StateStore, Remembered) {
        let shared = Shared::new(
            String::new(),
            StoreHealth::NoDirectory,
            PreviousRun::Unknown,
            now,
        );
        (StateStore::new(shared, None, None), Remembered::default())
    }

    fn new(
        shared: impl Into<Arc<Shared>>,
        thread: Option<JoinHandle<()>>,
        lock: Option<ProcessLock>,
    ) -> StateStore {
        let shared: Arc<Shared> = shared.into();
        let history = if shared.health().is_in_memory() {
            HistoryReader::of_memory(shared.memory.clone())
        } else {
            HistoryReader::of_file(Path::new(&shared.directory).join(FILE))
        };
        StateStore(Arc::new(Handle {
            shared,
            history,
            thread: Mutex::new(thread),
            _lock: lock,
        }))
    }

    /// Opens a state directory, making it if need be, and reads what the previous run left. Without
    /// a directory, and where it cannot be used, the store keeps everything in memory. Nothing is
    /// committed before [`StateStore::begin`].
    ///
    /// Where the directory can only be read, what is there is read (pauses and last good policies
    /// among it), and the previous run is [`PreviousRun::Unknown`].
    ///
    /// # Errors
    /// Another process owns the directory, or no thread can be started.
    pub fn open(
        directory: Option<&Path>,
        now: Now,
    ) -> Result<(StateStore, Remembered), StateError> {
        let Some(directory) = directory else {
            return Ok(StateStore::without_directory(now));
        };
        // For this user alone: the store holds addresses of clients.
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        let (lock, was_released) =
            match made.and_then(|()| ProcessLock::acquire(&directory.join(LOCK))) {
                Ok(Locking::Owned { lock, was_released }) => (lock, was_released),
                Ok(Locking::Held { pid }) => {
                    return Err(StateError::Held {
                        directory: directory.display().to_string(),
                        pid,
                    });
                }
                Err(error) => return Ok(StateStore::in_memory(directory, &error, None, now)),
            };
        match open_database(&directory.join(FILE), now().now) {
            Ok((database, mut remembered)) => {
                if !was_released {
                    // A run after the one that ended in order could not open the file.
                    remembered.previous_run = remembered.previous_run.without_end();
                }
                StateStore::on_disk(directory, database, lock, remembered, now)
            }
            Err(error) => Ok(StateStore::in_memory(directory, &error, Some(lock), now)),
        }
    }

    /// Opens the state directory that the process before has closed for this one, with its lock.
    /// That process still answers requests. Nothing is on the disk before [`StateStore::settle`].
    ///
    /// # Errors
    /// The directory cannot be used. Nothing was written.
    pub fn take_over(
        directory: &Path,
        lock: OwnedFd,
        now: Now,
    ) -> Result<(StateStore, Remembered), StateError> {
        let name = directory.display().to_string();
        let lock =
            ProcessLock::passed(lock).map_err(|error| StateError::unwritten(&name, &error))?;
        let opened = Database::open_held(&directory.join(FILE))
            .and_then(|database| read(database, now().now));
        let (database, remembered) =
            opened.map_err(|error| StateError::unwritten(&name, &error))?;
        StateStore::on_disk(
            directory,
            database,
            lock,
            Remembered {
                is_handed_over: true,
                ..remembered
            },
            now,
        )
    }

    /// Puts everything since [`StateStore::take_over`] on the disk.
    ///
    /// # Errors
    /// Nothing was written.
    pub fn settle(&self) -> Result<(), StateError> {
        self.ask(Purpose::Settle, Vec::new())
    }

    /// Writes everything and closes the directory for another process. Returns the descriptor of
    /// the lock for that process, `None` where the store has no directory that it writes. Facts
    /// that are put later wait for [`StateStore::take_back`].
    ///
    /// # Errors
    /// The directory cannot be written. Then it stays open.
    pub fn hand_over(&self) -> Result<Option<OwnedFd>, StateError> {
        self.ask(Purpose::HandOver, Vec::new())?;
        self.0.join();
        let shared = lock(&self.kept_lock)
            .as_ref()
            .map(ProcessLock::share)
            .transpose();
        shared.map_err(|error| self.unwritten(&error))
    }

    /// After `StateStore::hand_over`: the other process owns the directory from now on, and this
    /// one no longer releases the lock. Does nothing if no lock was handed over.
    pub fn pass_on(&self) {
        if let Some(kept) = lock(&self.kept_lock).as_mut() {
            kept.pass_on();
        }
    }

    /// Undoes `StateStore::hand_over` after the other process has ended: opens the directory again
    /// and starts a new thread that writes. Does nothing if no lock was handed over.
    ///
    /// # Errors
    /// The directory cannot be opened. Facts wait in memory, and the lock is given up.
    pub fn take_back(&self) -> Result<(), StateError> {
        let Some(mut kept) = lock(&self.kept_lock).take() else {
            return Ok(());
        };
        kept.write_owner().map_err(|error| self.unwritten(&error))?;
        let database = Database::open(&Path::new(&self.directory).join(FILE))
            .map_err(|error| self.unwritten(&error))?;
        database
            .take_clean_end()
            .map_err(|error| self.unwritten(&error))?;
        self.reopen();
        let writer = Writer::resumed(database, kept, self.0.shared.clone());
        *lock(&self.0.thread) = Some(start(writer, &self.directory)?);
        Ok(())
    }

    /// Reads all of a state directory that another crawlgate may be using, and looks for damage.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or does not exist.
    pub fn check(directory: &Path, now: Timestamp) -> Result<StoredFacts, StateError> {
        let facts = StateStore::read(directory, now)?;
        let file = directory.join(FILE);
        let checked = Database::open_read_only(&file).and_then(|database| database.check());
        checked
            .map(|()| facts)
            .map_err(|error| StateError::unread(&file, &error))
    }

    /// Reads the facts of a state directory without owning it: nothing is written and no lock is
    /// taken. Another crawlgate may be running on it; then these are the facts of its last commit.
    /// A directory without a `state.db` has no facts.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(directory: &Path, now: Timestamp) -> Result<StoredFacts, StateError> {
        let file = directory.join(FILE);
        match fs::metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(StoredFacts::default());
            }
            Err(error) => return Err(StateError::unread(&file, &error)),
            Ok(_) => {}
        }
        let read = Database::open_read_only(&file).and_then(|database| database.read(now));
        read.map(|(facts, _)| facts)
            .map_err(|error| StateError::unread(&file, &error))
    }

    /// The store of a directory that this process owns, with its database open. Starts the thread
    /// that writes, and sets in `remembered` whether observation continues. If it does not, the
    /// first commit of the run deletes the stored observations.
    ///
    /// # Errors
    /// No thread can be started.
    fn on_disk(
        directory: &Path,
        database: Database,
        lock: ProcessLock,
        mut remembered: Remembered,
        now: Now,
    ) -> Result<(StateStore, Remembered), StateError> {
        remembered.is_continued = remembered.previous_run.is_continued_at(now().now);
        // The clean end was taken away when the file was opened.
        let on_disk = remembered.previous_run.without_end();
        let shared = Arc::new(Shared::new(
            directory.display().to_string(),
            StoreHealth::Healthy,
            on_disk,
            now,
        ));
        let writer = Writer::new(database, lock, shared.clone(), !remembered.is_continued);
        let thread = start(writer, &shared.directory)?;
        Ok((StateStore::new(shared, Some(thread), None), remembered))
    }

    /// The store of a directory that cannot be written, for the reason `error`, which is logged.
    /// Reads the facts that are there (none if they cannot be read), and takes the previous run for
    /// unknown. Holds `lock` until the process ends.
    fn in_memory(
        directory: &Path,
        error: &dyn fmt::Display,
        lock: Option<ProcessLock>,
        now: Now,
    ) -> (StateStore, Remembered) {
        let read = Database::open_read_only(&directory.join(FILE))
            .and_then(|database| database.read(now().now));
        let (facts, left) = read.unwrap_or_default();
        let directory = directory.display().to_string();
        let why = StoreHealth::Unusable {
            directory: directory.clone(),
            error: error.to_string(),
        };
        tracing::error!("{why}");
        let shared = Shared::new(directory, why, left, now);
        (
            StateStore::new(shared, None, lock),
            Remembered {
                facts,
                ..Remembered::default()
            },
        )
    }

    /// Commits what follows from the end of the previous run, and begins the commits of this one,
    /// about one a second. To be called before the first request is answered. Where it fails, the
    /// facts wait and are tried again.
    ///
    /// # Errors
    /// Nothing could be written yet.
    pub fn begin(&self, facts: Vec<Fact>) -> Result<(), StateError> {
        self.ask(Purpose::Begin, facts)
    }

    /// Writes facts, and those that were put before, and waits until they are on the disk. Where it
    /// fails, these facts are dropped. Not for the request path.
    ///
    /// # Errors
    /// They are not on the disk.
    pub fn commit(&self, facts: Vec<Fact>) -> Result<(), StateError> {
        self.ask(Purpose::Commit, facts)
    }

    /// Commits facts that have to be known to the next start before they take effect: publications,
    /// and changes of how crawlers are told apart. Where that fails, it succeeds nevertheless once
    /// the next start will see a gap in any case; then the facts wait to be written. In memory it
    /// succeeds unless the directory could mislead a start.
    ///
    /// # Errors
    /// They must not take effect yet. To be tried again, about once a second.
    pub fn publish(&self, facts: Vec<Fact>) -> Result<(), StateError> {
        match self.commit(facts.clone()) {
            Err(error) if !self.may_publish((self.now)()) => Err(error),
            Err(_) => {
                self.put(facts);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Commits facts and waits for that. If it fails, the facts wait to be written with a later
    /// commit, so the caller sees no error. Does nothing without facts.
    pub fn keep(&self, facts: Vec<Fact>) {
        if !facts.is_empty() && self.commit(facts.clone()).is_err() {
            self.put(facts);
        }
    }

    /// Writes the history that was put before, so that readers find it, and waits until that is
    /// done: for `limit` at most, and not at all where writing fails. Then it is written later.
    pub fn flush_history(&self, limit: Duration) {
        if self.health() == StoreHealth::Healthy {
            let _ = self.send(Purpose::Flush, Vec::new()).recv_timeout(limit);
        }
    }

    /// Writes everything and the clean end, and gives the directory up. Facts that are put later
    /// are lost.
    ///
    /// # Errors
    /// The next start will find a run that crashed.
    pub fn close(&self) -> Result<(), StateError> {
        let closed = self.ask(Purpose::Close, Vec::new());
        self.0.join();
        closed
    }

    /// Reads the history: of this run alone where nothing is written to a directory.
    pub fn history(&self) -> HistoryReader {
        self.0.history.clone()
    }

    /// Hands a request to the thread that writes, and waits for its answer. A store without a
    /// directory succeeds at once. One whose directory cannot be used succeeds only if what is
    /// stored there cannot mislead the next start (`super::writer::Shared::may_publish`).
    ///
    /// # Errors
    /// It was not written, or the store is closed.
    fn ask(&self, purpose: Purpose, facts: Vec<Fact>) -> Result<(), StateError> {
        match self.health() {
            StoreHealth::NoDirectory => return Ok(()),
            StoreHealth::Unusable { .. } if self.may_publish((self.now)()) => return Ok(()),
            StoreHealth::Unusable { directory, error } => {
                return Err(StateError::Unwritten { directory, error });
            }
            StoreHealth::Healthy | StoreHealth::Failing { .. } => {}
        }
        self.send(purpose, facts).recv().unwrap_or_else(|_| {
            Err(StateError::Closed {
                directory: self.directory.clone(),
            })
        })
    }

    /// Hands a request to the thread that writes, and returns where its answer comes. A store that
    /// is closed drops the request, and with it the sender of the answer.
    fn send(&self, purpose: Purpose, facts: Vec<Fact>) -> Receiver<Result<(), StateError>> {
        let (done, answer) = sync_channel(1);
        self.0.shared.ask(Request {
            purpose,
            facts,
            done,
        });
        answer
    }

    #[cfg(test)]
    pub(crate) fn execute(&self, sql: &'static str) {
        self.ask(Purpose::Execute(sql), Vec::new())
            .expect("executed");
    }
}

impl Handle {
    /// Waits for the end of the thread that writes, which also releases the lock or keeps it for
    /// another process. Does nothing if there is no thread any more.
    fn join(&self) {
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for Handle {
    /// Ends the thread without the end of the run, as a crash would: nothing is written any more.
    fn drop(&mut self) {
        self.shared.abandon();
        self.join();
    }
}

/// Opens the file and reads it. A file that is damaged, or that an earlier crawlgate wrote, is set
/// aside under another name, which the log and `Remembered::set_aside` name, and an empty one is
/// made.
///
/// # Errors
/// The file cannot be used, or cannot be set aside.
fn open_database(file: &Path, now: Timestamp) -> Result<(Database, Remembered), DatabaseError> {
    let opened = Database::open(file).and_then(|database| read(database, now));
    let error = match opened {
        Err(error @ (DatabaseError::Damaged(_) | DatabaseError::Former { .. })) => error,
        opened => return opened,
    };
    let why = match error {
        DatabaseError::Former { .. } => "former",
        _ => "damaged",
    };
    let aside = set_aside(file, why, now)
        .map_err(|why| DatabaseError::Damaged(format!("{error}; it cannot be set aside: {why}")))?;
    tracing::error!(
        "cannot use {}: {error}; crawlgate set it aside as {} and begins an empty one, and calls no crawler a violator \
         for a day. Pauses and last good policies are forgotten: check them.",
        file.display(),
        aside.display()
    );
    let (database, remembered) = read(Database::open(file)?, now)?;
    Ok((
        database,
        Remembered {
            set_aside: Some(aside),
            ..remembered
        },
    ))
}

/// Reads what the previous run left, and then removes its clean end from the file: if this run
/// crashes, the next start must find a crash.
fn read(database: Database, now: Timestamp) -> Result<(Database, Remembered), DatabaseError> {
    let (facts, previous_run) = database.read(now)?;
    database.take_clean_end()?;
    Ok((
        database,
        Remembered {
            previous_run,
            facts,
            ..Remembered::default()
        },
    ))
}

/// Starts the thread that writes.
fn start(writer: Writer, directory: &str) -> Result<JoinHandle<()>, StateError> {
    spawn("state", || writer.run()).map_err(|error| StateError::Thread {
        directory: directory.to_owned(),
        error: error.to_string(),
    })
}
