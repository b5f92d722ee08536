//! [`run`] opens the parts of the server, serves requests until the process is asked to stop, and
//! then closes the parts again. `services` opens the parts that answer requests, `proxy_server`
//! serves the listeners, and `background` starts the background work.

mod acme_services;
mod background;
mod hand_over;
mod instances;
mod origin_robots;
mod proxy_server;
mod service_manager;
mod services;
mod sockets;
mod start_mode;
mod stop;

use crate::acme::IssuedCertificates;
use crate::admin::control::ControlError;
use crate::clock::ClockError;
use crate::edge::{CertificateStore, TlsError};
use crate::numbers::plural;
use crate::scheduler::Scheduler;
use crate::settings::{Limits, ListenAddress, Settings};
use crate::sites::StartError;
use crate::state::StateError;
use crate::upgrade::{InheritedListeners, SuccessorError};
use crate::upkeep::UpkeepThreads;
use crate::upstreams::TlsFileError;
use acme_services::AcmeServices;
use background::catch_signals;
use hand_over::UpgradeCoordinator;
#[cfg(feature = "internals")]
pub use origin_robots::OriginRobotsTracker;
pub use origin_robots::known_origins;
use proxy_server::ProxyServer;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use services::Services;
use sockets::Sockets;
pub use start_mode::StartMode;
use start_mode::{StartResources, acquire_resources};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use stop::StopHandle;

/// The log filter unless the operator sets another. Pingora logs each failed connection of each
/// client as an error, and h2 warns of each client that floods it. The access log and the metrics
/// say what matters of these.
pub const LOG_FILTER: &str = "info,pingora_core=error,pingora_proxy=off,h2=error";
/// The number of open files beside connections: listeners, logs, the state.
const OTHER_OPEN_FILES: u64 = 100;

/// The addresses that the server listens on, with the ports that the system chose.
#[derive(Default)]
pub struct BoundAddresses {
    /// The listeners of the proxy: whether they have TLS, and their addresses.
    pub listen: Vec<(bool, SocketAddr)>,
    /// The listeners of the decision service.
    pub decisions: Vec<ListenAddress>,
    /// The admin listener.
    pub admin: Option<SocketAddr>,
}

impl BoundAddresses {
    /// The listeners as URLs.
    pub fn urls(&self) -> impl Iterator<Item = String> {
        self.listen.iter().map(|(is_tls, address)| {
            format!("{}://{address}", if *is_tls { "https" } else { "http" })
        })
    }
}

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {}", bind_failure_words(.source))]
    Bind {
        /// The address in the settings.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The control socket cannot be opened.
    #[error(transparent)]
    ControlEndpoint(#[from] ControlError),
    /// The policies cannot be loaded.
    #[error(transparent)]
    Policies(#[from] StartError),
    /// The clock file cannot be used.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A clock file is refused while other machines can reach the server.
    #[error(
        "--clock and --acme-ports are for development. They do not work while crawlgate listens on {address}, which \
         is not loopback"
    )]
    ClockOnPublicAddress {
        /// The address.
        address: SocketAddr,
    },
    /// Evidence that does not outlast the process would prove nothing. An authority limits how many
    /// keys and orders there are (`acme`). Other instances wait for the id of this one (`store`).
    #[error(
        "\"{0}\" needs a state directory that survives restarts, so crawlgate does not start. Name one with \"state\" \
         in the settings or with --state"
    )]
    WithoutState(&'static str),
    /// A certificate cannot be used.
    #[error(
        "{0}; crawlgate does not start. Fix it, and test it with \"crawlgate check --config FILE\""
    )]
    Tls(#[from] TlsError),
    /// A file of an origin's `tls` cannot be used.
    #[error(
        "{0}; crawlgate does not start. Fix the file, or name another one in \"tls\" of the origin"
    )]
    OriginTls(#[from] TlsFileError),
    /// The state directory belongs to another process.
    #[error(transparent)]
    State(#[from] StateError),
    /// The facts of the process before cannot be taken over.
    #[error(
        "{0} crawlgate does not take over. If the file is damaged, restore a backup, or stop the service and start it \
         again: then crawlgate sets the damaged file aside and begins an empty one"
    )]
    UnreadState(StateError),
    /// The facts of the process before would be lost, and other ones believed.
    #[error(
        "the settings name another state directory than the running process uses; crawlgate does not take over. To \
         change \"state\", stop the service and start it again"
    )]
    OtherState,
    /// The process before does not hand over.
    #[error(transparent)]
    Successor(#[from] SuccessorError),
    /// The system refused something that the server needs.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl ServerError {
    /// Makes an error of the system a [`ServerError::Io`], for `map_err`. `what` says what was
    /// tried.
    fn from_io(what: impl Into<String>) -> impl FnOnce(io::Error) -> ServerError {
        let what = what.into();
        move |source| ServerError::Io { what, source }
    }
}

/// Why an address cannot be bound, and what to do.
fn bind_failure_words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "the port is in use. Stop the program that uses it, or choose another port".to_owned()
        }
        ErrorKind::PermissionDenied => {
            "this user may not use this port. Choose a port from 1024 on, or grant \
            CAP_NET_BIND_SERVICE"
                .to_owned()
        }
        ErrorKind::AddrNotAvailable => {
            "this machine does not have this address. Choose one that it has, or 0.0.0.0 for all"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

/// Runs until it is asked to stop. SIGTERM and SIGQUIT end the server with its last request, or
/// after `limits.drain`. SIGINT ends it at once. SIGHUP reopens the logs and reads the policies
/// again.
///
/// Calls `announce` before the first request is accepted, when all addresses are bound and all
/// policies loaded.
///
/// # Errors
/// See [`ServerError`]. A busy address is an error at once.
pub fn run(
    settings: Settings,
    beginning: StartMode,
    announce: impl FnOnce(&BoundAddresses),
) -> Result<(), ServerError> {
    // Before any thread is started.
    let passed = InheritedListeners::from_service_manager();
    // Early, so that no signal is lost.
    let stop = Arc::<StopHandle>::default();
    let signals = catch_signals().map_err(ServerError::from_io("cannot catch signals"))?;

    raise_file_limit(&settings.limits);
    let issued = Arc::<IssuedCertificates>::default();
    let (certificates, tls) =
        CertificateStore::open(&settings.listen, |tls| issued.for_listener(tls))?;
    let acme_services = AcmeServices::new(&settings, issued, Arc::new(certificates))?;
    let StartResources {
        mut taken,
        control,
        successor,
        is_replaceable,
    } = acquire_resources(beginning, passed, &settings)?;
    let mut sockets = Sockets::bind(&settings, &mut taken.inherited)?;
    taken.inherited.close_unused();
    let scheduler = Scheduler::start().map_err(ServerError::from_io(
        "cannot start the thread of the scheduler",
    ))?;
    let (services, robots) = Services::open(settings, acme_services, &scheduler, taken.state_lock)?;
    origin_robots::start_fetching(robots, services.instance.clock.clone(), &scheduler);

    if !is_replaceable {
        sockets.passable.clear();
    }
    let upgrades = UpgradeCoordinator::new(
        services.clone(),
        stop,
        sockets.passable,
        control,
        is_replaceable,
    )?;
    let listeners = sockets.proxy.into_iter().zip(tls).collect();
    let mut server = ProxyServer::new(listeners, sockets.decisions, upgrades.clone());
    server.add_admin(sockets.admin);
    upgrades.control.serve(upgrades.commands())?;
    log_certificate_problems(&services);
    let _watchdog = service_manager::start_watchdog(server.worker_health.clone()).map_err(
        ServerError::from_io("cannot start the thread for the service manager"),
    )?;
    let threads = background::start_background(&upgrades, scheduler, signals)?;
    if let Some(successor) = successor {
        upgrades.follow_predecessor(*successor, taken.control_lock)?;
    }
    if let Some(acme) = &services.acme {
        let acme_upgrades = upgrades.clone();
        let operations = services.operations.clone();
        let acme_services = &services.acme_services;
        acme_services.start_orders(acme, &services.settings, operations, move || {
            acme_upgrades.is_alone()
        })?;
    }

    log_start(&services);
    announce(&sockets.bound);
    let cut_off = server.run();
    close_server(threads, &upgrades, cut_off, &sockets.paths);
    Ok(())
}

/// Closes the server after its last request: writes the end of the run and removes the sockets at
/// `paths`, unless the next process has taken them over. `cut_off` is how many connections are cut
/// off, for the next process.
fn close_server(
    threads: UpkeepThreads,
    upgrades: &UpgradeCoordinator,
    cut_off: usize,
    paths: &[PathBuf],
) {
    let has_left = upgrades.send_farewell(cut_off);
    threads.stop_and_flush();
    if !has_left {
        upgrades.services.close();
    }
    upgrades.control.remove();
    for path in paths.iter().filter(|path| !upgrades.was_handed_over(path)) {
        // It may be gone, or belong to the next crawlgate.
        let _ = std::fs::remove_file(path);
    }
}

/// Raises the limit of open files as far as the system allows, because every connection is an open
/// file. Logs a warning if that is less than the settings need.
fn raise_file_limit(limits: &Limits) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    let is_raised = current == maximum || setrlimit(Resource::Nofile, wanted).is_ok();
    let files = if is_raised { maximum } else { current };
    let connections = limits.connections as u64;
    let needed = connections.saturating_add(OTHER_OPEN_FILES);
    if let Some(files) = files.filter(|files| *files < needed) {
        tracing::warn!(
            "the process may open {files} files, fewer than {connections} (limits.connections). Raise LimitNOFILE or \
             ulimit -n, or lower the limit"
        );
    }
}

/// Logs the problems of the certificates.
fn log_certificate_problems(services: &Services) {
    let certificates = &services.acme_services.certificates;
    let problems = certificates.problems(services.instance.clock.moment().now);
    let origins = &services.settings.origins;
    let uncovered =
        certificates.uncovered_hosts_problem(origins.iter().flat_map(|origin| &origin.hosts));
    for problem in problems.into_iter().chain(uncovered) {
        tracing::warn!("{}", problem.message);
    }
}

/// Logs the number of sites, and the policies that wait for an origin's file in vain.
fn log_start(services: &Services) {
    let snapshot = services.instance.sites.snapshot();
    tracing::info!("serving {}", plural(snapshot.sites().len(), "site"));
    if services.settings.origins.is_empty() {
        for entry in snapshot
            .sites()
            .iter()
            .filter(|entry| entry.site.policy.reads_origin())
        {
            tracing::warn!(
                site = entry.site.name,
                "the policy adds to the application's own robots.txt, but there is no origin to read it from: \
                 crawlgate serves the policy alone. Name the origin with --origin, or write \"robots: {{ origin: \
                 replace }}\""
            );
        }
    }
}
