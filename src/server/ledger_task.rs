//! The thread that stores the ledger and the marks of traps, once a second and once more at the end: [`LedgerTask`]. With
//! each round it retries what could not be written to the state directory before. Must not know requests.

use crate::clock::Clock;
use crate::ledger::{Ledger, Traps};
use crate::sites::SiteManager;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A crash loses at most this much.
const TICK: Duration = Duration::from_secs(1);

/// The running thread.
pub(super) struct LedgerTask {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl LedgerTask {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(
        ledger: Arc<Ledger>,
        traps: Traps,
        sites: Arc<SiteManager>,
        clock: Clock,
    ) -> std::io::Result<LedgerTask> {
        let (end, ended) = channel();
        let run = move || {
            // At once, so that the next start knows of this run even if it is killed within the first second.
            ledger.tick(&sites.snapshot(), clock.moment());
            publish_deferred(&ledger, &sites, &clock);
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                ledger.tick(&sites.snapshot(), clock.moment());
                traps.keep(clock.moment());
                publish_deferred(&ledger, &sites, &clock);
            }
            traps.keep(clock.moment());
            ledger.close(clock.moment().now);
        };
        Ok(LedgerTask { end, thread: std::thread::Builder::new().name("ledger".into()).spawn(run)? })
    }

    /// Writes the rest and ends. Nothing may be served any more.
    pub(super) fn close(self) {
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}

fn publish_deferred(ledger: &Ledger, sites: &SiteManager, clock: &Clock) {
    let now = clock.moment().now;
    if sites.publish_deferred(now) {
        ledger.settle(&sites.snapshot(), now);
    }
}
