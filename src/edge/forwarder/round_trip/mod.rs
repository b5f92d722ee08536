//! [`RoundTrip`]: one HTTP request to an origin and its response, from the choice of a server until
//! the request is recorded in logs and metrics. `attempt` gets a connection, `transfer` moves the
//! bytes in both directions, and `relay` passes the response's head and body on to the client.

mod attempt;
mod relay;
mod transfer;

use super::Forwarder;
use super::client_side::ClientSide;
use super::origin_io::client_error;
use super::origin_request::OriginRequest;
use super::request_buffer::RequestBuffer;
use super::response_reader::ResponseReader;
use crate::answers::Answer;
use crate::heads::X_ROBOTS_TAG;
use crate::requests::{PendingRecord, ResponseEnd, Ticket};
use crate::upstreams::{
    AttemptProgress, Attempts, OriginConnectionOptions, failure_status, logged_error,
};
use RoundTripOutcome::{Answered, BrokenOff, Whole};
use pingora_core::protocols::Stream;
use pingora_core::{Error, ErrorType, Result};
use std::future::poll_fn;
use transfer::TransferState;

/// A connection to a server of the origin.
struct OriginConnection {
    stream: Stream,
    route: OriginConnectionOptions,
    /// Whether it comes from the pool.
    is_reused: bool,
}

/// Whether the client waits for a 100 (Continue) before it sends the body.
#[derive(PartialEq, Eq)]
enum ContinueState {
    /// It does not wait, or not any more.
    None,
    Expected,
    /// crawlgate has sent a 100, so that the origin's must not follow.
    SentHere,
}

/// What the client got.
#[derive(PartialEq, Eq)]
pub enum RoundTripOutcome {
    /// The whole response of the origin.
    Whole,
    /// An answer of crawlgate's instead.
    Answered,
    /// A part of a response, or nothing. The client must notice that something is missing.
    BrokenOff,
}

/// One request and its response at an origin.
pub struct RoundTrip<'e, C> {
    forwarder: &'e Forwarder,
    client: &'e mut C,
    ticket: Ticket,
    request: RequestBuffer,
    is_head: bool,
    /// Whether the request may be sent again after an origin has perhaps received it.
    may_repeat: bool,
    attempts: Attempts,
    response: ResponseReader,
    /// The number of informational responses.
    informational: u8,
    /// Bytes of their heads. Beyond [`MAX_UNRESERVED`](crate::requests::MAX_UNRESERVED) they are
    /// passed on without fields.
    informational_bytes: usize,
    transfer: TransferState,
    continue_state: ContinueState,
    /// Whether the origin lets its connection be used again.
    keeps_origin: bool,
    /// The values of X-Robots-Tag that were sent, each followed by a line feed.
    tags: Vec<u8>,
    /// The status that the client got; 0 before.
    status: u16,
    /// Whether the final head was sent.
    has_sent_head: bool,
    body_bytes: u64,
}

impl<'e, C: ClientSide> RoundTrip<'e, C> {
    pub fn new(
        forwarder: &'e Forwarder,
        client: &'e mut C,
        ticket: Ticket,
        request: OriginRequest,
    ) -> RoundTrip<'e, C> {
        RoundTrip {
            forwarder,
            client,
            ticket,
            request: RequestBuffer::new(request.head, request.body),
            is_head: request.is_head,
            may_repeat: request.may_repeat,
            attempts: Attempts::default(),
            response: ResponseReader::default(),
            informational: 0,
            informational_bytes: 0,
            transfer: TransferState::default(),
            continue_state: if request.expects_continue {
                ContinueState::Expected
            } else {
                ContinueState::None
            },
            keeps_origin: false,
            tags: Vec::new(),
            status: 0,
            has_sent_head: false,
            body_bytes: 0,
        }
    }

    /// Sends the request, passes the response on, and records what was sent.
    pub async fn run(self) -> RoundTripOutcome {
        let (outcome, record) = self.run_without_recording().await;
        record.finish(true);
        outcome
    }

    /// [`RoundTrip::run`] for a client whose bytes leave later: then the caller has to finish the
    /// [`PendingRecord`].
    #[expect(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` has room for the round trip twice"
    )]
    pub fn run_without_recording(
        mut self,
    ) -> impl Future<Output = (RoundTripOutcome, PendingRecord)> + use<'e, C> {
        async move {
            let relayed = self.relay().await;
            let outcome = match &relayed {
                Ok(()) => Whole,
                Err(error) => self.fail(error).await,
            };
            let ended_by = match &relayed {
                Ok(()) => ResponseEnd::Complete,
                Err(error) => ResponseEnd::Error(logged_error(error)),
            };
            (
                outcome,
                PendingRecord {
                    ticket: self.ticket,
                    tags: self.tags,
                    status: self.status,
                    bytes: self.body_bytes,
                    ended_by,
                },
            )
        }
    }

    /// Sends the request and passes the response on, until the client's side has flushed it.
    async fn relay(&mut self) -> Result<()> {
        self.send_and_relay().await?;
        // Releases its buffer: the client may take its time.
        self.response = ResponseReader::default();
        self.flush().await
    }

    /// Reports to `upstreams` that the server failed. Returns whether the request may be sent
    /// again.
    fn report_failure(&mut self, reached: AttemptProgress, error: &Error) -> bool {
        let wanted = self
            .ticket
            .routing_facts(self.may_repeat || !self.request.is_partly_written);
        self.attempts
            .record_failure(&self.forwarder.upstreams, &wanted, reached, error)
    }

    /// Ends a round trip that failed. The client gets an error answer, or, if it has the head, the
    /// part of the response that came.
    async fn fail(&mut self, error: &Error) -> RoundTripOutcome {
        // A failure before the body was reported when it happened.
        self.report_failure(AttemptProgress::Body, error);
        let status = failure_status(error);
        if status == 0 {
            tracing::debug!(%error, "the client left before its response was passed on");
            return BrokenOff;
        }
        if self.has_sent_head {
            let _ = self.flush().await;
            return BrokenOff;
        }
        let answer = self.error_answer(status);
        self.tags.clear();
        for tag in answer.values(X_ROBOTS_TAG) {
            self.tags.extend(tag.as_bytes().iter().chain(b"\n"));
        }
        self.client.send_answer(&answer);
        // Releases its buffer: the client may take its time.
        self.response = ResponseReader::default();
        self.status = status;
        match self.flush().await {
            Ok(()) => {
                self.body_bytes = answer.body().len() as u64;
                Answered
            }
            Err(_) => BrokenOff,
        }
    }

    /// The answer instead of the origin's response. It has `status`, unless no server was found.
    fn error_answer(&self, status: u16) -> Answer {
        self.ticket
            .head_writer(self.client.connection())
            .no_response_answer(status, &self.attempts, &self.client.request_fields())
    }

    /// Waits until all that was sent has left.
    async fn flush(&mut self) -> Result<()> {
        poll_fn(|context| self.client.poll_flush(context))
            .await
            .map_err(|error| client_error(ErrorType::WriteError, error))
    }
}
