//! [`Server`]: one address of an origin, with its counters and its state. The value is the same for
//! as long as the address belongs to the origin. [`Held`] counts a request that is open at a
//! server, until it is dropped.

mod room;
mod shares;

pub use room::{Entrance, Full, Room, Wanted};

use super::hash::hash;
use super::server_state::ServerState;
use super::tally::Tally;
use super::tls::{Prepared, ServerTls};
use crate::locks::lock;
use crate::settings::{OriginTimeouts, ServerAddress};
use crate::telemetry::ServerPlace;
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
use std::time::{Duration, Instant};

/// No server waits for a trial.
pub const NEVER: u64 = u64::MAX;

/// The parts that the servers of an origin share.
pub struct Shared {
    /// When the next trial is due, in milliseconds since the start.
    pub trial_due: AtomicU64,
    /// The places of the origin, if it has a bound.
    pub room: Option<Arc<Room>>,
}

/// The settings of a server, for all of its addresses.
pub struct Entry {
    pub place: ServerPlace,
    pub address: ServerAddress,
    /// Its name in messages.
    pub url: String,
    /// The Host of a request that names none.
    pub authority: String,
    pub weight: u16,
    pub is_backup: bool,
    pub timeouts: OriginTimeouts,
    /// The certificates for TLS to it.
    pub tls: Option<Arc<ServerTls>>,
    /// The name that its certificate is for; `None` for its own.
    pub certificate_name: Option<String>,
    /// The outcomes of requests, at all of its addresses.
    pub tally: Tally,
    pub shared: Arc<Shared>,
}

/// One address of an origin.
pub struct Server {
    pub entry: Arc<Entry>,
    /// 0.0.0.0:0 for a Unix socket.
    pub address: SocketAddr,
    peer: HttpPeer,
    /// Connects to it in place of Pingora's connector, if it is set.
    tls: Option<Prepared>,
    /// The key of connections to this server.
    pub key: u64,
    /// The same in each process, so that clients keep their server.
    pub hash: u64,
    /// Written by each request. So it is apart from the rest, which requests only read.
    live: Box<Live>,
}

/// The part that changes with requests.
#[derive(Default)]
struct Live {
    in_flight: AtomicUsize,
    /// The requests of crawlers among these, if the origin has a bound.
    crawlers: AtomicUsize,
    /// Failures in a row.
    failures: AtomicU32,
    /// In milliseconds since the start; 0 before the first answer.
    last_answer: AtomicU64,
    is_on_trial: AtomicBool,
    state: Mutex<ServerState>,
}

impl Server {
    /// Prepares connections to an address of a server; for one with a Unix socket, the path of the
    /// settings replaces `address`. Sets all timeouts: Pingora sets none of its own (Pingora
    /// 0.9.1).
    pub fn new(entry: Arc<Entry>, address: SocketAddr) -> Server {
        let ServerAddress {
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
        let prepared = entry
            .tls
            .as_ref()
            .filter(|_| *tls)
            .and_then(|tls| tls.prepare(&mut peer, entry.place.origin, name));
        Server {
            entry,
            address,
            key: peer.reuse_hash(),
            hash: hash(peer._address.to_string().as_bytes()),
            peer,
            tls: prepared,
            live: Box::default(),
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
        if let Some(prepared) = &self.tls {
            prepared.tls.show(&mut peer);
        }
        peer
    }

    /// Its address and port, or the path of its socket.
    pub fn shown_address(&self) -> String {
        match &self.entry.address.socket {
            Some(path) => path.display().to_string(),
            None => self.address.to_string(),
        }
    }

    /// Its name in messages: its URL, and its address if the URL has a name.
    pub fn named(&self) -> String {
        if self.entry.address.is_name() {
            format!("{} ({})", self.entry.url, self.address.ip())
        } else {
            self.entry.url.clone()
        }
    }

    pub fn in_flight(&self) -> usize {
        self.live.in_flight.load(Relaxed)
    }

    /// Counts one more request in flight, however many there are.
    fn enter(&self) {
        self.live.in_flight.fetch_add(1, SeqCst);
    }

    /// Takes a place, if fewer than `most` are taken, and returns whether it did. `crawlers` is for
    /// a request of a crawler: how many places crawlers may have at most.
    fn enter_within(&self, most: usize, crawlers: Option<usize>) -> bool {
        let live = &self.live;
        if let Some(most) = crawlers
            && !add_below(&live.crawlers, most)
        {
            return false;
        }
        let has_entered = add_below(&live.in_flight, most);
        if !has_entered && crawlers.is_some() {
            live.crawlers.fetch_sub(1, SeqCst);
        }
        has_entered
    }

    /// Counts one request less in flight. `is_crawler` says that it was counted for crawlers, too.
    fn leave(&self, is_crawler: bool) {
        if is_crawler {
            self.live.crawlers.fetch_sub(1, SeqCst);
        }
        self.live.in_flight.fetch_sub(1, SeqCst);
    }

    /// Counts a failure. Returns the number of failures in a row.
    pub fn count_failure(&self) -> u32 {
        self.live.failures.fetch_add(1, Relaxed).saturating_add(1)
    }

    /// Whether the last request failed, or the server gets no requests.
    pub fn is_failing(&self) -> bool {
        self.live.failures.load(Relaxed) != 0 || !self.is_up()
    }

    /// Records an answer at `now` (milliseconds since the start), which ends the failures in a row.
    /// Returns whether the server may be on trial.
    pub fn record_answer(&self, now: u64) -> bool {
        let live = &self.live;
        live.last_answer.store(now.max(1), Relaxed);
        if live.failures.load(Relaxed) != 0 {
            live.failures.store(0, Relaxed);
        }
        live.is_on_trial.load(Relaxed)
    }

    /// Whether the last answer was at `since` or later, in milliseconds since the start.
    pub fn has_answered_since(&self, since: u64) -> bool {
        let answer = self.live.last_answer.load(Relaxed);
        answer != 0 && answer >= since
    }

    pub fn state(&self) -> MutexGuard<'_, ServerState> {
        lock(&self.live.state)
    }

    /// Changes its state by `change` and returns the result of that. The failures in a row end,
    /// whatever `change` did.
    pub fn change<T>(&self, change: impl FnOnce(&mut ServerState) -> T) -> T {
        let mut state = self.state();
        let changed = change(&mut state);
        self.live.is_on_trial.store(state.is_on_trial(), Relaxed);
        self.live.failures.store(0, Relaxed);
        changed
    }

    /// Whether it gets requests.
    pub fn is_up(&self) -> bool {
        self.state().is_up()
    }
}

/// Adds one to a count that is below `most`. Returns whether it was.
fn add_below(count: &AtomicUsize, most: usize) -> bool {
    count
        .fetch_update(SeqCst, SeqCst, |count| (count < most).then_some(count + 1))
        .is_ok()
}

/// A request's place at a server. It is given back when this is dropped, if not before.
pub struct Held {
    pub server: Arc<Server>,
    /// Whether it tries an ejected server and has had no result yet.
    pub is_trial: bool,
    has_left: bool,
    /// The place itself, if the origin has a bound.
    place: Option<Arc<Place>>,
}

/// A place at a server with a bound. While the request has it, the client's connection may give it
/// up.
pub struct Place {
    server: Arc<Server>,
    is_crawler: bool,
    /// The hash of the client's address.
    share: Option<u64>,
    /// When it was taken.
    since: Instant,
    is_given_up: AtomicBool,
}

impl Place {
    /// Whether people wait for a place at the origin, and all places of this server are taken.
    pub fn people_wait(&self) -> bool {
        let room = self.server.entry.shared.room.as_ref();
        room.is_some_and(|room| room.waiting() > 0 && room.is_full(&self.server))
    }

    /// Gives the place to others, so that the request goes on without one. Returns false, and keeps
    /// the place, if too many requests go on so already: as many as there are places in all, and a
    /// part of that for one address.
    pub fn give_up(&self) -> bool {
        let Some(room) = &self.server.entry.shared.room else {
            return true;
        };
        if !room.begin_without_place(self.share) {
            return false;
        }
        if self.is_given_up.swap(true, SeqCst) {
            room.end_without_place(self.share);
        } else {
            self.server.leave(false);
            room.left(&self.server, self.share, None);
        }
        true
    }

    /// Whether the request goes on without it.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(SeqCst)
    }
}

impl Held {
    /// Takes a place, however many are taken. It is of no client, so that no address has a share of
    /// it.
    pub fn enter(server: Arc<Server>) -> Held {
        server.enter();
        Held::entered(server, None)
    }

    fn entered(server: Arc<Server>, place: Option<Arc<Place>>) -> Held {
        Held {
            server,
            is_trial: false,
            has_left: false,
            place,
        }
    }

    /// Takes a place for another attempt of the request that had `before`, however many are taken.
    /// It counts for the same address, and for crawlers if the request is one's.
    pub fn enter_again(server: Arc<Server>, before: &Held) -> Held {
        match (&server.entry.shared.room, &before.place) {
            (Some(room), Some(place)) => room.enter_again(&server, place.share, place.is_crawler),
            _ => Held::enter(server),
        }
    }

    /// Takes a place for the trial of an ejected server, however many are taken.
    pub fn enter_on_trial(server: Arc<Server>) -> Held {
        let mut held = Held::enter(server);
        held.is_trial = true;
        held
    }

    /// The place, if the origin has a bound, and the request may give it up and has not. A slow
    /// crawler keeps one of the few places for crawlers, so that it has none to give up.
    pub fn place(&self) -> Option<&Arc<Place>> {
        self.place
            .as_ref()
            .filter(|place| !self.has_left && !place.is_crawler && !place.is_given_up())
    }

    /// Gives the place back; the request goes on without one. Only the first call does something. A
    /// trial that has had no result is broken off.
    pub fn leave(&mut self) {
        if std::mem::replace(&mut self.has_left, true) {
            return;
        }
        let shared = &self.server.entry.shared;
        if self.is_trial && self.server.change(ServerState::break_off_trial) {
            shared.trial_due.store(0, Release);
        }
        let Some(room) = &shared.room else {
            return self.server.leave(false);
        };
        let place = self.place.as_deref();
        let share = place.and_then(|place| place.share);
        if place.is_some_and(|place| place.is_given_up.swap(true, SeqCst)) {
            return room.end_without_place(share);
        }
        self.server
            .leave(place.is_some_and(|place| place.is_crawler));
        room.left(&self.server, share, place.map(|place| place.since));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.leave();
    }
}
