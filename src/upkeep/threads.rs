//! [`UpkeepThreads`]: the threads that store which crawler was served what and watch the policy
//! directory. [`Repeated`] is a thread that repeats its work, and whose end can be waited for.

use super::instance::Instance;
use crate::locks::lock;
use crate::scheduler::Scheduler;
use crate::sites::{WatchGuard, watch};
use crate::state::StateStore;
use crate::state::history::HistoryBatch;
use crate::threads::spawn;
use crate::time::Timestamp;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the policy directory must be quiet before it is read again.
const WATCH_DEBOUNCE: Duration = Duration::from_millis(200);
/// How often the ledger is stored. A crash loses at most this much.
const TICK: Duration = Duration::from_secs(1);

/// The running threads. They end when this is dropped.
pub struct UpkeepThreads {
    instance: Arc<Instance>,
    store: StateStore,
    ledger: Repeated,
    _watch: Option<WatchGuard>,
    _scheduler: Scheduler,
}

impl UpkeepThreads {
    /// Starts the threads. `reload` reads the policies again, when files change. Without a watch of
    /// the directory crawlgate goes on, and logs that. `scheduler` ends with the threads.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        instance: Arc<Instance>,
        store: StateStore,
        policies: &Path,
        scheduler: Scheduler,
        reload: impl Fn() + Send + 'static,
    ) -> io::Result<UpkeepThreads> {
        let stored = instance.clone();
        let history = store.clone();
        // At once, so that the next start knows of this run even if it is killed within the first
        // second.
        let ledger = Repeated::start("ledger", move || {
            store_ledger(&stored);
            keep_history(&stored, &history);
            TICK
        })?;
        let watch = watch(policies, WATCH_DEBOUNCE, reload);
        if let Err(error) = &watch {
            tracing::warn!(%error, "cannot watch the policy directory; send SIGHUP to read changed policies");
        }
        Ok(UpkeepThreads {
            instance,
            store,
            ledger,
            _watch: watch.ok(),
            _scheduler: scheduler,
        })
    }

    /// Waits for the end of the thread of the ledger, and stores everything that it would store
    /// later. Nothing may be served any more. The watch and the scheduler end
    /// with this.
    pub fn close(self) {
        self.ledger.close();
        keep_everything(&self.instance, &self.store);
    }
}

/// Hands to the state store what would wait for the next second: marks of traps, the ledger, the
/// history.
pub fn keep_everything(instance: &Instance, store: &StateStore) {
    let now = instance.clock.moment();
    instance.behaviours.traps.keep(now);
    instance.ledger.close(now.now);
    keep_history(instance, store);
}

/// Once a second: stores the ledger and the marks of traps, and tries again to publish deferred
/// policies. If the clock was set, the sites record that first.
fn store_ledger(instance: &Instance) {
    let Instance {
        ledger,
        sites,
        clock,
        ..
    } = instance;
    let moment = clock.moment();
    if let Some(by) = ledger.clock.set_by(moment) {
        // Before `tick`, which takes the clock for right again.
        sites.history_was_shifted(by, moment.now);
    }
    ledger.tick(&sites.snapshot(), moment);
    instance.behaviours.traps.keep(clock.moment());
    let now = clock.moment().now;
    if sites.publish_deferred(now) {
        ledger.settle(&sites.snapshot(), now);
    }
}

/// Feeds the history: hands the counts and samples since the last call to the state store. It reads
/// the counters of the metrics, so that requests do nothing for the history. When it returns, the
/// store has all that was counted before.
pub(super) fn keep_history(instance: &Instance, store: &StateStore) {
    let _one = lock(&instance.feeding);
    let now = Timestamp::from(instance.clock.now());
    let mut batch = HistoryBatch::default();
    instance
        .metrics
        .counts
        .for_each(|site, crawler, identity, cells| {
            if let Some(counts) = cells.take_new() {
                batch.requests(now, site, crawler, identity, &counts);
            }
        });
    instance
        .metrics
        .identity
        .each_new(|[crawler, outcome], requests| {
            if let Ok(outcome) = outcome.parse() {
                batch.identity(now, crawler, outcome, requests);
            }
        });
    for (name, requests) in instance.traffic.take_unlisted() {
        batch.unlisted(now, &name, requests);
    }
    for sample in instance.events.take_samples() {
        batch.sample(sample);
    }
    if !batch.is_empty() {
        store.put_history(batch, now);
    }
}

/// A thread that repeats its work. It ends when this is dropped.
pub struct Repeated {
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl Repeated {
    /// Starts a thread that calls `work` at once and then again and again, each time after the time
    /// that `work` returned.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        name: &str,
        mut work: impl FnMut() -> Duration + Send + 'static,
    ) -> io::Result<Repeated> {
        let (alive, ended) = channel();
        let thread = spawn(name, move || {
            while ended.recv_timeout(work()) == Err(RecvTimeoutError::Timeout) {}
        })?;
        Ok(Repeated { alive, thread })
    }

    /// Ends the wait of the thread, and waits until its work is done.
    pub fn close(self) {
        drop(self.alive);
        // A thread that panicked has said so.
        let _ = self.thread.join();
    }
}
