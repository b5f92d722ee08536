//! [`UpkeepThreads`]: the threads that store the ledger, watch the policy directory, and put planned changes of policies
//! into force. Each is a [`Repeated`].

use super::history;
use super::instance::Instance;
use crate::sites::{WatchGuard, watch};
use crate::state::StateStore;
use crate::threads::spawn;
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
/// The longest wait for a planned change. The clock may be set and policies may change meanwhile.
const LONGEST: Duration = Duration::from_secs(5);
/// The shortest wait, so that a change that fails is not retried without a pause.
const SHORTEST: Duration = Duration::from_millis(50);

/// The running threads. The watch and the scheduler end when this is dropped.
pub struct UpkeepThreads {
    instance: Arc<Instance>,
    store: StateStore,
    ledger: Repeated,
    _watch: Option<WatchGuard>,
    _scheduler: Repeated,
}

impl UpkeepThreads {
    /// Starts them. `reload` reads the policies again. `keep_time` puts into force what is due, and returns for how long
    /// nothing else is.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        (instance, store): (Arc<Instance>, StateStore),
        policies: &Path,
        reload: impl Fn() + Send + 'static,
        mut keep_time: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> io::Result<UpkeepThreads> {
        let (stored, history) = (instance.clone(), store.clone());
        // At once, so that the next start knows of this run even if it is killed within the first second.
        let ledger = Repeated::start("ledger", move || {
            store_ledger(&stored);
            history::keep(&stored, &history);
            TICK
        })?;
        let watch = watch(policies, WATCH_DEBOUNCE, reload);
        let watch = watch.map_err(
            |error| tracing::warn!(%error, "cannot watch the policy directory; send SIGHUP to read changed policies"),
        );
        let scheduled = move || keep_time().map_or(LONGEST, |next| next.clamp(SHORTEST, LONGEST));
        let scheduler = Repeated::start("scheduler", scheduled)?;
        Ok(UpkeepThreads { instance, store, ledger, _watch: watch.ok(), _scheduler: scheduler })
    }

    /// Ends them. The ledger is stored; nothing may be served any more.
    pub fn close(self) {
        self.ledger.close();
        keep_everything(&self.instance, &self.store);
    }
}

/// Hands everything to the state store that waits for its second.
pub fn keep_everything(instance: &Instance, store: &StateStore) {
    let now = instance.clock.moment();
    instance.behaviours.traps.keep(now);
    instance.ledger.close(now.now);
    history::keep(instance, store);
}

/// Stores the ledger and the marks of traps. Retries what could not be written to the state directory before.
fn store_ledger(instance: &Instance) {
    let Instance { ledger, sites, clock, .. } = instance;
    let moment = clock.moment();
    if let Some(by) = ledger.clock_set_by(moment) {
        // Before the ledger takes the clock for right again.
        sites.history_was_shifted(by, moment.now);
    }
    ledger.tick(&sites.snapshot(), moment);
    instance.behaviours.traps.keep(clock.moment());
    let now = clock.moment().now;
    if sites.publish_deferred(now) {
        ledger.settle(&sites.snapshot(), now);
    }
}

/// A thread that repeats its work. It ends when this is dropped.
pub struct Repeated {
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl Repeated {
    /// `work` says how long to wait until it is done again.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(name: &str, mut work: impl FnMut() -> Duration + Send + 'static) -> io::Result<Repeated> {
        let (alive, ended) = channel();
        let run = move || while ended.recv_timeout(work()) == Err(RecvTimeoutError::Timeout) {};
        Ok(Repeated { alive, thread: spawn(name, run)? })
    }

    /// Waits for the end of the thread.
    pub fn close(self) {
        drop(self.alive);
        // A thread that panicked has said so.
        let _ = self.thread.join();
    }
}
