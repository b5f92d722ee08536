//! Handles each new request of an [`Http2Session`], a client's HTTP/2 connection. Either crawlgate
//! answers the request itself, or the [`Forwarder`] or Pingora's proxy sends the request to the
//! origin.

use super::{Http2Session, Recorded, RequestOutcome, Reset, Sent, UnrecordedResponse};
use crate::edge::context::{EdgeContext, PINGORA_UPLOAD_BYTES};
use crate::edge::forwarder::{
    FORWARDER_UPLOAD_BYTES, Forwarder, OriginRequest, RoundTrip, RoundTripOutcome,
};
use crate::edge::http2::batched_io::BatchedIo;
use crate::edge::http2::client::Http2ClientSide;
use crate::edge::http2::head::{
    answer_head, body_framing, framing_with_trailers, http1_fields, http2_request_head,
    joined_cookies, request_target,
};
use crate::edge::http2::pingora_bridge::{BRIDGE_BYTES, PingoraBridge};
use crate::edge::http2::request_stream::{RequestStream, StreamClosed, discard_body};
use crate::edge::http2::{STREAM_WINDOW, max_header_list};
use crate::edge::sent_answer::{SentAmount, record_answer, reserve_space};
use crate::requests::{
    ArrivalTimes, BodyFraming, ClientConnection, ConnectionFacts, HeadWriter, OutgoingAnswer,
    ReceivedRequest, RequestHead, Responder, Ticket,
};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::header::EXPECT;
use http::request::Parts;
use http::{Response, StatusCode};
use pingora_core::server::ShutdownWatch;
use std::future::{pending, poll_fn};
use std::sync::Arc;
use tokio::task::yield_now;
use tokio::time::timeout;

/// With this many malformed requests a connection is closed, as in Pingora's own loop (Pingora
/// 0.9.1).
const MAX_MALFORMED_REQUESTS: usize = 32;
/// Bytes of memory for an open request, with its connection to the origin.
const REQUEST_BYTES: usize = 24 * 1024;
/// Bytes that each field of a head counts in addition, as in HTTP/2 (RFC 9113 section 10.5.1). Each
/// piece of a cookie is a field.
const FIELD_OVERHEAD: usize = 32;
/// The most copies of a head in memory.
const HEAD_COPIES: usize = 4;
/// Bytes of memory for an answer that waits for its client.
const WAITING_ANSWER_BYTES: usize = 8 * 1024;

impl<'e> Http2Session<'e> {
    /// Handles a new request: has it judged, and answers it or starts to forward it. In the
    /// decision service the responder answers. Malformed requests may close a connection, but not
    /// that of a trusted proxy.
    pub fn handle_request(
        &mut self,
        request: http::Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) {
        self.timeouts.restart_wait();
        let edge = self.edge;
        let limits = edge.limits();
        self.output.count_request(limits.headers + limits.target);
        let arrival = edge.requests.arrival_now();
        let (head, body) = request.into_parts();
        let stream = RequestStream::new(respond, body, limits.stall);
        let connection = self.client.facts(None);
        if let Some(responder) = &edge.responder {
            let answer = answer_decision(edge, &**responder, &head, &connection, arrival);
            return self.send_answer(stream, answer);
        }
        let (ticket, answer) =
            edge.requests
                .receive(&http2_request_head(&head), &connection, arrival);
        match answer {
            Some(answer) => {
                self.malformed_requests +=
                    usize::from(ticket.is_rejected() && answer.status() == StatusCode::BAD_REQUEST);
                self.send_answer(stream, (ticket, answer).into());
                if !self.client.peer.is_trusted && self.malformed_requests >= MAX_MALFORMED_REQUESTS
                {
                    self.close_with_goaway("too many malformed requests");
                }
            }
            None => self.start_forwarding(head, stream, ticket),
        }
    }

    /// Sends an answer, at once if the client and the connection can take all of it. Otherwise the
    /// answer waits. Without buffer space for that, the stream is reset, and the request is
    /// recorded as one that got nothing.
    fn send_answer(&mut self, mut stream: RequestStream, mut answer: OutgoingAnswer) {
        let head = answer_head(&answer.answer);
        let body = answer.answer.body().clone();
        let sending = &mut stream.sending;
        if sending.send_head(head, body.is_empty()).is_err() {
            return record_answer(answer, SentAmount::Nothing);
        }
        let is_sent = match body.len() {
            _ if self.output.is_full() => false,
            0 => true,
            length if sending.available_capacity(length) < length => false,
            _ => sending.send_data(body, true).is_ok(),
        };
        if is_sent {
            self.handle_request_outcome(Sent(stream, Some(UnrecordedResponse::Answer(answer))));
        } else if reserve_space(&mut answer, WAITING_ANSWER_BYTES) {
            self.start(send_answer_body(stream, answer, self.output.clone()));
        } else {
            // A reset takes back the head, which h2 has not written yet.
            stream.sending.reset(Reason::ENHANCE_YOUR_CALM);
            record_answer(answer, SentAmount::Nothing);
        }
    }

    /// Starts to forward a request, after the first part of its body if
    /// [`EdgeContext::required_body_bytes`] says so. Answers 503 if there is no buffer space for
    /// it.
    fn start_forwarding(&mut self, head: Parts, stream: RequestStream, mut ticket: Ticket) {
        let framing = body_framing(&head, stream.is_received());
        let forwarder = self
            .edge
            .forwarder
            .as_ref()
            .filter(|_| can_be_forwarded_directly(&head, framing, &ticket));
        let bytes: usize = head
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + FIELD_OVERHEAD)
            .sum();
        let mut space = REQUEST_BYTES
            + HEAD_COPIES * bytes
            + if forwarder.is_some() { 0 } else { BRIDGE_BYTES };
        let mut body = 0;
        if !stream.is_received() {
            let ahead = if forwarder.is_some() {
                FORWARDER_UPLOAD_BYTES
            } else {
                PINGORA_UPLOAD_BYTES
            };
            let trailers = HEAD_COPIES * max_header_list(self.edge.limits());
            let upload = framing.buffered_bytes(STREAM_WINDOW as usize + ahead) + trailers;
            if framing == BodyFraming::None {
                // Trailers may follow all the same, and wait until the response is over.
                space += upload;
            } else {
                body = upload;
            }
        }
        let required_body = self.edge.required_body_bytes(&ticket, framing);
        ticket.reserve_for_request(space + required_body, body);
        if ticket.lacks_buffer_space() {
            let answer = ticket
                .head_writer(self.client.facts(None))
                .failure_answer(503, &head.headers);
            return self.send_answer(stream, (ticket, answer).into());
        }
        let client = self.client.clone();
        let output = self.output.clone();
        let request = RequestToForward {
            head,
            framing,
            stream,
            ticket,
            client,
            output,
        };
        match forwarder {
            _ if required_body > 0 => self.start(request.forward_after_body_start(
                self.edge,
                self.stop.clone(),
                required_body,
            )),
            Some(forwarder) => self.start(request.forward_directly(forwarder)),
            None => self.start(request.forward_by_pingora(self.edge, self.stop.clone())),
        }
    }
}

/// A request that passed, before it is forwarded.
struct RequestToForward {
    head: Parts,
    framing: BodyFraming,
    stream: RequestStream,
    ticket: Ticket,
    client: Arc<ClientConnection>,
    output: BatchedIo,
}

impl RequestToForward {
    /// Forwards the request by the forwarder. Inlined: otherwise half a kilobyte would be moved
    /// once more for each request.
    #[inline(always)]
    fn forward_directly(
        self,
        forwarder: &Forwarder,
    ) -> impl Future<Output = RequestOutcome> + Send {
        let request = origin_request(
            &self.head,
            self.framing,
            &self.ticket.head_writer(self.client.facts(None)),
            self.ticket.origin_host(&forwarder.upstreams),
        );
        let client = Http2ClientSide::new(self.stream, self.client, self.head.headers, self.output);
        run_forwarder(forwarder, client, self.ticket, request)
    }

    /// Forwards the request by Pingora.
    fn forward_by_pingora(
        self,
        edge: &EdgeContext,
        stop: ShutdownWatch,
    ) -> impl Future<Output = RequestOutcome> + Send {
        PingoraBridge::new(
            self.client.for_one_request(),
            &self.head,
            self.framing,
            self.ticket,
            edge.limits().stall,
            self.output,
        )
        .run(edge, stop, self.stream)
    }

    /// Waits for the body, or `required` bytes of it, and then forwards the request. A client that
    /// waits for a 100 gets it here. If the body does not come within `limits.stall`, the answer is
    /// 408.
    async fn forward_after_body_start(
        mut self,
        edge: &EdgeContext,
        stop: ShutdownWatch,
        required: usize,
    ) -> RequestOutcome {
        if expects_continue(&self.head) {
            self.head.headers.remove(EXPECT);
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::CONTINUE;
            // If that fails, so does the body.
            let _ = self.stream.sending.send_informational(response);
        }
        match timeout(
            edge.limits().stall,
            self.stream.buffer_body(required, &self.output),
        )
        .await
        {
            Ok(Ok(())) => {}
            Ok(Err(StreamClosed)) => return Reset,
            Err(_) => return self.answer_timeout().await,
        }
        match edge
            .forwarder
            .as_ref()
            .filter(|_| can_be_forwarded_directly(&self.head, self.framing, &self.ticket))
        {
            Some(forwarder) => self.forward_directly(forwarder).await,
            None => self.forward_by_pingora(edge, stop).await,
        }
    }

    async fn answer_timeout(mut self) -> RequestOutcome {
        let answer = self
            .ticket
            .head_writer(self.client.facts(None))
            .failure_answer(408, &self.head.headers);
        if self
            .stream
            .sending
            .send_head(answer_head(&answer), answer.body().is_empty())
            .is_err()
        {
            return Reset;
        }
        send_answer_body(self.stream, (self.ticket, answer).into(), self.output).await
    }
}

/// The answer of the decision service (`responder`), or the one to a malformed head.
fn answer_decision(
    edge: &EdgeContext,
    responder: &dyn Responder,
    head: &Parts,
    connection: &ConnectionFacts<'_>,
    arrival: ArrivalTimes,
) -> OutgoingAnswer {
    let request = http2_request_head(head);
    if let Some(error) = request.head_error(edge.limits()) {
        return edge
            .requests
            .reject_head(&request, error, connection)
            .into();
    }
    let fields = request.fields();
    responder.respond(&ReceivedRequest {
        method: &head.method,
        target: fields.target,
        host: fields.host,
        headers: &head.headers,
        peer: connection.peer.address,
        http: "2",
        arrival,
    })
}

/// Whether the forwarder can send a request: its target is a path, it expects nothing but a 100 for
/// a body, and the site rewrites no pages.
fn can_be_forwarded_directly(head: &Parts, framing: BodyFraming, ticket: &Ticket) -> bool {
    (!head.headers.contains_key(EXPECT) || (expects_continue(head) && framing != BodyFraming::None))
        && request_target(head).starts_with(b"/")
        && !ticket.may_rewrite_pages()
}

/// Whether the client waits for a 100 before it sends the body: the only Expect line is
/// `100-continue`.
fn expects_continue(head: &Parts) -> bool {
    let mut lines = head.headers.get_all(EXPECT).iter();
    lines
        .next()
        .is_some_and(|line| line.as_bytes().eq_ignore_ascii_case(b"100-continue"))
        && lines.next().is_none()
}

/// The request as the forwarder sends it. The body is in chunks if trailers are announced. `host`
/// replaces the client's Host.
fn origin_request(
    head: &Parts,
    framing: BodyFraming,
    head_writer: &HeadWriter<'_>,
    host: Option<&str>,
) -> OriginRequest {
    let framing = framing_with_trailers(head, framing);
    let cookies = joined_cookies(head);
    let fields = http1_fields(head, framing, cookies.as_deref());
    let method = head.method.as_str().as_bytes();
    let mut request = OriginRequest::from_parts(
        method,
        request_target(head),
        fields,
        framing,
        head_writer,
        host,
    );
    request.expects_continue = expects_continue(head);
    request
}

/// Sends the body of an answer as fast as the client takes it; the head was sent before. What the
/// client still sends is discarded.
async fn send_answer_body(
    mut stream: RequestStream,
    answer: OutgoingAnswer,
    output: BatchedIo,
) -> RequestOutcome {
    let mut body = answer.answer.body().clone();
    let RequestStream {
        sending,
        body: received,
        ..
    } = &mut stream;
    let answered = async {
        while !body.is_empty() {
            let wanted = body.len();
            let capacity = poll_fn(|context| sending.poll_capacity(wanted, context)).await?;
            sending.send_data(body.split_to(capacity), body.is_empty())?;
        }
        Ok(())
    };
    let rest = async {
        discard_body(received, &output).await;
        pending().await
    };
    let sent: Result<(), StreamClosed> =
        tokio::select! { sent = answered => sent, never = rest => never };
    if sent.is_err() {
        let bytes = answer.answer.body().len().saturating_sub(body.len());
        record_answer(answer, SentAmount::Partial(bytes as u64));
        return Recorded;
    }
    Sent(stream, Some(UnrecordedResponse::Answer(answer)))
}

/// Has the forwarder send a request. If the response broke off, resets the stream.
#[expect(
    clippy::manual_async_fn,
    reason = "the future of an `async fn` has room for the client twice"
)]
fn run_forwarder(
    forwarder: &Forwarder,
    mut client: Http2ClientSide,
    ticket: Ticket,
    request: OriginRequest,
) -> impl Future<Output = RequestOutcome> + Send {
    async move {
        let (outcome, record) = RoundTrip::new(forwarder, &mut client, ticket, request)
            .run_without_recording()
            .await;
        let mut stream = client.stream;
        if outcome != RoundTripOutcome::BrokenOff {
            return Sent(stream, Some(UnrecordedResponse::Response(record)));
        }
        record.finish(true);
        if stream.sending.check_reset() {
            return Reset;
        }
        // h2 writes first what came before.
        yield_now().await;
        stream.sending.reset(Reason::INTERNAL_ERROR);
        Recorded
    }
}
