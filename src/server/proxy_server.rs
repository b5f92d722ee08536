//! [`ProxyServer`]: Pingora's server with all services that it runs. Some services are listeners:
//! of the proxy, of the decision service for other proxies, and of the admin interface. Two more
//! run in the background: one resolves the names of origins, and one checks the health of origins.

use super::hand_over::UpgradeCoordinator;
use super::services::Services;
use super::stop::ShutdownWaiter;
use crate::admin::AdminApp;
use crate::decisions::DecisionService;
use crate::edge::{
    AcceptService, AdminService, BoundListener, ConnectionCounter, EdgeContext, Forwarder,
    ListenerService, ListenerTls, ServeConnection, ServedListeners, WorkerHealth,
};
use crate::gateway::Gateway;
use crate::requests::{ChallengeFileSources, HttpsRedirect, RequestSettings};
use crate::settings::Settings;
use crate::upstreams::{HealthChecker, MAX_ATTEMPTS, OriginResolver};
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{RunArgs, Server};
use pingora_core::services::background::GenBackgroundService;
use pingora_proxy::HttpProxy;
use std::num::{NonZeroU16, NonZeroUsize};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{AcqRel, Acquire};

/// Upstream connections kept for reuse, per worker thread (Pingora 0.9.1): more than a few clients
/// over HTTP/2 need at once, each with `limits.streams` requests. With fewer a tenth of their
/// requests had to open a connection.
const UPSTREAM_POOL_SIZE: usize = 512;

/// The assembled server, which does not run yet.
pub struct ProxyServer {
    server: Server,
    drain: ShutdownWaiter,
    readiness: Arc<ReadinessTracker>,
    /// Notices stuck workers on the listeners of the proxy and of the decision service.
    pub worker_health: Arc<WorkerHealth>,
}

impl ProxyServer {
    /// Assembles the server: Pingora's proxy, the edge and the forwarder on the listeners of the
    /// proxy (in the order of the settings) and of the decision service, and the background services.
    pub fn new(
        listeners: Vec<(BoundListener, Option<ListenerTls>)>,
        decision_listeners: Vec<BoundListener>,
        upgrades: Arc<UpgradeCoordinator>,
    ) -> ProxyServer {
        let services = &*upgrades.services;
        let settings = &services.settings;
        let available = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = settings.threads.unwrap_or(available).max(1);
        let mut server = Server::new_with_opt_and_conf(None, pingora_configuration(threads));
        server.bootstrap();
        let proxy = build_proxy(services, &server);
        let stall = settings.limits.stall;
        let forwarder = settings
            .direct_forwarding
            .then(|| Forwarder::new(services.upstreams.clone(), &server.configuration, stall));
        let edge = EdgeContext {
            pingora: Some(Box::new(proxy.clone())),
            forwarder,
            upstreams: Some(services.upstreams.clone()),
            ..EdgeContext::new(services.requests.clone())
        };
        let mut served = proxy_listeners(settings, listeners, &Arc::new(edge));
        if let Some(service) = decision_listener(services) {
            served.extend(
                decision_listeners
                    .into_iter()
                    .map(|listener| (listener, service.clone())),
            );
        }
        let open = Arc::new(ConnectionCounter::default());
        let worker_health = Arc::new(WorkerHealth::default());
        let readiness = Arc::new(ReadinessTracker {
            upgrades: upgrades.clone(),
            missing: 0.into(),
        });
        let resolver = OriginResolver(services.upstreams.clone());
        let mut awaited = server.add_service(GenBackgroundService::new(
            "resolver".to_string(),
            Arc::new(resolver),
        ));
        if services.upstreams.has_checks() {
            let checks = Arc::new(HealthChecker::new(
                services.upstreams.clone(),
                &server.configuration,
            ));
            let checks =
                server.add_service(GenBackgroundService::new("checks".to_string(), checks));
            checks.add_dependency(&awaited);
            awaited = checks;
        }
        let serving = server.add_service(AcceptService {
            name: "proxy",
            listeners: served,
            threads,
            stops: upgrades.stop.stopper.signals(),
            counter: open.clone(),
            worker_health: worker_health.clone(),
            on_ready: readiness.add_service(),
        });
        // The first request finds the address of a server that is up, unless lookups or checks took
        // too long.
        serving.add_dependency(&awaited);
        let drain = ShutdownWaiter {
            stop: upgrades.stop.clone(),
            passable: upgrades.listeners.clone(),
            proxy,
            open,
            cut_off: Arc::default(),
            operations: services.operations.clone(),
            limit: settings.limits.drain,
            upgrade_limit: settings.upgrade_drain,
        };
        ProxyServer {
            server,
            drain,
            readiness,
            worker_health,
        }
    }

    /// Puts the admin interface on its listener, if there is one.
    pub fn add_admin(&mut self, listener: Option<BoundListener>) {
        let Some(listener) = listener else { return };
        let services = &self.readiness.upgrades.services;
        let app = AdminApp::new(services.operations.clone(), &services.settings.admin_hosts);
        self.server.add_service(AcceptService {
            name: "admin",
            listeners: vec![(
                listener,
                Arc::new(AdminService::new(app, services.settings.limits)),
            )],
            threads: 1,
            stops: self.drain.stop.admin.signals(),
            counter: Arc::default(),
            worker_health: Arc::default(),
            on_ready: self.readiness.add_service(),
        });
    }

    /// Serves until it is asked to stop and the last request has ended. Returns how many connections
    /// are cut off.
    pub fn run(self) -> usize {
        let cut_off = self.drain.cut_off.clone();
        self.server.run(RunArgs {
            shutdown_signal: Box::new(self.drain),
        });
        cut_off.load(Acquire)
    }
}

/// Marks the server as ready when all services accept connections.
struct ReadinessTracker {
    upgrades: Arc<UpgradeCoordinator>,
    missing: AtomicUsize,
}

impl ReadinessTracker {
    /// Adds a service that must accept connections, and returns the function that it calls once when
    /// it does. Call it before any service runs.
    fn add_service(self: &Arc<ReadinessTracker>) -> Box<dyn Fn() + Send + Sync> {
        self.missing.fetch_add(1, AcqRel);
        let readiness = self.clone();
        Box::new(move || {
            if readiness.missing.fetch_sub(1, AcqRel) == 1 {
                readiness.upgrades.mark_serving();
            }
        })
    }
}

/// The listeners of the proxy, each with its settings. A redirect goes to the port of the settings,
/// else to 443 if a listener with TLS has that port or none has TLS, else to the first port with TLS.
fn proxy_listeners(
    settings: &Settings,
    listeners: Vec<(BoundListener, Option<ListenerTls>)>,
    edge: &Arc<EdgeContext>,
) -> ServedListeners {
    let mut ports = Vec::new();
    for (listener, tls) in &listeners {
        if let BoundListener::Tcp(listener) = listener
            && tls.is_some()
        {
            ports.extend(listener.local_addr().map(|address| address.port()));
        }
    }
    // Without a listener for https, a proxy in front has one.
    let port = if ports.contains(&443) {
        None
    } else {
        ports.first().copied()
    };
    let mut served = ServedListeners::new();
    for (entry, (bound, tls)) in settings.listen.iter().zip(listeners) {
        let redirect = entry
            .redirect
            .map(|redirect| match redirect.port.map(NonZeroU16::get) {
                Some(443) => HttpsRedirect { port: None },
                seen => HttpsRedirect {
                    port: seen.or(port),
                },
            });
        let listener = ListenerService {
            edge: edge.clone(),
            tls,
            proxy_protocol: entry.proxy_protocol,
            speaks_http2: entry.speaks_http2,
            redirect,
        };
        served.push((bound, Arc::new(listener)));
    }
    served
}

/// The decision service behind its listeners: the edge reads requests, and every one is answered.
/// `None` if the settings have no `decisions`.
fn decision_listener(services: &Services) -> Option<Arc<dyn ServeConnection>> {
    let settings = &services.settings;
    let decision_settings = settings.decisions.as_ref()?;
    let speakers = decision_settings
        .trusted
        .iter()
        .chain(&settings.trusted_proxies)
        .copied()
        .collect();
    let requests = services.requests.with_settings(RequestSettings {
        trusted_proxies: speakers,
        client_address: settings.client_address.clone(),
        challenges: ChallengeFileSources::default(),
        has_certificate: None,
        limits: settings.limits,
        is_for_proxies: true,
    });
    let decisions = Arc::new(DecisionService::new(
        requests.clone(),
        services.instance.traffic.clone(),
    ));
    let edge = Arc::new(EdgeContext {
        responder: Some(decisions),
        decision_peers: decision_settings.trusted.clone(),
        ..EdgeContext::new(requests)
    });
    Some(Arc::new(ListenerService {
        edge,
        tls: None,
        proxy_protocol: false,
        speaks_http2: true,
        redirect: None,
    }))
}

/// Pingora's proxy with crawlgate's gateway.
fn build_proxy(services: &Services, server: &Server) -> Arc<HttpProxy<Gateway>> {
    let gateway = Gateway {
        requests: services.requests.clone(),
        upstreams: services.upstreams.clone(),
        limits: services.settings.limits,
    };
    let mut proxy = HttpProxy::new(gateway, server.configuration.clone());
    proxy.handle_init_modules();
    Arc::new(proxy)
}

/// Pingora's settings. It would sleep for the whole grace period, even when idle; `ShutdownWaiter` has
/// waited by then, so that the period is 0 (Pingora 0.9.1).
fn pingora_configuration(threads: usize) -> ServerConf {
    ServerConf {
        threads,
        upstream_keepalive_pool_size: UPSTREAM_POOL_SIZE,
        max_retries: MAX_ATTEMPTS,
        grace_period_seconds: Some(0),
        graceful_shutdown_timeout_seconds: Some(0),
        ..ServerConf::default()
    }
}
