//! [`Noted`]: a copy of the parts of a request that its record needs, made when the request
//! arrives. The head is gone when the record is written. Each thread reuses the memory of its
//! copies.

use super::connection::{Arrival, Connection};
use super::head::{HeadFields, RequestHead};
use super::request_id::request_id;
use crate::forwarding::{Client, Forwarded};
use crate::heads::{ForwardingFields, is_request_id, trace_id};
use crate::judge::RequestFacts;
use crate::reuse::Reuse;
use crate::settings::ClientAddress;
use crate::time::Timestamp;
use ipnet::IpNet;
use std::net::IpAddr;

/// Buffers that a thread keeps.
const MOST_KEPT: usize = 256;
/// Octets of a buffer that is kept.
const LARGEST_KEPT: usize = 4 * 1024;

thread_local! {
    static KEPT: Reuse<Vec<u8>> = const { Reuse::new(MOST_KEPT) };
}

pub struct Noted {
    /// Method, host, target, user agent, referer, id and trace, one after the other; then the
    /// validator, if there is one.
    octets: Vec<u8>,
    /// Where each of them ends.
    ends: [usize; 7],
    has_user_agent: bool,
    has_referer: bool,
    /// Whether its `traceparent` is malformed.
    pub has_malformed_trace: bool,
    pub http: &'static str,
    pub arrival: Arrival,
    client: Client,
    /// Forwarding fields that are not believed.
    unread: ForwardingFields,
}

impl Noted {
    /// Copies the parts of a head. Takes the request's id over from a trusted proxy, or makes one.
    /// Finds the client: `field` is where trusted proxies (`trusted`) name it.
    pub fn of(
        head: &impl RequestHead,
        fields: &HeadFields<'_>,
        connection: &Connection<'_>,
        field: &ClientAddress,
        trusted: &[IpNet],
        arrival: Arrival,
    ) -> Noted {
        let peer = connection.peer;
        let made;
        let id = match fields
            .request_id
            .filter(|id| peer.is_trusted && is_request_id(id))
        {
            Some(taken) => taken,
            None => {
                made = request_id();
                &made
            }
        };
        let trace = fields
            .traceparent
            .map(|traceparent| trace_id(traceparent).unwrap_or_default());
        let words = [
            fields.method,
            fields.host,
            fields.target,
            fields.user_agent.unwrap_or_default(),
            fields.referer.unwrap_or_default(),
            id,
            trace.unwrap_or_default(),
        ];
        let client = Client::find(peer, || head.values(&field.0), field, trusted);
        let mut octets = Reuse::take(&KEPT).unwrap_or_default();
        let mut ends = [0; 7];
        for (end, word) in ends.iter_mut().zip(words) {
            octets.extend_from_slice(word);
            *end = octets.len();
        }
        Noted {
            octets,
            ends,
            has_user_agent: fields.user_agent.is_some(),
            has_referer: fields.referer.is_some(),
            has_malformed_trace: trace.is_some_and(<[u8]>::is_empty),
            http: fields.http,
            arrival,
            unread: match client.address {
                Some(_) if !peer.is_trusted => fields.forwarding,
                None if client.is_unread => fields.forwarding.other_addresses(field.0.as_str()),
                _ => ForwardingFields::default(),
            },
            client,
        }
    }

    /// The copied part at this place, in the order of `octets`.
    fn word(&self, place: usize) -> &[u8] {
        let begin = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.octets[begin..self.ends[place]]
    }

    pub fn method(&self) -> &[u8] {
        self.word(0)
    }

    pub fn host(&self) -> &[u8] {
        self.word(1)
    }

    pub fn target(&self) -> &[u8] {
        self.word(2)
    }

    pub fn referer(&self) -> Option<&[u8]> {
        self.has_referer.then(|| self.word(4))
    }

    /// The id of the request: that of a trusted proxy, if it is well-formed, else one that
    /// crawlgate made.
    pub fn request_id(&self) -> &[u8] {
        self.word(5)
    }

    /// The trace that it belongs to; `None` without `traceparent`, or if that is malformed.
    pub fn trace_id(&self) -> Option<&[u8]> {
        Some(self.word(6)).filter(|trace| !trace.is_empty())
    }

    /// Keeps the validator (If-None-Match) of the request, in place of one that was kept before.
    pub fn note_validator(&mut self, validator: &[u8]) {
        self.octets.truncate(self.ends[6]);
        self.octets.extend_from_slice(validator);
    }

    /// The validator, if it was noted.
    pub fn validator(&self) -> Option<&[u8]> {
        Some(&self.octets[self.ends[6]..]).filter(|validator| !validator.is_empty())
    }

    /// The address of the client, whose share of buffers and places the request uses; `None` where
    /// it is not known.
    pub fn client(&self) -> Option<IpAddr> {
        self.client.address
    }

    /// Whether the head may have forwarding fields that are not believed: some were seen, or the
    /// client is not known. If not, they need not be looked for.
    pub fn may_have_forwarding(&self) -> bool {
        self.client.address.is_none() || !self.unread.is_empty()
    }

    /// What a trusted proxy says in `Forwarded`, if that is believed.
    pub fn forwarded(&self) -> Option<&Forwarded> {
        self.client.forwarded.as_deref()
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from(self.arrival.arrived)
    }

    /// The facts for the judge, with the signature and the licence token, which only the head has.
    pub fn facts_with<'a>(&'a self, fields: &HeadFields<'a>) -> RequestFacts<'a> {
        let mut facts = self.facts();
        facts.signature = fields.signature.if_present();
        facts.has_license_token = fields.has_license_token;
        facts
    }

    /// The facts for the judge when the head is gone: without the signature and the licence token.
    pub fn facts(&self) -> RequestFacts<'_> {
        RequestFacts {
            host: self.host(),
            target: self.target(),
            method: self.method(),
            user_agent: self.has_user_agent.then(|| self.word(3)),
            client: self.client.address,
            logged: self.client.logged,
            unread: self.unread,
            proxies: self.client.proxies,
            signature: None,
            has_license_token: false,
            arrived: self.arrival.arrived,
            lived: self.arrival.lived,
        }
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        Reuse::give_buffer(&KEPT, std::mem::take(&mut self.octets), LARGEST_KEPT);
    }
}
