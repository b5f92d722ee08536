//! [`ConnectionFacts`]: what all requests on one connection have in common. This is the address of
//! the other end, the version of TLS, and the settings of the listener that change responses
//! (Strict-Transport-Security, redirect to https).

use super::https_redirect::HttpsRedirect;
use crate::answers::Answer;
use crate::forwarding::ConnectionPeer;
use http::{HeaderValue, header};

/// The facts that all requests of a connection share.
#[derive(Clone, Copy, Default)]
pub struct ConnectionFacts<'a> {
    /// The peer.
    pub peer: ConnectionPeer,
    /// The version of TLS that it speaks: `1.2` or `1.3`.
    pub tls: Option<&'static str>,
    /// Strict-Transport-Security of its responses.
    pub hsts: Option<&'a HeaderValue>,
    /// Where the listener redirects requests to, if it does.
    pub redirect: Option<HttpsRedirect>,
}

impl ConnectionFacts<'_> {
    /// A connection in clear text with this peer, at a listener without settings.
    pub fn cleartext(peer: ConnectionPeer) -> ConnectionFacts<'static> {
        ConnectionFacts {
            peer,
            ..ConnectionFacts::default()
        }
    }

    /// Adds the listener's Strict-Transport-Security to an answer.
    pub(super) fn with_hsts(&self, answer: Answer) -> Answer {
        match self.hsts {
            Some(hsts) => answer.with_field(header::STRICT_TRANSPORT_SECURITY, hsts.clone()),
            None => answer,
        }
    }
}
