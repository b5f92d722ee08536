//! The threads that work beside the requests: [`Background`]. They store the ledger, watch the policy directory, and apply
//! planned changes. Must not know listeners or Pingora.

use super::ServerError;
use super::ledger_task::LedgerTask;
use super::rooms::Rooms;
use super::scheduler::{self, Scheduler};
use crate::judge::Judge;
use crate::settings::Settings;
use crate::sites::WatchGuard;
use std::time::Duration;

/// How long the policy directory must be quiet before it is read again.
const WATCH_DEBOUNCE: Duration = Duration::from_millis(200);

/// The running threads. The watch and the scheduler end when this is dropped.
pub struct Background {
    ledger: LedgerTask,
    _watch: Option<WatchGuard>,
    _scheduler: Scheduler,
}

impl Background {
    /// Starts them.
    pub fn start(settings: &Settings, rooms: &Rooms) -> Result<Background, ServerError> {
        let Judge { ledger, sites, clock, .. } = &*rooms.judge;
        let ledger = LedgerTask::start(ledger.clone(), rooms.traps.clone(), sites.clone(), clock.clone())
            .map_err(ServerError::io("cannot start the ledger's thread"))?;
        let operations = rooms.operations.clone();
        let watch = sites.watch(&settings.policies, WATCH_DEBOUNCE, move || drop(operations.reload()));
        let watch = watch.map_err(
            |error| tracing::warn!(%error, "cannot watch the policy directory; send SIGHUP to read changed policies"),
        );
        let scheduler = scheduler::start(rooms.operations.clone())
            .map_err(ServerError::io("cannot start the thread for planned changes"))?;
        Ok(Background { ledger, _watch: watch.ok(), _scheduler: scheduler })
    }

    /// Ends them. The ledger is stored; nothing may be served any more.
    pub fn close(self) {
        self.ledger.close();
    }
}
