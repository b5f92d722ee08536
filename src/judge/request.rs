//! [`RequestFacts`]: what a door knows of a request before it is judged.

use crate::clock::Moment;
use crate::heads::SignatureFields;
use crate::time::Timestamp;
use crate::verdict::{Facts, Identity};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

/// One request, in borrowed bytes as they came.
#[derive(Clone, Copy, Debug)]
pub struct RequestFacts<'a> {
    /// The Host field or `:authority`, with its port if it has one. Empty where an HTTP/1.0 request has none.
    pub host: &'a [u8],
    /// The request target as sent, in origin form or absolute form.
    pub target: &'a [u8],
    /// GET, HEAD, ...
    pub method: &'a [u8],
    /// The User-Agent field.
    pub user_agent: Option<&'a [u8]>,
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

/// A request that is kept after its end, for a record that waits. Without its signature: what that proves is kept elsewhere.
#[derive(Clone, Debug)]
pub(super) struct KeptRequest {
    host: Box<[u8]>,
    target: Box<[u8]>,
    method: Box<[u8]>,
    user_agent: Option<Box<[u8]>>,
    client: Option<IpAddr>,
    address_may_accuse: bool,
    has_license_token: bool,
    arrived: SystemTime,
    lived: Duration,
}

impl KeptRequest {
    pub(super) fn of(request: &RequestFacts<'_>) -> KeptRequest {
        KeptRequest {
            host: request.host.into(),
            target: request.target.into(),
            method: request.method.into(),
            user_agent: request.user_agent.map(Into::into),
            client: request.client,
            address_may_accuse: request.address_may_accuse,
            has_license_token: request.has_license_token,
            arrived: request.arrived,
            lived: request.lived,
        }
    }
}

impl<'a> RequestFacts<'a> {
    /// A request that was kept.
    pub(super) fn kept(kept: &'a KeptRequest) -> Self {
        Self {
            host: &kept.host,
            target: &kept.target,
            method: &kept.method,
            user_agent: kept.user_agent.as_deref(),
            client: kept.client,
            address_may_accuse: kept.address_may_accuse,
            signature: None,
            has_license_token: kept.has_license_token,
            arrived: kept.arrived,
            lived: kept.lived,
        }
    }

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
