//! [`Connection`]: what a request is told of the connection that it came over. [`Arrival`]: when it came.

use super::redirect::Redirect;
use crate::answers::{Answer, Field};
use crate::forwarding::Peer;
use http::HeaderValue;
use std::time::{Duration, Instant, SystemTime};

/// When a request arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// By the wall clock.
    pub arrived: SystemTime,
    /// The same moment, for measuring.
    pub started: Instant,
    /// The time that the clock had lived through until then.
    pub lived: Duration,
}

/// What a request shares with all others of its connection.
#[derive(Clone, Copy)]
pub struct Connection<'a> {
    /// The other end.
    pub peer: Peer,
    /// The version of TLS that it speaks: `1.2` or `1.3`.
    pub tls: Option<&'static str>,
    /// Strict-Transport-Security of its responses.
    pub hsts: Option<&'a HeaderValue>,
    /// Where its listener leads requests.
    pub redirect: Option<Redirect>,
}

impl Connection<'_> {
    /// One in clear text, of which only the other end is known.
    pub fn from(peer: Peer) -> Connection<'static> {
        Connection { peer, tls: None, hsts: None, redirect: None }
    }

    /// An answer with the Strict-Transport-Security of the listener.
    pub(super) fn with_hsts(&self, answer: Answer) -> Answer {
        match self.hsts {
            Some(hsts) => answer.with(Field::StrictTransportSecurity, hsts.clone()),
            None => answer,
        }
    }
}
