//! [`RequestCopy`]: a copy of the parts of an HTTP request that judging and logging need. The copy
//! is made when the request arrives, because the request head is gone when the access log is
//! written. Each thread reuses the memory of its copies.

use super::ProxyPath;
use crate::clock::Moment;
use crate::heads::{ForwardingFieldSet, HeadFields, SignatureFields};
use crate::local_pool::LocalPool;
use crate::settings::AddressDetail;
use crate::time::Timestamp;
use crate::verdict::{Identity, RequestFacts};
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

/// The most buffers that a thread keeps for reuse.
const MAX_BUFFERS: usize = 256;
/// The most bytes of a buffer that is kept.
const MAX_BUFFER_BYTES: usize = 4 * 1024;

thread_local! {
    static BUFFERS: LocalPool<Vec<u8>> = const { LocalPool::new(MAX_BUFFERS) };
}

/// When a request arrived.
#[derive(Clone, Copy)]
pub struct ArrivalTimes {
    /// By the wall clock.
    pub arrived: SystemTime,
    /// By the monotonic clock, for measuring.
    pub started: Instant,
    /// By the monotonic time of the clock: see [`Moment`].
    pub monotonic: Duration,
}

/// A copy of what the client sent.
pub struct RequestCopy {
    /// Method, host, target, user agent, referer, id and trace, one after the other; then the
    /// validator, if there is one.
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: [usize; 7],
    has_user_agent: bool,
    has_referer: bool,
    /// Whether its `traceparent` is malformed.
    pub has_malformed_trace: bool,
    /// Whether it carries a licence token.
    pub has_license_token: bool,
    /// The client's version of HTTP: `1.0`, `1.1`, `2`.
    pub http: &'static str,
    /// The version of TLS that the connection speaks; `None` in clear text.
    pub tls: Option<&'static str>,
    /// When it arrived.
    pub arrival: ArrivalTimes,
    /// The client's address, behind trusted proxies; `None` where it is not known.
    pub client: Option<IpAddr>,
    /// The address for logs: that of the client, or of the peer that does not name it.
    pub logged: Option<IpAddr>,
    /// Whether crawlgate runs in an application that does not tell it the address of the peer. Then
    /// waiting proves no crawler.
    pub is_peer_unknown: bool,
    /// Forwarding fields that are not believed. If the client is known, its address may be that of
    /// a proxy that is not in the settings, so it proves no impostor. If the client is not known, a
    /// trusted proxy names it in one of these fields, and the settings name another field.
    pub unread: ForwardingFieldSet,
    /// The trusted proxies that it came through; `None` where it came through none, and for the
    /// decision service, which proxies ask before their own cache.
    pub proxies: Option<ProxyPath>,
    signature: Option<Box<[String; 3]>>,
}

impl RequestCopy {
    /// Copies the parts of a head. `id` is the id of the request, `trace` the trace that it belongs
    /// to (empty: none, or its field is malformed). Nothing is known of the client yet.
    pub fn from_head(
        head: &HeadFields<'_>,
        id: &[u8],
        trace: Option<&[u8]>,
        arrival: ArrivalTimes,
    ) -> RequestCopy {
        let words = [
            head.method,
            head.host,
            head.target,
            head.user_agent.unwrap_or_default(),
            head.referer.unwrap_or_default(),
            id,
            trace.unwrap_or_default(),
        ];
        let mut bytes = LocalPool::take(&BUFFERS).unwrap_or_default();
        let mut ends = [0; 7];
        for (end, word) in ends.iter_mut().zip(words) {
            bytes.extend_from_slice(word);
            *end = bytes.len();
        }
        RequestCopy {
            bytes,
            ends,
            has_user_agent: head.user_agent.is_some(),
            has_referer: head.referer.is_some(),
            has_malformed_trace: trace.is_some_and(<[u8]>::is_empty),
            has_license_token: head.has_license_token,
            http: head.http,
            tls: None,
            arrival,
            client: None,
            logged: None,
            is_peer_unknown: false,
            unread: ForwardingFieldSet::default(),
            proxies: None,
            signature: head.signature.if_signed().map(|fields| {
                let lines = [fields.input, fields.signature, fields.agent];
                Box::new(lines.map(str::to_owned))
            }),
        }
    }

    /// A request that arrived from this address at a moment, whose id is `id-1`.
    #[cfg(test)]
    pub fn for_test(
        head: &HeadFields<'_>,
        client: Option<IpAddr>,
        arrived: SystemTime,
    ) -> RequestCopy {
        let arrival = ArrivalTimes {
            arrived,
            started: Instant::now(),
            monotonic: Duration::ZERO,
        };
        let mut request = Self::from_head(head, b"id-1", None, arrival);
        request.client = client;
        request.logged = client;
        request
    }

    /// The copied part at this place, in the order of `bytes`.
    fn part(&self, place: usize) -> &[u8] {
        let begin = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.bytes[begin..self.ends[place]]
    }

    /// GET, HEAD, ...
    pub fn method(&self) -> &[u8] {
        self.part(0)
    }

    /// The Host field or `:authority`, with its port if it has one. Empty where an HTTP/1.0 request
    /// has none.
    pub fn host(&self) -> &[u8] {
        self.part(1)
    }

    /// The request target as sent, in origin form or absolute form.
    pub fn target(&self) -> &[u8] {
        self.part(2)
    }

    /// The User-Agent field.
    pub fn user_agent(&self) -> Option<&[u8]> {
        self.has_user_agent.then(|| self.part(3))
    }

    /// The Referer field.
    pub fn referer(&self) -> Option<&[u8]> {
        self.has_referer.then(|| self.part(4))
    }

    /// The id of the request: that of a trusted proxy, if it is well-formed, else one that
    /// crawlgate made.
    pub fn id(&self) -> &[u8] {
        self.part(5)
    }

    /// The trace that it belongs to; `None` without `traceparent`, or if that is malformed.
    pub fn trace_id(&self) -> Option<&[u8]> {
        Some(self.part(6)).filter(|trace| !trace.is_empty())
    }

    /// Sets the validator (If-None-Match) of the request.
    pub fn set_validator(&mut self, validator: &[u8]) {
        self.bytes.truncate(self.ends[6]);
        self.bytes.extend_from_slice(validator);
    }

    /// The validator, if it was set.
    pub fn validator(&self) -> Option<&[u8]> {
        Some(&self.bytes[self.ends[6]..]).filter(|validator| !validator.is_empty())
    }

    /// Its signature, if it has one.
    pub fn signature(&self) -> Option<SignatureFields<'_>> {
        let [input, signature, agent] = &**self.signature.as_ref()?;
        Some(SignatureFields {
            input,
            signature,
            agent,
        })
    }

    /// Drops the signature. The judgement has its result.
    pub fn drop_signature(&mut self) {
        self.signature = None;
    }

    /// Whether the head may have forwarding fields that are not believed. If not, the forwarder
    /// need not search for them.
    pub fn may_have_forwarding(&self) -> bool {
        self.client.is_none() || !self.unread.is_empty()
    }

    /// The address for logs, reduced to the allowed detail.
    pub fn address_for_log(&self, detail: AddressDetail) -> Option<IpAddr> {
        self.logged.and_then(|address| detail.apply(address))
    }

    /// When it arrived, by the wall clock.
    pub fn arrived_at(&self) -> Timestamp {
        Timestamp::from(self.arrival.arrived)
    }

    /// When it arrived, by the wall clock and by the elapsed time.
    pub fn arrival_moment(&self) -> Moment {
        Moment {
            now: self.arrived_at(),
            monotonic: self.arrival.monotonic,
        }
    }

    /// The facts for judging, with an unverified identity. `target` is the request target in origin
    /// form.
    pub fn to_facts<'a>(&'a self, target: &'a [u8]) -> RequestFacts<'a> {
        RequestFacts {
            host: self.host(),
            target,
            method: self.method(),
            user_agent: self.user_agent().unwrap_or_default(),
            client: self.client,
            identity: Identity::Unverified,
            now: self.arrived_at(),
        }
    }
}

/// Clones without the signature, because the judgement has its result.
impl Clone for RequestCopy {
    fn clone(&self) -> RequestCopy {
        RequestCopy {
            bytes: self.bytes.clone(),
            signature: None,
            ..*self
        }
    }
}

impl Drop for RequestCopy {
    fn drop(&mut self) {
        LocalPool::put_buffer(&BUFFERS, std::mem::take(&mut self.bytes), MAX_BUFFER_BYTES);
    }
}
