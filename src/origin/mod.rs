//! Where requests go: upstream groups by host ([`Origins`]), their addresses resolved in the background ([`Resolver`]), and
//! the origins' own robots.txt ([`robots`]). Must not know a request beyond its host, policies or metrics.
//!
//! Nothing here blocks a request: requests get prepared [`HttpPeer`]s. (`HttpPeer::new` with a name resolves it and blocks,
//! and panics if that fails: pingora issues 570 and 921.)

mod fetch;
mod hosts;
mod resolve;
pub mod robots;
mod trust;

#[cfg(test)]
mod tests;

pub use fetch::{FetchError, Fetched, fetch};
pub use resolve::Resolver;

use crate::settings::{OriginSettings, OriginTimeouts, ServerAddress};
use arc_swap::ArcSwap;
use hosts::Hosts;
use pingora_core::protocols::TcpKeepalive;
use pingora_core::upstreams::peer::HttpPeer;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// All upstream groups, found by host.
#[derive(Debug)]
pub struct Origins {
    hosts: Hosts,
    groups: Vec<Group>,
}

#[derive(Debug)]
struct Group {
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
    peers: ArcSwap<Vec<HttpPeer>>,
    /// The address in use. If it does not accept connections, the next one is used.
    preferred: AtomicUsize,
}

/// The server that a request was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    group: usize,
    server: usize,
    address: usize,
}

impl Origins {
    /// Prepares groups. A server that is given as an address is ready at once, a name after the first round of a
    /// [`Resolver`].
    pub fn new(settings: &[OriginSettings]) -> Origins {
        let groups = settings
            .iter()
            .map(|origin| Group {
                servers: origin.servers.iter().map(|address| Server::new(address, origin.timeouts)).collect(),
                next: AtomicUsize::new(0),
            })
            .collect();
        Origins { hosts: Hosts::new(settings.iter().map(|origin| origin.hosts.as_slice())), groups }
    }

    /// A prepared peer for a Host field value. Servers take turns; one without an address is skipped. `None` if no group
    /// is for this host, or none of its servers has an address.
    pub fn peer(&self, host: &[u8]) -> Option<(Box<HttpPeer>, Choice)> {
        let index = self.hosts.find(host)?;
        let group = self.groups.get(index)?;
        let turn = group.next.fetch_add(1, Ordering::Relaxed);
        (0..group.servers.len()).find_map(|step| {
            let server = turn.wrapping_add(step) % group.servers.len();
            let peers = group.servers[server].peers.load();
            let address = group.servers[server].preferred.load(Ordering::Relaxed) % peers.len().max(1);
            let peer = peers.get(address)?;
            Some((Box::new(peer.clone()), Choice { group: index, server, address }))
        })
    }

    /// The name and port of a server, for a request that names no host.
    pub fn authority(&self, choice: Choice) -> Option<&str> {
        Some(self.groups.get(choice.group)?.servers.get(choice.server)?.authority.as_str())
    }

    /// Notes that an address did not accept a connection. The server's next address is used from now on: an IPv6 address
    /// without a listener must not cost every second request.
    pub fn connect_failed(&self, choice: Choice) {
        if let Some(server) = self.groups.get(choice.group).and_then(|group| group.servers.get(choice.server)) {
            let addresses = server.peers.load().len().max(1);
            let next = (choice.address + 1) % addresses;
            // Many requests fail on one address together. Only the first of them selects the next address.
            let _ = server.preferred.compare_exchange(choice.address, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn servers(&self) -> impl Iterator<Item = &Server> {
        self.groups.iter().flat_map(|group| &group.servers)
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
        };
        if let Some(ip) = server.ip() {
            server.use_addresses(&[SocketAddr::new(ip, address.port)]);
        }
        server
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
            && current.iter().all(|peer| peer._address.as_inet().is_some_and(|address| seen.contains(address)));
        if !same {
            self.peers.store(Arc::new(addresses.into_iter().map(|address| self.prepare(address)).collect()));
            self.preferred.store(0, Ordering::Relaxed);
        }
    }

    /// Prepares connections to an address. Pingora sets no timeouts of its own (Pingora 0.9.1).
    fn prepare(&self, address: SocketAddr) -> HttpPeer {
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
        peer
    }
}
