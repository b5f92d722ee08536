//! What is remembered of a request from phase to phase.

use crate::answers::Rejection;
use crate::clock::{Clock, Moment};
use crate::forwarding::PageRewrite;
use crate::origin::Choice;
use crate::policy::{SiteEntry, Snapshot};
use crate::telemetry::Metrics;
use crate::time::Timestamp;
use crate::verdict::{Decision, Identity};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// One request. The snapshot is loaded once: every phase judges by the same version.
pub struct RequestContext {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) arrived: SystemTime,
    pub(super) started: Instant,
    /// What the clock has lived through until then.
    lived: Duration,
    /// The other end of the connection.
    pub(super) peer: Option<IpAddr>,
    /// Whether the peer's forwarding headers are believed.
    pub(super) peer_trusted: bool,
    /// Who is asking, trusted proxies peeled off.
    pub(super) client: Option<IpAddr>,
    /// Why the request is answered before anything is judged.
    pub(super) rejection: Option<Rejection>,
    pub(super) decision: Option<Decision>,
    /// What is proven about whom the client says it is.
    pub(super) identity: Identity,
    /// Which superseded versions it may hold, by their place in the site's entry.
    pub(super) held: u64,
    /// Whether it was served the version in force on this host.
    pub(super) in_force: bool,
    /// Whether an answer of our own was written whole.
    pub(super) answered: bool,
    /// The server that was last tried, and how many were.
    pub(super) origin: Option<Choice>,
    pub(super) attempts: u8,
    /// Whether the page is rewritten on its way.
    pub(super) body: PageRewrite,
    /// When the origin was first asked.
    pub(super) asked_origin: Option<Instant>,
    _in_flight: InFlight,
}

impl RequestContext {
    pub(super) fn new(snapshot: Arc<Snapshot>, metrics: Arc<Metrics>, clock: &Clock) -> RequestContext {
        let started = Instant::now();
        let (arrived, lived) = clock.read(started);
        RequestContext {
            snapshot,
            arrived,
            started,
            lived,
            peer: None,
            peer_trusted: false,
            client: None,
            rejection: None,
            decision: None,
            identity: Identity::Unverified,
            held: 0,
            in_force: false,
            answered: false,
            origin: None,
            attempts: 0,
            body: PageRewrite::No,
            asked_origin: None,
            _in_flight: InFlight::new(metrics),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from(self.arrived)
    }

    pub(super) fn moment(&self) -> Moment {
        Moment { now: self.now(), lived: self.lived }
    }

    /// The decision and the site it is about; `None` before the decision and for hosts that no site claims.
    pub(super) fn judged(&self) -> Option<(&Decision, &SiteEntry)> {
        let decision = self.decision.as_ref()?;
        Some((decision, self.snapshot.sites().get(decision.site?)?))
    }
}

/// Counts a request while it lives, however it ends.
struct InFlight(Arc<Metrics>);

impl InFlight {
    fn new(metrics: Arc<Metrics>) -> InFlight {
        metrics.in_flight(1);
        InFlight(metrics)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight(-1);
    }
}
