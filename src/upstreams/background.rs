//! Background services for the servers of origins.
//!
//! [`HealthChecker`] checks the servers of origins that have the setting `health`. Each check is
//! one GET over a new connection, so a check also finds a server that accepts no new connections.
//! `group.rs` counts the results and changes the states of the servers.
//!
//! [`OriginResolver`] resolves the names of servers. A name is resolved again when the time to live
//! of the DNS answer is over, or when a server fails. If a lookup fails, the last good addresses
//! stay.

use super::Upstreams;
use super::failure::{FILE_LIMIT, failure_reason};
use super::group::ServerGroup;
use super::server::{ConfiguredServer, Server};
use super::server_state::ExclusionCause;
use crate::dns::{HostLookupError, resolve_host};
use crate::heads::OWN_USER_AGENT;
use crate::settings::HealthSettings;
use async_trait::async_trait;
use futures_util::future::{join, join_all};
use http::header::{ACCEPT, CONNECTION, HOST, USER_AGENT};
use pingora_core::Error;
use pingora_core::connectors::{ConnectorOptions, TransportConnector};
use pingora_core::protocols::http::v1::client::HttpSession;
use pingora_core::server::ShutdownWatch;
use pingora_core::server::configuration::ServerConf;
use pingora_core::services::ServiceReadyNotifier;
use pingora_core::services::background::BackgroundService;
use pingora_http::RequestHeader;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The limits for the time to live of an answer.
const MIN_TTL: Duration = Duration::from_secs(5);
const MAX_TTL: Duration = Duration::from_secs(300);
/// The time until the next lookup of a server without any address.
const NO_ADDRESS_RETRY: Duration = Duration::from_secs(2);
/// How long the start waits for the first lookups, so that the first request finds an address.
const START_LIMIT: Duration = Duration::from_secs(2);
/// How long the start then waits for the first checks, so that no request goes to a server that is
/// down. Together with `START_LIMIT` it is shorter than an upgrade waits for a step.
const CHECK_LIMIT: Duration = Duration::from_secs(2);

/// Checks all servers of origins with `health`.
pub struct HealthChecker {
    upstreams: Arc<Upstreams>,
    connector: TransportConnector,
}

impl HealthChecker {
    /// Checks of these servers, over connections with Pingora's configuration.
    pub fn new(upstreams: Arc<Upstreams>, configuration: &ServerConf) -> HealthChecker {
        let connector =
            TransportConnector::new(Some(ConnectorOptions::from_server_conf(configuration)));
        HealthChecker {
            upstreams,
            connector,
        }
    }

    /// Checks all addresses of one server once in each `every`. Never ends. Drops `begun`
    /// after the first checks.
    async fn check_repeatedly(
        &self,
        group: &ServerGroup,
        entry: &ConfiguredServer,
        rules: &HealthSettings,
        begun: Sender<()>,
    ) {
        let host = group.health_check_host(entry);
        let mut begun = Some(begun);
        loop {
            let began = Instant::now();
            let servers = group.servers_of(entry);
            join_all(
                servers
                    .iter()
                    .map(|server| self.check(group, server, rules, &host)),
            )
            .await;
            begun.take();
            sleep_until(began + rules.every).await;
        }
    }

    /// Checks one address once. Counts the result in the metrics and for the state of the server. A
    /// check succeeds if the status is one that `health` allows, within its timeout.
    async fn check(
        &self,
        group: &ServerGroup,
        server: &Arc<Server>,
        rules: &HealthSettings,
        host: &str,
    ) {
        let asked = timeout(
            rules.timeout,
            self.request_status(server, &rules.path, host),
        )
        .await;
        let (reason, status) = match asked {
            Ok(Ok(status)) if rules.statuses.iter().any(|range| range.contains(&status)) => {
                ("ok", None)
            }
            Ok(Ok(status)) => ("status", Some(status)),
            Ok(Err(error)) => (failure_reason(&error), None),
            Err(_) => ("timeout", None),
        };
        let upstreams = &self.upstreams;
        let result = if reason == "ok" {
            Ok(())
        } else {
            Err(ExclusionCause {
                since: upstreams.clock.moment().now,
                reason,
                status,
            })
        };
        upstreams
            .metrics
            .record_health_check(server.entry.index, reason);
        // The server is not at fault.
        if reason == FILE_LIMIT {
            return;
        }
        let elapsed = upstreams.elapsed();
        let change = group.record_check(server, rules, result, elapsed);
        Upstreams::report_change(server, change);
    }

    /// Sends one GET and returns the status of the final response; 0 if it has none.
    async fn request_status(
        &self,
        server: &Server,
        path: &str,
        host: &str,
    ) -> Result<u16, Box<Error>> {
        let mut request = RequestHeader::build("GET", path.as_bytes(), None)?;
        for (name, value) in [
            (HOST, host),
            (USER_AGENT, OWN_USER_AGENT),
            (ACCEPT, "*/*"),
            (CONNECTION, "close"),
        ] {
            request.insert_header(name, value)?;
        }
        let mut session = HttpSession::new(server.connect(&self.connector).await?);
        session.write_request_header(Box::new(request)).await?;
        loop {
            session.read_response().await?;
            match session.get_status().map(|status| status.as_u16()) {
                Some(100..=199) => {}
                status => return Ok(status.unwrap_or_default()),
            }
        }
    }
}

#[async_trait]
impl BackgroundService for HealthChecker {
    /// Runs until the shutdown. Is ready when each server was checked once, or after `CHECK_LIMIT`.
    async fn start_with_ready_notifier(
        &self,
        mut shutdown: ShutdownWatch,
        ready: ServiceReadyNotifier,
    ) {
        let checked = self
            .upstreams
            .groups
            .iter()
            .filter_map(|group| Some((group, group.settings.health.as_ref()?)));
        let watched = checked.flat_map(|(group, rules)| {
            group.entries.iter().map(move |entry| (group, entry, rules))
        });
        let (begun, all_begun) = channel(1);
        let watches = join_all(watched.map(|(group, entry, rules)| {
            self.check_repeatedly(group, entry, rules, begun.clone())
        }));
        drop(begun);
        tokio::select! {
            _ = join(watches, announce_when_begun(all_begun, CHECK_LIMIT, ready)) => {}
            _ = shutdown.wait_for(|is_over| *is_over) => {}
        }
    }
}

/// Marks a service as ready when all senders to `begun` are dropped, or after `limit`.
async fn announce_when_begun(
    mut begun: Receiver<()>,
    limit: Duration,
    ready: ServiceReadyNotifier,
) {
    let _ = timeout(limit, begun.recv()).await;
    ready.notify_ready();
}

/// Resolves the names of servers, and keeps their addresses up to date.
pub struct OriginResolver(pub Arc<Upstreams>);

/// A server that the settings give by name, and the state of its lookups.
struct NamedServer<'u> {
    upstreams: &'u Upstreams,
    group: &'u ServerGroup,
    entry: &'u Arc<ConfiguredServer>,
    /// Why the last lookup failed.
    failure: Option<String>,
}

impl NamedServer<'_> {
    /// Resolves the name now, and then whenever a lookup is due; never ends. Drops `begun`
    /// after the first lookup.
    async fn resolve_repeatedly(mut self, begun: Sender<()>) {
        let mut pause = self.resolve().await;
        drop(begun);
        loop {
            self.wait_until_due(pause).await;
            pause = self.resolve().await;
        }
    }

    /// Resolves the name and sets the addresses. If that fails, the last ones stay. Returns the time
    /// until the next lookup: the time to live, from 5 s to 5 min.
    async fn resolve(&mut self) -> Duration {
        let ConfiguredServer { address, .. } = &**self.entry;
        match resolve_host(&address.host, &self.group.settings.resolvers).await {
            Ok(found) => {
                let found_at = found
                    .addresses
                    .into_iter()
                    .map(|ip| SocketAddr::new(ip, address.port));
                self.group
                    .set_addresses(self.entry, &found_at.collect::<Vec<_>>());
                if self.failure.take().is_some() {
                    tracing::info!(origin = %address.host, "the name of an origin resolves again");
                }
                found.ttl.clamp(MIN_TTL, MAX_TTL)
            }
            Err(error) => self.record_failure(&error),
        }
    }

    /// Counts a failed lookup, and logs it unless the last one failed in the same way. Returns the
    /// time until the next lookup.
    fn record_failure(&mut self, error: &HostLookupError) -> Duration {
        self.upstreams
            .metrics
            .record_failure(Some(self.entry.index), "dns");
        let kept = self.group.servers_of(self.entry).len();
        let message = error.to_string();
        if self.failure.as_ref() != Some(&message) {
            tracing::warn!(
                origin = %self.entry.address.host, %error, addresses_kept = kept,
                "the name of an origin does not resolve; crawlgate keeps its last addresses and tries again"
            );
            self.failure = Some(message);
        }
        if kept > 0 { MIN_TTL } else { NO_ADDRESS_RETRY }
    }

    /// Waits for `pause`, or until a server fails, because the name may have a new address. Looks for
    /// failing servers every 5 s.
    async fn wait_until_due(&self, pause: Duration) {
        let due = Instant::now() + pause;
        while Instant::now() < due {
            sleep(due.saturating_duration_since(Instant::now()).min(MIN_TTL)).await;
            if self
                .group
                .servers_of(self.entry)
                .iter()
                .any(|server| server.is_failing())
            {
                return;
            }
        }
    }
}

impl Upstreams {
    /// Whether an origin has `health`.
    pub fn has_checks(&self) -> bool {
        self.groups
            .iter()
            .any(|group| group.settings.health.is_some())
    }

    /// The servers that the settings give by name.
    fn named_servers(&self) -> Vec<NamedServer<'_>> {
        let entries = self
            .groups
            .iter()
            .flat_map(|group| group.entries.iter().map(move |entry| (group, entry)));
        entries
            .filter(|(_, entry)| entry.address.is_name())
            .map(|(group, entry)| NamedServer {
                upstreams: self,
                group,
                entry,
                failure: None,
            })
            .collect()
    }
}

#[cfg(test)]
impl OriginResolver {
    /// Resolves all names once. Returns whether every server has an address now.
    pub async fn resolve_all(&self) -> bool {
        join_all(self.0.named_servers().iter_mut().map(NamedServer::resolve)).await;
        self.0
            .named_servers()
            .iter()
            .all(|named| !named.group.servers_of(named.entry).is_empty())
    }
}

#[async_trait]
impl BackgroundService for OriginResolver {
    /// Runs until the shutdown. Is ready when each name was resolved once, or after `START_LIMIT`.
    /// Without a name it is ready at once, and ends.
    async fn start_with_ready_notifier(
        &self,
        mut shutdown: ShutdownWatch,
        ready: ServiceReadyNotifier,
    ) {
        let named = self.0.named_servers();
        let (begun, all_begun) = channel(1);
        let lookups = join_all(
            named
                .into_iter()
                .map(|server| server.resolve_repeatedly(begun.clone())),
        );
        drop(begun);
        tokio::select! {
            _ = join(lookups, announce_when_begun(all_begun, START_LIMIT, ready)) => {}
            _ = shutdown.wait_for(|is_over| *is_over) => {}
        }
    }
}
