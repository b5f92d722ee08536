//! [`Connection`]: the facts that all requests of a connection share.

use super::redirect::Redirect;
use crate::answers::{Answer, Field};
use crate::forwarding::Peer;
use http::HeaderValue;

/// The facts that all requests of a connection share.
#[derive(Clone, Copy)]
pub struct Connection<'a> {
    /// The other end.
    pub peer: Peer,
    /// The version of TLS that it speaks: `1.2` or `1.3`.
    pub tls: Option<&'static str>,
    /// Strict-Transport-Security of its responses.
    pub hsts: Option<&'a HeaderValue>,
    /// Where the listener redirects requests to, if it does.
    pub redirect: Option<Redirect>,
}

impl Connection<'_> {
    /// A connection in clear text, of which only the other end is known.
    pub fn from(peer: Peer) -> Connection<'static> {
        Connection {
            peer,
            tls: None,
            hsts: None,
            redirect: None,
        }
    }

    /// Adds the listener's Strict-Transport-Security to an answer.
    pub(super) fn with_hsts(&self, answer: Answer) -> Answer {
        match self.hsts {
            Some(hsts) => answer.with(Field::StrictTransportSecurity, hsts.clone()),
            None => answer,
        }
    }
}
