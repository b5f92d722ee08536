//! [`Upstreams`]: the origins of the settings, found by host and path, and the servers of each.
//! [`Attempts`] chooses the server of a request. [`Resolver`] resolves the names of servers in the
//! background, by their time to live. [`Checks`] ask servers whether they are up.
//!
//! The two ways of forwarding (`edge/lane`, and `gateway` with Pingora's proxy) keep an
//! [`Attempts`] for each request. They ask it for a server, send the request there, and report the
//! outcome. It says whether the request may be sent once more. `server.rs` has a value for each
//! address of a server, and `server_state.rs` its states. `group.rs` has the servers of an origin,
//! `table.rs` the choice among them, and `server/room.rs` the limit on open requests with its
//! queue.
//!
//! Nothing here blocks a request: it gets an address that was resolved before. (`HttpPeer::new`
//! with a name resolves it and blocks, and panics if that fails: pingora issues 570 and 921.)

mod attempts;
mod background;
mod failure;
mod group;
mod hash;
mod server;
mod server_state;
mod table;
mod tally;
mod tls;

#[cfg(test)]
mod tests;

pub use attempts::{Attempts, MOST_ATTEMPTS, NoServer, Reached, Route};
pub use background::{Checks, Resolver};
pub use failure::failure_status;
pub use server::{Place, Wanted};
pub use tally::{OriginStatus, OutOfUse, QueueStatus, UpstreamsStatus, WithoutOriginStatus};
pub use tls::{ServerTls, TlsFileError, trusting};

use crate::clock::Clock;
use crate::settings::{OriginIndex, OriginSettings};
use crate::telemetry::{Events, Metrics, OriginMetrics, ServerEvent, ServerPlace};
pub use group::PassedServer;
use group::{Change, Group, Unwell};
use server::{Entry, Server};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tally::WithoutOrigin;

/// All origins, found by host and path.
pub struct Upstreams {
    index: OriginIndex,
    groups: Vec<Group>,
    /// Whether an origin wants its own Host.
    has_hosts: bool,
    /// Whether an origin has a bound on requests.
    has_places: bool,
    without_origin: WithoutOrigin,
    started: Instant,
    metrics: OriginMetrics,
    events: Events,
    clock: Clock,
}

impl Upstreams {
    /// Prepares the origins. A server that is given as an address is ready at once, a name after
    /// the first round of a [`Resolver`].
    ///
    /// # Errors
    /// A file of an origin's `tls` cannot be used.
    pub fn new(
        settings: &[OriginSettings],
        metrics: &Metrics,
        events: Events,
        clock: Clock,
    ) -> Result<Upstreams, TlsFileError> {
        let mut groups = Vec::new();
        for (place, origin) in settings.iter().enumerate() {
            let tls = origin.tls.as_ref().map(ServerTls::open).transpose()?;
            groups.push(Group::new(place, origin, tls.map(Arc::new)));
        }
        let names = groups
            .iter()
            .map(|group| (group.name(), group.entries.len()));
        let metrics = OriginMetrics::new(metrics, names);
        Ok(Upstreams {
            index: OriginIndex::new(settings),
            has_hosts: settings.iter().any(|origin| origin.host.is_some()),
            has_places: settings.iter().any(|origin| origin.places.is_some()),
            groups,
            without_origin: WithoutOrigin::default(),
            started: Instant::now(),
            metrics,
            events,
            clock,
        })
    }

    /// Reads the files of `tls` again, and uses those that changed. Returns the number of origins
    /// whose files are refused.
    pub fn renew_tls_files(&self) -> usize {
        self.tls().for_each(|(_, tls)| tls.renew());
        self.tls()
            .filter(|(_, tls)| tls.refused().is_some())
            .count()
    }

    /// Whether an origin has files of `tls`.
    pub fn has_tls_files(&self) -> bool {
        self.tls().any(|(_, tls)| tls.has_files())
    }

    /// TLS of the origins that have settings for it.
    fn tls(&self) -> impl Iterator<Item = (&Group, &ServerTls)> {
        self.groups
            .iter()
            .filter_map(|group| Some((group, &**group.tls.as_ref()?)))
    }

    /// The state of the servers and the recent outcomes of their requests, in the order of the
    /// settings. `lived` is the time that the clock has lived through.
    pub fn status(&self, lived: Duration) -> UpstreamsStatus {
        let mut servers = Vec::new();
        let mut queues = Vec::new();
        for group in &self.groups {
            for entry in &group.entries {
                servers.push(server_status(group, entry, lived));
            }
            if let Some(room) = &group.shared.room {
                queues.push(room.status(group.name(), self.elapsed(), lived));
            }
        }
        UpstreamsStatus {
            servers,
            queues,
            without_origin: self.without_origin.status(lived),
            refused_files: self
                .tls()
                .filter_map(|(group, tls)| Some((group.name(), tls.refused()?)))
                .collect(),
        }
    }

    /// Sets the gauges of all servers (addresses that are up, ejected or down, requests in flight)
    /// and of all queues.
    pub fn set_gauges(&self) {
        for (origin, group) in self.groups.iter().enumerate() {
            for entry in &group.entries {
                let all = group.servers(entry);
                let up = all.iter().filter(|server| server.is_up()).count();
                let down = all.iter().filter(|server| server.state().is_down()).count();
                let in_flight = all.iter().map(|server| server.in_flight()).sum();
                let states = [
                    ("up", up),
                    ("ejected", all.len().saturating_sub(up + down)),
                    ("down", down),
                ];
                self.metrics.set_server(entry.place, states, in_flight);
            }
            if let Some(room) = &group.shared.room {
                self.metrics
                    .set_waiting(ServerPlace { origin, server: 0 }, room.waiting());
            }
        }
    }

    /// The servers that get no requests, of all origins, for the next process.
    pub fn pass(&self) -> Vec<PassedServer> {
        let now = group::milliseconds(self.elapsed());
        self.groups
            .iter()
            .flat_map(|group| group.pass(now))
            .collect()
    }

    /// Takes over the servers that got no requests in the previous process. They get none here,
    /// until a trial or a check brings them back.
    pub fn go_on(&self, passed: &[PassedServer]) {
        let now = group::milliseconds(self.elapsed());
        self.groups
            .iter()
            .for_each(|group| group.go_on(passed, now));
    }

    /// Whether the origin of a request bounds how many it takes at once. False if no origin is for
    /// it.
    pub fn has_places(&self, host: &[u8], target: &[u8]) -> bool {
        self.has_places
            && self
                .index
                .find(host, target)
                .is_some_and(|origin| self.groups[origin].shared.room.is_some())
    }

    /// The Host that the origin of a request wants; `None` if it gets the client's, and if no
    /// origin is for the request.
    pub fn host_for(&self, host: &[u8], target: &[u8]) -> Option<&str> {
        if !self.has_hosts {
            return None;
        }
        self.groups[self.index.find(host, target)?]
            .settings
            .host
            .as_deref()
    }

    /// The Host of the origin that becomes the client's in responses: that of
    /// [`Upstreams::host_for`], unless clients may ask for it themselves.
    pub fn host_to_replace(&self, host: &[u8], target: &[u8]) -> Option<&str> {
        let host = self.host_for(host, target)?;
        let mut public = self.groups.iter().flat_map(|group| &group.settings.hosts);
        (!public.any(|public| public == host)).then_some(host)
    }

    fn group(&self, place: ServerPlace) -> &Group {
        &self.groups[place.origin]
    }

    /// The time since the start, by which servers are ejected and come back.
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts and logs the change of a server, if there was one.
    fn report(&self, server: &Server, change: Option<Change>) {
        let Some(change) = change else { return };
        let name = server.named();
        let (event, reason, status, seconds) = match change {
            Change::Ejected(time, reason) => {
                self.metrics.ejected(server.entry.place);
                tracing::warn!(
                    server = name,
                    reason,
                    "the server failed; it gets no requests for {time:?}, then one that tries it. Check whether it runs and \
                     can be reached from here"
                );
                ("server_ejected", Some(reason), None, Some(time.as_secs()))
            }
            Change::Down(Unwell { reason, status }) => {
                tracing::warn!(
                    server = name,
                    reason,
                    status,
                    "the health check of the server fails; it gets no requests until checks succeed. Check the server, and \
                     `health` of its origin"
                );
                ("server_down", Some(reason), status, None)
            }
            Change::Returned => {
                tracing::info!(server = name, "the server answers again and gets requests");
                ("server_returned", None, None, None)
            }
        };
        self.events.server(&ServerEvent {
            time: self.clock.now(),
            event,
            origin: self.group(server.entry.place).name(),
            server: name,
            reason,
            status,
            seconds,
        });
    }
}

/// The status of one server of the settings: its counts, requests in flight, and those of its
/// addresses that get no requests.
fn server_status(group: &Group, entry: &Entry, lived: Duration) -> OriginStatus {
    let servers = group.servers(entry);
    let mut out_of_use = Vec::new();
    for server in &servers {
        let state = server.state();
        if let Some(because) = state.because() {
            out_of_use.push(OutOfUse {
                address: server.shown_address(),
                since: because.since,
                reason: because.reason.to_string(),
                status: because.status,
                is_down: state.is_down(),
            });
        }
    }
    OriginStatus {
        origin: entry.url.clone(),
        hosts: group.settings.hosts.clone(),
        paths: group.settings.paths.clone(),
        addresses: servers.len(),
        in_flight: servers.iter().map(|server| server.in_flight()).sum(),
        is_backup: entry.is_backup,
        out_of_use,
        ..entry.tally.status(lived)
    }
}
