//! [`start`] begins the work beside the requests: the threads of `upkeep`, and the jobs of the
//! scheduler that put planned changes into force, load renewed certificate files, get timestamps
//! for the evidence log (the log that third parties can check) and reload on SIGHUP.
//! [`catch_signals`] catches signals early; a thread of their own handles them. Pingora does not
//! handle SIGHUP, which would end the process.

use super::ServerError;
use super::hand_over::Upgrades;
use super::service_manager::reloading;
use super::stop::Stop;
use crate::evidence::{Evidence, open_existing, stamp};
use crate::scheduler::{Scheduler, Waker};
use crate::threads::spawn;
use crate::upkeep::UpkeepThreads;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often the files of certificates are looked at.
const RENEWAL: Duration = Duration::from_secs(10);
/// How often checkpoints without a timestamp are looked for, and how often after a failure.
const STAMPED: Duration = Duration::from_secs(5);
const STAMPED_AGAIN: Duration = Duration::from_secs(600);

/// Adds the jobs to the scheduler, starts the threads, and acts on signals from now on. Fails if a
/// thread cannot be started.
pub fn start(
    upgrades: &Arc<Upgrades>,
    scheduler: Scheduler,
    signals: Signals,
) -> Result<UpkeepThreads, ServerError> {
    let rooms = &upgrades.rooms;
    let operations = rooms.operations.clone();
    scheduler.add("planned-changes", move |_| {
        operations.warn_of_setup();
        Some(operations.upkeep.keep_time())
    });
    if !rooms.authority.certificates.is_empty() || rooms.upstreams.has_tls_files() {
        let rooms = rooms.clone();
        scheduler.add("certificates", move |_| {
            rooms.renew_files();
            Some(RENEWAL)
        });
    }
    let evidence = rooms.settings.evidence.as_ref();
    if evidence.is_some_and(|evidence| !evidence.timestamps.is_empty())
        && let Some(directory) = rooms.settings.state.clone()
    {
        let evidence = rooms.evidence.clone();
        scheduler.add("timestamps", move |_| {
            Some(get_timestamps(&directory, &evidence))
        });
    }
    let reloaded = upgrades.clone();
    let reload = scheduler.add_idle("reload", move |_| {
        reload(&reloaded);
        None
    });
    let stop = upgrades.stop.clone();
    spawn("signals", move || follow(signals, &stop, &reload))
        .map_err(ServerError::io("cannot start the thread for signals"))?;
    let operations = rooms.operations.clone();
    UpkeepThreads::start(
        rooms.instance.clone(),
        rooms.store.clone(),
        &rooms.settings.policies,
        scheduler,
        move || drop(operations.reload()),
    )
    .map_err(ServerError::io(
        "cannot start the threads of policies and the ledger",
    ))
}

/// Gets timestamps for checkpoints of the evidence log that have none. A failure is shown in the
/// status until a later run succeeds. Returns the time until the next run.
fn get_timestamps(directory: &Path, evidence: &Evidence) -> Duration {
    let stamped = open_existing(directory).map_err(|error| error.to_string());
    let stamped = stamped
        .and_then(|mut log| stamp(&mut log, SystemTime::now()).map_err(|error| error.to_string()));
    let problem = stamped.err().map(|error| {
        format!(
            "a checkpoint of the evidence log has no timestamp: {error}; crawlgate asks again every ten minutes. Check \
             `evidence.timestamps` in crawlgate.yaml"
        )
    });
    let wait = if problem.is_some() {
        STAMPED_AGAIN
    } else {
        STAMPED
    };
    evidence.set_stamp_problem(problem);
    wait
}

/// Catches the signals from now on. Those that arrive before [`start`] wait.
pub fn catch_signals() -> io::Result<Signals> {
    Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
}

/// Acts on signals: SIGINT stops the server at once, SIGQUIT and SIGTERM after the last request, the
/// second time at once. SIGHUP wakes `reload`, so that it does not delay a stop; all that arrive
/// during a run cause one more.
fn follow(mut signals: Signals, stop: &Stop, reload: &Waker) {
    for signal in signals.forever() {
        match signal {
            SIGHUP => reload.wake(),
            SIGINT => stop.now("SIGINT"),
            SIGQUIT => stop.graceful("SIGQUIT"),
            _ => stop.graceful("SIGTERM"),
        }
    }
}

/// Reopens the logs, also those of the process before if that still runs, and reads policies and
/// certificates again.
fn reload(upgrades: &Upgrades) {
    tracing::info!("SIGHUP: reopening the logs, reading the policies and certificates again");
    let rooms = &upgrades.rooms;
    rooms.instance.reopen_logs();
    upgrades.tell_of_rotation();
    rooms.renew_files();
    reloading(&rooms.operations, || drop(rooms.operations.reload()));
    if let Some(acme) = &rooms.acme {
        acme.hurry();
    }
}
