//! [`Visit`]: a request over HTTP/1 as it is judged and recorded. Must not know what becomes of it.

use super::head::Request;
use crate::forwarding::Arrival;
use crate::judge::RequestFacts;
use std::net::IpAddr;

/// A request as it is judged and recorded.
pub struct Visit<'b> {
    /// Its head.
    pub request: Request<'b>,
    /// When it arrived.
    pub arrival: Arrival,
    /// The address of the client, behind trusted proxies.
    pub client: Option<IpAddr>,
    /// Whether the address may prove an impostor.
    pub(super) address_may_accuse: bool,
    /// The version of TLS, if the connection has it.
    pub(super) tls: Option<&'static str>,
}

impl Visit<'_> {
    pub(super) fn facts(&self) -> RequestFacts<'_> {
        let request = &self.request;
        RequestFacts {
            host: request.host,
            target: request.target,
            method: request.method,
            user_agent: request.user_agent,
            client: self.client,
            address_may_accuse: self.address_may_accuse,
            signature: request.signature.if_present(),
            has_license_token: request.has_license_token,
            arrived: self.arrival.arrived,
            lived: self.arrival.lived,
        }
    }
}
