//! [`ClientConnection`]: the facts about a client's connection that the edge and Pingora's gateway
//! share. Through it the edge hands the [`Ticket`] of a request (what was decided about it) on to
//! the gateway.

use super::connection::Connection;
use super::record::Record;
use super::redirect::Redirect;
use super::ticket::Ticket;
use crate::forwarding::Peer;
use crate::locks::lock;
#[cfg(feature = "proxy")]
use crate::upstreams::Place;
use http::HeaderValue;
#[cfg(feature = "proxy")]
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// See the top of this file.
pub struct ClientConnection {
    /// The other end.
    pub peer: Peer,
    /// Strict-Transport-Security of its responses.
    pub hsts: Option<HeaderValue>,
    /// The version of TLS that it speaks: `1.2` or `1.3`.
    pub tls: Option<&'static str>,
    received: Mutex<Option<Ticket>>,
    is_of_one_request: bool,
    sent: Mutex<Option<Box<Record>>>,
    has_switched: AtomicBool,
    is_given_up: AtomicBool,
    #[cfg(feature = "proxy")]
    place: Mutex<Option<Arc<Place>>>,
}

impl std::fmt::Debug for ClientConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConnection")
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

impl ClientConnection {
    /// A connection with this other end.
    pub fn new(peer: Peer, hsts: Option<HeaderValue>) -> ClientConnection {
        ClientConnection {
            peer,
            hsts,
            tls: None,
            received: Mutex::default(),
            is_of_one_request: false,
            sent: Mutex::default(),
            has_switched: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            #[cfg(feature = "proxy")]
            place: Mutex::default(),
        }
    }

    /// The facts of this connection for one request alone: over HTTP/2, requests of one connection
    /// are handed on at the same time. Its record waits for [`ClientConnection::take_record`].
    pub fn of_one_request(&self) -> ClientConnection {
        ClientConnection {
            tls: self.tls,
            is_of_one_request: true,
            ..ClientConnection::new(self.peer, self.hsts.clone())
        }
    }

    /// The facts that its requests share. `redirect` is that of the connection's listener; `None`
    /// where requests are not redirected, or the redirect was decided before.
    pub fn behind(&self, redirect: Option<Redirect>) -> Connection<'_> {
        Connection {
            peer: self.peer,
            tls: self.tls,
            hsts: self.hsts.as_ref(),
            redirect,
        }
    }

    /// Leaves the ticket of the next request for the gateway.
    pub fn hand_on(&self, ticket: Ticket) {
        *lock(&self.received) = Some(ticket);
    }

    /// Takes the ticket that was left, if there is one.
    pub fn take_over(&self) -> Option<Ticket> {
        lock(&self.received).take()
    }

    /// Takes the record of what the gateway has sent, and forgets the place of the request. Over
    /// HTTP/2 the record waits for [`ClientConnection::take_record`], because what was sent still
    /// waits for the client's window; otherwise it is finished at once.
    pub fn record(&self, record: Record) {
        #[cfg(feature = "proxy")]
        self.set_place(None);
        if self.is_of_one_request {
            *lock(&self.sent) = Some(Box::new(record));
        } else {
            record.finish(true);
        }
    }

    /// Takes the record of the only request, once the gateway is done with it.
    pub fn take_record(&self) -> Option<Record> {
        lock(&self.sent).take().map(|record| *record)
    }

    /// Notes that the origin agreed to another protocol (101): from now on octets pass as they are.
    pub fn switch_protocol(&self) {
        self.has_switched.store(true, Release);
    }

    /// Sets the place at the origin of the request that the gateway forwards.
    #[cfg(feature = "proxy")]
    pub fn set_place(&self, place: Option<Arc<Place>>) {
        *lock(&self.place) = place;
    }

    /// The place at the origin of the request that the gateway forwards, if it has not given it up.
    #[cfg(feature = "proxy")]
    pub fn place(&self) -> Option<Arc<Place>> {
        lock(&self.place)
            .clone()
            .filter(|place| !place.is_given_up())
    }

    /// Notes that the client takes nothing of what is written.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Release);
    }

    /// Whether the client took nothing of what was written.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Acquire)
    }

    /// Whether the origin agreed to another protocol.
    pub fn has_switched_protocol(&self) -> bool {
        self.has_switched.load(Acquire)
    }
}
