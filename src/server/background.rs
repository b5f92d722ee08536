//! The threads that work beside the requests: [`Background`]. They store the ledger and the marks of traps, watch the
//! policy directory, take renewed certificates, and put planned changes of policies into force. Must not know listeners or Pingora.

use super::rooms::Rooms;
use super::{ServerError, history};
use crate::edge::Certificates;
use crate::judge::Judge;
use crate::ledger::Traps;
use crate::settings::Settings;
use crate::sites::WatchGuard;
use crate::time::Timestamp;
use std::io;
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
/// How often the files of certificates are looked at.
const RENEWAL: Duration = Duration::from_secs(10);
/// The shortest wait, so that a change that fails is not retried without a pause.
const SHORTEST: Duration = Duration::from_millis(50);

/// The running threads. The watch and the scheduler end when this is dropped.
pub struct Background {
    ledger: Repeated,
    _watch: Option<WatchGuard>,
    _scheduler: Repeated,
    _certificates: Option<Repeated>,
}

impl Background {
    /// Starts them.
    pub fn start(
        settings: &Settings,
        rooms: &Rooms,
        certificates: Arc<Certificates>,
    ) -> Result<Background, ServerError> {
        let (judge, traps) = (rooms.judge.clone(), rooms.traps.clone());
        // At once, so that the next start knows of this run even if it is killed within the first second.
        let history = rooms.store.clone();
        let store = move || {
            store_ledger(&judge, &traps);
            history::keep(&judge, &history);
            TICK
        };
        let ledger = Repeated::start("ledger", store).map_err(ServerError::io("cannot start the ledger's thread"))?;
        let operations = rooms.operations.clone();
        let watch = rooms.judge.sites.watch(&settings.policies, WATCH_DEBOUNCE, move || drop(operations.reload()));
        let watch = watch.map_err(
            |error| tracing::warn!(%error, "cannot watch the policy directory; send SIGHUP to read changed policies"),
        );
        let operations = rooms.operations.clone();
        let keep_time = move || {
            operations.warn_of_setup();
            operations.keep_time().map_or(LONGEST, |next| next.clamp(SHORTEST, LONGEST))
        };
        let scheduler = Repeated::start("scheduler", keep_time)
            .map_err(ServerError::io("cannot start the thread for planned changes"))?;
        let certificates = renewing(rooms.judge.clone(), certificates)?;
        Ok(Background { ledger, _watch: watch.ok(), _scheduler: scheduler, _certificates: certificates })
    }

    /// Ends them. The ledger is stored; nothing may be served any more.
    pub fn close(self, rooms: &Rooms) {
        self.ledger.close();
        let now = rooms.judge.clock.moment();
        rooms.traps.keep(now);
        rooms.judge.ledger.close(now.now);
        history::keep(&rooms.judge, &rooms.store);
    }
}

/// Takes renewed certificates, if there are any to renew.
fn renewing(judge: Arc<Judge>, certificates: Arc<Certificates>) -> Result<Option<Repeated>, ServerError> {
    if certificates.is_empty() {
        return Ok(None);
    }
    let renew = move || {
        certificates.renew(Timestamp::from(judge.clock.now()), &judge.metrics);
        RENEWAL
    };
    Repeated::start("certificates", renew)
        .map(Some)
        .map_err(ServerError::io("cannot start the thread for certificates"))
}

/// Stores the ledger and the marks of traps. Retries what could not be written to the state directory before.
fn store_ledger(judge: &Judge, traps: &Traps) {
    let Judge { ledger, sites, clock, .. } = judge;
    let moment = clock.moment();
    if !ledger.is_steady(moment) {
        // Before the ledger takes the clock for right again.
        sites.history_was_broken(moment.now);
    }
    ledger.tick(&sites.snapshot(), moment);
    traps.keep(clock.moment());
    let now = clock.moment().now;
    if sites.publish_deferred(now) {
        ledger.settle(&sites.snapshot(), now);
    }
}

/// A thread that does something again and again. It ends when this is dropped.
struct Repeated {
    alive: Sender<()>,
    thread: JoinHandle<()>,
}

impl Repeated {
    /// `work` says how long to wait until it is done again.
    fn start(name: &str, mut work: impl FnMut() -> Duration + Send + 'static) -> io::Result<Repeated> {
        let (alive, ended) = channel();
        let run = move || while ended.recv_timeout(work()) == Err(RecvTimeoutError::Timeout) {};
        Ok(Repeated { alive, thread: std::thread::Builder::new().name(name.into()).spawn(run)? })
    }

    /// Waits for the end of the thread.
    fn close(self) {
        drop(self.alive);
        // A thread that panicked has said so.
        let _ = self.thread.join();
    }
}
