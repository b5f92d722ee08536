//! [`UpkeepThreads`]: the threads that watch the policy directory and store the ledger (which
//! robots.txt was served to which crawler). [`RepeatingThread`] is a thread that repeats its work
//! until it is closed.

use super::instance::Instance;
use crate::clock::Moment;
use crate::locks::lock;
use crate::policy::Snapshot;
use crate::record::{DayPaths, TopPaths};
use crate::scheduler::Scheduler;
use crate::sites::DirectoryWatch;
use crate::state::StateStore;
use crate::state::history::{DailyCountKind, RequestHistoryBatch};
use crate::threads::spawn;
use crate::time::Timestamp;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the policy directory is checked for changes.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// Checks take at most one part in so many of the time.
const MAX_POLL_SHARE: u32 = 20;
/// How often the ledger is stored. A crash loses at most this much.
const STORE_EVERY: Duration = Duration::from_secs(1);

/// The running threads. They end when this is dropped.
pub struct UpkeepThreads {
    instance: Arc<Instance>,
    store: StateStore,
    ledger: RepeatingThread,
    _watch: RepeatingThread,
    _scheduler: Scheduler,
}

impl UpkeepThreads {
    /// Starts the threads. `reload` is called when policy files change. `scheduler` ends with the
    /// threads.
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
        let ledger = RepeatingThread::start("ledger", move || {
            store_ledger(&stored);
            feed_history(&stored, &history, TopPaths::take_due);
            STORE_EVERY
        })?;
        let mut directory = DirectoryWatch::new(policies);
        let watch = RepeatingThread::start("policy-watch", move || {
            let began = Instant::now();
            let is_changed = directory.poll();
            let pause = POLL_EVERY.max(began.elapsed() * MAX_POLL_SHARE);
            if is_changed {
                reload();
            }
            pause
        })?;
        Ok(UpkeepThreads {
            instance,
            store,
            ledger,
            _watch: watch,
            _scheduler: scheduler,
        })
    }

    /// Waits for the end of the ledger's thread, and stores everything that it would store later.
    /// Call it after the last request. Ends the watch and the scheduler.
    pub fn stop_and_flush(self) {
        self.ledger.close();
        store_everything(&self.instance, &self.store);
    }
}

/// Stores at once what the ledger's thread would store within a second: marks of traps, the ledger,
/// the history.
pub fn store_everything(instance: &Instance, store: &StateStore) {
    let moment = tick(instance, |sites, moment| {
        instance.ledger.flush(sites, moment)
    });
    instance.behaviours.marked_clients.flush(moment);
    feed_history(instance, store, TopPaths::take_changed);
}

/// Lets the ledger tick, and returns the moment. If the clock was set, the sites record that before,
/// because the tick takes the clock for right again. In an upgrade two threads may come here.
fn tick(instance: &Instance, tick_ledger: impl FnOnce(&Snapshot, Moment)) -> Moment {
    let _one = lock(&instance.tick);
    let moment = instance.clock.moment();
    if let Some(by) = instance.ledger.clock.detect_step(moment) {
        instance.sites.record_clock_step(by, moment.now);
    }
    tick_ledger(&instance.sites.snapshot(), moment);
    moment
}

/// Once a second: stores the ledger and the marks of traps, and tries again to publish deferred
/// policies.
fn store_ledger(instance: &Instance) {
    let Instance {
        ledger,
        sites,
        clock,
        ..
    } = instance;
    tick(instance, |sites, moment| ledger.tick(sites, moment));
    instance.behaviours.marked_clients.flush(clock.moment());
    let now = clock.moment().now;
    if sites.publish_deferred(now) {
        ledger.apply_snapshot(&sites.snapshot(), now);
    }
}

/// Hands the counts and samples since the last call to the state store, for the history. It reads the
/// counters of the metrics, so that requests do nothing for the history. `take_paths` takes the paths
/// of crawlers that are to be stored now.
pub(super) fn feed_history(
    instance: &Instance,
    store: &StateStore,
    take_paths: impl FnOnce(&TopPaths, Timestamp) -> Vec<DayPaths>,
) {
    let _one = lock(&instance.history_feed);
    let now = Timestamp::from(instance.clock.now());
    let mut batch = RequestHistoryBatch::default();
    instance
        .metrics
        .counts
        .for_each(|site, crawler, identity, cells| {
            if let Some(counts) = cells.take_new_counts() {
                batch.add_requests(now, site, crawler, identity, &counts);
            }
        });
    instance
        .metrics
        .identity
        .for_each_new(|[crawler, outcome], requests| {
            batch.add_daily(DailyCountKind::Identity, now, [crawler, outcome], requests);
        });
    for (name, requests) in instance.traffic.take_unlisted() {
        batch.add_daily(DailyCountKind::Unlisted, now, [&name, ""], requests);
    }
    instance
        .metrics
        .visits
        .for_each_new(|[site, service], visits| {
            batch.add_daily(DailyCountKind::Visits, now, [site, service], visits);
        });
    for paths in take_paths(&instance.metrics.paths, now) {
        batch.set_paths(paths);
    }
    for sample in instance.events.take_samples() {
        batch.add_sample(sample);
    }
    if !batch.is_empty() {
        store.put_history(batch, now);
    }
}

/// A thread that repeats its work. It ends when this is dropped or closed.
pub struct RepeatingThread {
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl RepeatingThread {
    /// Starts a thread that calls `work` at once and then again and again. `work` returns the time
    /// until the next call.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        name: &str,
        mut work: impl FnMut() -> Duration + Send + 'static,
    ) -> io::Result<RepeatingThread> {
        let (alive, ended) = channel();
        let thread = spawn(name, move || {
            while ended.recv_timeout(work()) == Err(RecvTimeoutError::Timeout) {}
        })?;
        Ok(RepeatingThread { alive, thread })
    }

    /// Ends the wait of the thread, and waits until its work is done.
    pub fn close(self) {
        drop(self.alive);
        // A panic was reported already.
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::crawlers::Registry;
    use crate::identity::IdentityVerifier;
    use crate::judge::RequestLogs;
    use crate::sites::SiteLoadOptions;
    use crate::upkeep::InstanceInputs;

    /// An instance in memory with one policy.
    fn open(directory: &Path, clock: Clock, started: Moment) -> (Arc<Instance>, StateStore) {
        let policy = "hosts: [shop.example]\nrobots: { origin: replace }\n";
        std::fs::write(directory.join("shop.yaml"), policy).expect("a policy");
        let (store, restored) = StateStore::in_memory_only();
        let inputs = InstanceInputs {
            clock,
            started,
            store: &store,
            restored: &restored,
            sites: SiteLoadOptions {
                policies: directory.to_owned(),
                strict: true,
                ..SiteLoadOptions::default()
            },
            new_hosts: Vec::new(),
            proofs: Arc::new(IdentityVerifier::with_policy_networks_only(
                Registry::builtin(),
            )),
            logs: RequestLogs::off(),
        };
        let instance = inputs.open().unwrap_or_else(|error| panic!("{error}"));
        (instance, store)
    }

    #[test]
    fn clock_set_just_before_the_end_is_recorded() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("clock");
        std::fs::write(&file, "set 0s").expect("written");
        let clock = Clock::following_file(&file).expect("a clock");
        let started = clock.moment();
        let (instance, store) = open(directory.path(), clock.clone(), started);
        std::fs::write(&file, "set 16h").expect("written");
        while clock.moment().now.since(started.now) < Duration::from_secs(3_600) {
            std::thread::sleep(Duration::from_millis(5));
        }
        store_everything(&instance, &store);
        assert_eq!(instance.ledger.clock.detect_step(clock.moment()), None);
        let jumps = instance.sites.publications().0.jumps;
        assert_eq!(jumps.len(), 1, "{jumps:?}");
    }

    #[test]
    fn clock_set_during_the_start_is_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let clock = Clock::default();
        let moment = clock.moment();
        let started = Moment {
            now: Timestamp(moment.now.0 - 3_600),
            ..moment
        };
        let (instance, _) = open(directory.path(), clock, started);
        let set_by = instance.ledger.clock.detect_step(moment);
        assert_eq!(set_by, Some(3_600));
    }
}
