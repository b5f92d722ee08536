//! [`Background`]: the threads that work beside the requests. They are those of `upkeep`, one that
//! loads renewed certificate files, and one that gets timestamps for the evidence log (the log that
//! third parties can check). [`catch_signals`] catches signals, and [`serve_signals`] handles them
//! in a thread of their own. Pingora does not handle SIGHUP, which would end the process.

use super::ServerError;
use super::hand_over::Upgrades;
use super::rooms::{Rooms, renew_files};
use super::service_manager::reloading;
use super::stop::Stop;
use crate::edge::Certificates;
use crate::evidence::{open_existing, stamp};
use crate::settings::Settings;
use crate::threads::spawn;
use crate::upkeep::{Instance, Repeated, UpkeepThreads};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, SystemTime};

/// How often the files of certificates are looked at.
const RENEWAL: Duration = Duration::from_secs(10);
/// How often checkpoints without a timestamp are looked for, and how often after a failure.
const STAMPED: Duration = Duration::from_secs(5);
const STAMPED_AGAIN: Duration = Duration::from_secs(600);
/// The running threads. All but the ledger's end when this is dropped.
pub struct Background {
    upkeep: UpkeepThreads,
    _repeated: [Option<Repeated>; 2],
}

impl Background {
    /// Starts the threads. Fails if one of them cannot be started.
    pub fn start(
        settings: &Settings,
        rooms: &Rooms,
        certificates: Arc<Certificates>,
    ) -> Result<Background, ServerError> {
        let reloaded = rooms.operations.clone();
        let operations = rooms.operations.clone();
        let upkeep = UpkeepThreads::start(
            rooms.instance.clone(),
            rooms.store.clone(),
            &settings.policies,
            move || drop(reloaded.reload()),
            move || {
                operations.warn_of_setup();
                operations.upkeep.keep_time()
            },
        )
        .map_err(ServerError::io(
            "cannot start the threads of policies and the ledger",
        ))?;
        let timestamps = stamping(settings, rooms.instance.clone())?;
        Ok(Background {
            upkeep,
            _repeated: [timestamps, renewing(rooms, certificates)?],
        })
    }

    /// Ends the threads and stores the ledger. No request may be served any more.
    pub fn close(self) {
        self.upkeep.close();
    }
}

/// Starts the thread that gets timestamps for checkpoints of the evidence log. `None` if the
/// settings name no authority to ask, or no state directory. A failure is shown in the status until
/// a later run succeeds.
fn stamping(settings: &Settings, instance: Arc<Instance>) -> Result<Option<Repeated>, ServerError> {
    let authorities = settings
        .evidence
        .as_ref()
        .filter(|evidence| !evidence.timestamps.is_empty());
    let (Some(_), Some(directory)) = (authorities, settings.state.clone()) else {
        return Ok(None);
    };
    let started = Repeated::start("timestamps", move || {
        let stamped = open_existing(&directory).map_err(|error| error.to_string());
        let stamped = stamped.and_then(|mut log| {
            stamp(&mut log, SystemTime::now()).map_err(|error| error.to_string())
        });
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
        instance.evidence.set_stamp_problem(problem);
        wait
    });
    started
        .map(Some)
        .map_err(ServerError::io("cannot start the thread for timestamps"))
}

/// Starts the thread that takes renewed certificates of listeners and origins, every ten seconds.
/// `None` if no listener has TLS and no origin has files for TLS.
fn renewing(
    rooms: &Rooms,
    certificates: Arc<Certificates>,
) -> Result<Option<Repeated>, ServerError> {
    let instance = rooms.instance.clone();
    let upstreams = rooms.upstreams.clone();
    if certificates.is_empty() && !upstreams.has_tls_files() {
        return Ok(None);
    }
    let started = Repeated::start("certificates", move || {
        renew_files(&certificates, &upstreams, &instance);
        RENEWAL
    });
    started
        .map(Some)
        .map_err(ServerError::io("cannot start the thread for certificates"))
}

/// Catches the signals from now on. Those that arrive before [`serve_signals`] wait.
pub fn catch_signals() -> io::Result<Signals> {
    Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])
}

/// Acts on signals, in threads that live as long as the process: SIGINT stops it at once, SIGQUIT
/// and SIGTERM after the last request, the second time at once. SIGHUP reopens the logs, also those
/// of the process before if that still runs, and reads policies and certificates again, in a thread
/// of its own, so that it does not delay a stop. All SIGHUPs that arrive meanwhile cause one more
/// run. Fails if a thread cannot be started.
pub fn serve_signals(
    signals: Signals,
    certificates: Arc<Certificates>,
    upgrades: Arc<Upgrades>,
) -> Result<(), ServerError> {
    let stop = upgrades.stop.clone();
    let (wake, woken) = sync_channel(1);
    let reloading = spawn("reload", move || {
        let instance = &upgrades.instance;
        let operations = &upgrades.door.operations;
        while woken.recv().is_ok() {
            tracing::info!(
                "SIGHUP: reopening the logs, reading the policies and certificates again"
            );
            instance.access.reopen();
            instance.events.reopen();
            upgrades.tell_of_rotation();
            renew_files(&certificates, &upgrades.upstreams, instance);
            reloading(operations, || drop(operations.reload()));
            if let Some(acme) = upgrades.acme.get() {
                acme.hurry();
            }
        }
    });
    reloading
        .and_then(|_| spawn("signals", move || follow(signals, &stop, &wake)))
        .map(drop)
        .map_err(ServerError::io("cannot start the thread for signals"))
}

fn follow(mut signals: Signals, stop: &Stop, reload: &SyncSender<()>) {
    for signal in signals.forever() {
        match signal {
            SIGHUP => {
                // If the channel is full, a run that covers this signal is waiting.
                let _ = reload.try_send(());
            }
            SIGINT => stop.now("SIGINT"),
            SIGQUIT => stop.graceful("SIGQUIT"),
            _ => stop.graceful("SIGTERM"),
        }
    }
}
