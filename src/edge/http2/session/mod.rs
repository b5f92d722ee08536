//! [`Http2Session`]: a client's HTTP/2 connection with all its requests. One task drives the
//! connection and its requests until the connection ends. The submodule `requests` handles each new
//! request.

mod requests;

use super::batched_io::BatchedIo;
use super::pausable_waker::PausableWaker;
use super::request_stream::{RequestStream, ResponseSender};
use super::timeouts::{DueStep, Http2Timeouts, ResetCounter};
use crate::edge::client_stream::ClientStream;
use crate::edge::close_log::CloseReason;
use crate::edge::context::EdgeContext;
use crate::edge::sent_answer::{SentAmount, record_answer};
use crate::requests::{ClientConnection, OutgoingAnswer, PendingRecord};
use crate::telemetry::ConnectionGaugeGuard;
use RequestOutcome::{Recorded, Reset, Sent};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use pingora_core::server::ShutdownWatch;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{
    Context,
    Poll::{self, Pending, Ready},
    Waker, ready,
};

/// The work on a request, until h2 has its whole response.
type RequestFuture<'e> = Pin<Box<dyn Future<Output = RequestOutcome> + Send + 'e>>;

/// A new request from h2, or why there are no more.
type AcceptedRequest = Result<(http::Request<RecvStream>, SendResponse<Bytes>), h2::Error>;

#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once, and a box would be an allocation"
)]
/// How the work on a request ended.
pub enum RequestOutcome {
    /// An answer or a response was sent whole. It has to be recorded when its bytes have left.
    Sent(RequestStream, Option<UnrecordedResponse>),
    /// The client reset its stream before. It was recorded.
    Reset,
    /// It was recorded.
    Recorded,
}

/// An answer or a response that has to be recorded when its bytes have left.
#[expect(
    clippy::large_enum_variant,
    reason = "few of them wait, and not for long"
)]
pub enum UnrecordedResponse {
    Answer(OutgoingAnswer),
    Response(PendingRecord),
}

impl UnrecordedResponse {
    /// Records it. `has_left` is whether all its bytes have left. If not, an answer counts as sent
    /// without its body.
    fn record(self, has_left: bool) {
        match self {
            UnrecordedResponse::Answer(answer) => record_answer(
                answer,
                if has_left {
                    SentAmount::Whole
                } else {
                    SentAmount::Partial(0)
                },
            ),
            UnrecordedResponse::Response(record) => record.finish(has_left),
        }
    }
}

/// How a connection ended: `Ok` as usual, or the reason with a detail for the log.
pub type SessionEnd = Result<(), (CloseReason, String)>;

/// How a connection ends after an error of h2: `Ok` if the client has left (an I/O error), else the
/// client broke the protocol.
fn end_after_error(error: &h2::Error) -> SessionEnd {
    if error.is_io() {
        tracing::debug!(%error, "an HTTP/2 connection broke");
        return Ok(());
    }
    Err((CloseReason::Http2, error.to_string()))
}

/// A connection over HTTP/2 with all its requests.
pub struct Http2Session<'e> {
    edge: &'e EdgeContext,
    stop: ShutdownWatch,
    client: Arc<ClientConnection>,
    gauge: Option<Arc<ConnectionGaugeGuard>>,
    connection: server::Connection<BatchedIo, Bytes>,
    output: BatchedIo,
    in_flight: FuturesUnordered<RequestFuture<'e>>,
    /// What h2 still has to write, with the streams, which the client may still reset.
    in_h2: Vec<(Option<ResponseSender>, UnrecordedResponse)>,
    /// What h2 has written into `output`.
    in_output: Vec<UnrecordedResponse>,
    waker: Arc<PausableWaker>,
    timeouts: Http2Timeouts,
    resets: ResetCounter,
    malformed_requests: usize,
    /// Why crawlgate closes the connection.
    closed_for: Option<&'static str>,
}

impl<'e> Http2Session<'e> {
    pub fn new(
        edge: &'e EdgeContext,
        stop: ShutdownWatch,
        client: Arc<ClientConnection>,
        gauge: Option<Arc<ConnectionGaugeGuard>>,
        mut connection: server::Connection<BatchedIo, Bytes>,
        output: BatchedIo,
    ) -> Http2Session<'e> {
        Http2Session {
            edge,
            stop,
            client,
            gauge,
            timeouts: Http2Timeouts::new(edge.limits(), connection.ping_pong()),
            connection,
            output,
            in_flight: FuturesUnordered::new(),
            in_h2: Vec::new(),
            in_output: Vec::new(),
            waker: Arc::default(),
            resets: ResetCounter::new(),
            malformed_requests: 0,
            closed_for: None,
        }
    }

    /// Serves the connection to its end.
    pub async fn run(&mut self) -> SessionEnd {
        let mut stop = self.stop.clone();
        let mut stopped = pin!(stop.wait_for(|stop| *stop));
        poll_fn(|context| {
            // An error means that the sender is gone, and no later stop could arrive.
            if !self.timeouts.has_sent_goaway() && stopped.as_mut().poll(context).is_ready() {
                self.send_graceful_goaway();
            }
            self.poll(context)
        })
        .await
    }

    /// Takes turns, and handles the timeouts. Ready when the connection is over.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<SessionEnd> {
        use DueStep::*;
        loop {
            if let Ready(end) = self.poll_turn(context) {
                return Ready(end);
            }
            let is_active = !self.in_flight.is_empty();
            if let Some(gauge) = &self.gauge {
                gauge.set_active(is_active);
            }
            match ready!(self.timeouts.poll(is_active, context)) {
                FirstGoaway => self.send_graceful_goaway(),
                // The client has not read the first one in time. A request that it is sending is
                // not taken, which this GOAWAY tells (RFC 9113 section 6.8).
                LastGoaway => {
                    self.timeouts.count_goaway();
                    self.connection.abrupt_shutdown(Reason::NO_ERROR);
                }
                Close => return Ready(Ok(())),
                PingTimeout => {
                    return Ready(Err((CloseReason::NoPong, "no pong".to_owned())));
                }
            }
        }
    }

    /// Sends a GOAWAY that names no last request, so that requests are taken until the client has
    /// read it. A second GOAWAY then names the last request (RFC 9113 section 6.8).
    fn send_graceful_goaway(&mut self) {
        self.timeouts.count_goaway();
        self.connection.graceful_shutdown();
    }

    /// Sends a GOAWAY that ends the connection with all its requests. Only the first call counts.
    fn close_with_goaway(&mut self, reason: &'static str) {
        if self.closed_for.is_none() {
            self.closed_for = Some(reason);
            self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
    }

    /// Takes a turn: advances all requests, checks for floods, writes the output, and records what
    /// has left. Repeats that while h2 has more to write. Ready when the connection is over.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<SessionEnd> {
        loop {
            if let Ready(end) = self.poll_requests(context) {
                return Ready(end);
            }
            if self.closed_for.is_none() && !self.client.peer.is_trusted && self.output.is_flooded()
            {
                self.close_with_goaway("too many frames that move nothing");
                continue;
            }
            let was_full = self.output.is_full();
            if !was_full {
                self.mark_written();
            }
            if let Err(error) = ready!(self.output.poll_flush(context)) {
                tracing::debug!(%error, "an HTTP/2 connection broke");
                return Ready(Ok(()));
            }
            self.in_output
                .drain(..)
                .for_each(|unrecorded| unrecorded.record(true));
            // If it was full, h2 has more to write.
            if !was_full {
                return Pending;
            }
        }
    }

    /// Advances all requests and takes new ones, as far as possible now. Ready when the connection
    /// is over.
    fn poll_requests(&mut self, context: &mut Context<'_>) -> Poll<SessionEnd> {
        let connection = Waker::from(self.waker.clone());
        let mut is_due = true;
        self.output.allow_read();
        self.waker.pause(context.waker());
        loop {
            while let Ready(Some(finished)) = self.in_flight.poll_next_unpin(context) {
                self.handle_request_outcome(finished);
            }
            if self.waker.resume() {
                is_due = true;
                self.output.allow_read();
            }
            if !is_due {
                return Pending;
            }
            // This also has h2 write into the output what the requests have sent.
            let accepted = self
                .connection
                .poll_accept(&mut Context::from_waker(&connection));
            self.waker.pause(context.waker());
            is_due = accepted.is_ready();
            if let Ready(accepted) = accepted
                && let Some(end) = self.accept(accepted)
            {
                return Ready(end);
            }
        }
    }

    /// Handles a new request, or drops it if the connection is being closed. Returns how the
    /// session ended, if it is over.
    fn accept(&mut self, accepted: Option<AcceptedRequest>) -> Option<SessionEnd> {
        match (accepted, self.closed_for) {
            (Some(Ok((request, respond))), None) => self.handle_request(request, respond),
            (Some(Ok(_)), Some(_)) => {}
            (None, None) => return Some(Ok(())),
            (Some(Err(error)), None) => return Some(end_after_error(&error)),
            (None | Some(Err(_)), Some(reason)) => {
                return Some(Err((CloseReason::Http2, reason.to_owned())));
            }
        }
        None
    }

    /// Adds the work on a request.
    fn start(&mut self, request: impl Future<Output = RequestOutcome> + Send + 'e) {
        self.in_flight.push(Box::pin(request));
    }

    /// Handles a request whose work has ended. Too many resets close the connection. A response
    /// that was sent waits in `in_h2` for its record. If the client still sends its request, the
    /// rest is drained.
    fn handle_request_outcome(&mut self, finished: RequestOutcome) {
        let (stream, unrecorded) = match finished {
            Sent(stream, unrecorded) => (stream, unrecorded),
            Reset => {
                if !self.client.peer.is_trusted && self.resets.record_reset() {
                    self.close_with_goaway("too many resets");
                }
                return;
            }
            Recorded => return,
        };
        let sending = if stream.is_received() {
            Some(stream.sending)
        } else {
            let output = self.output.clone();
            self.start(async move {
                stream.drain(&output).await;
                Recorded
            });
            None
        };
        self.in_h2
            .extend(unrecorded.map(|unrecorded| (sending, unrecorded)));
    }

    /// Moves responses that h2 has written from `in_h2` to `in_output`. Those of streams that the
    /// client has reset are recorded as not sent.
    fn mark_written(&mut self) {
        for (sending, unrecorded) in self.in_h2.drain(..) {
            if sending.is_some_and(|mut sending| sending.check_reset()) {
                unrecorded.record(false);
            } else {
                self.in_output.push(unrecorded);
            }
        }
    }

    /// Ends all requests: they notice that the client has left, and are recorded before a stop is
    /// complete. Returns the connection, if this was the last handle to it.
    pub async fn finish(mut self) -> Option<Box<ClientStream>> {
        drop(self.connection);
        let in_h2 = self.in_h2.into_iter().map(|(_, unrecorded)| unrecorded);
        for unrecorded in in_h2.chain(self.in_output) {
            unrecorded.record(false);
        }
        while let Some(finished) = self.in_flight.next().await {
            if let Sent(_, Some(unrecorded)) = finished {
                unrecorded.record(false);
            }
        }
        drop(self.in_flight);
        if let Some(gauge) = self.gauge {
            gauge.set_active(false);
        }
        self.output.into_connection()
    }
}
