//! Where requests go: upstream groups by host ([`Origins`]), their addresses resolved in the background ([`Resolver`]), and
//! the origins' own robots.txt ([`robots`]). What requests came to lately is in `health`. Must not know a request beyond its
//! head, policies or metrics.
//!
//! Nothing here blocks a request: requests get prepared [`HttpPeer`]s. (`HttpPeer::new` with a name resolves it and blocks,
//! and panics if that fails: pingora issues 570 and 921.)

mod attempts;
mod failure;
mod fetch;
mod health;
mod hosts;
mod resolve;
pub mod robots;
mod trust;

#[cfg(test)]
mod tests;

pub use attempts::Attempts;
pub use failure::{failure_reason, failure_status};
pub use fetch::{FetchError, Fetched, fetch};
pub use health::{FailedRequest, LastFailure, OriginStatus, WithoutOriginStatus};
pub use resolve::Resolver;

use crate::settings::{OriginSettings, OriginTimeouts, ServerAddress};
use crate::telemetry::ServerPlace;
use arc_swap::ArcSwap;
use health::{Health, WithoutOrigin};
use hosts::Hosts;
use pingora_core::protocols::TcpKeepalive;
use pingora_core::upstreams::peer::{HttpPeer, Peer};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// All upstream groups, found by host.
#[derive(Debug)]
pub struct Origins {
    hosts: Hosts,
    groups: Vec<Group>,
    without_origin: WithoutOrigin,
}

#[derive(Debug)]
struct Group {
    /// As the settings write them; none for every other host.
    hosts: Vec<String>,
    servers: Vec<Server>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Server {
    address: ServerAddress,
    /// The Host of a request that names none.
    authority: String,
    timeouts: OriginTimeouts,
    /// One for each address. Empty until the name is resolved.
    peers: ArcSwap<Vec<PreparedPeer>>,
    /// The address in use. If it does not accept connections, the next one is used.
    preferred: AtomicUsize,
    /// Apart from the rest, which requests only read: each request writes it.
    health: Box<Health>,
}

/// An address as Pingora connects to it.
#[derive(Clone, Debug)]
struct PreparedPeer {
    peer: HttpPeer,
    /// Tells connections to it apart from those to others.
    key: u64,
}

/// What is known of an address without asking Pingora.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Connections with this key may be used for each other.
    pub key: u64,
    /// How long it may take.
    pub timeouts: OriginTimeouts,
}

/// Why a request can be sent to no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPeer {
    /// No origin of the settings is for its host.
    #[error("no origin for this host")]
    NoOrigin,
    /// No server of its origin has an address. The first of them stands for all.
    #[error("the name of the origin has no address")]
    NoAddress(Choice),
}

impl NoPeer {
    /// A fixed word for metric, log and status.
    pub fn reason(self) -> &'static str {
        match self {
            NoPeer::NoOrigin => "no_origin",
            NoPeer::NoAddress(_) => "no_address",
        }
    }
}

/// The server that a request was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    group: usize,
    server: usize,
    address: usize,
}

impl Choice {
    /// The place of the server in the settings.
    pub fn place(self) -> ServerPlace {
        ServerPlace { origin: self.group, server: self.server }
    }

    /// Whether another choice is the same server, at the same or another address.
    pub fn is_same_server(self, other: Choice) -> bool {
        self.place() == other.place()
    }
}

impl Origins {
    /// Prepares groups. A server that is given as an address is ready at once, a name after the first round of a
    /// [`Resolver`].
    pub fn new(settings: &[OriginSettings]) -> Origins {
        let groups = settings
            .iter()
            .map(|origin| Group {
                hosts: origin.hosts.clone(),
                servers: origin.servers.iter().map(|address| Server::new(address, origin.timeouts)).collect(),
                next: AtomicUsize::new(0),
            })
            .collect();
        let hosts = Hosts::new(settings.iter().map(|origin| origin.hosts.as_slice()));
        Origins { hosts, groups, without_origin: WithoutOrigin::default() }
    }

    /// A server for a Host field value. Servers take turns; one without an address is skipped.
    ///
    /// # Errors
    /// No group is for this host, or none of its servers has an address.
    pub fn choose(&self, host: &[u8]) -> Result<Choice, NoPeer> {
        let group = self.hosts.find(host).ok_or(NoPeer::NoOrigin)?;
        self.first_ready(group, self.groups[group].next.fetch_add(1, Ordering::Relaxed))
    }

    /// A server for another attempt at a request: the next one of the same origin. It takes no turn: a server that is
    /// down would otherwise be the first choice of every request, because the retry of each uses up the turn of the
    /// other server.
    ///
    /// # Errors
    /// None of the servers has an address.
    pub fn choose_after(&self, failed: Choice) -> Result<Choice, NoPeer> {
        self.first_ready(failed.group, failed.server + 1)
    }

    /// The first server of a group that has an address, from a place on.
    fn first_ready(&self, group: usize, from: usize) -> Result<Choice, NoPeer> {
        let servers = self.groups.get(group).map_or(&[][..], |group| &group.servers);
        let choice = (0..servers.len()).find_map(|step| {
            let server = from.wrapping_add(step) % servers.len();
            let peers = servers[server].peers.load();
            let address = servers[server].preferred.load(Ordering::Relaxed) % peers.len().max(1);
            peers.get(address).map(|_| Choice { group, server, address })
        });
        choice.ok_or(NoPeer::NoAddress(Choice { group, server: 0, address: 0 }))
    }

    /// A choice as Pingora connects to it.
    ///
    /// # Errors
    /// The server has lost this address since it was chosen.
    pub fn http_peer(&self, choice: Choice) -> Result<Box<HttpPeer>, NoPeer> {
        self.prepared(choice, |prepared, _| Box::new(prepared.peer.clone()))
    }

    /// What is known of a choice.
    ///
    /// # Errors
    /// The server has lost this address since it was chosen.
    pub fn route(&self, choice: Choice) -> Result<Route, NoPeer> {
        self.prepared(choice, |prepared, server| Route { key: prepared.key, timeouts: server.timeouts })
    }

    fn prepared<T>(&self, choice: Choice, read: impl FnOnce(&PreparedPeer, &Server) -> T) -> Result<T, NoPeer> {
        let server = self.server(choice).ok_or(NoPeer::NoAddress(choice))?;
        let peers = server.peers.load();
        peers.get(choice.address).map(|prepared| read(prepared, server)).ok_or(NoPeer::NoAddress(choice))
    }

    /// The name and port of a server, for a request that names no host.
    pub fn authority(&self, choice: Choice) -> Option<&str> {
        Some(self.server(choice)?.authority.as_str())
    }

    /// Notes that an address did not accept a connection. The server's next address is used from now on: an IPv6 address
    /// without a listener must not cost every second request.
    pub fn connect_failed(&self, choice: Choice) {
        if let Some(server) = self.server(choice) {
            let addresses = server.peers.load().len().max(1);
            let next = (choice.address + 1) % addresses;
            // Many requests fail on one address together. Only the first of them selects the next address.
            let _ = server.preferred.compare_exchange(choice.address, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Counts an answer of a server.
    pub fn answered(&self, choice: Choice, status: u16, lived: Duration) {
        if let Some(server) = self.server(choice) {
            server.health.answered(status, lived);
        }
    }

    /// Counts and logs a request that a server did not answer.
    pub fn failed(&self, choice: Choice, request: &FailedRequest<'_>) {
        if let Some(server) = self.server(choice) {
            server.health.failed(&server.url(), request);
        }
    }

    /// Counts and logs a request for a host that no origin is for.
    pub fn has_no_origin(&self, host: &[u8], target: &[u8], lived: Duration) {
        self.without_origin.asked(host, target, lived);
    }

    /// What requests came to lately: each server in the order of the settings, and hosts that no origin is for.
    pub fn status(&self, lived: Duration) -> (Vec<OriginStatus>, WithoutOriginStatus) {
        let servers = self.groups.iter().flat_map(|group| group.servers.iter().map(|server| (server, &group.hosts)));
        let status = |(server, hosts): (&Server, &Vec<String>)| {
            server.health.status(server.url(), hosts, server.peers.load().len(), lived)
        };
        (servers.map(status).collect(), self.without_origin.status(lived))
    }

    fn server(&self, choice: Choice) -> Option<&Server> {
        self.groups.get(choice.group)?.servers.get(choice.server)
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        self.places().map(|(_, server)| server)
    }

    fn places(&self) -> impl Iterator<Item = (ServerPlace, &Server)> {
        let of_group = |(origin, group): (usize, &'_ Group)| (origin, group.servers.len());
        let places = self.groups.iter().enumerate().map(of_group);
        let places = places.flat_map(|(origin, count)| (0..count).map(move |server| ServerPlace { origin, server }));
        places.map(|place| (place, &self.groups[place.origin].servers[place.server]))
    }

    /// What metrics call the origins, in the order of the settings: their first host, `*` for every other host.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.groups.iter().map(|group| group.hosts.first().map_or("*", String::as_str).to_owned())
    }
}

/// `name:port`, or the name alone for the scheme's own port.
fn authority(server: &ServerAddress) -> String {
    let host = match server.host.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => server.host.clone(),
    };
    match (server.tls, server.port) {
        (false, 80) | (true, 443) => host,
        (_, port) => format!("{host}:{port}"),
    }
}

impl Server {
    fn new(address: &ServerAddress, timeouts: OriginTimeouts) -> Server {
        let server = Server {
            address: address.clone(),
            authority: authority(address),
            timeouts,
            peers: ArcSwap::default(),
            preferred: AtomicUsize::new(0),
            health: Box::default(),
        };
        if let Some(ip) = server.ip() {
            server.use_addresses(&[SocketAddr::new(ip, address.port)]);
        }
        server
    }

    /// The server as the settings write it.
    fn url(&self) -> String {
        format!("{}://{}", if self.address.tls { "https" } else { "http" }, self.authority)
    }

    /// The address, if the settings give one instead of a name.
    fn ip(&self) -> Option<IpAddr> {
        self.address.host.parse().ok()
    }

    /// Uses these addresses. The same ones in another order change nothing, so that DNS round-robin does not discard what
    /// is known about them.
    fn use_addresses(&self, addresses: &[SocketAddr]) {
        let mut addresses: Vec<SocketAddr> = addresses.to_vec();
        let mut seen = std::collections::HashSet::new();
        addresses.retain(|address| seen.insert(*address));
        let current = self.peers.load();
        let same = current.len() == addresses.len()
            && current
                .iter()
                .all(|prepared| prepared.peer._address.as_inet().is_some_and(|address| seen.contains(address)));
        if !same {
            self.peers.store(Arc::new(addresses.into_iter().map(|address| self.prepare(address)).collect()));
            self.preferred.store(0, Ordering::Relaxed);
        }
    }

    /// Prepares connections to an address. Pingora sets no timeouts of its own (Pingora 0.9.1).
    fn prepare(&self, address: SocketAddr) -> PreparedPeer {
        // With an empty name, Pingora's rustls connector switches verification off. With an address as the name, it
        // verifies the certificate for that address.
        let mut peer = HttpPeer::new(address, self.address.tls, self.address.host.clone());
        peer.options.connection_timeout = Some(self.timeouts.connect);
        peer.options.total_connection_timeout = Some(self.timeouts.connect.saturating_add(Duration::from_secs(2)));
        peer.options.read_timeout = Some(self.timeouts.read);
        peer.options.write_timeout = Some(self.timeouts.write);
        peer.options.idle_timeout = Some(self.timeouts.idle);
        peer.options.tcp_keepalive = Some(TcpKeepalive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(10),
            count: 3,
            #[cfg(target_os = "linux")]
            user_timeout: Duration::ZERO,
        });
        PreparedPeer { key: peer.reuse_hash(), peer }
    }
}
