//! [`StateStore`]: the interface by which other modules save what must outlast a restart. It opens
//! the state directory, hands facts (what is to be saved) to the thread that writes the database
//! (`writer.rs`), and passes the directory to the next process in an upgrade.

use super::database::{Database, DatabaseError, STATE_FILE, set_aside};
use super::health::{StateError, StoreHealth};
use super::history::RequestHistoryReader;
use super::lock::{LockOutcome, ProcessLock};
use super::previous_run::{PreviousRun, RestoredState};
use super::writer::{StateWriter, StateWriterShared, StoreClock, WritePurpose, WriteRequest};
use crate::clock::Moment;
use crate::facts::{Fact, StoredFacts};
use crate::locks::lock;
use crate::record::DayPaths;
use crate::threads::spawn;
use crate::time::Timestamp;
use StoreHealth::*;
use WritePurpose::*;
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
const LOCK_FILE: &str = "lock";

/// The state store; cheap to clone.
#[derive(Clone)]
pub struct StateStore(Arc<StateStoreInner>);

struct StateStoreInner {
    shared: Arc<StateWriterShared>,
    /// The writer thread. A store in memory has none.
    thread: Mutex<Option<JoinHandle<()>>>,
    history: RequestHistoryReader,
    /// The lock of a directory that cannot be written, held until the process ends.
    _lock: Option<ProcessLock>,
}

impl Deref for StateStore {
    type Target = StateWriterShared;

    fn deref(&self) -> &StateWriterShared {
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
    /// A store without a directory. It drops facts, and its clock stands still at 1970.
    pub fn in_memory_only() -> (StateStore, RestoredState) {
        StateStore::without_directory(Arc::new(|| Moment {
            now: Timestamp::default(),
            monotonic: Duration::ZERO,
        }))
    }

    /// A store without a directory, with a clock. It restores nothing of a previous run.
    fn without_directory(now: StoreClock) -> (StateStore, RestoredState) {
        let shared = StateWriterShared::new(String::new(), NoDirectory, PreviousRun::Unknown, now);
        (
            StateStore::new(shared, None, None),
            RestoredState::default(),
        )
    }

    fn new(
        shared: impl Into<Arc<StateWriterShared>>,
        thread: Option<JoinHandle<()>>,
        lock: Option<ProcessLock>,
    ) -> StateStore {
        let shared: Arc<StateWriterShared> = shared.into();
        let history = match shared.memory.clone() {
            Some(memory) => RequestHistoryReader::from_memory(memory),
            None => RequestHistoryReader::from_file(Path::new(&shared.directory).join(STATE_FILE)),
        };
        StateStore(Arc::new(StateStoreInner {
            shared,
            history,
            thread: Mutex::new(thread),
            _lock: lock,
        }))
    }

    /// Opens or creates a state directory, and reads what the previous run left. Without a
    /// directory, and if it cannot be used, the store keeps everything in memory. Nothing is
    /// committed before [`StateStore::begin`].
    ///
    /// A directory that cannot be written is still read (also for pauses and last good policies).
    /// Then the previous run is [`PreviousRun::Unknown`].
    ///
    /// # Errors
    /// Another process owns the directory, or no thread can be started.
    pub fn open(
        directory: Option<&Path>,
        now: StoreClock,
    ) -> Result<(StateStore, RestoredState), StateError> {
        let Some(directory) = directory else {
            return Ok(StateStore::without_directory(now));
        };
        // For this user alone: the store holds addresses of clients.
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory);
        let (lock, was_released) =
            match made.and_then(|()| ProcessLock::acquire(&directory.join(LOCK_FILE))) {
                Ok(LockOutcome::Owned { lock, was_released }) => (lock, was_released),
                Ok(LockOutcome::Held { pid }) => {
                    return Err(StateError::Held {
                        directory: directory.display().to_string(),
                        pid,
                    });
                }
                Err(error) => {
                    return Ok(StateStore::for_unwritable_directory(
                        directory, &error, None, now,
                    ));
                }
            };
        match open_database(&directory.join(STATE_FILE), now().now) {
            Ok((database, mut remembered)) => {
                if !was_released {
                    // A run after the one that ended in order could not open the file.
                    remembered.previous_run = remembered.previous_run.as_crashed();
                }
                StateStore::on_disk(directory, database, lock, remembered, now)
            }
            Err(error) => Ok(StateStore::for_unwritable_directory(
                directory,
                &error,
                Some(lock),
                now,
            )),
        }
    }

    /// Opens the state directory that the previous process has closed for this one, with its lock.
    /// That process still answers requests. Nothing is on disk before
    /// [`StateStore::commit_take_over`].
    ///
    /// # Errors
    /// The directory cannot be used. Nothing was written.
    pub fn take_over(
        directory: &Path,
        lock: OwnedFd,
        now: StoreClock,
    ) -> Result<(StateStore, RestoredState), StateError> {
        let name = directory.display().to_string();
        let lock = ProcessLock::from_descriptor(lock)
            .map_err(|error| StateError::write_failed(&name, &error))?;
        let opened = Database::open_in_transaction(&directory.join(STATE_FILE))
            .and_then(|database| read_previous_run(database, now().now));
        let (database, remembered) =
            opened.map_err(|error| StateError::write_failed(&name, &error))?;
        StateStore::on_disk(
            directory,
            database,
            lock,
            RestoredState {
                is_handed_over: true,
                ..remembered
            },
            now,
        )
    }

    /// Commits everything since [`StateStore::take_over`].
    ///
    /// # Errors
    /// Nothing was written.
    pub fn commit_take_over(&self) -> Result<(), StateError> {
        self.send_and_wait(Settle, Vec::new())
    }

    /// Writes everything and closes the directory for another process. Returns a descriptor of the
    /// lock for that process, or `None` if the store writes no directory. Later facts wait for
    /// [`StateStore::reclaim`].
    ///
    /// # Errors
    /// The directory cannot be written. Then it stays open.
    pub fn hand_over(&self) -> Result<Option<OwnedFd>, StateError> {
        self.send_and_wait(HandOver, Vec::new())?;
        self.0.join_thread();
        lock(&self.retained_lock)
            .as_ref()
            .map(ProcessLock::duplicate_descriptor)
            .transpose()
            .map_err(|error| self.write_failed(&error))
    }

    /// Ends a hand-over: the other process owns the directory from now on, and this one no longer
    /// releases the lock. Does nothing if no lock was handed over.
    pub fn transfer_lock(&self) {
        if let Some(kept) = lock(&self.retained_lock).as_mut() {
            kept.mark_transferred();
        }
    }

    /// Undoes a hand-over after the other process has ended: opens the directory again and starts a
    /// new writer thread. Does nothing if no lock was handed over.
    ///
    /// # Errors
    /// The directory cannot be opened. Facts wait in memory, and the lock is given up.
    pub fn reclaim(&self) -> Result<(), StateError> {
        let Some(mut kept) = lock(&self.retained_lock).take() else {
            return Ok(());
        };
        kept.reclaim().map_err(|error| self.write_failed(&error))?;
        let database = Database::open(&Path::new(&self.directory).join(STATE_FILE))
            .map_err(|error| self.write_failed(&error))?;
        database
            .clear_clean_end()
            .map_err(|error| self.write_failed(&error))?;
        self.reopen();
        let writer = StateWriter::for_resumed_run(database, kept, self.0.shared.clone());
        *lock(&self.0.thread) = Some(spawn_writer(writer, &self.directory)?);
        Ok(())
    }

    /// Reads a whole state directory, which another crawlgate may be using, and checks it for
    /// damage.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or does not exist.
    pub fn check(directory: &Path, now: Timestamp) -> Result<StoredFacts, StateError> {
        let facts = StateStore::read(directory, now)?;
        let file = directory.join(STATE_FILE);
        Database::open_read_only(&file)
            .and_then(|database| database.check())
            .map(|()| facts)
            .map_err(|error| StateError::read_failed(&file, &error))
    }

    /// Reads the facts of a state directory without writing or locking it. If another crawlgate
    /// runs on it, these are the facts of its last commit. A directory without a `state.db` has no
    /// facts.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(directory: &Path, now: Timestamp) -> Result<StoredFacts, StateError> {
        let file = directory.join(STATE_FILE);
        match fs::metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(StoredFacts::default());
            }
            Err(error) => return Err(StateError::read_failed(&file, &error)),
            Ok(_) => {}
        }
        Database::open_read_only(&file)
            .and_then(|database| database.read(now))
            .map(|(facts, _)| facts)
            .map_err(|error| StateError::read_failed(&file, &error))
    }

    /// The store of a directory that this process owns, with its database open. Starts the writer
    /// thread, and sets in `remembered` whether observation continues. If it does not, the first
    /// commit of the run deletes the stored observations.
    ///
    /// # Errors
    /// No thread can be started.
    fn on_disk(
        directory: &Path,
        database: Database,
        lock: ProcessLock,
        mut remembered: RestoredState,
        now: StoreClock,
    ) -> Result<(StateStore, RestoredState), StateError> {
        remembered.is_continued = remembered.previous_run.is_continued_at(now().now);
        // The clean end was taken away when the file was opened.
        let on_disk = remembered.previous_run.as_crashed();
        let shared = Arc::new(StateWriterShared::new(
            directory.display().to_string(),
            Healthy,
            on_disk,
            now,
        ));
        let writer = StateWriter::new(database, lock, shared.clone(), !remembered.is_continued);
        let thread = spawn_writer(writer, &shared.directory)?;
        Ok((StateStore::new(shared, Some(thread), None), remembered))
    }

    /// The store of a directory that cannot be written, for the reason `error`, which is logged.
    /// Reads the stored facts, if that is possible, with an unknown previous run. Keeps `lock`
    /// until the process ends.
    fn for_unwritable_directory(
        directory: &Path,
        error: &dyn fmt::Display,
        lock: Option<ProcessLock>,
        now: StoreClock,
    ) -> (StateStore, RestoredState) {
        let read = Database::open_read_only(&directory.join(STATE_FILE))
            .and_then(|database| database.read(now().now));
        let (facts, _) = read.unwrap_or_default();
        let directory = directory.display().to_string();
        let why = Unusable {
            directory: directory.clone(),
            error: error.to_string(),
        };
        tracing::error!("{why}");
        let shared = StateWriterShared::new(directory, why, PreviousRun::Unknown, now);
        (
            StateStore::new(shared, None, lock),
            RestoredState {
                facts,
                ..RestoredState::default()
            },
        )
    }

    /// Commits facts that follow from the end of the previous run, and begins the commits of this
    /// one, about one a second. Call it before the first request is answered. If it fails, the
    /// facts wait and are tried again.
    ///
    /// # Errors
    /// Nothing could be written yet.
    pub fn begin(&self, facts: Vec<Fact>) -> Result<(), StateError> {
        self.send_and_wait(Begin, facts)
    }

    /// Writes facts, and those that were put before, and waits until they are on disk. If it fails,
    /// these facts are dropped. Not for the request path.
    ///
    /// # Errors
    /// They are not on disk.
    pub fn commit(&self, facts: Vec<Fact>) -> Result<(), StateError> {
        self.send_and_wait(Commit, facts)
    }

    /// Commits facts that the next start must know before they take effect: publications, and
    /// changes of crawler identities. If that fails, it still succeeds once the next start will see
    /// a gap anyway, and the facts wait to be written. In memory it succeeds.
    ///
    /// # Errors
    /// The facts must not take effect yet. Try again about once a second.
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

    /// Commits facts. If that fails, they wait for a later commit, so the caller sees no error.
    /// Does nothing without facts.
    pub fn commit_or_queue(&self, facts: Vec<Fact>) {
        if !facts.is_empty() && self.commit(facts.clone()).is_err() {
            self.put(facts);
        }
    }

    /// Writes the history that was put before, so that readers find it. Waits at most `limit`, and
    /// not at all if writing fails. Then it is written later.
    pub fn flush_history(&self, limit: Duration) {
        if self.health() == Healthy {
            let _ = self.send_request(Flush, Vec::new()).recv_timeout(limit);
        }
    }

    /// Writes everything and the clean end, and releases the directory. Later facts are lost.
    ///
    /// # Errors
    /// The next start will find a crashed run.
    pub fn close(&self) -> Result<(), StateError> {
        let closed = self.send_and_wait(Close, Vec::new());
        self.0.join_thread();
        closed
    }

    /// The paths of crawlers that were stored of the day that has `now`. Empty if they cannot be
    /// read, and without a directory.
    pub fn paths_of_day(&self, now: Timestamp) -> Vec<DayPaths> {
        // By a connection of its own, which ends here: an open one keeps the write-ahead log.
        let file = Path::new(&self.directory).join(STATE_FILE);
        RequestHistoryReader::from_file(file)
            .paths_of_day(now)
            .unwrap_or_default()
    }

    /// Returns a reader of the history: of this run alone if nothing is written to a directory.
    pub fn history(&self) -> RequestHistoryReader {
        self.0.history.clone()
    }

    /// Hands a request to the writer thread, and waits for the result. A store without a directory
    /// that can be used succeeds at once.
    ///
    /// # Errors
    /// It was not written, or the store is closed.
    fn send_and_wait(&self, purpose: WritePurpose, facts: Vec<Fact>) -> Result<(), StateError> {
        if self.health().is_in_memory() {
            return Ok(());
        }
        self.send_request(purpose, facts)
            .recv()
            .unwrap_or_else(|_| Err(self.write_failed(&"it was closed")))
    }

    /// Hands a request to the writer thread, and returns the receiver of the result. A closed store
    /// drops the request, which disconnects the receiver.
    fn send_request(
        &self,
        purpose: WritePurpose,
        facts: Vec<Fact>,
    ) -> Receiver<Result<(), StateError>> {
        let (done, answer) = sync_channel(1);
        self.0.shared.enqueue(WriteRequest {
            purpose,
            facts,
            done,
        });
        answer
    }

    #[cfg(test)]
    pub(crate) fn execute(&self, sql: &'static str) {
        self.send_and_wait(Execute(sql), Vec::new())
            .expect("executed");
    }
}

impl StateStoreInner {
    /// Waits for the end of the writer thread, which releases the lock or keeps it for another
    /// process. Does nothing if there is no thread.
    fn join_thread(&self) {
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Drop for StateStoreInner {
    /// Ends the thread without a clean end, like a crash: nothing is written any more.
    fn drop(&mut self) {
        self.shared.close_without_commit();
        self.join_thread();
    }
}

/// Opens the file and reads it. Renames a damaged file, or one of an older crawlgate, and creates
/// an empty one. The log and `RestoredState::set_aside` have the new name.
///
/// # Errors
/// The file cannot be used or renamed.
fn open_database(file: &Path, now: Timestamp) -> Result<(Database, RestoredState), DatabaseError> {
    use DatabaseError::*;
    let opened = Database::open(file).and_then(|database| read_previous_run(database, now));
    let error = match opened {
        Err(error @ (Damaged(_) | Former { .. })) => error,
        opened => return opened,
    };
    let why = match error {
        Former { .. } => "former",
        _ => "damaged",
    };
    let aside = set_aside(file, why, now)
        .map_err(|why| Damaged(format!("{error}; it cannot be set aside: {why}")))?;
    tracing::error!(
        "cannot use {}: {error}; crawlgate set it aside as {}, begins an empty one, and counts no violations for a \
         day. Pauses and last good policies are lost: check them",
        file.display(),
        aside.display()
    );
    let (database, remembered) = read_previous_run(Database::open(file)?, now)?;
    Ok((
        database,
        RestoredState {
            set_aside: Some(aside),
            ..remembered
        },
    ))
}

/// Reads what the previous run left, and clears its clean end: if this run crashes, the next start
/// must find a crash.
fn read_previous_run(
    database: Database,
    now: Timestamp,
) -> Result<(Database, RestoredState), DatabaseError> {
    let (facts, previous_run) = database.read(now)?;
    database.clear_clean_end()?;
    Ok((
        database,
        RestoredState {
            previous_run,
            facts,
            ..RestoredState::default()
        },
    ))
}

/// Starts the writer thread.
fn spawn_writer(writer: StateWriter, directory: &str) -> Result<JoinHandle<()>, StateError> {
    spawn("state", || writer.run()).map_err(|error| StateError::write_failed(directory, &error))
}
