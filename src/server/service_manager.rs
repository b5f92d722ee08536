//! Messages to a service manager, by the protocol of systemd (sd_notify(3)). [`notify_ready`] says
//! that every listener accepts connections, [`start_watchdog`] that the process is still alive, and
//! [`notify_reload`] that policies are being reloaded. Without the environment variable
//! `NOTIFY_SOCKET` nothing is sent.

use crate::admin::Operations;
use crate::edge::WorkerHealth;
use crate::upkeep::RepeatingThread;
use sd_notify::NotifyState::{self, *};
use std::io;
use std::sync::Arc;

/// How often the workers are checked within the watchdog period.
const CHECKS_PER_PERIOD: u32 = 4;

/// Sends these states to the service manager, if there is one.
pub fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot report to the service manager; check NOTIFY_SOCKET");
    }
}

/// Calls `reload`, and notifies the service manager before and after it. Before the start is complete
/// it sends nothing: the end of the reload would look like the end of the start.
pub fn notify_reload(operations: &Operations, reload: impl FnOnce()) {
    let is_ready = operations.is_ready();
    if let Some(now) = is_ready
        .then(NotifyState::monotonic_usec_now)
        .and_then(Result::ok)
    {
        notify(&[Reloading, now]);
    }
    reload();
    if is_ready {
        notify(&[Ready]);
    }
}

/// Notifies the service manager that every listener accepts connections.
pub fn notify_ready() {
    notify(&[Ready, Status("serving")]);
}

/// Notifies the service manager that the process is alive, four times in each watchdog period
/// (`WATCHDOG_USEC`), as long as every worker answers. A stuck worker is logged once, and nothing is
/// sent. `None` without a watchdog.
pub fn start_watchdog(health: Arc<WorkerHealth>) -> io::Result<Option<RepeatingThread>> {
    let Some(allowed) = sd_notify::watchdog_enabled().filter(|allowed| !allowed.is_zero()) else {
        return Ok(None);
    };
    let mut is_stuck = false;
    let started = RepeatingThread::start("watchdog", move || {
        if health.has_all_answers() {
            notify(&[Watchdog]);
            health.send_check();
            is_stuck = false;
        } else if !std::mem::replace(&mut is_stuck, true) {
            tracing::error!(
                "a worker does not answer; the service manager restarts crawlgate unless that changes soon"
            );
        }
        allowed / CHECKS_PER_PERIOD
    });
    started.map(Some)
}
