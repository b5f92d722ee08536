//! What is remembered of a request from phase to phase.

use crate::answers::Rejection;
use crate::clock::Clock;
use crate::forwarding::{Arrival, PageRewrite, Peer};
use crate::judge::Judgement;
use crate::origin::Attempts;
use crate::policy::SiteEntry;
use crate::telemetry::{InFlight, Metrics};
use crate::time::Timestamp;
use crate::verdict::Decision;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

/// One request. It is judged once: every phase goes by the same judgement.
pub struct RequestContext {
    pub(super) arrival: Arrival,
    /// The other end of the connection.
    pub(super) peer: Peer,
    /// The address of the client, behind trusted proxies.
    pub(super) client: Option<IpAddr>,
    /// Why the request is answered before anything is judged.
    pub(super) rejection: Option<Rejection>,
    /// What the judge found.
    pub(super) judgement: Option<Judgement>,
    /// Whether an answer of our own was written whole.
    pub(super) answered: bool,
    /// The servers that were tried.
    pub(super) attempts: Attempts,
    /// Whether the page is rewritten on its way.
    pub(super) body: PageRewrite,
    /// Octets of the request body that came.
    pub(super) body_octets: u64,
    _in_flight: InFlight,
}

impl RequestContext {
    pub(super) fn new(metrics: Arc<Metrics>, clock: &Clock) -> RequestContext {
        let started = Instant::now();
        let (arrived, lived) = clock.read(started);
        RequestContext {
            arrival: Arrival { arrived, started, lived },
            peer: Peer { address: None, is_trusted: false, is_tls: false },
            client: None,
            rejection: None,
            judgement: None,
            answered: false,
            attempts: Attempts::default(),
            body: PageRewrite::No,
            body_octets: 0,
            _in_flight: InFlight::begin(metrics),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from(self.arrival.arrived)
    }

    /// The decision and the site it is about; `None` before the judgement and for hosts that no site claims.
    pub(super) fn judged(&self) -> Option<(&Decision, &SiteEntry)> {
        let judged = self.judgement.as_ref()?.judged()?;
        Some((&judged.decision, judged.entry()))
    }
}
