//! [`Ticket`]: one HTTP request and crawlgate's decision about it. It exists from the arrival of
//! the request until the request is recorded in logs and metrics. If a ticket is dropped
//! unfinished, the record says that the client left.

#[cfg(feature = "proxy")]
mod routing;

use super::buffer_budget::{BufferBudget, BufferReservation, MAX_UNRESERVED};
use super::head::RequestHead;
use super::head_error::HeadError;
use super::response_outcome::{ResponseEnd, ResponseOutcome};
use super::upload_meter::{UploadError, UploadMeter};
use crate::answers::AnswerCache;
use crate::clock::Clock;
use crate::forwarding::{EditableHead, ForwardedElement, TDM_RESERVATION};
use crate::judge::{Judge, Recorder, record_front_page_tags};
use crate::policy::SiteEntry;
use crate::record::{ArrivalTimes, Judgement, RequestCopy, RequestRecord, SentResponse};
use crate::settings::{ClientAddressField, Limits};
use crate::telemetry::LogThrottle;
use crate::verdict::Decision;
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// What the requests of all listeners use.
pub struct RequestServices {
    pub judge: Arc<Judge>,
    pub recorder: Arc<Recorder>,
    pub clock: Clock,
    pub answers: AnswerCache,
    pub buffers: BufferBudget,
    /// The field in which trusted proxies name their client.
    pub client_address: ClientAddressField,
    /// Bounds on bodies.
    pub limits: Limits,
    /// The lines about requests that came through crawlgate too often.
    pub loops: LogThrottle,
}

/// One request. Boxed, because a ticket is moved often, and moving half a kilobyte each time costs
/// more than an allocation.
pub struct Ticket(Box<TicketInner>);

struct TicketInner {
    shared: Arc<RequestServices>,
    record: RequestRecord,
    /// The `Forwarded` field of a trusted proxy.
    forwarded: Option<Box<ForwardedElement>>,
    /// Why its head was rejected.
    head_error: Option<HeadError>,
    /// Whether the answer is crawlgate's own.
    is_answered: bool,
    is_open: bool,
    /// Buffer space: first that of the request, then that of its response.
    reservations: SmallVec<[BufferReservation; 1]>,
    /// The bytes of the first one that are for the request's body, until the origin has all of it.
    body_space: usize,
    lacks_buffer_space: bool,
    upload: UploadMeter,
    no_capacity: Option<Box<NoCapacity>>,
}

/// No server of the origin had a place for the request.
struct NoCapacity {
    /// A fixed word for the log.
    reason: &'static str,
    /// When the client is to come back, in seconds.
    retry_after: u32,
}

impl Ticket {
    /// An open ticket of a request that is not judged yet. The metrics count the request as in
    /// flight until it is recorded.
    pub(super) fn new(
        shared: Arc<RequestServices>,
        request: RequestCopy,
        forwarded: Option<Box<ForwardedElement>>,
    ) -> Ticket {
        shared.recorder.metrics.in_flight.inc();
        Ticket(Box::new(TicketInner {
            record: RequestRecord::unjudged(request),
            shared,
            forwarded,
            head_error: None,
            is_answered: false,
            is_open: true,
            reservations: SmallVec::new(),
            body_space: 0,
            lacks_buffer_space: false,
            upload: UploadMeter::default(),
            no_capacity: None,
        }))
    }

    /// Marks the request as rejected for its head.
    pub(super) fn set_head_error(&mut self, error: HeadError) {
        self.0.head_error = Some(error);
    }

    pub(super) fn set_judgement(&mut self, judgement: Judgement) {
        self.0.record.judgement = judgement;
        // A connection may last for days.
        self.0.record.request.drop_signature();
    }

    /// Marks that the answer is crawlgate's own. Also keeps the validator (If-None-Match) of a
    /// request for robots.txt, if a sink needs it.
    pub(super) fn mark_answered(&mut self, head: &impl RequestHead) {
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
    pub fn arrival(&self) -> ArrivalTimes {
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

    pub(super) fn client_address(&self) -> &ClientAddressField {
        &self.0.shared.client_address
    }

    pub(super) fn request(&self) -> &RequestCopy {
        &self.0.record.request
    }

    /// The `Forwarded` field of a trusted proxy.
    pub(super) fn forwarded(&self) -> Option<&ForwardedElement> {
        self.0.forwarded.as_deref()
    }

    /// Whether it was rejected for its head.
    pub fn is_rejected(&self) -> bool {
        self.0.head_error.is_some()
    }

    /// The decision and its site; `None` if no site has the host, and for a request that was
    /// rejected or answered without being judged.
    pub fn judged(&self) -> Option<(&Decision, &SiteEntry)> {
        let judged = self.0.record.judged()?;
        Some((&judged.decision, judged.entry()))
    }

    /// What is known of the request so far.
    pub fn record(&self) -> &RequestRecord {
        &self.0.record
    }

    /// Whether the policy of the site rewrites pages (`html`).
    pub fn may_rewrite_pages(&self) -> bool {
        self.judged()
            .is_some_and(|(_, entry)| entry.site.html.is_some())
    }

    /// Reserves space in buffers until the request is recorded. If there is none,
    /// [`lacks_buffer_space`](Ticket::lacks_buffer_space) is true from then on.
    pub fn reserve_buffers(&mut self, bytes: usize) {
        if bytes > 0 {
            let reservation = self
                .0
                .shared
                .buffers
                .reserve(bytes, self.0.record.request.client);
            self.0.lacks_buffer_space |= reservation.is_err();
            self.0.reservations.extend(reservation);
        }
    }

    /// Reserves `bytes` for the request, and `body` for the part of its body that may wait for the
    /// origin; a body up to `MAX_UNRESERVED` needs no space. Must come before any other
    /// [`hold`](Ticket::hold), because [`release_body_space`](Ticket::release_body_space) releases
    /// a part of the first reservation.
    pub fn reserve_for_request(&mut self, bytes: usize, body: usize) {
        self.0.body_space = if body > MAX_UNRESERVED { body } else { 0 };
        self.reserve_buffers(bytes + self.0.body_space);
    }

    /// Releases the space for the body, because the origin has all of it. Calling it again has no
    /// effect.
    pub fn release_body_space(&mut self) {
        let bytes = std::mem::take(&mut self.0.body_space);
        if let Some(reservation) = self.0.reservations.first_mut().filter(|_| bytes > 0) {
            reservation.release(bytes);
        }
    }

    /// Whether space was missing in any [`hold`](Ticket::hold). The answer is then
    /// [`HeadWriter::failure_answer`](super::HeadWriter::failure_answer) with 503.
    pub fn lacks_buffer_space(&self) -> bool {
        self.0.lacks_buffer_space
    }

    /// Counts bytes of its body.
    ///
    /// # Errors
    /// The body is too large or too slow. The entry point answers with
    /// [`HeadWriter::failure_answer`](super::HeadWriter::failure_answer) with its status.
    pub fn count_body_bytes(&mut self, bytes: usize) -> Result<(), UploadError> {
        let result = self.0.upload.add_bytes(
            bytes,
            self.0.record.request.arrival.started,
            &self.0.shared.limits,
        );
        result.inspect_err(|error| {
            self.0
                .shared
                .recorder
                .metrics
                .count_rejected_request(error.name())
        })
    }

    /// Drops the policies by which the request was judged, except for its own site's: the
    /// connection changes its protocol (101) and may last for days.
    pub fn switch_protocol(&mut self) {
        let RequestRecord {
            request, judgement, ..
        } = &mut self.0.record;
        judgement.narrow_snapshot(request.host());
    }

    /// Records the head of the origin's response, and how long the origin took to send it.
    pub fn record_origin_head(&mut self, head: &impl EditableHead, elapsed: Option<Duration>) {
        let response = &mut self.0.record.response;
        response.origin_elapsed = elapsed;
        response.permits_mining = head.lines(TDM_RESERVATION).any(|value| value == b"0");
    }

    /// Sets the address of the server of the origin that gets the request.
    pub fn set_server(&mut self, address: Option<Arc<str>>) {
        self.0.record.response.server = address;
    }

    /// Counts in the metrics of the site how the rewriting of a page ended. `end` is the label.
    pub fn count_page_rewrite(&self, end: &'static str) {
        if let Some((_, entry)) = self.judged() {
            self.0
                .shared
                .recorder
                .metrics
                .count_rewrite_outcome(&entry.site.name, end);
        }
    }

    /// Records what was sent, and ends the request. To be called when the bytes were written.
    pub fn finish(mut self, sent: &ResponseOutcome<'_>) {
        self.0.close(sent);
    }

    pub(super) fn judgement(&self) -> &Judgement {
        &self.0.record.judgement
    }
}

impl TicketInner {
    /// Records the request, once. If the client got a copy of robots.txt that it may cache, the
    /// ledger is updated first.
    fn close(&mut self, sent: &ResponseOutcome<'_>) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let RequestServices {
            judge,
            recorder,
            clock,
            ..
        } = &*self.shared;
        recorder.metrics.in_flight.dec();
        let response = SentResponse {
            status: sent.status,
            body_bytes: sent.bytes,
            elapsed: recorder.elapsed(self.record.request.arrival.started),
            is_copy: self.has_sent_copy(sent),
            error: self.error(sent),
            server: self.record.response.server.take(),
            ..self.record.response
        };
        self.record.response = response;
        record_front_page_tags(&self.record, &sent.tags);
        if self.record.response.is_copy {
            // Whoever sees the count of fetches may rely on the ledger.
            judge.record_served(&self.record, clock.now().into());
        }
        recorder.record(&self.record);
    }

    /// Why the request ended early, for the log.
    fn error(&self, sent: &ResponseOutcome<'_>) -> Option<&'static str> {
        if let Some(error) = self.head_error {
            return Some(error.name());
        }
        if self.lacks_buffer_space {
            return Some("buffers");
        }
        if let Some(no_capacity) = &self.no_capacity {
            return Some(no_capacity.reason);
        }
        let upload = self.upload.error().map(UploadError::name);
        upload.or(sent.error())
    }

    /// Whether the client got a complete answer of crawlgate's own that a crawler may cache: a 200
    /// or 304 to GET.
    fn has_sent_copy(&self, sent: &ResponseOutcome<'_>) -> bool {
        let is_whole = self.is_answered && sent.ended_by == ResponseEnd::Complete;
        is_whole && matches!(sent.status, 200 | 304) && self.record.request.method() == b"GET"
    }
}

impl Drop for TicketInner {
    /// Records a request that is still open as one whose client left.
    fn drop(&mut self) {
        self.close(&ResponseOutcome::default());
    }
}
