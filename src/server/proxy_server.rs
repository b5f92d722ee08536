//! [`ProxyServer`]: Pingora's server with its services: the listeners of the proxy, the decision
//! service and the admin interface, the resolver of origins' names, and the health checks.

use super::hand_over::Upgrades;
use super::rooms::Rooms;
use super::stop::{Drain, Ends};
use crate::admin::AdminApp;
use crate::decisions::Decisions;
use crate::edge::{
    BoundListener, Door, Edge, Lane, Listening, Open, Plain, Pulse, Serve, Share, Stops,
    TlsListener,
};
use crate::gateway::Gateway;
use crate::requests::{Challenges, Redirect, RequestSettings};
use crate::settings::Settings;
use crate::upstreams::{Checks, MOST_ATTEMPTS, Resolver};
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{RunArgs, Server};
use pingora_core::services::background::GenBackgroundService;
use pingora_proxy::HttpProxy;
use std::num::{NonZeroU16, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Upstream connections kept for reuse, per worker thread (Pingora 0.9.1): more than a few clients
/// over HTTP/2 need at once, each with `limits.streams` requests. With fewer a tenth of their
/// requests had to open a connection.
const UPSTREAM_POOL: usize = 512;

/// The bound listeners.
pub struct Listeners {
    /// The listeners of the proxy, in the order of the settings.
    pub proxy: Vec<(BoundListener, Option<TlsListener>)>,
    /// The listeners of the decision service.
    pub decisions: Vec<BoundListener>,
}

/// The assembled server, which does not run yet.
pub struct ProxyServer {
    server: Server,
    drain: Drain,
    readiness: Arc<Readiness>,
    admin_stops: Stops,
    /// The pulse of the workers on the listeners of the proxy and of the decision service.
    pub pulse: Arc<Pulse>,
}

impl ProxyServer {
    /// Assembles the server: Pingora's proxy, the edge and the lane, on the listeners of the proxy
    /// and the decision service (which are in the order of the settings), and the background
    /// services.
    pub fn new(listeners: Listeners, ends: Ends, upgrades: Arc<Upgrades>) -> ProxyServer {
        let rooms = &*upgrades.rooms;
        let settings = &rooms.settings;
        let available = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = settings.threads.unwrap_or(available).max(1);
        let mut server = Server::new_with_opt_and_conf(None, configuration(threads));
        server.bootstrap();
        let proxy = proxy(rooms, &server);
        let stall = settings.limits.stall;
        let lane = settings
            .lane
            .then(|| Lane::new(rooms.upstreams.clone(), &server.configuration, stall));
        let edge = Edge::new(
            rooms.requests.clone(),
            Box::new(proxy.clone()),
            lane,
            rooms.upstreams.clone(),
        );
        let mut served = doors(settings, listeners.proxy, &Arc::new(edge));
        if let Some(door) = decision_door(rooms) {
            served.extend(
                listeners
                    .decisions
                    .into_iter()
                    .map(|listener| (listener, door.clone())),
            );
        }
        let open = Arc::new(Open::default());
        let pulse = Arc::new(Pulse::default());
        let readiness = Arc::new(Readiness {
            upgrades: upgrades.clone(),
            missing: AtomicUsize::new(0),
        });
        let resolver = Resolver(rooms.upstreams.clone());
        let resolver = server.add_service(GenBackgroundService::new(
            "resolver".to_string(),
            Arc::new(resolver),
        ));
        if rooms.upstreams.has_checks() {
            let checks = Arc::new(Checks::new(rooms.upstreams.clone(), &server.configuration));
            server.add_service(GenBackgroundService::new("checks".to_string(), checks));
        }
        let serving = server.add_service(Listening {
            name: "proxy",
            listeners: served,
            threads,
            stops: ends.proxy,
            open: open.clone(),
            pulse: pulse.clone(),
            ready: Some(readiness.of_service()),
        });
        // The first request finds an upstream address, unless resolving it took too long.
        serving.add_dependency(&resolver);
        let drain = Drain {
            stop: upgrades.stop.clone(),
            passable: upgrades.listeners.clone(),
            proxy,
            open,
            operations: rooms.operations.clone(),
            limit: settings.limits.drain,
            upgrade_limit: settings.upgrade_drain,
        };
        ProxyServer {
            server,
            drain,
            readiness,
            admin_stops: ends.admin,
            pulse,
        }
    }

    /// Puts the admin interface on its listener, if there is one.
    pub fn add_admin(&mut self, listener: Option<BoundListener>) {
        let Some(listener) = listener else { return };
        let rooms = &self.readiness.upgrades.rooms;
        let app = AdminApp::new(rooms.operations.clone(), rooms.instance.access.clone());
        self.server.add_service(Listening {
            name: "admin",
            listeners: vec![(listener, Arc::new(Plain::new(app, rooms.settings.limits)))],
            threads: 1,
            stops: self.admin_stops.clone(),
            open: Arc::default(),
            pulse: Arc::default(),
            ready: Some(self.readiness.of_service()),
        });
    }

    /// Serves until it is told to stop and the last request has ended. Returns how many connections
    /// are cut off.
    pub fn run(self) -> usize {
        let open = self.drain.open.clone();
        self.server.run(RunArgs {
            shutdown_signal: Box::new(self.drain),
        });
        open.now()
    }
}

/// Waits until all services accept connections. Then the server is ready.
struct Readiness {
    upgrades: Arc<Upgrades>,
    missing: AtomicUsize,
}

impl Readiness {
    /// Counts one more service that has to accept connections, and returns the function that it
    /// calls then, once. When all have called theirs, the server is ready. To be called before any
    /// service runs.
    fn of_service(self: &Arc<Readiness>) -> Box<dyn Fn() + Send + Sync> {
        self.missing.fetch_add(1, Ordering::AcqRel);
        let readiness = self.clone();
        Box::new(move || {
            if readiness.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
                readiness.upgrades.serves();
            }
        })
    }
}

/// The listeners of the proxy, each with the edge and its own settings. A redirect goes to the port
/// that the settings say, else to 443 if a listener with TLS has it or none has TLS, else to the
/// first port with TLS.
fn doors(
    settings: &Settings,
    listeners: Vec<(BoundListener, Option<TlsListener>)>,
    edge: &Arc<Edge>,
) -> Share {
    let mut ports = Vec::new();
    for (listener, tls) in &listeners {
        if let BoundListener::Tcp(listener) = listener
            && tls.is_some()
        {
            ports.extend(listener.local_addr().map(|address| address.port()));
        }
    }
    // Without a listener of its own for https, a proxy in front has one.
    let port = if ports.contains(&443) {
        None
    } else {
        ports.first().copied()
    };
    let mut doors = Share::new();
    for (said, (listener, tls)) in settings.listen.iter().zip(listeners) {
        let redirect = said
            .redirect
            .map(|said| match said.port.map(NonZeroU16::get) {
                Some(443) => Redirect { port: None },
                seen => Redirect {
                    port: seen.or(port),
                },
            });
        let door = Door {
            edge: edge.clone(),
            tls,
            proxy_protocol: said.proxy_protocol,
            speaks_http2: said.speaks_http2,
            redirect,
        };
        doors.push((listener, Arc::new(door)));
    }
    doors
}

/// The decision service behind its listeners: the edge reads requests, and every one is answered.
/// `None` if the settings have no `decisions`.
fn decision_door(rooms: &Rooms) -> Option<Arc<dyn Serve>> {
    let settings = &rooms.settings;
    let said = settings.decisions.as_ref()?;
    let speakers = said
        .trusted
        .iter()
        .chain(&settings.trusted_proxies)
        .copied()
        .collect();
    let requests = rooms.requests.with(RequestSettings {
        trusted_proxies: speakers,
        client_address: settings.client_address.clone(),
        challenges: Challenges::default(),
        is_encrypted: None,
        limits: settings.limits,
        is_for_proxies: true,
    });
    let decisions = Arc::new(Decisions::new(requests.clone()));
    let edge = Arc::new(Edge::answering(requests, decisions, said.trusted.clone()));
    Some(Arc::new(Door {
        edge,
        tls: None,
        proxy_protocol: false,
        speaks_http2: true,
        redirect: None,
    }))
}

/// Pingora's proxy with crawlgate's gateway.
fn proxy(rooms: &Rooms, server: &Server) -> Arc<HttpProxy<Gateway>> {
    let gateway = Gateway {
        requests: rooms.requests.clone(),
        upstreams: rooms.upstreams.clone(),
        limits: rooms.settings.limits,
    };
    let mut proxy = HttpProxy::new(gateway, server.configuration.clone());
    proxy.handle_init_modules();
    Arc::new(proxy)
}

/// Pingora's settings. It would sleep for the whole grace period, even when idle; `Drain` has
/// waited by then, so that the period is 0 (Pingora 0.9.1).
fn configuration(threads: usize) -> ServerConf {
    ServerConf {
        threads,
        upstream_keepalive_pool_size: UPSTREAM_POOL,
        max_retries: MOST_ATTEMPTS,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    }
}
