//! [`Writer`]: the thread that writes `state.db`. It commits about once a second, and at once when
//! a caller waits for the commit. [`Shared`] is what the handles of the store share with it: the
//! queue of facts and the health of the file.

use super::database::{Batch, Database, DatabaseError, RunRow};
use super::health::{StateError, StoreHealth};
use super::history::{HistoryBatch, Memory};
use super::lock::ProcessLock;
use super::previous_run::PreviousRun;
use super::queue::Pending;
use crate::clock::Moment;
use crate::facts::{Fact, Subscribers, taken_as_past};
use crate::locks::lock;
use crate::time::Timestamp;
use std::fmt::Display;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often facts are written.
const EVERY: Duration = Duration::from_secs(1);
/// How often the time of the commit is written while there is nothing else.
const IDLE: Duration = Duration::from_secs(5);
/// Writing may take this part of the time: large batches are written less often.
const SHARE: u32 = 10;
/// Large batches are written this often all the same, so that the next start does not take the
/// pause for a gap.
const SELDOM: Duration = Duration::from_secs(5);

/// The clock of the store.
pub type Now = Arc<dyn Fn() -> Moment + Send + Sync>;

/// A commit that a caller waits for.
pub struct Request {
    pub purpose: Purpose,
    pub facts: Vec<Fact>,
    /// Where the caller waits for the answer.
    pub done: SyncSender<Result<(), StateError>>,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Its facts follow from the end of the previous run; from now on the time of the commit is
    /// written.
    Begin,
    /// Its facts have to be on the disk.
    Commit,
    /// What was put has to be written, for readers of the file; a crash may lose it.
    Flush,
    /// Everything has to be on the disk, and the run ends.
    Close,
    /// As for `Close`, but another process goes on: the lock is kept for it.
    HandOver,
    /// Everything since the opening has to be on the disk: see [`Database::open_held`].
    Settle,
    /// A test changes the file.
    #[cfg(test)]
    Execute(&'static str),
}

impl Purpose {
    /// Whether the thread that writes ends after a request of this kind.
    fn ends(self) -> bool {
        matches!(self, Purpose::Close | Purpose::HandOver)
    }
}

/// What is to be written.
#[derive(Default)]
struct Work {
    pending: Pending,
    requests: Vec<Request>,
    prune: Option<Timestamp>,
    history: HistoryBatch,
}

#[derive(Default)]
struct Queue {
    work: Work,
    /// Facts were dropped: the next start must not trust this run.
    is_incomplete: bool,
    is_closed: bool,
}

/// The state of the file.
struct Known {
    /// What the next start finds, and the time lived through when it was noted.
    on_disk: (PreviousRun, Duration),
    health: StoreHealth,
    commits: u64,
}

impl Work {
    /// Whether nothing waits for the next regular commit. Requests do not count: they do not wait
    /// for it.
    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.prune.is_none() && self.history.is_empty()
    }
}

/// What the handles and the thread share. [`super::StateStore`] derefs to it.
pub struct Shared {
    pub directory: String,
    pub now: Now,
    queue: Mutex<Queue>,
    wake: Condvar,
    known: Mutex<Known>,
    /// The lock, while another process may get it.
    pub kept_lock: Mutex<Option<ProcessLock>>,
    /// The history where nothing is written to a directory.
    pub memory: Option<Arc<Memory>>,
    /// Who learns of what happens here.
    pub subscribers: Subscribers,
}

impl Shared {
    /// `on_disk` is what the next start finds in the directory, as long as nothing is written.
    pub fn new(directory: String, health: StoreHealth, on_disk: PreviousRun, now: Now) -> Shared {
        let on_disk = (on_disk, now().lived);
        let memory = if health.is_in_memory() {
            Memory::new().map(Arc::new)
        } else {
            None
        };
        Shared {
            memory,
            subscribers: Subscribers::default(),
            directory,
            now,
            queue: Mutex::default(),
            wake: Condvar::new(),
            kept_lock: Mutex::default(),
            known: Mutex::new(Known {
                on_disk,
                health,
                commits: 0,
            }),
        }
    }

    /// Takes facts that are to be written about once a second. Never waits. Where nothing is
    /// written to a directory the facts are dropped. If the queue is full, new facts are dropped
    /// and the run counts as incomplete.
    pub fn put(&self, facts: impl IntoIterator<Item = Fact>) {
        if self.health().is_in_memory() {
            return;
        }
        let mut queue = self.queue();
        for fact in facts {
            let has_room = queue.work.pending.add(fact);
            self.note_room(&mut queue, has_room);
        }
    }

    /// Takes what the next commit is to add to the history. Where nothing is written to a directory
    /// the batch is added to the history in memory at once.
    pub fn put_history(&self, batch: HistoryBatch, now: Timestamp) {
        match &self.memory {
            Some(memory) => memory.add(&batch, now),
            None => self.queue().work.history.append(batch),
        }
    }

    /// If there was no room for a fact (`has_room` is false), marks the run as incomplete, and logs
    /// that the first time.
    fn note_room(&self, queue: &mut Queue, has_room: bool) {
        if !has_room && !queue.is_incomplete {
            queue.is_incomplete = true;
            tracing::error!(
                "too much waits to be written to the state directory {}; crawlgate drops what is new, and calls no \
                 crawler a violator for a day after the next start. Free space or repair the permissions.",
                self.directory
            );
        }
    }

    /// Hands a request to the thread. If the store is closed, drops the request, and with it the
    /// sender of its answer. A request that ends the thread closes the store to later ones.
    pub fn ask(&self, request: Request) {
        let mut queue = self.queue();
        if !queue.is_closed {
            queue.is_closed = request.purpose.ends();
            queue.work.requests.push(request);
            self.wake.notify_one();
        }
    }

    /// Lets the next commit delete what ended before a moment, and the versions that nothing refers
    /// to any more. Of several calls before a commit the latest moment counts.
    pub fn prune(&self, before: Timestamp) {
        let mut queue = self.queue();
        queue.work.prune = queue.work.prune.max(Some(before));
    }

    /// Accepts requests again, after a failed `Purpose::HandOver` or for
    /// [`super::StateStore::take_back`].
    pub fn reopen(&self) {
        self.queue().is_closed = false;
    }

    /// Marks this run as incomplete, because facts are missing that the next start would need. That
    /// start will trust nothing of this run.
    pub fn distrust(&self) {
        self.queue().is_incomplete = true;
    }

    /// Closes the store without a last commit: the thread ends, and facts that wait are lost.
    pub fn abandon(&self) {
        self.queue().is_closed = true;
        self.wake.notify_one();
    }

    /// Whether a publication that could not be committed may take effect: commits succeed by now,
    /// no directory is set, or the next start will see a gap anyway. False once the directory is
    /// handed over, because the next process publishes then.
    pub fn may_publish(&self, moment: Moment) -> bool {
        // The next process publishes from now on.
        if self.is_handed_over() {
            return false;
        }
        let known = lock(&self.known);
        let (on_disk, at) = known.on_disk;
        matches!(
            known.health,
            StoreHealth::Healthy | StoreHealth::NoDirectory
        ) || on_disk.cannot_mislead(moment, at)
    }

    pub fn unwritten(&self, error: &dyn Display) -> StateError {
        StateError::unwritten(&self.directory, error)
    }

    /// Whether the lock is kept for another process, or that process owns it already.
    pub fn is_handed_over(&self) -> bool {
        lock(&self.kept_lock).is_some()
    }

    /// Whether the state directory can be written, and if not, since when and why.
    pub fn health(&self) -> StoreHealth {
        lock(&self.known).health.clone()
    }

    /// How many transactions this process committed.
    #[cfg(test)]
    pub fn commits(&self) -> u64 {
        lock(&self.known).commits
    }

    /// Records the result of a transaction: the health of the store, and what the next start would
    /// find. `result` holds the row for this run that was written, `None` if none was. The log says
    /// when commits begin to fail and when they succeed again.
    fn note(&self, result: Result<Option<RunRow>, &DatabaseError>, moment: Moment) {
        let mut known = lock(&self.known);
        match result {
            Ok(run) => {
                known.commits += 1;
                if let Some(RunRow {
                    committed,
                    incomplete,
                    ..
                }) = run
                {
                    let previous = PreviousRun::Crashed {
                        last_commit: committed,
                    };
                    known.on_disk = (
                        if incomplete {
                            PreviousRun::Unknown
                        } else {
                            previous
                        },
                        moment.lived,
                    );
                }
                if std::mem::replace(&mut known.health, StoreHealth::Healthy)
                    != StoreHealth::Healthy
                {
                    tracing::info!(
                        "the state directory {} is written again; nothing was lost",
                        self.directory
                    );
                }
            }
            Err(error) => {
                let before = match known.health {
                    StoreHealth::Failing { since, .. } => Some(since),
                    _ => None,
                };
                known.health = StoreHealth::Failing {
                    directory: self.directory.clone(),
                    since: before.unwrap_or(moment.now),
                    error: error.to_string(),
                    last_commit: known.on_disk.0.end(),
                };
                if before.is_none() {
                    tracing::error!("{}", known.health);
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }
}

/// What the thread owns.
pub struct Writer {
    database: Database,
    lock: ProcessLock,
    shared: Arc<Shared>,
    /// Whether the run has begun: only then the time of the commit is written.
    has_begun: bool,
    /// Whether what is there about observations is to go with the first commit of the run.
    forgets_observation: bool,
    /// When the next regular commit is due. Requests are written at once.
    next: Instant,
    last_commit: Instant,
}

impl Writer {
    pub fn new(
        database: Database,
        lock: ProcessLock,
        shared: Arc<Shared>,
        forgets_observation: bool,
    ) -> Writer {
        let started = Instant::now();
        Writer {
            database,
            lock,
            shared,
            has_begun: false,
            forgets_observation,
            next: started,
            last_commit: started,
        }
    }

    /// A writer for a run that has begun before, as after `super::StateStore::take_back`.
    pub fn resumed(database: Database, lock: ProcessLock, shared: Arc<Shared>) -> Writer {
        Writer {
            has_begun: true,
            ..Writer::new(database, lock, shared, false)
        }
    }

    /// Writes until the store is closed, handed over or abandoned. After each transaction the next
    /// regular one waits nine times as long as that took, at least `EVERY` and at most `SELDOM`. If
    /// the transaction of a hand-over fails, the thread goes on.
    pub fn run(mut self) {
        while let Some((work, moment)) = self.wait() {
            let end = work
                .requests
                .iter()
                .map(|request| request.purpose)
                .find(|purpose| purpose.ends());
            let began = Instant::now();
            let (result, requests) = self.write(work, moment);
            self.next = Instant::now() + (began.elapsed() * (SHARE - 1)).clamp(EVERY, SELDOM);
            match end {
                // A disk that fails is no reason to end while requests are served.
                Some(Purpose::HandOver) if result.is_err() => self.shared.reopen(),
                Some(purpose) => return self.end(purpose, result, requests),
                None => {}
            }
            answer(requests, &result);
        }
    }

    /// Waits for a request, or until the next regular commit is due. If there is nothing to write,
    /// that is every `IDLE`, for the time of the commit alone. Returns the work and the moment
    /// before which all its facts were put; `None` when the store was abandoned. Before
    /// `Purpose::Begin` there are no regular commits.
    fn wait(&mut self) -> Option<(Work, Moment)> {
        let shared = self.shared.clone();
        let mut queue = shared.queue();
        loop {
            if !queue.work.requests.is_empty() {
                break;
            }
            if queue.is_closed {
                return None;
            }
            let is_due = Instant::now() >= self.next;
            let is_idle = queue.work.is_empty() && self.last_commit.elapsed() < IDLE;
            if self.has_begun && is_due && !is_idle {
                break;
            }
            let pause = if is_due {
                EVERY
            } else {
                self.next.saturating_duration_since(Instant::now())
            };
            let waited = shared.wake.wait_timeout(queue, pause);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some((std::mem::take(&mut queue.work), (shared.now)()))
    }

    /// Writes all work in one transaction, and returns the result with the requests to be answered.
    /// After a failure the pending facts, the history, the pruning and the facts of `Begin` wait
    /// again; the facts of other requests are dropped, and their callers learn of the failure.
    fn write(&mut self, work: Work, moment: Moment) -> (Result<(), StateError>, Vec<Request>) {
        let Work {
            mut pending,
            mut requests,
            prune,
            history,
        } = work;
        let mut has_room = true;
        for request in &mut requests {
            if request.purpose == Purpose::Begin {
                // They belong to every commit of this run, and wait where the first fails.
                let added = request.facts.drain(..).map(|fact| pending.add(fact));
                has_room &= added.fold(true, |all, one| all & one);
                self.has_begun = true;
            }
            #[cfg(test)]
            if let Purpose::Execute(sql) = request.purpose {
                self.database.execute(sql);
            }
        }
        let settles = requests
            .iter()
            .any(|request| request.purpose == Purpose::Settle);
        let run = RunRow {
            committed: moment.now,
            clean: requests.iter().any(|request| request.purpose.ends()),
            incomplete: self.shared.queue().is_incomplete || !has_room,
        };
        let asked = requests.iter().flat_map(|request| &request.facts);
        let of_now = pending.iter().chain(asked);
        let of_now: Vec<Fact> = of_now
            .map(|fact| Fact {
                at: taken_as_past(fact.at, moment.now),
                ..fact.clone()
            })
            .collect();
        let batch = Batch {
            facts: &of_now,
            forgets_observation: self.has_begun && self.forgets_observation,
            prune,
            history: &history,
            run: self.has_begun.then_some(run),
            is_durable: requests
                .iter()
                .any(|request| request.purpose != Purpose::Flush),
        };
        let mut result = self.database.write(&batch, moment.now);
        if settles && result.is_ok() {
            result = self.database.settle();
        }
        self.shared
            .note(result.as_ref().map(|()| batch.run), moment);
        if result.is_ok() {
            self.last_commit = Instant::now();
            self.forgets_observation &= !self.has_begun;
        } else {
            let mut queue = self.shared.queue();
            has_room &= queue.work.pending.put_back(pending);
            queue.work.prune = queue.work.prune.max(prune);
            let later = std::mem::replace(&mut queue.work.history, history);
            queue.work.history.append(later);
            self.shared.note_room(&mut queue, has_room);
        }
        (
            result.map_err(|error| self.shared.unwritten(&error)),
            requests,
        )
    }

    /// Closes the database, marks the lock as released if the run began and its last commit
    /// succeeded, keeps the lock for a hand-over or else gives it up, and then answers the callers
    /// that wait.
    fn end(self, purpose: Purpose, result: Result<(), StateError>, requests: Vec<Request>) {
        let Writer {
            database,
            lock: owned,
            shared,
            has_begun,
            ..
        } = self;
        database.close();
        // A run that never began wrote no end of its own.
        let result = match result {
            Ok(()) if has_begun => owned.release().map_err(|error| shared.unwritten(&error)),
            result => result,
        };
        match purpose {
            Purpose::HandOver => *lock(&shared.kept_lock) = Some(owned),
            _ => drop(owned),
        }
        answer(requests, &result);
    }
}

/// Sends the result of the transaction to every caller that waits for it.
fn answer(requests: Vec<Request>, result: &Result<(), StateError>) {
    for request in requests {
        // A caller that waits no more needs no answer.
        let _ = request.done.send(result.clone());
    }
}
