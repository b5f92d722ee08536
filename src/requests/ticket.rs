//! [`Ticket`]: one request with what was decided about it, from its arrival to the record of what
//! was sent. Its states are open and finished; a ticket that is dropped open is recorded as a
//! request whose client left.

#[cfg(feature = "proxy")]
mod wanted;

use super::buffer_space::{BufferSpace, Held, SMALL};
use super::connection::{Arrival, Connection};
use super::head::RequestHead;
use super::mistake::Mistake;
use super::noted::Noted;
use super::sent::{EndedBy, Sent};
use super::upload::{Upload, UploadError};
use crate::clock::Clock;
use crate::judge::{Judge, Judgement, Outcome, Recorder};
use crate::policy::SiteEntry;
use crate::record::CountedAction;
use crate::settings::{ClientAddress, Limits};
use crate::verdict::Decision;
use smallvec::SmallVec;
use std::sync::Arc;

/// The parts that all requests of a process share.
pub struct Shared {
    pub judge: Arc<Judge>,
    pub recorder: Arc<Recorder>,
    pub clock: Clock,
    pub space: BufferSpace,
    /// The field in which trusted proxies name their client.
    pub client_address: ClientAddress,
    /// Bounds on bodies.
    pub limits: Limits,
}

/// The result of the sequence before the origin.
pub enum Found {
    /// The request was judged.
    Judged(Judgement),
    /// The request was refused for its head.
    Refused(Mistake),
    /// The request was answered before it was judged: with the challenge of a certificate authority,
    /// or a redirect to https.
    Answered(CountedAction),
}

/// One request. Its content is in a box: a ticket is moved often, and to move half a kilobyte each
/// time costs more than an allocation.
pub struct Ticket(Box<Open>);

struct Open {
    shared: Arc<Shared>,
    noted: Noted,
    found: Found,
    tls: Option<&'static str>,
    /// Whether the answer is crawlgate's own.
    is_answered: bool,
    is_open: bool,
    /// Space in buffers, first that for the request and then that for its response.
    held: SmallVec<[Held; 1]>,
    /// The bytes of it that are for the request's body, until the origin has all of that.
    upload_space: usize,
    lacks_space: bool,
    /// The octets of its body until now.
    upload: Upload,
    turned_away: Option<Box<TurnedAway>>,
}

/// No server of the origin had a place for the request.
#[derive(Debug)]
struct TurnedAway {
    /// A fixed word for the log.
    reason: &'static str,
    /// When the client is to come back, in seconds.
    #[cfg_attr(
        not(feature = "proxy"),
        expect(dead_code, reason = "only doors with an origin of their own answer so")
    )]
    retry_after: u32,
}

impl Ticket {
    /// An open ticket. The metrics count the request as in flight until it is recorded.
    pub(super) fn new(
        shared: Arc<Shared>,
        noted: Noted,
        found: Found,
        connection: &Connection<'_>,
    ) -> Ticket {
        shared.recorder.metrics.in_flight.inc();
        let tls = connection.tls;
        Ticket(Box::new(Open {
            shared,
            noted,
            found,
            tls,
            is_answered: false,
            is_open: true,
            held: SmallVec::new(),
            upload_space: 0,
            lacks_space: false,
            upload: Upload::default(),
            turned_away: None,
        }))
    }

    /// Records that the answer is crawlgate's own. Where evidence is kept, also keeps the validator
    /// (If-None-Match) of a request for robots.txt.
    pub(super) fn note_answer(&mut self, head: &impl RequestHead) {
        self.0.is_answered = true;
        let is_robots_txt = self
            .judged()
            .is_some_and(|(decision, _)| decision.robots_txt);
        if is_robots_txt && self.0.shared.recorder.keeps_evidence() {
            let fields = head.answer_fields();
            if let Some(validator) = fields.get(http::header::IF_NONE_MATCH) {
                self.0.noted.note_validator(validator.as_bytes());
            }
        }
    }

    /// When it arrived.
    pub fn arrival(&self) -> Arrival {
        self.0.noted.arrival
    }

    /// Its method.
    pub fn method(&self) -> &[u8] {
        self.0.noted.method()
    }

    /// The host that it asks for.
    pub fn host(&self) -> &[u8] {
        self.0.noted.host()
    }

    /// Its target as it came.
    pub fn target(&self) -> &[u8] {
        self.0.noted.target()
    }

    pub(super) fn client_address(&self) -> &ClientAddress {
        &self.0.shared.client_address
    }

    pub(super) fn noted(&self) -> &Noted {
        &self.0.noted
    }

    /// Whether it was refused for its head.
    pub fn is_refused(&self) -> bool {
        matches!(self.0.found, Found::Refused(_))
    }

    /// The decision and the site that it is about; `None` if no site has the host, and for a
    /// request that was refused or answered without being judged.
    pub fn judged(&self) -> Option<(&Decision, &SiteEntry)> {
        let judged = self.judgement()?.judged()?;
        Some((&judged.decision, judged.entry()))
    }

    /// Whether the site changes pages on their way.
    #[cfg(feature = "proxy")]
    pub fn may_rewrite_pages(&self) -> bool {
        self.judged()
            .is_some_and(|(_, entry)| entry.site.html.is_some())
    }

    /// Reserves space in buffers until the request is recorded. If there is none,
    /// [`lacks_space`](Ticket::lacks_space) is true from then on.
    pub fn hold(&mut self, octets: usize) {
        if octets > 0 {
            let held = self.0.shared.space.hold(octets, self.0.noted.client());
            self.0.lacks_space |= held.is_err();
            self.0.held.extend(held);
        }
    }

    /// Reserves `bytes` for the request, and `body` for what may wait of its body until the origin
    /// has all of it; a body up to `SMALL` needs nothing. Comes before any other
    /// [`hold`](Ticket::hold), because [`release_upload`](Ticket::release_upload) gives a part of
    /// the first one back.
    pub fn hold_request(&mut self, bytes: usize, body: usize) {
        self.0.upload_space = if body > SMALL { body } else { 0 };
        self.hold(bytes + self.0.upload_space);
    }

    /// Gives the space for its body back, because the origin has all of it. Does nothing the second
    /// time.
    pub fn release_upload(&mut self) {
        let bytes = std::mem::take(&mut self.0.upload_space);
        if let Some(held) = self.0.held.first_mut().filter(|_| bytes > 0) {
            held.release(bytes);
        }
    }

    /// Whether space was missing in any [`hold`](Ticket::hold). The answer is then
    /// [`Forward::fail`](super::Forward::fail) with 503.
    pub fn lacks_space(&self) -> bool {
        self.0.lacks_space
    }

    /// Counts octets of its body.
    ///
    /// # Errors
    /// The body is too large or too slow. The answer is [`Forward::fail`](super::Forward::fail)
    /// with its status.
    pub fn count_upload(&mut self, octets: usize) -> Result<(), UploadError> {
        let counted =
            self.0
                .upload
                .count(octets, self.0.noted.arrival.started, &self.0.shared.limits);
        counted.inspect_err(|error| {
            self.0
                .shared
                .recorder
                .metrics
                .request_rejected(error.name())
        })
    }

    /// Drops the policies by which the request was judged, except for its own site's: the
    /// connection changes its protocol (101) and may last for days.
    pub fn switch_protocol(&mut self) {
        if let Found::Judged(judgement) = &mut self.0.found {
            judgement.let_go(self.0.noted.host());
        }
    }

    /// Counts in the metrics of the site how the rewriting of a page ended; `end` is the word for
    /// it.
    pub fn count_page(&self, end: &'static str) {
        if let Some((_, entry)) = self.judged() {
            self.0.shared.recorder.metrics.page(&entry.site.name, end);
        }
    }

    /// Records what was sent, and ends the request. To be called when the bytes were written.
    pub fn finish(mut self, sent: &Sent<'_>) {
        self.0.close(sent);
    }

    /// The judgement; `None` for a request that was refused or answered without one.
    pub(super) fn judgement(&self) -> Option<&Judgement> {
        match &self.0.found {
            Found::Judged(judgement) => Some(judgement),
            Found::Refused(_) | Found::Answered(_) => None,
        }
    }
}

impl Open {
    /// Records the request; the second time it does nothing. If the client got a copy of robots.txt
    /// that it may cache, the ledger learns of that first.
    fn close(&mut self, sent: &Sent<'_>) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let Shared {
            judge,
            recorder,
            clock,
            ..
        } = &*self.shared;
        recorder.metrics.in_flight.dec();
        let facts = self.noted.facts();
        let outcome = Outcome {
            status: sent.status,
            x_robots_tag: &sent.tags,
            body_octets: sent.octets,
            elapsed: recorder.elapsed(self.noted.arrival.started),
            http: self.noted.http,
            tls: self.tls,
            referer: self.noted.referer(),
            is_copy: self.has_sent_a_copy(sent),
            if_none_match: self.noted.validator(),
            request_id: self.noted.request_id(),
            trace_id: self.noted.trace_id(),
            error: match &self.found {
                Found::Refused(mistake) => Some(mistake.name()),
                _ if self.lacks_space => Some("buffers"),
                _ => {
                    let turned_away = self
                        .turned_away
                        .as_ref()
                        .map(|turned_away| turned_away.reason);
                    let upload = self.upload.error().map(UploadError::name);
                    turned_away.or(upload).or(sent.error())
                }
            },
        };
        let action = match &self.found {
            Found::Judged(judgement) => {
                if let Some(judged) = judgement.judged().filter(|_| outcome.is_copy) {
                    // The ledger first: a reader of the count may rely on the rest.
                    judge.served(&facts, judged, clock.now().into());
                }
                return recorder.record(&facts, judgement, &outcome);
            }
            Found::Refused(_) => CountedAction::Refuse,
            Found::Answered(action) => *action,
        };
        recorder.record_unjudged(&facts, action, &outcome);
    }

    /// Whether the client got a whole answer of crawlgate's that a crawler may cache: a 200 or 304
    /// to GET. The answer to HEAD is no copy.
    fn has_sent_a_copy(&self, sent: &Sent<'_>) -> bool {
        let is_whole = self.is_answered && sent.ended_by == EndedBy::Complete;
        is_whole && matches!(sent.status, 200 | 304) && self.noted.method() == b"GET"
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}

impl Drop for Open {
    /// Records a request that is still open as one whose client left.
    fn drop(&mut self) {
        self.close(&Sent::default());
    }
}
