//! [`Upstreams`]: the origins of the settings, found by host and path, and the servers of each.
//! [`Attempts`] chooses the server of a request. In the background, [`OriginResolver`] resolves the
//! names of servers, and [`HealthChecker`] checks whether the servers are up.
//!
//! The forwarder (`edge/forwarder`) and Pingora's proxy (`gateway`) keep an [`Attempts`] for each
//! request. They ask the [`Attempts`] for a server, send the request there, and report the outcome.
//! The [`Attempts`] then decides whether the request may be sent once more. The name of a server
//! may have several addresses: `server` has the data of one address, and `server_state` its state.
//! `group` has the servers of an origin, and `table` chooses one of them.
//!
//! Nothing here blocks a request: names are resolved in the background. (`HttpPeer::new` with a
//! name blocks while it resolves the name, and panics if the lookup fails: pingora issues 570 and
//! 921.)

mod attempts;
mod background;
mod failure;
mod group;
mod hash;
mod outcomes;
mod server;
mod server_state;
mod table;
mod tls;

#[cfg(test)]
mod tests;

pub use attempts::{AttemptProgress, Attempts, MAX_ATTEMPTS, NoServer, OriginConnectionOptions};
pub use background::{HealthChecker, OriginResolver};
pub use failure::{failure_status, logged_error};
pub use outcomes::{
    ExcludedServer, OriginServerStatus, QueueStatus, UnroutedRequestsStatus, UpstreamsStatus,
};
pub use server::{ReleasablePlace, RoutingFacts};
pub use tls::{ServerTls, TlsFileError, client_config_builder};

use crate::clock::Clock;
use crate::settings::{OriginIndex, OriginSettings};
use crate::telemetry::{Metrics, OriginMetrics, ServerId};
use group::{ServerChange, ServerGroup};
use outcomes::UnroutedRequests;
use server::{ConfiguredServer, Server};
use server_state::ExclusionCause;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All origins, found by host and path.
pub struct Upstreams {
    index: OriginIndex,
    groups: Vec<ServerGroup>,
    /// Whether an origin has its own Host.
    has_hosts: bool,
    /// Whether an origin limits open requests.
    has_admission_limit: bool,
    unrouted: UnroutedRequests,
    started: Instant,
    metrics: OriginMetrics,
    clock: Clock,
}

impl Upstreams {
    /// Prepares the origins. A server with an address is ready at once, a server with a name after
    /// the [`OriginResolver`] has resolved it.
    ///
    /// # Errors
    /// A file of an origin's `tls` cannot be used.
    pub fn new(
        settings: &[OriginSettings],
        metrics: &Metrics,
        clock: Clock,
    ) -> Result<Upstreams, TlsFileError> {
        let mut groups = Vec::new();
        for (place, origin) in settings.iter().enumerate() {
            let tls = origin.tls.as_ref().map(ServerTls::open).transpose()?;
            groups.push(ServerGroup::new(place, origin, tls.map(Arc::new)));
        }
        let names = groups
            .iter()
            .map(|group| (group.name(), group.entries.len()));
        let metrics = OriginMetrics::new(metrics, names);
        Ok(Upstreams {
            index: OriginIndex::new(settings),
            has_hosts: settings.iter().any(|origin| origin.host.is_some()),
            has_admission_limit: settings.iter().any(|origin| origin.capacity.is_some()),
            groups,
            unrouted: UnroutedRequests::default(),
            started: Instant::now(),
            metrics,
            clock,
        })
    }

    /// Reads the files of `tls` again, and uses changed ones. Returns the number of origins whose
    /// files are rejected.
    pub fn reload_tls_files(&self) -> usize {
        self.tls().for_each(|(_, tls)| tls.reload());
        self.tls()
            .filter(|(_, tls)| tls.rejection().is_some())
            .count()
    }

    /// Whether an origin has files of `tls`.
    pub fn has_tls_files(&self) -> bool {
        self.tls().any(|(_, tls)| tls.has_files())
    }

    /// The origins with settings for TLS.
    fn tls(&self) -> impl Iterator<Item = (&ServerGroup, &ServerTls)> {
        self.groups
            .iter()
            .filter_map(|group| Some((group, &**group.tls.as_ref()?)))
    }

    /// The state of the servers and the recent outcomes of their requests, in the order of the
    /// settings.
    pub fn status(&self, monotonic: Duration) -> UpstreamsStatus {
        let mut servers = Vec::new();
        let mut queues = Vec::new();
        for group in &self.groups {
            for entry in &group.entries {
                servers.push(server_status(group, entry, monotonic));
            }
            if let Some(queue) = &group.origin_state.queue {
                queues.push(queue.status(group.name(), self.elapsed(), monotonic));
            }
        }
        UpstreamsStatus {
            servers,
            queues,
            without_origin: self.unrouted.status(monotonic),
            refused_files: self
                .tls()
                .filter_map(|(group, tls)| Some((group.name(), tls.rejection()?)))
                .collect(),
        }
    }

    /// Sets the gauges of all servers (addresses that are up, ejected or down, requests in flight)
    /// and of all queues.
    pub fn set_gauges(&self) {
        for (origin, group) in self.groups.iter().enumerate() {
            for entry in &group.entries {
                let all = group.servers_of(entry);
                let up = all.iter().filter(|server| server.is_up()).count();
                let down = all.iter().filter(|server| server.state().is_down()).count();
                let in_flight = all.iter().map(|server| server.in_flight()).sum();
                let states = [
                    ("up", up),
                    ("ejected", all.len().saturating_sub(up + down)),
                    ("down", down),
                ];
                self.metrics.set_server(entry.index, states, in_flight);
            }
            if let Some(queue) = &group.origin_state.queue {
                self.metrics
                    .set_waiting(ServerId { origin, server: 0 }, queue.waiting_count());
            }
        }
    }

    /// Whether the origin of a request limits open requests. False without an origin.
    pub fn has_admission_limit(&self, host: &[u8], target: &[u8]) -> bool {
        self.has_admission_limit
            && self
                .index
                .find(host, target)
                .is_some_and(|origin| self.groups[origin].origin_state.queue.is_some())
    }

    /// The Host for the origin of a request; `None` if it gets the client's, or without an origin.
    pub fn origin_host(&self, host: &[u8], target: &[u8]) -> Option<&str> {
        if !self.has_hosts {
            return None;
        }
        self.groups[self.index.find(host, target)?]
            .settings
            .host
            .as_deref()
    }

    /// The Host that is replaced by the client's in responses: that of [`Upstreams::origin_host`],
    /// unless clients may request it themselves.
    pub fn host_to_replace(&self, host: &[u8], target: &[u8]) -> Option<&str> {
        let host = self.origin_host(host, target)?;
        let mut public = self.groups.iter().flat_map(|group| &group.settings.hosts);
        (!public.any(|public| public == host)).then_some(host)
    }

    fn group(&self, index: ServerId) -> &ServerGroup {
        &self.groups[index.origin]
    }

    /// The time since the start. Ejections are measured by it.
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Logs the change of a server, if there was one.
    fn report_change(server: &Server, change: Option<ServerChange>) {
        use ServerChange::*;
        let Some(change) = change else { return };
        let name = server.display_name();
        match change {
            Ejected(time, reason) => {
                tracing::warn!(
                    server = name,
                    reason,
                    "the server failed; it gets no requests for {time:?}, then one as a test. Check that it runs and \
                     can be reached from here"
                );
            }
            Down(ExclusionCause { reason, status, .. }) => {
                tracing::warn!(
                    server = name,
                    reason,
                    status,
                    "the health check of the server fails; it gets no requests until checks succeed. Check the \
                     server, and \"health\" of its origin"
                );
            }
            Returned => {
                tracing::info!(server = name, "the server answers again and gets requests");
            }
        }
    }
}

/// The status of one server of the settings.
fn server_status(
    group: &ServerGroup,
    entry: &ConfiguredServer,
    monotonic: Duration,
) -> OriginServerStatus {
    let servers = group.servers_of(entry);
    let mut out_of_use = Vec::new();
    for server in &servers {
        let state = server.state();
        if let Some(cause) = state.cause() {
            out_of_use.push(ExcludedServer {
                address: server.display_address.to_string(),
                since: cause.since,
                reason: cause.reason.to_string(),
                status: cause.status,
                is_down: state.is_down(),
            });
        }
    }
    OriginServerStatus {
        origin: entry.url.clone(),
        hosts: group.settings.hosts.clone(),
        paths: group.settings.paths.clone(),
        addresses: servers.len(),
        in_flight: servers.iter().map(|server| server.in_flight()).sum(),
        is_backup: entry.is_backup,
        out_of_use,
        ..entry.outcomes.status(monotonic)
    }
}
