//! [`RequestFacts`]: what is known of a request before it is judged. [`Outcome`]: how the request
//! was answered. Both hold values that every door can give; a door is a way by which requests come
//! in (HTTP/1, HTTP/2, Pingora, the middleware, the decision service).

use crate::clock::Moment;
use crate::heads::{ForwardingFields, SignatureFields};
use crate::ledger::ProxyPath;
use crate::settings::AddressDetail;
use crate::telemetry::Octets;
use crate::time::Timestamp;
use crate::verdict::{Facts, Identity};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// Octets of a log field that come from outside: a log does not grow with its input.
const FIELD_LIMIT: usize = 2048;

/// One request, in borrowed octets as they came, or in octets of its own.
#[derive(Debug)]
pub struct RequestFacts<'a, B = &'a [u8]> {
    /// The Host field or `:authority`, with its port if it has one. Empty where an HTTP/1.0 request
    /// has none.
    pub host: B,
    /// The request target as sent, in origin form or absolute form.
    pub target: B,
    /// GET, HEAD, ...
    pub method: B,
    /// The User-Agent field.
    pub user_agent: Option<B>,
    /// The client's address, behind trusted proxies; `None` where it is not known.
    pub client: Option<IpAddr>,
    /// The address for logs: that of the client, or of the peer that does not name it.
    pub logged: Option<IpAddr>,
    /// Forwarding fields that are not believed. With one from a client that is known, its address
    /// may be that of a proxy that nobody declared, and accuses nobody. With one beside a client
    /// that is not known, a trusted proxy names the client in it, and the settings name another
    /// field.
    pub unread: ForwardingFields,
    /// The trusted proxies that it came through; `None` where it came through none.
    pub proxies: Option<ProxyPath>,
    /// Its signature, if it has one.
    pub signature: Option<SignatureFields<'a>>,
    /// Whether the request carries a licence token.
    pub has_license_token: bool,
    /// When it arrived, by the wall clock.
    pub arrived: SystemTime,
    /// The time that the clock had lived through when it arrived.
    pub lived: Duration,
}

/// A request that is kept after its end, for a record that waits.
pub type KeptRequest = RequestFacts<'static, Box<[u8]>>;

impl<B> RequestFacts<'_, B> {
    /// The same facts with each field of bytes converted by `octets`, and without the signature:
    /// what that proves is kept elsewhere.
    pub(super) fn map<'b, 'c, C>(&'b self, octets: impl Fn(&'b B) -> C) -> RequestFacts<'c, C> {
        RequestFacts::<'c, C> {
            host: octets(&self.host),
            target: octets(&self.target),
            method: octets(&self.method),
            user_agent: self.user_agent.as_ref().map(&octets),
            client: self.client,
            logged: self.logged,
            unread: self.unread,
            proxies: self.proxies,
            signature: None,
            has_license_token: self.has_license_token,
            arrived: self.arrived,
            lived: self.lived,
        }
    }
}

impl<'a> RequestFacts<'a> {
    /// The facts that the engine asks for, where nothing is proven of the client yet. `target` is
    /// the request target in origin form.
    pub(super) fn facts(&self, target: &'a [u8]) -> Facts<'a> {
        Facts {
            host: self.host,
            target,
            method: self.method,
            user_agent: self.user_agent.unwrap_or_default(),
            client: self.client,
            identity: Identity::Unverified,
            now: self.now(),
        }
    }

    /// The address for logs, as far as it may be written.
    pub(super) fn logged_as(&self, detail: AddressDetail) -> Option<IpAddr> {
        self.logged.and_then(|address| detail.apply(address))
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from(self.arrived)
    }

    /// When the request arrived, by the wall clock and by the elapsed time.
    pub(super) fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
            lived: self.lived,
        }
    }
}

/// What was sent and how it ended; in borrowed octets, or in octets of its own.
#[derive(Clone, Debug, Default)]
pub struct Outcome<'a, B = &'a [u8]> {
    /// The status that was sent; 0 where no response was begun.
    pub status: u16,
    /// The lines of X-Robots-Tag that were sent.
    pub x_robots_tag: &'a [&'a [u8]],
    /// Octets of the body that were sent.
    pub body_octets: u64,
    /// From the arrival until now.
    pub elapsed: Duration,
    /// The client's version of HTTP: `1.0`, `1.1`, `2`.
    pub http: &'static str,
    /// The version of TLS that the connection speaks; `None` in clear text.
    pub tls: Option<&'static str>,
    /// The Referer field of the request.
    pub referer: Option<B>,
    /// Whether the client got a whole copy of robots.txt, or the word that its own copy is good.
    pub is_copy: bool,
    /// The validator that it sent for its own copy.
    pub if_none_match: Option<B>,
    /// The id of the request.
    pub request_id: B,
    /// The trace that it belongs to.
    pub trace_id: Option<B>,
    /// The error that ended the request.
    pub error: Option<&'static str>,
}

/// An outcome that is kept after the end of its request, for a record that waits.
pub type KeptOutcome = Outcome<'static, Box<[u8]>>;

impl<B> Outcome<'_, B> {
    /// The same outcome with each field of bytes converted by `octets`, and without the lines of
    /// X-Robots-Tag.
    pub(super) fn map<'b, 'c, C>(&'b self, octets: impl Fn(&'b B) -> C) -> Outcome<'c, C> {
        Outcome::<'c, C> {
            status: self.status,
            x_robots_tag: &[],
            body_octets: self.body_octets,
            elapsed: self.elapsed,
            http: self.http,
            tls: self.tls,
            referer: self.referer.as_ref().map(&octets),
            is_copy: self.is_copy,
            if_none_match: self.if_none_match.as_ref().map(&octets),
            request_id: octets(&self.request_id),
            trace_id: self.trace_id.as_ref().map(&octets),
            error: self.error,
        }
    }
}

/// The beginning of these bytes, as many as a field of a log may have.
pub fn cut(octets: &[u8]) -> Octets<'_> {
    Octets(&octets[..octets.len().min(FIELD_LIMIT)])
}

/// The beginning of these bytes as text, cut as by `cut`. What is not UTF-8 is replaced.
pub fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(cut(octets).0).into_owned()
}
