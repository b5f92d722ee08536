//! [`Ticket`]: one request with what was decided about it, from its arrival to the record of what
//! was sent. Its states are open and finished; a ticket that is dropped open is recorded as a
//! request whose client left.

#[cfg(feature = "proxy")]
mod wanted;

use super::buffer_space::{BufferSpace, Held, SMALL};
use super::head::RequestHead;
use super::mistake::Mistake;
use super::sent::{EndedBy, Sent};
use super::upload::{Upload, UploadError};
use crate::clock::Clock;
use crate::forwarding::Forwarded;
use crate::judge::{Judge, Recorder, watch_front_page};
use crate::policy::SiteEntry;
use crate::record::{Arrival, Judgement, RequestFacts, RequestRecord, SentResponse};
use crate::settings::{ClientAddress, Limits};
use crate::verdict::Decision;
use smallvec::SmallVec;
use std::sync::Arc;
#[cfg(feature = "proxy")]
use std::time::Duration;

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

/// One request. Its content is in a box: a ticket is moved often, and to move half a kilobyte each
/// time costs more than an allocation.
pub struct Ticket(Box<Open>);

struct Open {
    shared: Arc<Shared>,
    record: RequestRecord,
    /// What a trusted proxy says in `Forwarded`, if that is believed.
    forwarded: Option<Box<Forwarded>>,
    /// Why its head was refused.
    mistake: Option<Mistake>,
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
    /// An open ticket of a request that is not judged yet. The metrics count the request as in
    /// flight until it is recorded.
    pub(super) fn new(
        shared: Arc<Shared>,
        request: RequestFacts,
        forwarded: Option<Box<Forwarded>>,
    ) -> Ticket {
        shared.recorder.metrics.in_flight.inc();
        Ticket(Box::new(Open {
            record: RequestRecord::unjudged(request),
            shared,
            forwarded,
            mistake: None,
            is_answered: false,
            is_open: true,
            held: SmallVec::new(),
            upload_space: 0,
            lacks_space: false,
            upload: Upload::default(),
            turned_away: None,
        }))
    }

    /// Sets why its head was refused.
    pub(super) fn refuse(&mut self, mistake: Mistake) {
        self.0.mistake = Some(mistake);
    }

    /// Sets what was decided about it.
    pub(super) fn set_judgement(&mut self, judgement: Judgement) {
        self.0.record.judgement = judgement;
        // A connection may last for days.
        self.0.record.request.forget_signature();
    }

    /// Records that the answer is crawlgate's own. Where a sink needs it, also keeps the validator
    /// (If-None-Match) of a request for robots.txt.
    pub(super) fn note_answer(&mut self, head: &impl RequestHead) {
        self.0.is_answered = true;
        let is_robots_txt = self
            .judged()
            .is_some_and(|(decision, _)| decision.robots_txt);
        if is_robots_txt && self.0.shared.recorder.needs_validator() {
            let fields = head.answer_fields();
            if let Some(validator) = fields.get(http::header::IF_NONE_MATCH) {
                self.0.record.request.set_validator(validator.as_bytes());
            }
        }
    }

    /// When it arrived.
    pub fn arrival(&self) -> Arrival {
        self.0.record.request.arrival
    }

    /// Its method.
    pub fn method(&self) -> &[u8] {
        self.0.record.request.method()
    }

    /// The host that it asks for.
    pub fn host(&self) -> &[u8] {
        self.0.record.request.host()
    }

    /// Its target as it came.
    pub fn target(&self) -> &[u8] {
        self.0.record.request.target()
    }

    pub(super) fn client_address(&self) -> &ClientAddress {
        &self.0.shared.client_address
    }

    /// What the client sent.
    pub(super) fn request(&self) -> &RequestFacts {
        &self.0.record.request
    }

    /// What a trusted proxy says in `Forwarded`, if that is believed.
    pub(super) fn forwarded(&self) -> Option<&Forwarded> {
        self.0.forwarded.as_deref()
    }

    /// Whether it was refused for its head.
    pub fn is_refused(&self) -> bool {
        self.0.mistake.is_some()
    }

    /// The decision and the site that it is about; `None` if no site has the host, and for a
    /// request that was refused or answered without being judged.
    pub fn judged(&self) -> Option<(&Decision, &SiteEntry)> {
        let judged = self.0.record.judged()?;
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
            let held = self
                .0
                .shared
                .space
                .hold(octets, self.0.record.request.client);
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
        let counted = self.0.upload.count(
            octets,
            self.0.record.request.arrival.started,
            &self.0.shared.limits,
        );
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
        let RequestRecord {
            request, judgement, ..
        } = &mut self.0.record;
        judgement.release_policies(request.host());
    }

    /// Sets how long the origin took to send the head of its response.
    #[cfg(feature = "proxy")]
    pub fn set_origin_elapsed(&mut self, elapsed: Option<Duration>) {
        self.0.record.response.origin_elapsed = elapsed;
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

    /// What was decided about it.
    pub(super) fn judgement(&self) -> &Judgement {
        &self.0.record.judgement
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
        let response = SentResponse {
            status: sent.status,
            body_bytes: sent.octets,
            elapsed: recorder.elapsed(self.record.request.arrival.started),
            is_copy: self.has_sent_a_copy(sent),
            error: self.error(sent),
            ..self.record.response
        };
        self.record.response = response;
        watch_front_page(&self.record, &sent.tags);
        if self.record.response.is_copy {
            // The ledger first: a reader of the count may rely on the rest.
            judge.served(&self.record, clock.now().into());
        }
        recorder.record(&self.record);
    }

    /// The error that ended the request.
    fn error(&self, sent: &Sent<'_>) -> Option<&'static str> {
        if let Some(mistake) = self.mistake {
            return Some(mistake.name());
        }
        if self.lacks_space {
            return Some("buffers");
        }
        if let Some(turned_away) = &self.turned_away {
            return Some(turned_away.reason);
        }
        let upload = self.upload.error().map(UploadError::name);
        upload.or(sent.error())
    }

    /// Whether the client got a whole answer of crawlgate's that a crawler may cache: a 200 or 304
    /// to GET. The answer to HEAD is no copy.
    fn has_sent_a_copy(&self, sent: &Sent<'_>) -> bool {
        let is_whole = self.is_answered && sent.ended_by == EndedBy::Complete;
        is_whole && matches!(sent.status, 200 | 304) && self.record.request.method() == b"GET"
    }
}

impl Drop for Open {
    /// Records a request that is still open as one whose client left.
    fn drop(&mut self) {
        self.close(&Sent::default());
    }
}
