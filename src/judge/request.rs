//! [`RequestFacts`]: what a door knows of a request before it is judged.

use crate::clock::Moment;
use crate::heads::SignatureFields;
use crate::time::Timestamp;
use crate::verdict::{Facts, Identity};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// One request, in borrowed octets as they came, or in octets of its own.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a, B = &'a [u8]> {
    /// The Host field or `:authority`, with its port if it has one. Empty where an HTTP/1.0 request has none.
    pub host: B,
    /// The request target as sent, in origin form or absolute form.
    pub target: B,
    /// GET, HEAD, ...
    pub method: B,
    /// The User-Agent field.
    pub user_agent: Option<B>,
    /// The client's address, behind trusted proxies.
    pub client: Option<IpAddr>,
    /// Whether the address may prove an impostor. It may not where the address may be that of a proxy that nobody
    /// declared.
    pub address_may_accuse: bool,
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
pub(super) type KeptRequest = RequestFacts<'static, Box<[u8]>>;

impl<B> RequestFacts<'_, B> {
    /// The facts with other octets. Without the signature: what that proves is kept elsewhere.
    pub(super) fn map<'b, 'c, C>(&'b self, octets: impl Fn(&'b B) -> C) -> RequestFacts<'c, C> {
        RequestFacts::<'c, C> {
            host: octets(&self.host),
            target: octets(&self.target),
            method: octets(&self.method),
            user_agent: self.user_agent.as_ref().map(&octets),
            client: self.client,
            address_may_accuse: self.address_may_accuse,
            signature: None,
            has_license_token: self.has_license_token,
            arrived: self.arrived,
            lived: self.lived,
        }
    }
}

impl<'a> RequestFacts<'a> {
    /// The facts that the engine asks for. `target` is the request target in origin form.
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

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from(self.arrived)
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { now: self.now(), lived: self.lived }
    }
}
