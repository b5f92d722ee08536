//! Messages to a service manager, by the protocol of systemd (sd_notify(3)). [`serving`] says that
//! every listener accepts connections, [`watch`] that the process is alive, and [`reloading`] that
//! policies are read again. Without `NOTIFY_SOCKET` nothing is sent.

use crate::admin::Operations;
use crate::edge::Pulse;
use crate::upkeep::Repeated;
use sd_notify::NotifyState;
use std::io;
use std::sync::Arc;

/// How often the workers are checked within the time that the service manager allows.
const LOOKS: u32 = 4;

/// Sends these states to the service manager, if there is one.
pub fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told how crawlgate is; check NOTIFY_SOCKET");
    }
}

/// Calls `reload`, and tells the service manager before and after it. Before the start is complete,
/// it is told nothing: it would take the end of the reload for the end of the start.
pub fn reloading(operations: &Operations, reload: impl FnOnce()) {
    let is_told = operations.is_ready();
    if let Some(now) = is_told
        .then(NotifyState::monotonic_usec_now)
        .and_then(Result::ok)
    {
        tell(&[NotifyState::Reloading, now]);
    }
    reload();
    if is_told {
        tell(&[NotifyState::Ready]);
    }
}

/// Tells the service manager that every listener accepts connections.
pub fn serving() {
    tell(&[NotifyState::Ready, NotifyState::Status("serving")]);
}

/// Tells the service manager that the process is alive, four times as often as it wants to hear it
/// (`WATCHDOG_USEC`), as long as every worker answers. A worker that is stuck is logged once, and
/// the manager hears nothing. `None` if it wants to hear nothing.
pub fn watch(pulse: Arc<Pulse>) -> io::Result<Option<Repeated>> {
    let Some(allowed) = sd_notify::watchdog_enabled().filter(|allowed| !allowed.is_zero()) else {
        return Ok(None);
    };
    let mut is_stuck = false;
    let started = Repeated::start("watchdog", move || {
        if pulse.is_answered() {
            tell(&[NotifyState::Watchdog]);
            pulse.ask();
            is_stuck = false;
        } else if !std::mem::replace(&mut is_stuck, true) {
            tracing::error!(
                "a worker does not answer; the service manager ends crawlgate unless that changes soon"
            );
        }
        allowed / LOOKS
    });
    started.map(Some)
}
