//! The part of [`Session`] that takes requests. crawlgate answers a request, or forwards it through
//! the lane (`lane`, the forwarding without Pingora) or through Pingora's proxy.

use super::{Finished, Session, Unrecorded};
use crate::answers::Asked;
use crate::edge::answered::{Extent, hold, record};
use crate::edge::door::{Edge, PINGORA_UPLOAD};
use crate::edge::http2::client::Http2Client;
use crate::edge::http2::head::{
    fields_of_http1, framing, framing_with_trailers, head_of, joined_cookies, mapped, target,
};
use crate::edge::http2::memory::{IN_MEMORY, InMemory};
use crate::edge::http2::output::Output;
use crate::edge::http2::stream::{Gone, Stream, throw_away};
use crate::edge::http2::{STREAM_WINDOW, max_list};
use crate::edge::lane::{After, Exchange, LANE_UPLOAD, Lane, LaneRequest};
use crate::requests::{
    Arrival, ClientConnection, Connection as Asker, Forward, Framing, Next, Received, RequestHead,
    Respond, Responded, Ticket,
};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::header::EXPECT;
use http::request::Parts;
use http::{Response, StatusCode};
use pingora_core::server::ShutdownWatch;
use std::future::pending;
use std::sync::Arc;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Malformed requests of a connection before it is closed, as in Pingora's own loop (Pingora
/// 0.9.1).
const MALFORMED: usize = 32;
/// Octets of memory for an open request, with its connection to the origin.
const REQUEST: usize = 24 * 1024;
/// Octets that a field of its head counts in addition, as in HTTP/2 (RFC 9113 section 10.5.1). Each
/// piece of a cookie is a field.
const FIELD: usize = 32;
/// The number of copies of its head in memory, at most.
const COPIES: usize = 4;
/// Octets of memory for an answer that waits for its client.
const WAITING_ANSWER: usize = 8 * 1024;

impl<'e> Session<'e> {
    /// Takes a new request: has it judged, and answers it or begins to forward it. In the decision
    /// service the responder answers. 32 malformed requests close a connection that is not a
    /// trusted proxy's.
    pub fn take(&mut self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.timeouts.note_request();
        let edge = self.edge;
        let limits = edge.limits();
        self.output.note_request(limits.headers + limits.target);
        let arrival = edge.requests.arrival();
        let (head, body) = request.into_parts();
        let stream = Stream::new(respond, body, limits.stall);
        let connection = self.client.behind(None);
        if let Some(responder) = &edge.responder {
            let responded = ask(edge, &**responder, &head, &connection, arrival);
            return self.answer(stream, responded);
        }
        let (ticket, next) = edge.requests.receive(&mapped(&head), &connection, arrival);
        match next {
            Next::Answer(answer) => {
                self.malformed +=
                    usize::from(ticket.is_refused() && answer.status() == StatusCode::BAD_REQUEST);
                self.answer(stream, (ticket, answer).into());
                if !self.client.peer.is_trusted && self.malformed >= MALFORMED {
                    self.close_for("too many malformed requests");
                }
            }
            Next::Forward => self.forward(head, stream, ticket),
        }
    }

    /// Sends an answer: at once if the client has room for all of it, and the connection too.
    /// Otherwise the answer waits, as long as there is buffer space; without it the stream is reset
    /// and the request is recorded as one that got nothing.
    fn answer(&mut self, mut stream: Stream, mut responded: Responded) {
        let head = head_of(&responded.answer);
        let body = responded.answer.body().clone();
        let sending = &mut stream.sending;
        if sending.head(head, body.is_empty()).is_err() {
            return record(responded, Extent::Nothing);
        }
        let is_sent = match body.len() {
            _ if self.output.is_full() => false,
            0 => true,
            length if sending.room_now(length) < length => false,
            _ => sending.send(body, true).is_ok(),
        };
        if is_sent {
            self.settle(Finished::Sent(stream, Some(Unrecorded::Answer(responded))));
        } else if hold(&mut responded, WAITING_ANSWER) {
            self.begin(answer_slowly(stream, responded, self.output.clone()));
        } else {
            // A reset takes back the head, which h2 has not written yet.
            stream.sending.reset(Reason::ENHANCE_YOUR_CALM);
            record(responded, Extent::Nothing);
        }
    }

    /// Begins to forward a request, through the lane or through Pingora; where the origin has few
    /// places, after the first part of its body. Reserves its buffer space first, and answers 503
    /// if there is none.
    fn forward(&mut self, head: Parts, stream: Stream, mut ticket: Ticket) {
        let framing = framing(&head, stream.is_received());
        let lane = self
            .edge
            .lane
            .as_ref()
            .filter(|_| fits(&head, framing, &ticket));
        let octets: usize = head
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + FIELD)
            .sum();
        let mut space = REQUEST + COPIES * octets + if lane.is_some() { 0 } else { IN_MEMORY };
        let mut body = 0;
        if !stream.is_received() {
            let ahead = if lane.is_some() {
                LANE_UPLOAD
            } else {
                PINGORA_UPLOAD
            };
            let trailers = COPIES * max_list(self.edge.limits());
            let upload = framing.at_most(STREAM_WINDOW as usize + ahead) + trailers;
            match framing {
                // Trailers may follow all the same. They wait until the response is over.
                Framing::None => space += upload,
                Framing::Length(_) | Framing::Chunked => body = upload,
            }
        }
        let body_first = self.edge.body_first(&ticket, framing);
        ticket.hold_request(space + body_first, body);
        if ticket.lacks_space() {
            let answer = ticket.forward(self.client.behind(None)).fail(
                503,
                &Asked {
                    method: &head.method,
                    headers: &head.headers,
                },
            );
            return self.answer(stream, (ticket, answer).into());
        }
        let client = self.client.clone();
        let output = self.output.clone();
        let request = Forwarded {
            head,
            framing,
            stream,
            ticket,
            client,
            output,
        };
        match lane {
            _ if body_first > 0 => {
                self.begin(request.with_body(self.edge, self.stop.clone(), body_first))
            }
            Some(lane) => self.begin(request.in_lane(lane)),
            None => self.begin(request.in_memory(self.edge, self.stop.clone())),
        }
    }
}

/// A request on its way to the origin.
struct Forwarded {
    head: Parts,
    framing: Framing,
    stream: Stream,
    ticket: Ticket,
    client: Arc<ClientConnection>,
    output: Output,
}

impl Forwarded {
    /// Forwards the request through the lane. Inlined: otherwise half a kilobyte would be moved
    /// once more for each request.
    #[inline(always)]
    fn in_lane(self, lane: &Lane) -> impl Future<Output = Finished> + Send {
        let Forwarded {
            head,
            framing,
            stream,
            ticket,
            client,
            output,
        } = self;
        let request = in_lane(
            &head,
            framing,
            &ticket.forward(client.behind(None)),
            lane.origin_host(&ticket),
        );
        through_lane(
            lane,
            Http2Client::new(stream, client, head.headers, output),
            ticket,
            request,
        )
    }

    /// Forwards the request through Pingora, over a connection in memory.
    fn in_memory(self, edge: &Edge, stop: ShutdownWatch) -> impl Future<Output = Finished> + Send {
        let Forwarded {
            head,
            framing,
            stream,
            ticket,
            client,
            output,
        } = self;
        let client = client.of_one_request();
        let stall = edge.limits().stall;
        InMemory::new(client, &head, framing, ticket, stall, output).pass_on(edge, stop, stream)
    }

    /// Waits until the body or `most` bytes of it are there, and then forwards the request. A
    /// client that waits for a 100 gets it here. If the body does not come within `limits.stall`,
    /// the answer is 408; if the stream ends, the result is `Reset`.
    async fn with_body(mut self, edge: &Edge, stop: ShutdownWatch, most: usize) -> Finished {
        if expects(&self.head) {
            self.head.headers.remove(EXPECT);
            let mut response = Response::new(());
            *response.status_mut() = StatusCode::CONTINUE;
            // If the stream is over, the body does not come either.
            let _ = self.stream.sending.inform(response);
        }
        match timeout(
            edge.limits().stall,
            self.stream.read_ahead(most, &self.output),
        )
        .await
        {
            Ok(Ok(())) => {}
            Ok(Err(Gone)) => return Finished::Reset,
            Err(_) => return self.answer_timeout().await,
        }
        match edge
            .lane
            .as_ref()
            .filter(|_| fits(&self.head, self.framing, &self.ticket))
        {
            Some(lane) => self.in_lane(lane).await,
            None => self.in_memory(edge, stop).await,
        }
    }

    /// Answers 408, because the body did not come in time.
    async fn answer_timeout(self) -> Finished {
        let Forwarded {
            head,
            mut stream,
            ticket,
            client,
            output,
            ..
        } = self;
        let asked = Asked {
            method: &head.method,
            headers: &head.headers,
        };
        let answer = ticket.forward(client.behind(None)).fail(408, &asked);
        if stream
            .sending
            .head(head_of(&answer), answer.body().is_empty())
            .is_err()
        {
            return Finished::Reset;
        }
        answer_slowly(stream, (ticket, answer).into(), output).await
    }
}

/// The answer of the decision service (`responder`) to a request; a refusal for a malformed head.
fn ask(
    edge: &Edge,
    responder: &dyn Respond,
    head: &Parts,
    connection: &Asker<'_>,
    arrival: Arrival,
) -> Responded {
    let request = mapped(head);
    if let Some(mistake) = request.mistake(edge.limits()) {
        return edge
            .requests
            .refuse_head(&request, mistake, connection)
            .into();
    }
    let fields = request.fields();
    responder.respond(&Received {
        method: &head.method,
        target: fields.target,
        host: fields.host,
        headers: &head.headers,
        peer: connection.peer.address,
        http: "2",
        arrival,
    })
}

/// Whether a request fits the lane: its target is a path, it has no expectation except that of a
/// 100 for a body, and the site does not rewrite pages.
fn fits(head: &Parts, framing: Framing, ticket: &Ticket) -> bool {
    (!head.headers.contains_key(EXPECT) || (expects(head) && framing != Framing::None))
        && target(head).starts_with(b"/")
        && !ticket.may_rewrite_pages()
}

/// Whether the client waits for a 100 before it sends the body: there is one Expect line, and it is
/// `100-continue`.
fn expects(head: &Parts) -> bool {
    let mut lines = head.headers.get_all(EXPECT).iter();
    lines
        .next()
        .is_some_and(|line| line.as_bytes().eq_ignore_ascii_case(b"100-continue"))
        && lines.next().is_none()
}

/// The request as the lane sends it: with the fields of HTTP/1.1, and in chunks if it announces
/// trailers. `host` is the Host that the origin wants in place of the client's.
fn in_lane(
    head: &Parts,
    framing: Framing,
    forward: &Forward<'_>,
    host: Option<&str>,
) -> LaneRequest {
    let framing = framing_with_trailers(head, framing);
    let cookies = joined_cookies(head);
    let fields = fields_of_http1(head, framing, cookies.as_deref());
    let method = head.method.as_str().as_bytes();
    let mut request = LaneRequest::of(method, target(head), fields, framing, forward, host);
    request.expects = expects(head);
    request
}

/// Sends the body of an answer as the client has room for it; the head was sent before. Bytes that
/// the client still sends are thrown away. If the stream ends early, that is recorded (`Over`);
/// otherwise the answer is still to be recorded (`Sent`).
async fn answer_slowly(mut stream: Stream, responded: Responded, output: Output) -> Finished {
    let mut body = responded.answer.body().clone();
    let Stream {
        sending,
        body: received,
        ..
    } = &mut stream;
    let answered = async {
        while !body.is_empty() {
            let room = sending.room(body.len()).await?;
            sending.send(body.split_to(room), body.is_empty())?;
        }
        Ok(())
    };
    let rest = async {
        throw_away(received, &output).await;
        pending().await
    };
    let sent: Result<(), Gone> = tokio::select! { sent = answered => sent, never = rest => never };
    if sent.is_err() {
        let octets = responded.answer.body().len().saturating_sub(body.len());
        record(responded, Extent::Begun(octets as u64));
        return Finished::Over;
    }
    Finished::Sent(stream, Some(Unrecorded::Answer(responded)))
}

/// Forwards a request through the lane. `Sent` with a whole response or an answer in its place,
/// still to be recorded. A response that broke off is recorded, and its stream is reset (`Over`),
/// unless the client has reset it before (`Reset`).
#[expect(
    clippy::manual_async_fn,
    reason = "the future of an `async fn` has room for the client twice"
)]
fn through_lane(
    lane: &Lane,
    mut client: Http2Client,
    ticket: Ticket,
    request: LaneRequest,
) -> impl Future<Output = Finished> + Send {
    async move {
        let (after, record) = Exchange::new(lane, &mut client, ticket, request)
            .run_unrecorded()
            .await;
        let mut stream = client.stream;
        if after != After::BrokenOff {
            return Finished::Sent(stream, Some(Unrecorded::Response(record)));
        }
        record.finish(true);
        if stream.sending.check_gone() {
            return Finished::Reset;
        }
        // The client gets what came before.
        yield_now().await;
        stream.sending.reset(Reason::INTERNAL_ERROR);
        Finished::Over
    }
}

/// Throws away what the client still sends of a request whose response was sent: see
/// `Stream::read_on`.
pub async fn read_on(stream: Stream, output: Output) -> Finished {
    stream.read_on(&output).await;
    Finished::Over
}
