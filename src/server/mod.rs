//! [`run`] assembles the running server from the other modules, serves until it is told to stop,
//! and then closes it. Each step has a file: `rooms` opens what answers requests, `proxy_server`
//! the listeners, and `background` the work beside requests.

mod authority;
mod background;
mod beginning;
mod hand_over;
mod instances;
mod origin_robots;
mod proxy_server;
mod rooms;
mod service_manager;
mod sockets;
mod stop;

use crate::acme::Issued;
use crate::admin::control::ControlError;
use crate::clock::ClockError;
use crate::edge::{Certificates, TlsError};
use crate::scheduler::Scheduler;
use crate::settings::{Limits, ListenAddress, Settings};
use crate::sites::StartError;
use crate::state::StateError;
use crate::upgrade::{Inherited, SuccessorError};
use crate::upkeep::UpkeepThreads;
use crate::upstreams::TlsFileError;
use authority::AuthorityParts;
use background::catch_signals;
pub use beginning::Beginning;
use beginning::{Begun, begin};
use hand_over::Upgrades;
#[cfg(feature = "internals")]
pub use origin_robots::OriginRobots;
pub use origin_robots::known as known_origins;
use proxy_server::{Listeners, ProxyServer};
use rooms::Rooms;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sockets::Sockets;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use stop::Stop;

/// The log filter unless the operator sets another. Pingora logs each failed connection of each
/// client as an error, and h2 warns of each client that floods it. The access log and the metrics
/// say what matters of these.
pub const LOG_FILTER: &str = "info,pingora_core=error,pingora_proxy=off,h2=error";
/// Files that are open beside connections: listeners, logs, the state.
const OTHER_FILES: u64 = 100;

/// The addresses that the server listens on, with the ports that the system chose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// In the order of the settings: whether it speaks TLS, and its address.
    pub listen: Vec<(bool, SocketAddr)>,
    /// Where proxies ask for decisions.
    pub decisions: Vec<ListenAddress>,
    /// The admin listener.
    pub admin: Option<SocketAddr>,
}

impl Bound {
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
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address in the settings.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// The control socket cannot be opened.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The policies cannot be loaded.
    #[error(transparent)]
    Policies(#[from] StartError),
    /// The clock file cannot be used.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A clock file is refused while other machines can reach the server.
    #[error(
        "--clock and --acme-ports are for development: they are refused while crawlgate listens on {address}, which is not loopback"
    )]
    ClockOnPublicAddress {
        /// The address.
        address: SocketAddr,
    },
    /// Evidence that does not outlast the process would prove nothing. An authority limits how many
    /// keys and orders there are (`acme`). Other instances wait for the id of this one (`store`).
    #[error(
        "`{0}` needs a state directory that outlasts the process, and there is none; crawlgate does not start. Name one with `state` or --state"
    )]
    WithoutState(&'static str),
    /// A certificate cannot be used.
    #[error(
        "{0}; crawlgate does not start. When it is mended, `crawlgate check --config FILE` says so"
    )]
    Tls(#[from] TlsError),
    /// A file of an origin's `tls` cannot be used.
    #[error(
        "{0}; crawlgate does not start. Mend the file, or name another one in `tls` of the origin"
    )]
    OriginTls(#[from] TlsFileError),
    /// The state directory belongs to another process.
    #[error(transparent)]
    State(#[from] StateError),
    /// The facts of the process before cannot be taken over.
    #[error(
        "cannot read {file}: {error}; crawlgate does not take over. Restore a backup, or stop the service and start it \
         again: crawlgate sets a damaged file aside then and begins an empty one (docs/state.md)"
    )]
    DamagedState {
        /// The file.
        file: String,
        /// What the operating system or SQLite says.
        error: String,
    },
    /// The facts of the process before would be lost, and other ones believed.
    #[error(
        "the settings name another state directory than the running process has; crawlgate does not take over. Stop the \
         service and start it again to change `state`"
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
        /// What the system says.
        source: std::io::Error,
    },
}

impl ServerError {
    /// Makes an error of the system a [`ServerError::Io`], for `map_err`. `what` says what was
    /// tried.
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ServerError {
        let what = what.into();
        move |source| ServerError::Io { what, source }
    }
}

/// Runs until it is told to stop. SIGTERM and SIGQUIT end the server with its last request, or
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
    beginning: Beginning,
    announce: impl FnOnce(&Bound),
) -> Result<(), ServerError> {
    // Before any thread is started.
    let passed = Inherited::from_service_manager();
    // Early, so that no signal arrives before the server handles it.
    let (stop, ends) = Stop::new();
    let stop = Arc::new(stop);
    let signals = catch_signals().map_err(ServerError::io("cannot catch signals"))?;

    raise_descriptors(&settings.limits);
    let issued = Arc::<Issued>::default();
    let (certificates, tls) = Certificates::open(&settings.listen, |tls| issued.for_listener(tls))?;
    let authority = AuthorityParts::new(&settings, issued, Arc::new(certificates))?;
    let Begun {
        mut taken,
        control,
        successor,
        is_replaceable,
    } = begin(beginning, passed, &settings)?;
    let mut sockets = Sockets::bind(&settings, &mut taken.inherited)?;
    taken.inherited.close_the_rest();
    let scheduler =
        Scheduler::start().map_err(ServerError::io("cannot start the thread of the scheduler"))?;
    let (rooms, robots) = Rooms::open(
        settings,
        authority,
        &scheduler,
        taken.state_lock,
        taken.memory,
    )?;
    origin_robots::start(robots, rooms.instance.clock.clone(), &scheduler);

    if !is_replaceable {
        sockets.passable.clear();
    }
    let upgrades = Upgrades::new(
        rooms.clone(),
        stop,
        sockets.passable,
        control,
        is_replaceable,
    )?;
    let listeners = Listeners {
        proxy: sockets.proxy.into_iter().zip(tls).collect(),
        decisions: sockets.decisions,
    };
    let mut server = ProxyServer::new(listeners, ends, upgrades.clone());
    server.add_admin(sockets.admin);
    upgrades.serve_control()?;
    warn_of(&rooms);
    let _watchdog = service_manager::watch(server.pulse.clone()).map_err(ServerError::io(
        "cannot start the thread for the service manager",
    ))?;
    let threads = background::start(&upgrades, scheduler, signals)?;
    if let Some(successor) = successor {
        upgrades.follow(*successor, taken.control_lock)?;
    }
    if let Some(acme) = &rooms.acme {
        let of_orders = upgrades.clone();
        let operations = rooms.operations.clone();
        let authority = &rooms.authority;
        authority.start(acme, &rooms.settings, operations, move || {
            of_orders.is_alone()
        })?;
    }

    say(&rooms, &sockets.bound);
    announce(&sockets.bound);
    let cut_off = server.run();
    end(threads, &upgrades, cut_off, &sockets.paths);
    Ok(())
}

/// Closes the server after its last request: writes the end of the run, unless the next process has
/// taken the state over, and removes those sockets at `paths` that it has not taken over. `cut_off`
/// is how many connections are cut off; the next process is told this number.
fn end(threads: UpkeepThreads, upgrades: &Upgrades, cut_off: usize, paths: &[PathBuf]) {
    let has_left = upgrades.farewell(cut_off);
    threads.close();
    if !has_left {
        upgrades.rooms.close();
    }
    upgrades.control.remove();
    for path in paths.iter().filter(|path| !upgrades.was_passed(path)) {
        // It may be gone, or belong to the next crawlgate.
        let _ = std::fs::remove_file(path);
    }
}

/// Every connection is an open file. Lets the process open as many files as the system allows it
/// to, and says so if that is less than the settings need.
fn raise_descriptors(limits: &Limits) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: maximum,
        maximum,
    };
    let is_raised = current == maximum || setrlimit(Resource::Nofile, wanted).is_ok();
    let files = if is_raised { maximum } else { current };
    let connections = limits.connections as u64;
    let needed = connections.saturating_add(OTHER_FILES);
    if let Some(files) = files.filter(|files| *files < needed) {
        tracing::warn!(
            "the process may open {files} files, fewer than `limits.connections: {connections}`; raise LimitNOFILE or \
             ulimit -n, or lower the limit"
        );
    }
}

/// Logs the problems of the certificates.
fn warn_of(rooms: &Rooms) {
    let certificates = &rooms.authority.certificates;
    let problems = certificates.problems(rooms.instance.clock.moment().now);
    let origins = &rooms.settings.origins;
    let uncovered = certificates.uncovered(origins.iter().flat_map(|origin| &origin.hosts));
    for problem in problems.into_iter().chain(uncovered) {
        tracing::warn!("{}", problem.message);
    }
}

/// Logs where the state is, and where the server listens.
fn say(rooms: &Rooms, bound: &Bound) {
    let settings = &rooms.settings;
    match &settings.state {
        Some(directory) => tracing::info!("state in {}", directory.display()),
        None => tracing::info!("no state directory: nothing outlasts a restart"),
    }
    if settings.origins.is_empty() {
        for entry in rooms
            .instance
            .sites
            .snapshot()
            .sites()
            .iter()
            .filter(|entry| entry.site.policy.reads_origin())
        {
            tracing::warn!(
                site = entry.site.name,
                "the policy adds to the application's own robots.txt, and there is no origin to read it from: crawlgate \
                 serves the policy alone. Name the origin with --origin, or write `robots: {{ origin: replace }}`"
            );
        }
    }
    for url in bound.urls() {
        tracing::info!("listening on {url}");
    }
    for address in &bound.decisions {
        tracing::info!("decisions on {address}");
    }
}
