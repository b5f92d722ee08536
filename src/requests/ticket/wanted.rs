//! [`Ticket::wanted`] describes a request to [`upstreams`](crate::upstreams), which chooses a
//! server for it. [`Ticket::note_no_server`] notes that there is no server. [`Forward::unanswered`]
//! makes the answer if no server answers.

use super::{Ticket, TurnedAway};
use crate::answers::{Answer, Asked, failure, full, no_origin};
use crate::crawlers::{Claim, Purpose};
use crate::requests::forward::Forward;
use crate::robots::reaches_robots_txt;
use crate::upstreams::{Attempts, NoServer, Upstreams, Wanted};
use crate::verdict::Identity;

impl Ticket {
    /// The facts about the request by which a server is chosen. `is_repeatable` says whether it may
    /// be sent twice: GET, HEAD or OPTIONS without a body, and a request of which nothing was sent.
    pub fn wanted(&self, is_repeatable: bool) -> Wanted<'_> {
        let wanted = Wanted {
            host: self.host(),
            target: self.target(),
            client: self.request().client,
            is_crawler: false,
            verified: None,
            is_search: false,
            is_repeatable,
            lived: self.arrival().lived,
        };
        match self.claim() {
            Some((claim, identity)) => self.of_crawler(wanted, claim, identity),
            None => wanted,
        }
    }

    /// The Host that the origin of the request wants; `None` for the client's.
    pub fn origin_host<'u>(&self, upstreams: &'u Upstreams) -> Option<&'u str> {
        upstreams.host_for(self.host(), self.target())
    }

    /// The Host of the origin that becomes the client's in the response; `None` if none does.
    pub fn host_to_replace<'u>(&self, upstreams: &'u Upstreams) -> Option<&'u str> {
        upstreams.host_to_replace(self.host(), self.target())
    }

    /// Who the client claims to be, and whether that is verified; `None` if the request was not
    /// judged.
    fn claim(&self) -> Option<(Claim, Identity)> {
        let claim = self.judgement().claim()?;
        let identity = self.judgement().judged();
        Some((
            claim,
            identity.map_or(Identity::Unverified, |judged| judged.identity),
        ))
    }

    /// Adds to `wanted` that a crawler sends the request, by its claim: then it does not wait for a
    /// place, but is turned away. People and tools, which people use, wait. A request for
    /// robots.txt counts as one of people, because every crawler must get that.
    fn of_crawler<'a>(
        &'a self,
        wanted: Wanted<'a>,
        claim: Claim,
        identity: Identity,
    ) -> Wanted<'a> {
        let (crawler, purpose) = match claim {
            Claim::Nobody | Claim::Tool => return wanted,
            _ if reaches_robots_txt(self.target()) => return wanted,
            Claim::Token(_) | Claim::Other => {
                return Wanted {
                    is_crawler: true,
                    ..wanted
                };
            }
            Claim::Known(crawler) => (crawler, self.0.shared.judge.registry.get(crawler).purpose),
        };
        Wanted {
            is_crawler: purpose != Purpose::Tool,
            verified: (identity == Identity::Verified).then_some(crawler),
            is_search: purpose == Purpose::Search,
            ..wanted
        }
    }

    /// Records that no server has a place for the request, for the log and the Retry-After of the
    /// answer; other reasons need no record. A crawler that is turned away for want of a place has
    /// done nothing wrong: the request does not count against its crawl rate, and it is told to
    /// wait at least for its crawl delay.
    pub fn note_no_server(&mut self, none: NoServer) {
        let NoServer::Full(full) = none else { return };
        let judged = self
            .judgement()
            .judged()
            .filter(|_| self.wanted(false).is_crawler);
        let judge = &self.0.shared.judge;
        let delay = judged.map_or(0, |judged| judge.take_back(self.request(), judged));
        let turned_away = TurnedAway {
            reason: full.reason,
            retry_after: full.retry_after.max(delay),
        };
        self.0.turned_away = Some(Box::new(turned_away));
    }
}

impl Forward<'_> {
    /// The answer in place of an origin that gave none, after these attempts: that no origin is for
    /// the host, that all places are taken, or else a failure with this status.
    pub fn unanswered(&self, status: u16, attempts: &Attempts, asked: &Asked<'_>) -> Answer {
        let unanswered = self.unanswered_as(asked);
        self.connection
            .with_hsts(match (attempts.none, &self.ticket.0.turned_away) {
                (Some(NoServer::NoOrigin), _) => no_origin(self.ticket.host(), &unanswered),
                (Some(NoServer::Full(_)), Some(turned_away)) => {
                    full(turned_away.retry_after, &unanswered)
                }
                _ => failure(status, &unanswered),
            })
    }
}
