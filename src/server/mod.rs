//! Assembly of the running server: listeners bound first, then policies, then everything that serves.
//!
//! The one place that knows all rooms; each of them is told only what it needs.

mod connection;
mod http2;
mod ledger_task;
mod listening;
mod origin_robots;
mod scheduler;
mod signals;
mod stop;

use crate::admin::control::{ControlError, ControlSocket};
use crate::admin::{AdminApp, Operations};
use crate::answers::Answers;
use crate::clock::{Clock, ClockError, Moment};
use crate::crawlers::Registry;
use crate::gateway::Gateway;
use crate::judge::Judge;
use crate::ledger::{Behaviours, Ledger, LedgerOptions, Traps};
use crate::origin::{Origins, Resolver};
use crate::settings::Settings;
use crate::sites::{SiteManager, SiteOptions, StartError};
use crate::state::{StateError, StateStore};
use crate::telemetry::{AccessLog, Events, Metrics};
use http2::Http;
use listening::{Listening, bind};
pub use origin_robots::{FetchJob, FinishedJob, OriginRobots, known as known_origins};
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{RunArgs, Server};
use pingora_core::services::background::GenBackgroundService;
use pingora_proxy::HttpProxy;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use stop::{Drain, Open, Stop};
use tokio::sync::watch;

/// What is logged when nobody says otherwise. Pingora logs each failed connection of each client as an error, and h2
/// warns of each that floods it; what matters of these is in the access log and the metrics.
pub const LOG_FILTER: &str = "info,pingora_core=error,pingora_proxy=off,h2=error";

/// Upstream connections kept for reuse, per worker thread (Pingora 0.9.1).
const UPSTREAM_POOL: usize = 256;
/// Tries per request, the first included.
const UPSTREAM_TRIES: usize = 2;
/// How long the policy directory must be quiet before it is read again.
const WATCH_DEBOUNCE: Duration = Duration::from_millis(200);

/// Where the server can be reached, ports filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// In the order of the settings.
    pub listen: Vec<SocketAddr>,
    /// The admin listener.
    pub admin: Option<SocketAddr>,
}

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address cannot be bound.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// As it was asked for.
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
    /// A clock file is refused where others could reach the server.
    #[error("--clock is for development: it is refused while crawlgate listens on {address}, which is not loopback")]
    ClockOnPublicAddress {
        /// The address.
        address: SocketAddr,
    },
    /// The state directory belongs to another process.
    #[error(transparent)]
    State(#[from] StateError),
    /// Something that is needed from the system is not to be had.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl ServerError {
    fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> ServerError {
        let what = what.into();
        move |source| ServerError::Io { what, source }
    }
}

/// Runs until it is told to stop: SIGTERM and SIGQUIT end with the last request or after `limits.drain`, SIGINT at
/// once, SIGHUP reads the policies again. Calls `announce` when all addresses are bound and all policies loaded, before
/// the first request is taken.
///
/// # Errors
/// A busy address fails at once; for the rest see [`ServerError`].
pub fn run(settings: Settings, announce: impl FnOnce(&Bound)) -> Result<(), ServerError> {
    // Before anything else, so that no signal finds the process unprepared.
    let stop = Arc::new(Stop::new());
    let signals = signals::catch().map_err(ServerError::io("cannot catch signals"))?;

    let listeners = settings.listen.iter().map(|address| bind(*address)).collect::<Result<Vec<_>, _>>()?;
    let admin_listener = settings.admin.map(bind).transpose()?;
    let bound = Bound {
        listen: listeners.iter().map(|(_, address)| *address).collect(),
        admin: admin_listener.as_ref().map(|(_, address)| *address),
    };

    let control = settings.control.as_deref().map(ControlSocket::bind).transpose()?.map(Arc::new);

    let clock = clock(&settings)?;
    let (store, remembered) = StateStore::open(settings.state.as_deref(), Arc::new(moments(&clock)))?;
    let registry = Registry::builtin();
    let moment = clock.moment();
    let options = SiteOptions {
        policies: settings.policies.clone(),
        state: settings.state.clone(),
        strict: settings.strict,
        may_be_missing: settings.policies_may_be_missing,
        origins: origin_robots::known(settings.state.as_deref(), moment.now).before(&settings.origins),
    };
    let live = SiteManager::start(options, registry, moment.now)?;
    let options = LedgerOptions {
        state: settings.state.clone(),
        new_hosts: settings.new_hosts.clone(),
        versions_missing: live.versions_missing(),
        witnesses: Some(live.witnesses()),
    };
    let ledger = Arc::new(Ledger::open(options, &live.snapshot(), moment));
    let metrics = Metrics::new();
    let traps = match &settings.state {
        Some(_) => Traps::remembered(&remembered.facts.marked_clients, store.clone(), moment),
        None => Traps::default(),
    };
    // Where the first commit fails, `status` says so, and it is tried again every second.
    let _ = store.begin(Vec::new());
    let judge = Arc::new(Judge {
        sites: live.clone(),
        registry,
        ledger: ledger.clone(),
        behaviours: Arc::new(Behaviours::with(traps.clone())),
        clock: clock.clone(),
        metrics: metrics.clone(),
        access: AccessLog::open(&settings.logs.access).map_err(ServerError::io("cannot open the access log"))?,
        events: Events::open(&settings.logs.events).map_err(ServerError::io("cannot open the event log"))?,
        addresses: settings.logs.addresses,
    });
    let (access, events) = (judge.access.clone(), judge.events.clone());
    let operations = Operations::new(judge.clone());

    let robots = OriginRobots::new(live.clone(), &settings.origins, settings.state.as_deref(), moment.now);
    origin_robots::start(robots, clock.clone())
        .map_err(ServerError::io("cannot start the thread for the origins' robots.txt"))?;

    let origins = Arc::new(Origins::new(&settings.origins));
    let threads = settings
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get))
        .max(1);
    let mut server = Server::new_with_opt_and_conf(None, configuration(threads));
    server.bootstrap();
    let mut proxy = HttpProxy::new(
        Gateway {
            judge,
            answers: Answers::default(),
            origins: origins.clone(),
            metrics: metrics.clone(),
            limits: settings.limits,
            trusted_proxies: settings.trusted_proxies,
        },
        server.configuration.clone(),
    );
    proxy.handle_init_modules();
    let proxy = Arc::new(proxy);

    let open = Arc::new(Open::default());
    let (closing, closed) = watch::channel(false);
    let resolver = Resolver::new(origins, {
        let metrics = metrics.clone();
        move || metrics.upstream_failure("dns")
    });
    let resolver = server.add_service(GenBackgroundService::new("resolver".to_string(), Arc::new(resolver)));
    let serving = server.add_service(Listening {
        name: "proxy",
        listeners: listeners.into_iter().map(|(listener, _)| listener).collect(),
        app: Arc::new(Http::new(proxy.clone(), &settings.limits)),
        threads,
        stop: Some(closed),
        open: open.clone(),
        ready: Some(operations.clone()),
        metrics: Some(metrics),
    });
    // The first request finds an address, or the resolver's patience was not enough.
    serving.add_dependency(&resolver);
    if let Some((listener, _)) = admin_listener {
        server.add_service(Listening {
            name: "admin",
            listeners: vec![listener],
            app: Arc::new(AdminApp::new(operations.clone(), access.clone())),
            threads: 1,
            stop: None,
            open: Arc::default(),
            ready: None,
            metrics: None,
        });
    }
    if let Some(control) = &control {
        control.clone().serve(operations.clone()).map_err(ServerError::io("cannot serve the control socket"))?;
    }

    let keeper = ledger_task::keep(ledger, traps, live.clone(), clock)
        .map_err(ServerError::io("cannot start the ledger's thread"))?;
    let watched = operations.clone();
    let _watch = live
        .watch(&settings.policies, WATCH_DEBOUNCE, move || drop(watched.reload()))
        .map_err(|error| tracing::warn!(%error, "the policy directory is not watched; SIGHUP reads it again"))
        .ok();
    let _scheduler =
        scheduler::start(operations.clone()).map_err(ServerError::io("cannot start the thread for planned changes"))?;
    signals::serve(signals, stop.clone(), {
        let (access, events, operations) = (access.clone(), events.clone(), operations.clone());
        move || {
            tracing::info!("SIGHUP: the logs are opened and the policies are read again");
            access.reopen();
            events.reopen();
            operations.reload();
        }
    })
    .map_err(ServerError::io("cannot start the thread for signals"))?;

    for address in &bound.listen {
        tracing::info!("listening on http://{address}");
    }
    announce(&bound);
    let limit = settings.limits.drain;
    let drain = Drain { stop, closing, proxy, open, operations, access, events, limit };
    server.run(RunArgs { shutdown_signal: Box::new(drain) });
    keeper.close();
    if let Err(error) = store.close() {
        tracing::warn!("{error}; the next start takes this run for a crash");
    }
    if let Some(control) = control {
        control.remove();
    }
    Ok(())
}

/// What time it is, for who knows no clock.
fn moments(clock: &Clock) -> impl Fn() -> Moment + Send + Sync + 'static {
    let clock = clock.clone();
    move || clock.moment()
}

/// Pingora sleeps for the whole grace period, even when idle; [`Drain`] has waited by then (Pingora 0.9.1).
fn configuration(threads: usize) -> ServerConf {
    ServerConf {
        threads,
        upstream_keepalive_pool_size: UPSTREAM_POOL,
        max_retries: UPSTREAM_TRIES,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    }
}

/// The machine's clock, or one that a file shifts. A server that others can reach must not follow a file.
fn clock(settings: &Settings) -> Result<Clock, ServerError> {
    let Some(file) = &settings.clock else { return Ok(Clock::default()) };
    let public = settings.listen.iter().chain(&settings.admin).find(|address| !address.ip().is_loopback());
    match public {
        Some(address) => Err(ServerError::ClockOnPublicAddress { address: *address }),
        None => Ok(Clock::following(file)?),
    }
}
