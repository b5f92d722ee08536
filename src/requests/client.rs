//! [`ClientConnection`]: the state of one client's connection, for the two parts of crawlgate that
//! handle the client's requests. The module `edge` reads and judges a request, and passes it as a
//! [`Ticket`] to the module `gateway` (Pingora's proxy), which forwards the request. The gateway
//! returns what was sent, so that the edge can record the request once the last bytes of the
//! response are written.

use super::connection_facts::ConnectionFacts;
use super::https_redirect::HttpsRedirect;
use super::pending_record::PendingRecord;
use super::ticket::Ticket;
use crate::forwarding::ConnectionPeer;
use crate::locks::lock;
use crate::upstreams::ReleasablePlace;
use http::HeaderValue;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// The shared state of one connection.
#[derive(Default)]
pub struct ClientConnection {
    /// The other end.
    pub peer: ConnectionPeer,
    /// Strict-Transport-Security of its responses.
    pub hsts: Option<HeaderValue>,
    /// The version of TLS that it speaks: `1.2` or `1.3`.
    pub tls: Option<&'static str>,
    ticket: Mutex<Option<Ticket>>,
    serves_one_request: bool,
    pending_record: Mutex<Option<Box<PendingRecord>>>,
    protocol_switched: AtomicBool,
    stalled: AtomicBool,
    place: Mutex<Option<Arc<ReleasablePlace>>>,
}

impl std::fmt::Debug for ClientConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConnection")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl ClientConnection {
    /// The state of a connection with this peer.
    pub fn new(peer: ConnectionPeer, hsts: Option<HeaderValue>) -> ClientConnection {
        ClientConnection {
            peer,
            hsts,
            ..ClientConnection::default()
        }
    }

    /// A copy of this state for one request: over HTTP/2, the gateway has several requests of a
    /// connection at a time. The record waits for [`ClientConnection::take_record`].
    pub fn for_one_request(&self) -> ClientConnection {
        ClientConnection {
            tls: self.tls,
            serves_one_request: true,
            ..ClientConnection::new(self.peer, self.hsts.clone())
        }
    }

    /// The facts for a request. `redirect` is that of the connection's listener; `None` if requests
    /// are not redirected, or the redirect was decided before.
    pub fn facts(&self, redirect: Option<HttpsRedirect>) -> ConnectionFacts<'_> {
        ConnectionFacts {
            peer: self.peer,
            tls: self.tls,
            hsts: self.hsts.as_ref(),
            redirect,
        }
    }

    /// Stores the ticket of the next request for the gateway.
    pub fn put_ticket(&self, ticket: Ticket) {
        *lock(&self.ticket) = Some(ticket);
    }

    /// Takes the stored ticket, if there is one.
    pub fn take_ticket(&self) -> Option<Ticket> {
        lock(&self.ticket).take()
    }

    /// Ends the response of the gateway, and drops the place of the request. Over HTTP/2 the record
    /// waits for [`ClientConnection::take_record`], because the bytes still wait for the client's
    /// window; otherwise it is finished at once.
    pub fn finish_response(&self, record: PendingRecord) {
        self.set_place(None);
        if self.serves_one_request {
            *lock(&self.pending_record) = Some(Box::new(record));
        } else {
            record.finish(true);
        }
    }

    /// Takes the record of the only request, once the gateway is done with it.
    pub fn take_record(&self) -> Option<PendingRecord> {
        lock(&self.pending_record).take().map(|record| *record)
    }

    /// The origin agreed to another protocol (101): from now on bytes pass unchanged.
    pub fn mark_protocol_switched(&self) {
        self.protocol_switched.store(true, Release);
    }

    /// Sets the place at the origin of the request that the gateway forwards.
    pub fn set_place(&self, place: Option<Arc<ReleasablePlace>>) {
        *lock(&self.place) = place;
    }

    /// The place at the origin of the request that the gateway forwards, if it still has one.
    pub fn place(&self) -> Option<Arc<ReleasablePlace>> {
        lock(&self.place)
            .clone()
            .filter(|place| !place.is_released())
    }

    /// Marks that the client no longer takes any bytes.
    pub fn mark_stalled(&self) {
        self.stalled.store(true, Release);
    }

    /// Whether the client stopped taking bytes.
    pub fn is_stalled(&self) -> bool {
        self.stalled.load(Acquire)
    }

    /// Whether the origin agreed to another protocol.
    pub fn has_switched_protocol(&self) -> bool {
        self.protocol_switched.load(Acquire)
    }
}
