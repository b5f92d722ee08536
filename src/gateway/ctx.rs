//! What is remembered of a request from phase to phase.

use crate::forwarding::PageRewrite;
use crate::origin::Attempts;
use crate::policy::SiteEntry;
use crate::requests::{Arrival, Ticket};
use crate::verdict::Decision;

/// One request. It is judged once: every phase goes by the same ticket.
pub struct RequestContext {
    pub(super) arrival: Arrival,
    /// From when it was received until it is recorded.
    pub(super) ticket: Option<Box<Ticket>>,
    /// Whether an answer of our own was written whole; `None` where there is none.
    pub(super) answered: Option<bool>,
    /// The servers that were tried.
    pub(super) attempts: Attempts,
    /// Whether the page is rewritten on its way.
    pub(super) body: PageRewrite,
    /// Octets of the request body that came.
    pub(super) body_octets: u64,
}

impl RequestContext {
    pub(super) fn new(arrival: Arrival) -> RequestContext {
        RequestContext {
            arrival,
            ticket: None,
            answered: None,
            attempts: Attempts::default(),
            body: PageRewrite::No,
            body_octets: 0,
        }
    }

    /// The decision and the site it is about; `None` before the judgement and for hosts that no site claims.
    pub(super) fn judged(&self) -> Option<(&Decision, &SiteEntry)> {
        self.ticket.as_ref()?.judged()
    }
}
