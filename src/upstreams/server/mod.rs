//! [`Server`]: one address of an origin's web server, with its counters and its state (up or down).
//! It exists as long as the address belongs to the origin. An [`InFlightGuard`] counts a request as
//! open at a server until the guard is dropped. If the origin limits open requests
//! ([`AdmissionQueue`]), each open request takes one of a limited number of places. A request may
//! give up its place before it ends ([`ReleasablePlace`]).

mod admission_queue;
mod client_counts;

pub use admission_queue::{Admission, AdmissionQueue, AdmissionRefusal, RoutingFacts};

use super::hash::stable_hash;
use super::outcomes::ServerOutcomes;
use super::server_state::ServerState;
use super::tls::{ServerTls, TlsServerConnector};
use crate::locks::lock;
use crate::settings::{OriginServerAddress, OriginTimeouts};
use crate::telemetry::ServerId;
use pingora_core::Result;
use pingora_core::connectors::TransportConnector;
use pingora_core::protocols::l4::socket::SocketAddr as Address;
use pingora_core::protocols::{Stream, TcpKeepalive};
use pingora_core::upstreams::peer::{HttpPeer, Peer};
use std::net::SocketAddr;
use std::os::unix::net::SocketAddr as UnixAddress;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The value of `OriginState::trial_due` while no server waits for a trial.
pub const NO_TRIAL: u64 = u64::MAX;

/// The state that the servers of an origin share.
pub struct OriginState {
    /// When the next trial is due, in milliseconds since the start.
    pub trial_due: AtomicU64,
    /// The places of the origin, if it limits open requests.
    pub queue: Option<Arc<AdmissionQueue>>,
}

/// One server of the settings. It has a [`Server`] for each of its addresses.
pub struct ConfiguredServer {
    pub index: ServerId,
    pub address: OriginServerAddress,
    /// Its name in messages.
    pub url: String,
    /// The Host for a request without one.
    pub authority: String,
    pub weight: u16,
    pub is_backup: bool,
    pub timeouts: OriginTimeouts,
    /// The certificates for TLS to it.
    pub tls: Option<Arc<ServerTls>>,
    /// The name that its certificate is for; `None` for its own.
    pub certificate_name: Option<String>,
    /// The outcomes of requests to all of its addresses.
    pub outcomes: ServerOutcomes,
    pub origin_state: Arc<OriginState>,
}

/// One address of an origin.
pub struct Server {
    pub entry: Arc<ConfiguredServer>,
    /// 0.0.0.0:0 for a Unix socket.
    pub address: SocketAddr,
    /// Its address and port, or the path of its socket.
    pub display_address: Arc<str>,
    peer: HttpPeer,
    /// Connects in place of Pingora's connector, if the settings have files of `tls`.
    tls: Option<TlsServerConnector>,
    /// The key of connections to this server.
    pub connection_key: u64,
    /// A hash that is the same in each process, so that clients keep their server.
    pub address_hash: u64,
    /// In memory of its own, because each request writes it, and only reads the rest.
    counters: Box<ServerCounters>,
}

/// The part of a server that changes with requests.
#[derive(Default)]
struct ServerCounters {
    in_flight: AtomicUsize,
    /// The requests of crawlers among these, if the origin limits open requests.
    crawlers: AtomicUsize,
    /// Failures in a row.
    failures: AtomicU32,
    /// In milliseconds since the start; 0 before the first answer.
    last_answer: AtomicU64,
    is_on_trial: AtomicBool,
    state: Mutex<ServerState>,
}

impl Server {
    /// Prepares connections to an address of a server. The path of a Unix socket in the settings
    /// replaces `address`. Sets all timeouts, because Pingora has no defaults (Pingora 0.9.1).
    pub fn new(entry: Arc<ConfiguredServer>, address: SocketAddr) -> Server {
        let OriginServerAddress {
            tls, host, socket, ..
        } = &entry.address;
        // With an empty name, Pingora's rustls connector switches verification off. With an address
        // as the name, it verifies the certificate for that address.
        let name = entry.certificate_name.as_ref().unwrap_or(host);
        let mut peer = HttpPeer::new(address, *tls, name.clone());
        let socket = socket
            .as_deref()
            .and_then(|path| UnixAddress::from_pathname(path).ok());
        if let Some(socket) = socket {
            peer._address = Address::Unix(socket);
        }
        let timeouts = entry.timeouts;
        peer.options.connection_timeout = Some(timeouts.connect);
        peer.options.total_connection_timeout =
            Some(timeouts.connect.saturating_add(Duration::from_secs(2)));
        peer.options.read_timeout = Some(timeouts.read);
        peer.options.write_timeout = Some(timeouts.write);
        peer.options.idle_timeout = Some(timeouts.idle);
        peer.options.tcp_keepalive = Some(TcpKeepalive {
            idle: Duration::from_secs(60),
            interval: Duration::from_secs(10),
            count: 3,
            #[cfg(target_os = "linux")]
            user_timeout: Duration::ZERO,
        });
        let connector = entry
            .tls
            .as_ref()
            .filter(|_| *tls)
            .and_then(|tls| tls.connector_for(&mut peer, entry.index.origin, name));
        let display_address = match &entry.address.socket {
            Some(path) => path.display().to_string(),
            None => address.to_string(),
        };
        Server {
            entry,
            address,
            display_address: display_address.into(),
            connection_key: peer.reuse_hash(),
            address_hash: stable_hash(peer._address.to_string().as_bytes()),
            peer,
            tls: connector,
            counters: Box::default(),
        }
    }

    /// Opens a connection to the server.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub async fn connect(&self, connector: &TransportConnector) -> Result<Stream> {
        match &self.tls {
            Some(tls) => tls.connect(connector).await,
            None => connector.new_stream(&self.peer).await,
        }
    }

    /// The server as Pingora connects to it.
    pub fn peer(&self) -> HttpPeer {
        let mut peer = self.peer.clone();
        if let Some(connector) = &self.tls {
            connector.tls.configure_peer(&mut peer);
        }
        peer
    }

    /// Its name in messages: its URL, and its address if the URL has a name.
    pub fn display_name(&self) -> String {
        if self.entry.address.is_name() {
            format!("{} ({})", self.entry.url, self.address.ip())
        } else {
            self.entry.url.clone()
        }
    }

    pub fn in_flight(&self) -> usize {
        self.counters.in_flight.load(Relaxed)
    }

    /// Counts one more request in flight, without a limit.
    fn add_in_flight(&self) {
        self.counters.in_flight.fetch_add(1, SeqCst);
    }

    /// Counts one more request in flight if there are fewer than `max`, and returns whether it did.
    /// `crawlers` is for a request of a crawler: the most places that crawlers may have.
    fn try_add_in_flight(&self, max: usize, crawlers: Option<usize>) -> bool {
        let counters = &self.counters;
        if let Some(max) = crawlers
            && !add_below(&counters.crawlers, max)
        {
            return false;
        }
        let has_entered = add_below(&counters.in_flight, max);
        if !has_entered && crawlers.is_some() {
            counters.crawlers.fetch_sub(1, SeqCst);
        }
        has_entered
    }

    /// Counts one request less in flight. `is_crawler`: it was also counted for crawlers.
    fn remove_in_flight(&self, is_crawler: bool) {
        if is_crawler {
            self.counters.crawlers.fetch_sub(1, SeqCst);
        }
        self.counters.in_flight.fetch_sub(1, SeqCst);
    }

    /// Counts a failure. Returns the number of failures in a row.
    pub fn count_failure(&self) -> u32 {
        self.counters
            .failures
            .fetch_add(1, Relaxed)
            .saturating_add(1)
    }

    /// Whether the last request failed, or the server gets no requests.
    pub fn is_failing(&self) -> bool {
        self.counters.failures.load(Relaxed) != 0 || !self.is_up()
    }

    /// Records an answer at `now` (milliseconds since the start), which ends the failures in a row.
    /// Returns whether the server may be on trial.
    pub fn record_answer(&self, now: u64) -> bool {
        let counters = &self.counters;
        counters.last_answer.store(now.max(1), Relaxed);
        if counters.failures.load(Relaxed) != 0 {
            counters.failures.store(0, Relaxed);
        }
        counters.is_on_trial.load(Relaxed)
    }

    /// Whether the last answer was at `since` or later, in milliseconds since the start.
    pub fn has_answered_since(&self, since: u64) -> bool {
        let answer = self.counters.last_answer.load(Relaxed);
        answer != 0 && answer >= since
    }

    pub fn state(&self) -> MutexGuard<'_, ServerState> {
        lock(&self.counters.state)
    }

    /// Calls `update` with the state and returns its result. Resets the failures in a row.
    pub fn update_state<T>(&self, update: impl FnOnce(&mut ServerState) -> T) -> T {
        let mut state = self.state();
        let result = update(&mut state);
        self.counters
            .is_on_trial
            .store(state.is_on_trial(), Relaxed);
        self.counters.failures.store(0, Relaxed);
        result
    }

    /// Whether it gets requests.
    pub fn is_up(&self) -> bool {
        self.state().is_up()
    }
}

/// Adds one to a count that is below `max`. Returns whether it was.
fn add_below(count: &AtomicUsize, max: usize) -> bool {
    count
        .fetch_update(SeqCst, SeqCst, |count| (count < max).then_some(count + 1))
        .is_ok()
}

/// Counts a request as open at a server, until it is released or dropped.
pub struct InFlightGuard {
    pub server: Arc<Server>,
    /// Whether the request is the trial of an ejected server, without a result yet.
    pub is_trial: bool,
    is_over: bool,
    /// The place, if the origin limits open requests.
    place: Option<Arc<ReleasablePlace>>,
}

/// A request's place at a server with a limit. The client's connection may release it before the
/// request ends.
pub struct ReleasablePlace {
    server: Arc<Server>,
    is_crawler: bool,
    /// The hash of the client's address.
    client_hash: Option<u64>,
    is_released: AtomicBool,
}

impl ReleasablePlace {
    /// Whether people wait for a place at the origin, and all places of this server are taken.
    pub fn is_contended(&self) -> bool {
        let queue = self.server.entry.origin_state.queue.as_ref();
        queue.is_some_and(|queue| queue.waiting_count() > 0 && queue.is_full(&self.server))
    }

    /// Releases the place for other requests, and the request continues without one. Returns false,
    /// and keeps the place, if too many requests continue without a place: as many as there are
    /// places in all, or a quarter of that from one address.
    pub fn try_release(&self) -> bool {
        let Some(queue) = &self.server.entry.origin_state.queue else {
            return true;
        };
        if !queue.try_add_released(self.client_hash) {
            return false;
        }
        if self.is_released.swap(true, SeqCst) {
            queue.remove_released(self.client_hash);
        } else {
            self.server.remove_in_flight(false);
            queue.free_place(&self.server, self.client_hash);
        }
        true
    }

    /// Whether the request continues without it.
    pub fn is_released(&self) -> bool {
        self.is_released.load(SeqCst)
    }
}

impl InFlightGuard {
    /// Counts a request without a limit, and for no address.
    pub fn new(server: Arc<Server>) -> InFlightGuard {
        server.add_in_flight();
        InFlightGuard::with_place(server, None)
    }

    fn with_place(server: Arc<Server>, place: Option<Arc<ReleasablePlace>>) -> InFlightGuard {
        InFlightGuard {
            server,
            is_trial: false,
            is_over: false,
            place,
        }
    }

    /// Counts another attempt of the request of `before`, without a limit. Its place counts for the
    /// same address, and for crawlers if a crawler sent the request.
    pub fn for_retry(server: Arc<Server>, before: &InFlightGuard) -> InFlightGuard {
        match (&server.entry.origin_state.queue, &before.place) {
            (Some(queue), Some(place)) => {
                queue.admit_retry(&server, place.client_hash, place.is_crawler)
            }
            _ => InFlightGuard::new(server),
        }
    }

    /// Counts the trial of an ejected server, without a limit.
    pub fn for_trial(server: Arc<Server>) -> InFlightGuard {
        let mut guard = InFlightGuard::new(server);
        guard.is_trial = true;
        guard
    }

    /// The place, if the origin limits open requests and the request may still release it. A crawler
    /// may not: a slow crawler keeps one of the few places for crawlers.
    pub fn releasable_place(&self) -> Option<&Arc<ReleasablePlace>> {
        self.place
            .as_ref()
            .filter(|place| !self.is_over && !place.is_crawler && !place.is_released())
    }

    /// Uncounts the request; only the first call does something. Cancels a trial without a result.
    pub fn release(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let origin_state = &self.server.entry.origin_state;
        if self.is_trial && self.server.update_state(ServerState::cancel_trial) {
            origin_state.trial_due.store(0, Release);
        }
        let Some(queue) = &origin_state.queue else {
            return self.server.remove_in_flight(false);
        };
        let place = self.place.as_deref();
        let client_hash = place.and_then(|place| place.client_hash);
        if place.is_some_and(|place| place.is_released.swap(true, SeqCst)) {
            return queue.remove_released(client_hash);
        }
        self.server
            .remove_in_flight(place.is_some_and(|place| place.is_crawler));
        queue.free_place(&self.server, client_hash);
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.release();
    }
}
