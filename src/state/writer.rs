//! [`StateWriter`]: the thread that writes the state database `state.db`. It commits about once a
//! second, and at once when a caller waits for the commit. [`StateWriterShared`] is what the thread
//! shares with the callers: the queue of changes to write, and the state of the file.

use super::database::{CommitBatch, Database, DatabaseError, RunRow};
use super::health::{StateError, StoreHealth};
use super::history::{InMemoryHistory, RequestHistoryBatch};
use super::lock::ProcessLock;
use super::previous_run::PreviousRun;
use super::queue::PendingFacts;
use crate::clock::Moment;
use crate::facts::{Fact, FactSubscribers, clamp_to_now};
use crate::locks::lock;
use crate::time::Timestamp;
use WritePurpose::{Begin, Close, Flush, HandOver, Settle};
use std::fmt::Display;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often facts are written.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);
/// How often the time of the commit is written if there is nothing else.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);
/// Writing may take one part in this many of the time, so large batches are written less often.
const MAX_BUSY_SHARE: u32 = 10;
/// The longest interval of large batches, so that the next start sees no gap.
const MAX_INTERVAL: Duration = Duration::from_secs(5);

/// The clock of the store.
pub type StoreClock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// A commit that a caller waits for.
pub struct WriteRequest {
    pub purpose: WritePurpose,
    pub facts: Vec<Fact>,
    /// Where the result is sent.
    pub done: SyncSender<Result<(), StateError>>,
}

/// What a request is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WritePurpose {
    /// Its facts follow from the end of the previous run. From now on commits write their time.
    Begin,
    /// Its facts must be on disk.
    Commit,
    /// The queued facts must be written for readers of the file; a crash may lose them.
    Flush,
    /// Everything must be on disk, and the run ends.
    Close,
    /// Like `Close`, but another process continues, and the lock is kept for it.
    HandOver,
    /// Everything since the opening must be on disk: see [`Database::open_in_transaction`].
    Settle,
    /// A test changes the file.
    #[cfg(test)]
    Execute(&'static str),
}

impl WritePurpose {
    /// Whether the thread that writes ends after a request of this kind.
    fn ends_thread(self) -> bool {
        matches!(self, Close | HandOver)
    }
}

/// What the next commit writes.
#[derive(Default)]
struct QueuedWork {
    pending: PendingFacts,
    requests: Vec<WriteRequest>,
    prune: Option<Timestamp>,
    history: RequestHistoryBatch,
}

#[derive(Default)]
struct WorkQueue {
    work: QueuedWork,
    /// Whether facts were dropped, so that the next start must not trust this run.
    is_incomplete: bool,
    is_closed: bool,
}

/// What is known of the file.
struct CommitStatus {
    /// What the next start would find, and the monotonic time when that was recorded.
    on_disk: (PreviousRun, Duration),
    health: StoreHealth,
    commits: u64,
}

impl QueuedWork {
    /// Whether nothing waits for the next regular commit. Requests do not count, because they are
    /// written at once.
    fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.prune.is_none() && self.history.is_empty()
    }
}

/// The state that the handles and the writer thread share. [`super::StateStore`] derefs to it.
pub struct StateWriterShared {
    pub directory: String,
    pub now: StoreClock,
    queue: Mutex<WorkQueue>,
    wake: Condvar,
    known: Mutex<CommitStatus>,
    /// The lock during a hand-over and after it.
    pub retained_lock: Mutex<Option<ProcessLock>>,
    /// The history in memory, if nothing is written to a directory.
    pub memory: Option<Arc<InMemoryHistory>>,
    /// The observers of facts that happen here.
    pub subscribers: FactSubscribers,
}

impl StateWriterShared {
    /// `on_disk` is what the next start finds in the directory until something is written.
    pub fn new(
        directory: String,
        health: StoreHealth,
        on_disk: PreviousRun,
        now: StoreClock,
    ) -> StateWriterShared {
        let on_disk = (on_disk, now().monotonic);
        let memory = if health.is_in_memory() {
            InMemoryHistory::new().ok().map(Arc::new)
        } else {
            None
        };
        StateWriterShared {
            memory,
            subscribers: FactSubscribers::default(),
            directory,
            now,
            queue: Mutex::default(),
            wake: Condvar::new(),
            retained_lock: Mutex::default(),
            known: Mutex::new(CommitStatus {
                on_disk,
                health,
                commits: 0,
            }),
        }
    }

    /// Queues facts for the next regular commit. Never blocks. Drops them if nothing is written to
    /// a directory. If the queue is full, new facts are dropped and the run counts as incomplete.
    pub fn put(&self, facts: impl IntoIterator<Item = Fact>) {
        if self.health().is_in_memory() {
            return;
        }
        let mut queue = self.queue();
        for fact in facts {
            let has_room = queue.work.pending.add(fact);
            self.record_overflow(&mut queue, has_room);
        }
    }

    /// Queues additions to the history. If nothing is written to a directory, they are added to the
    /// history in memory at once.
    pub fn put_history(&self, batch: RequestHistoryBatch, now: Timestamp) {
        match &self.memory {
            Some(memory) => memory.add(&batch, now),
            None => self.queue().work.history.append(batch),
        }
    }

    /// If a fact did not fit (`has_room` is false), marks the run as incomplete, and logs that
    /// once.
    fn record_overflow(&self, queue: &mut WorkQueue, has_room: bool) {
        if !has_room && !queue.is_incomplete {
            queue.is_incomplete = true;
            tracing::error!(
                "too much data waits to be written to the state directory {}; crawlgate drops new data, and counts no \
                 violations for a day after the next start. Free space or fix the permissions",
                self.directory
            );
        }
    }

    /// Hands a request to the thread. A closed store drops it. A request that ends the thread
    /// closes the store for later ones.
    pub fn enqueue(&self, request: WriteRequest) {
        let mut queue = self.queue();
        if !queue.is_closed {
            queue.is_closed = request.purpose.ends_thread();
            queue.work.requests.push(request);
            self.wake.notify_one();
        }
    }

    /// Lets the next commit delete facts that ended before a moment, and versions without a
    /// reference. Of several calls before a commit the latest moment counts.
    pub fn prune(&self, before: Timestamp) {
        let mut queue = self.queue();
        queue.work.prune = queue.work.prune.max(Some(before));
    }

    /// Accepts requests again, after a failed `HandOver` or for
    /// [`super::StateStore::reclaim`].
    pub fn reopen(&self) {
        self.queue().is_closed = false;
    }

    /// Marks this run as incomplete, because facts are missing that the next start would need. That
    /// start trusts nothing of this run.
    pub fn mark_incomplete(&self) {
        self.queue().is_incomplete = true;
    }

    /// Closes the store without a last commit: the thread ends, and waiting facts are lost.
    pub fn close_without_commit(&self) {
        self.queue().is_closed = true;
        self.wake.notify_one();
    }

    /// Whether a publication that could not be committed may take effect: commits succeed again,
    /// nothing is ever written, or the next start will see a gap anyway. False during and after a
    /// hand-over, because the next process publishes then.
    pub fn may_publish(&self, moment: Moment) -> bool {
        // The next process publishes from now on.
        if self.is_handed_over() {
            return false;
        }
        let known = lock(&self.known);
        let (on_disk, at) = known.on_disk;
        let is_failing = matches!(known.health, StoreHealth::Failing { .. });
        !is_failing || on_disk.is_past_gap(moment, at)
    }

    pub fn write_failed(&self, error: &dyn Display) -> StateError {
        StateError::write_failed(&self.directory, error)
    }

    /// Whether the lock is kept for another process, or that process owns it.
    pub fn is_handed_over(&self) -> bool {
        lock(&self.retained_lock).is_some()
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
    /// find. `result` has the row of this run that was written, if any. Logs when commits begin to
    /// fail and when they succeed again.
    fn record_commit(&self, result: Result<Option<RunRow>, &DatabaseError>, moment: Moment) {
        use StoreHealth::*;
        let mut known = lock(&self.known);
        match result {
            Ok(run) => {
                known.commits += 1;
                if let Some(run) = run {
                    let previous = if run.incomplete {
                        PreviousRun::Unknown
                    } else {
                        PreviousRun::Crashed {
                            last_commit: run.committed,
                        }
                    };
                    known.on_disk = (previous, moment.monotonic);
                }
                if std::mem::replace(&mut known.health, Healthy) != Healthy {
                    tracing::info!(
                        "the state directory {} can be written again; nothing was lost",
                        self.directory
                    );
                }
            }
            Err(error) => {
                let before = match known.health {
                    Failing { since, .. } => Some(since),
                    _ => None,
                };
                known.health = Failing {
                    directory: self.directory.clone(),
                    since: before.unwrap_or(moment.now),
                    error: error.to_string(),
                };
                if before.is_none() {
                    tracing::error!("{}", known.health);
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, WorkQueue> {
        lock(&self.queue)
    }
}

/// The writer thread and what it owns.
pub struct StateWriter {
    database: Database,
    lock: ProcessLock,
    shared: Arc<StateWriterShared>,
    /// Whether the run has begun. Only then commits write their time.
    has_begun: bool,
    /// Whether the first commit of the run deletes the stored observations.
    deletes_observations: bool,
    /// When the next regular commit is due.
    next: Instant,
    last_commit: Instant,
}

impl StateWriter {
    pub fn new(
        database: Database,
        lock: ProcessLock,
        shared: Arc<StateWriterShared>,
        deletes_observations: bool,
    ) -> StateWriter {
        let started = Instant::now();
        StateWriter {
            database,
            lock,
            shared,
            has_begun: false,
            deletes_observations,
            next: started,
            last_commit: started,
        }
    }

    /// A writer for a run that has begun before, after [`super::StateStore::reclaim`].
    pub fn for_resumed_run(
        database: Database,
        lock: ProcessLock,
        shared: Arc<StateWriterShared>,
    ) -> StateWriter {
        StateWriter {
            has_begun: true,
            ..StateWriter::new(database, lock, shared, false)
        }
    }

    /// Writes until the store is closed or handed over. After each transaction the next regular one
    /// waits nine times as long as that took, between `COMMIT_INTERVAL` and `MAX_INTERVAL`. If the
    /// transaction of a hand-over fails, the thread continues.
    pub fn run(mut self) {
        while let Some((work, moment)) = self.wait_for_work() {
            let end = work
                .requests
                .iter()
                .map(|request| request.purpose)
                .find(|purpose| purpose.ends_thread());
            let began = Instant::now();
            let (result, requests) = self.write(work, moment);
            self.next = Instant::now()
                + (began.elapsed() * (MAX_BUSY_SHARE - 1)).clamp(COMMIT_INTERVAL, MAX_INTERVAL);
            match end {
                // A disk that fails is no reason to end while requests are served.
                Some(HandOver) if result.is_err() => self.shared.reopen(),
                Some(purpose) => return self.shut_down(purpose, result, requests),
                None => {}
            }
            answer_requests(requests, &result);
        }
    }

    /// Waits for a request, or until the next regular commit is due. Without work, commits write
    /// only their time, every `IDLE_INTERVAL`. Returns the work, and the moment before which its
    /// facts were queued; `None` if the store was closed without a commit. Before
    /// `Begin` there are no regular commits.
    fn wait_for_work(&mut self) -> Option<(QueuedWork, Moment)> {
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
            let is_idle = queue.work.is_empty() && self.last_commit.elapsed() < IDLE_INTERVAL;
            if self.has_begun && is_due && !is_idle {
                break;
            }
            let pause = if is_due {
                COMMIT_INTERVAL
            } else {
                self.next.saturating_duration_since(Instant::now())
            };
            let waited = shared.wake.wait_timeout(queue, pause);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some((std::mem::take(&mut queue.work), (shared.now)()))
    }

    /// Writes all work in one transaction, and returns the result with the requests to answer.
    /// After a failure the queued facts, the history, the pruning and the facts of `Begin` wait
    /// again. The facts of other requests are dropped, because their callers see the failure.
    fn write(
        &mut self,
        work: QueuedWork,
        moment: Moment,
    ) -> (Result<(), StateError>, Vec<WriteRequest>) {
        let QueuedWork {
            mut pending,
            mut requests,
            prune,
            history,
        } = work;
        let mut has_room = true;
        for request in &mut requests {
            if request.purpose == Begin {
                // They belong to every commit of this run, and wait where the first fails.
                let added = request.facts.drain(..).map(|fact| pending.add(fact));
                has_room &= added.fold(true, |all, one| all & one);
                self.has_begun = true;
            }
            #[cfg(test)]
            if let WritePurpose::Execute(sql) = request.purpose {
                self.database.execute(sql);
            }
        }
        let settles = requests.iter().any(|request| request.purpose == Settle);
        let run = RunRow {
            committed: moment.now,
            clean: requests.iter().any(|request| request.purpose.ends_thread()),
            incomplete: self.shared.queue().is_incomplete || !has_room,
        };
        let asked = requests.iter().flat_map(|request| &request.facts);
        let of_now = pending.iter().chain(asked);
        let of_now: Vec<Fact> = of_now
            .map(|fact| Fact {
                at: clamp_to_now(fact.at, moment.now),
                ..fact.clone()
            })
            .collect();
        let batch = CommitBatch {
            facts: &of_now,
            deletes_observations: self.has_begun && self.deletes_observations,
            prune,
            history: &history,
            run: self.has_begun.then_some(run),
            is_durable: requests.iter().any(|request| request.purpose != Flush),
        };
        let mut result = self.database.write(&batch, moment.now);
        if settles && result.is_ok() {
            result = self.database.commit_open_transaction();
        }
        self.shared
            .record_commit(result.as_ref().map(|()| batch.run), moment);
        if result.is_ok() {
            self.last_commit = Instant::now();
            self.deletes_observations &= !self.has_begun;
        } else {
            let mut queue = self.shared.queue();
            has_room &= queue.work.pending.requeue(pending);
            queue.work.prune = queue.work.prune.max(prune);
            let later = std::mem::replace(&mut queue.work.history, history);
            queue.work.history.append(later);
            self.shared.record_overflow(&mut queue, has_room);
        }
        (
            result.map_err(|error| self.shared.write_failed(&error)),
            requests,
        )
    }

    /// Closes the database, and releases the lock if the run began and its last commit succeeded.
    /// Keeps the lock for a hand-over. Then answers the waiting callers.
    fn shut_down(
        self,
        purpose: WritePurpose,
        result: Result<(), StateError>,
        requests: Vec<WriteRequest>,
    ) {
        let StateWriter {
            database,
            lock: owned,
            shared,
            has_begun,
            ..
        } = self;
        database.close();
        // A run that never began wrote no end of its own.
        let result = match result {
            Ok(()) if has_begun => owned.release().map_err(|error| shared.write_failed(&error)),
            result => result,
        };
        match purpose {
            HandOver => *lock(&shared.retained_lock) = Some(owned),
            _ => drop(owned),
        }
        answer_requests(requests, &result);
    }
}

/// Sends the result of the transaction to every waiting caller.
fn answer_requests(requests: Vec<WriteRequest>, result: &Result<(), StateError>) {
    for request in requests {
        // A caller that waits no more needs no answer.
        let _ = request.done.send(result.clone());
    }
}
