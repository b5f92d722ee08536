//! What is remembered of a request from phase to phase.

use crate::forwarding::PageRewrite;
use crate::policy::SiteEntry;
use crate::requests::{Arrival, Ticket};
use crate::upstreams::Attempts;
use crate::verdict::Decision;

/// One request. It is judged once: every phase goes by the same ticket.
pub struct RequestContext {
    pub(super) arrival: Arrival,
    /// From when it was received until it is recorded.
    pub(super) ticket: Option<Ticket>,
    /// The servers that were tried.
    pub(super) attempts: Attempts,
    /// Whether the request may be sent twice.
    pub(super) may_repeat: bool,
    /// Whether octets of a response have come from the last of them.
    pub(super) has_octets: bool,
    /// Whether the page is rewritten on its way.
    pub(super) body: PageRewrite,
}

impl RequestContext {
    pub(super) fn new(arrival: Arrival) -> RequestContext {
        RequestContext {
            arrival,
            ticket: None,
            attempts: Attempts::default(),
            may_repeat: false,
            has_octets: false,
            body: PageRewrite::No,
        }
    }

    /// The decision and the site it is about; `None` before the judgement and for hosts that no site claims.
    pub(super) fn judged(&self) -> Option<(&Decision, &SiteEntry)> {
        self.ticket.as_ref()?.judged()
    }
}
