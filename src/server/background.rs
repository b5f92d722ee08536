//! [`start_background`] starts the background work of the server: the threads of the module
//! `upkeep`, and jobs that run when they are due. The jobs put planned changes into force, load
//! renewed certificate files, get timestamps for the evidence log (which third parties can check),
//! and reload on SIGHUP.
//!
//! [`catch_signals`] is called before [`start_background`]. A signal that arrives during the start
//! then waits until the background work has begun. Without [`catch_signals`] a SIGHUP would end the
//! process, because Pingora does not handle SIGHUP.

use super::ServerError;
use super::hand_over::UpgradeCoordinator;
use super::service_manager::notify_reload;
use super::stop::StopHandle;
use crate::evidence::{EvidenceRecorder, fetch_timestamps, open_existing};
use crate::scheduler::{JobWaker, Scheduler};
use crate::threads::spawn;
use crate::upkeep::UpkeepThreads;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How often the files of certificates are checked for changes.
const RELOAD_FILES_EVERY: Duration = Duration::from_secs(10);
/// How often checkpoints without a timestamp are looked up, and the pause after a failure.
const STAMP_EVERY: Duration = Duration::from_secs(5);
const STAMP_RETRY: Duration = Duration::from_secs(600);

/// Adds the jobs to the scheduler, starts the threads, and acts on signals from now on. Fails if a
/// thread cannot be started.
pub fn start_background(
    upgrades: &Arc<UpgradeCoordinator>,
    scheduler: Scheduler,
    signals: Signals,
) -> Result<UpkeepThreads, ServerError> {
    let services = &upgrades.services;
    let operations = services.operations.clone();
    scheduler.add("planned-changes", move |_| {
        operations.log_setup_problems();
        Some(operations.upkeep.apply_due_changes())
    });
    if !services.acme_services.certificates.is_empty() || services.upstreams.has_tls_files() {
        let services = services.clone();
        scheduler.add("certificates", move |_| {
            services.reload_files();
            Some(RELOAD_FILES_EVERY)
        });
    }
    let evidence = services.settings.evidence.as_ref();
    if evidence.is_some_and(|evidence| !evidence.timestamps.is_empty())
        && let Some(directory) = services.settings.state.clone()
    {
        let evidence = services.evidence.clone();
        scheduler.add("timestamps", move |_| {
            Some(add_timestamps(&directory, &evidence))
        });
    }
    let reloaded = upgrades.clone();
    let reload = scheduler.add_on_demand_job("reload", move |_| {
        handle_sighup(&reloaded);
        None
    });
    let stop = upgrades.stop.clone();
    spawn("signals", move || handle_signals(signals, &stop, &reload))
        .map_err(ServerError::from_io("cannot start the thread for signals"))?;
    let operations = services.operations.clone();
    UpkeepThreads::start(
        services.instance.clone(),
        services.store.clone(),
        &services.settings.policies,
        scheduler,
        move || drop(operations.reload()),
    )
    .map_err(ServerError::from_io(
        "cannot start the threads of policies and the ledger",
    ))
}

/// Gets timestamps for checkpoints of the evidence log without one. A failure is in the status until
/// a later run succeeds. Returns the time until the next run.
fn add_timestamps(directory: &Path, evidence: &EvidenceRecorder) -> Duration {
    let stamped = open_existing(directory).map_err(|error| error.to_string());
    let stamped = stamped.and_then(|mut log| {
        fetch_timestamps(&mut log, SystemTime::now()).map_err(|error| error.to_string())
    });
    let problem = stamped.err().map(|error| {
        format!(
            "a checkpoint of the evidence log has no timestamp: {error}; crawlgate tries again every ten minutes. \
             Check evidence.timestamps in crawlgate.yaml"
        )
    });
    let wait = if problem.is_some() {
        STAMP_RETRY
    } else {
        STAMP_EVERY
    };
    evidence.set_timestamp_problem(problem);
    wait
}

/// Catches the signals from now on. Those that arrive before [`start_background`] wait.
pub fn catch_signals() -> io::Result<Signals> {
    Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
}

/// Handles signals: SIGINT stops the server at once, SIGQUIT and SIGTERM after the last request, the
/// second time at once. SIGHUP wakes the job `reload`, so that it does not delay a stop.
fn handle_signals(mut signals: Signals, stop: &StopHandle, reload: &JobWaker) {
    for signal in signals.forever() {
        match signal {
            SIGHUP => reload.wake(),
            SIGINT => stop.stop_immediately("SIGINT"),
            SIGQUIT => stop.stop_gracefully("SIGQUIT"),
            _ => stop.stop_gracefully("SIGTERM"),
        }
    }
}

/// Reopens the logs, also those of the previous process if that still runs, and reloads policies and
/// certificates.
fn handle_sighup(upgrades: &UpgradeCoordinator) {
    tracing::info!("SIGHUP: reopening the logs, reloading the policies and certificates");
    let services = &upgrades.services;
    services.instance.reopen_logs();
    upgrades.notify_log_rotation();
    services.reload_files();
    notify_reload(&services.operations, || drop(services.operations.reload()));
    if let Some(acme) = &services.acme {
        acme.retry_soon();
    }
}
