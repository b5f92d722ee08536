//! The thread that keeps the ledger and the marks of traps: once a second, and once more at the end. So often, too, what
//! could not be written to the state directory is tried again.

use crate::clock::Clock;
use crate::ledger::{Ledger, Traps};
use crate::sites::SiteManager;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a crash may cost at most.
const TICK: Duration = Duration::from_secs(1);

/// The thread, while it runs.
pub(super) struct Keeper {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

/// Starts it.
pub(super) fn keep(ledger: Arc<Ledger>, traps: Traps, live: Arc<SiteManager>, clock: Clock) -> std::io::Result<Keeper> {
    let (end, ended) = channel();
    let run = move || {
        // Whoever was killed before the first second is over was there all the same.
        ledger.tick(&live.snapshot(), clock.moment());
        write_again(&ledger, &live, &clock);
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            ledger.tick(&live.snapshot(), clock.moment());
            traps.keep(clock.moment());
            write_again(&ledger, &live, &clock);
        }
        traps.keep(clock.moment());
        live.write_again(clock.moment().now);
        ledger.close(clock.moment().now);
    };
    Ok(Keeper { end, thread: std::thread::Builder::new().name("ledger".into()).spawn(run)? })
}

fn write_again(ledger: &Ledger, live: &SiteManager, clock: &Clock) {
    let now = clock.moment().now;
    if live.write_again(now) {
        ledger.settle(&live.snapshot(), now);
    }
}

impl Keeper {
    /// Writes the rest and ends; nothing may be served any more.
    pub(super) fn close(self) {
        let _ = self.end.send(());
        let _ = self.thread.join();
    }
}
