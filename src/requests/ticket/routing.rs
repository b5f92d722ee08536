//! Connects a forwarded request (its [`Ticket`]) with the module [`upstreams`](crate::upstreams),
//! which chooses one of the origin's servers. [`Ticket::routing_facts`] describes the request for
//! this choice. If every server is full, [`Ticket::record_no_server`] keeps the reason for the log.
//! If no server responds, [`HeadWriter::no_response_answer`] makes the answer for the client.

use super::{NoCapacity, Ticket};
use crate::answers::{Answer, no_origin_answer, origin_failure, origin_full};
use crate::crawlers::{Claim, Purpose};
use crate::requests::head_writer::HeadWriter;
use crate::robots::reaches_robots_txt;
use crate::upstreams::{Attempts, NoServer, RoutingFacts, Upstreams};
use crate::verdict::Identity;
use http::HeaderMap;

impl Ticket {
    /// The facts by which a server is chosen. `is_repeatable` says whether the request may be sent
    /// twice: GET, HEAD or OPTIONS without a body, or a request of which nothing was sent.
    pub fn routing_facts(&self, is_repeatable: bool) -> RoutingFacts<'_> {
        let facts = RoutingFacts {
            host: self.host(),
            target: self.target(),
            client: self.request().client,
            is_crawler: false,
            verified: None,
            is_search: false,
            is_repeatable,
            monotonic: self.arrival().monotonic,
        };
        match self.claimant() {
            Some((claim, identity)) => self.with_crawler(facts, claim, identity),
            None => facts,
        }
    }

    /// The Host that the origin of the request wants; `None` for the client's.
    pub fn origin_host<'u>(&self, upstreams: &'u Upstreams) -> Option<&'u str> {
        upstreams.origin_host(self.host(), self.target())
    }

    /// The Host of the origin that becomes the client's in the response; `None` if none does.
    pub fn host_to_replace<'u>(&self, upstreams: &'u Upstreams) -> Option<&'u str> {
        upstreams.host_to_replace(self.host(), self.target())
    }

    /// The claimed crawler, and whether it is verified; `None` if the request was not judged.
    fn claimant(&self) -> Option<(Claim, Identity)> {
        let claim = self.judgement().claim()?;
        let identity = self.judgement().judged();
        Some((
            claim,
            identity.map_or(Identity::Unverified, |judged| judged.identity),
        ))
    }

    /// Adds that a crawler sends the request, according to its claim: it is then turned away if no
    /// server has a place. Visitors and tools, which people use, wait. So does a request for
    /// robots.txt, because every crawler must get that.
    fn with_crawler<'a>(
        &'a self,
        facts: RoutingFacts<'a>,
        claim: Claim,
        identity: Identity,
    ) -> RoutingFacts<'a> {
        use Claim::*;
        let (crawler, purpose) = match claim {
            Visitor | Tool => return facts,
            _ if reaches_robots_txt(self.target()) => return facts,
            PolicyToken(_) | UnknownBot => {
                return RoutingFacts {
                    is_crawler: true,
                    ..facts
                };
            }
            Known(crawler) => (crawler, self.0.shared.judge.registry.get(crawler).purpose),
        };
        RoutingFacts {
            is_crawler: purpose != Purpose::Tool,
            verified: (identity == Identity::Verified).then_some(crawler),
            is_search: purpose == Purpose::Search,
            ..facts
        }
    }

    /// Records that no server has a place for the request, for the log and the Retry-After of the
    /// answer. Such a request of a crawler does not count against its crawl rate, and its
    /// Retry-After is at least the crawl delay.
    pub fn record_no_server(&mut self, none: NoServer) {
        let NoServer::Refused(full) = none else {
            return;
        };
        let judged = self
            .judgement()
            .judged()
            .filter(|_| self.routing_facts(false).is_crawler);
        let judge = &self.0.shared.judge;
        let delay = judged.map_or(0, |judged| judge.undo_rate_count(self.request(), judged));
        let no_capacity = NoCapacity {
            reason: full.reason,
            retry_after: full.retry_after.max(delay),
        };
        self.0.no_capacity = Some(Box::new(no_capacity));
    }
}

impl HeadWriter<'_> {
    /// The answer in place of the origin's after these attempts: that the host has no origin, that
    /// no server has a place, or else a failure with this status.
    pub fn no_response_answer(
        &self,
        status: u16,
        attempts: &Attempts,
        headers: &HeaderMap,
    ) -> Answer {
        self.answer_unanswered(headers, |unanswered| {
            match (attempts.no_server, &self.ticket.0.no_capacity) {
                (Some(NoServer::NoOrigin), _) => no_origin_answer(self.ticket.host(), unanswered),
                (Some(NoServer::Refused(_)), Some(no_capacity)) => {
                    origin_full(no_capacity.retry_after, unanswered)
                }
                _ => origin_failure(status, unanswered),
            }
        })
    }
}
