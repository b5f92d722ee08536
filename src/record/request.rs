//! [`RequestFacts`]: what the client sent, as far as judging and recording need it. It is copied
//! from the head when the request arrives, because the head is gone when the record is written.
//! Each thread reuses the memory of its copies.

use super::ProxyPath;
use crate::clock::Moment;
use crate::heads::{ForwardingFields, HeadFields, SignatureFields};
use crate::reuse::Reuse;
use crate::settings::AddressDetail;
use crate::time::Timestamp;
use crate::verdict::{Facts, Identity};
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

/// Buffers that a thread keeps.
const MAX_KEPT: usize = 256;
/// Bytes of a buffer that is kept.
const MAX_KEPT_BYTES: usize = 4 * 1024;

thread_local! {
    static KEPT: Reuse<Vec<u8>> = const { Reuse::new(MAX_KEPT) };
}

/// When a request arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// By the wall clock.
    pub arrived: SystemTime,
    /// By the monotonic clock, for measuring.
    pub started: Instant,
    /// The time that crawlgate had lived through until then: see [`Moment`].
    pub lived: Duration,
}

/// What the client sent.
#[derive(Debug)]
pub struct RequestFacts {
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
    pub arrival: Arrival,
    /// The client's address, behind trusted proxies; `None` where it is not known.
    pub client: Option<IpAddr>,
    /// The address for logs: that of the client, or of the peer that does not name it.
    pub logged: Option<IpAddr>,
    /// Forwarding fields that are not believed. With one from a client that is known, its address
    /// may be that of a proxy that nobody declared, and accuses no crawler. With one beside a
    /// client that is not known, a trusted proxy names the client in it, and the settings name
    /// another field.
    pub unread: ForwardingFields,
    /// The trusted proxies that it came through; `None` where it came through none.
    pub proxies: Option<ProxyPath>,
    signature: Option<Box<[String; 3]>>,
}

impl RequestFacts {
    /// Copies the parts of a head. `id` is the id of the request, `trace` the trace that it belongs
    /// to (empty: none, or its field is malformed). Nothing is known of the client yet.
    pub fn copy(
        head: &HeadFields<'_>,
        id: &[u8],
        trace: Option<&[u8]>,
        arrival: Arrival,
    ) -> RequestFacts {
        let words = [
            head.method,
            head.host,
            head.target,
            head.user_agent.unwrap_or_default(),
            head.referer.unwrap_or_default(),
            id,
            trace.unwrap_or_default(),
        ];
        let mut bytes = Reuse::take(&KEPT).unwrap_or_default();
        let mut ends = [0; 7];
        for (end, word) in ends.iter_mut().zip(words) {
            bytes.extend_from_slice(word);
            *end = bytes.len();
        }
        RequestFacts {
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
            unread: ForwardingFields::default(),
            proxies: None,
            signature: head.signature.if_present().map(|fields| {
                let lines = [fields.input, fields.signature, fields.agent];
                Box::new(lines.map(str::to_owned))
            }),
        }
    }

    /// A request that arrived from this address at a moment, whose id is `id-1`.
    #[cfg(test)]
    pub fn of(head: &HeadFields<'_>, client: Option<IpAddr>, arrived: SystemTime) -> RequestFacts {
        let arrival = Arrival {
            arrived,
            started: Instant::now(),
            lived: Duration::ZERO,
        };
        let mut request = Self::copy(head, b"id-1", None, arrival);
        request.client = client;
        request.logged = client;
        request
    }

    /// The copied part at this place, in the order of `bytes`.
    fn word(&self, place: usize) -> &[u8] {
        let begin = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.bytes[begin..self.ends[place]]
    }

    /// GET, HEAD, ...
    pub fn method(&self) -> &[u8] {
        self.word(0)
    }

    /// The Host field or `:authority`, with its port if it has one. Empty where an HTTP/1.0 request
    /// has none.
    pub fn host(&self) -> &[u8] {
        self.word(1)
    }

    /// The request target as sent, in origin form or absolute form.
    pub fn target(&self) -> &[u8] {
        self.word(2)
    }

    /// The User-Agent field.
    pub fn user_agent(&self) -> Option<&[u8]> {
        self.has_user_agent.then(|| self.word(3))
    }

    /// The Referer field.
    pub fn referer(&self) -> Option<&[u8]> {
        self.has_referer.then(|| self.word(4))
    }

    /// The id of the request: that of a trusted proxy, if it is well-formed, else one that
    /// crawlgate made.
    pub fn id(&self) -> &[u8] {
        self.word(5)
    }

    /// The trace that it belongs to; `None` without `traceparent`, or if that is malformed.
    pub fn trace_id(&self) -> Option<&[u8]> {
        Some(self.word(6)).filter(|trace| !trace.is_empty())
    }

    /// Keeps the validator (If-None-Match) of the request, in place of one that was kept before.
    pub fn set_validator(&mut self, validator: &[u8]) {
        self.bytes.truncate(self.ends[6]);
        self.bytes.extend_from_slice(validator);
    }

    /// The validator, if it was kept.
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

    /// Drops the signature. What it proves is kept with the judgement.
    pub fn forget_signature(&mut self) {
        self.signature = None;
    }

    /// Whether the head may have forwarding fields that are not believed: some were seen, or the
    /// client is not known. If not, they need not be looked for.
    pub fn may_have_forwarding(&self) -> bool {
        self.client.is_none() || !self.unread.is_empty()
    }

    /// The address for logs, as far as it may be written.
    pub fn logged_as(&self, detail: AddressDetail) -> Option<IpAddr> {
        self.logged.and_then(|address| detail.apply(address))
    }

    /// When it arrived, by the wall clock.
    pub fn now(&self) -> Timestamp {
        Timestamp::from(self.arrival.arrived)
    }

    /// When it arrived, by the wall clock and by the elapsed time.
    pub fn moment(&self) -> Moment {
        Moment {
            now: self.now(),
            lived: self.arrival.lived,
        }
    }

    /// What the engine asks for, where nothing is proven of the client yet. `target` is the request
    /// target in origin form.
    pub fn for_engine<'a>(&'a self, target: &'a [u8]) -> Facts<'a> {
        Facts {
            host: self.host(),
            target,
            method: self.method(),
            user_agent: self.user_agent().unwrap_or_default(),
            client: self.client,
            identity: Identity::Unverified,
            now: self.now(),
        }
    }
}

/// A copy for a record that waits, without the signature: what that proves is kept elsewhere.
impl Clone for RequestFacts {
    fn clone(&self) -> RequestFacts {
        RequestFacts {
            bytes: self.bytes.clone(),
            signature: None,
            ..*self
        }
    }
}

impl Drop for RequestFacts {
    fn drop(&mut self) {
        Reuse::give_buffer(&KEPT, std::mem::take(&mut self.bytes), MAX_KEPT_BYTES);
    }
}
