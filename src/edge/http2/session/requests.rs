//! What becomes of a request over HTTP/2: it is answered here, or goes to the origin through the lane or Pingora. Must not know
//! when its octets leave.

use super::{Finished, Session};
use crate::edge::answered::Answered;
use crate::edge::desk::Desk;
use crate::edge::http2::client::Http2Client;
use crate::edge::http2::head::{asked, fields_of_http1, framing, head_of, joined_cookies, mapped, target};
use crate::edge::http2::memory::{self, InMemory};
use crate::edge::http2::stream::Stream;
use crate::edge::lane::{After, Exchange, Lane, LaneRequest};
use crate::requests::{Arrival, Connection as Asker, Forward, Framing, Next, Received, RequestHead, Respond, Ticket};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::StatusCode;
use http::header::EXPECT;
use http::request::Parts;
use pingora_core::apps::HttpServerApp;
use pingora_core::server::ShutdownWatch;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::yield_now;

/// Malformed requests of a connection before it is closed, as in Pingora's own loop (Pingora 0.9.1).
const MALFORMED: usize = 32;
/// What an open request takes, with its connection to the origin.
const REQUEST: usize = 24 * 1024;
/// How often its head is in memory, at most.
const COPIES: usize = 4;
/// What an answer takes that waits for its client.
const WAITING_ANSWER: usize = 8 * 1024;

impl<'e, A: HttpServerApp + Send + Sync + 'static> Session<'e, A> {
    /// Answers a request, or begins to pass it on.
    pub(super) fn take(&mut self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.watch.note_request();
        let desk = &self.edge.desk;
        let arrival = desk.requests.arrival();
        let (head, body) = request.into_parts();
        let stream = Stream::new(respond, body);
        let connection = self.client.behind(None);
        if let Some(door) = &desk.responder {
            let answered = ask(desk, door, &head, (&connection, arrival));
            return self.answer(stream, answered);
        }
        let (ticket, next) = desk.requests.receive(&mapped(&head), &connection, arrival);
        match next {
            Next::Answer(answer) => {
                self.malformed += usize::from(ticket.is_refused() && answer.status() == StatusCode::BAD_REQUEST);
                self.answer(stream, Answered::Request(ticket, answer));
                if self.malformed >= MALFORMED {
                    self.show_out("too many malformed requests");
                }
            }
            Next::Forward => self.forward(head, stream, ticket),
        }
    }

    /// Sends an answer: at once if the client has room for all of it. Otherwise it waits, as long as there is space for that.
    fn answer(&mut self, mut stream: Stream, mut answered: Answered) {
        let (head, body) = (head_of(answered.answer()), answered.answer().body().clone());
        let sending = &mut stream.sending;
        if sending.head(head, body.is_empty()).is_err() {
            return answered.record(false);
        }
        let is_sent = match body.len() {
            0 => true,
            length if sending.room_now(length) < length => false,
            _ => sending.send(body, true).is_ok(),
        };
        if is_sent {
            self.settle(Finished::Answered(stream, answered));
        } else if answered.hold(WAITING_ANSWER) {
            self.begin(answer_slowly(stream, answered, self.edge.desk.limits().stall));
        } else {
            stream.sending.reset(Reason::ENHANCE_YOUR_CALM);
            answered.record(false);
        }
    }

    /// Passes a request on, through the lane or through Pingora.
    fn forward(&mut self, head: Parts, stream: Stream, mut ticket: Ticket) {
        let framing = framing(&head, stream.is_received());
        let lane = self.edge.lane.as_ref().filter(|_| fits(&head, framing, &ticket));
        // `: ` and the line's end are four octets.
        let octets: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        ticket.hold(if lane.is_some() { REQUEST } else { REQUEST + 2 * memory::WAITING } + COPIES * octets);
        if ticket.lacks_space() {
            let answer = ticket.forward(self.client.behind(None)).fail(503, &asked(&head));
            return self.answer(stream, Answered::Request(ticket, answer));
        }
        let stall = self.edge.desk.limits().stall;
        let Some(lane) = lane else {
            let request = InMemory::new(self.client.of_one_request(), &head, &stream, ticket, stall);
            return self.begin(through_memory(request, self.edge.app.clone(), self.stop.clone(), stream));
        };
        let request = in_lane(&head, framing, &ticket.forward(self.client.behind(None)));
        let client = Http2Client::new(stream, self.client.clone(), head.headers, self.output.clone(), stall);
        self.begin(through_lane(lane, client, ticket, request));
    }
}

/// The answer of a door that answers by itself.
fn ask(desk: &Desk, door: &Arc<dyn Respond>, head: &Parts, (connection, arrival): (&Asker<'_>, Arrival)) -> Answered {
    let request = mapped(head);
    if let Some(mistake) = request.mistake(desk.limits()) {
        let (ticket, answer) = desk.requests.refuse_head(&request, mistake, connection);
        return Answered::Request(ticket, answer);
    }
    let received = Received {
        method: &head.method,
        target: request.target(),
        host: request.host(),
        headers: &head.headers,
        peer: connection.peer.address,
        http: "2",
        arrival,
    };
    Answered::Question(door.clone(), door.respond(&received))
}

/// Whether the lane can do what a request needs: it has a path, and the site changes nothing about bodies.
fn fits(head: &Parts, framing: Framing, ticket: &Ticket) -> bool {
    (!head.headers.contains_key(EXPECT) || (expects(head) && framing != Framing::None))
        && target(head).starts_with(b"/")
        && ticket.judged().is_none_or(|(_, entry)| entry.site.html.is_none())
}

/// Whether the client waits for a 100 before it sends the body.
fn expects(head: &Parts) -> bool {
    let mut lines = head.headers.get_all(EXPECT).iter();
    lines.next().is_some_and(|line| line.as_bytes().eq_ignore_ascii_case(b"100-continue")) && lines.next().is_none()
}

/// A request as an origin gets it.
fn in_lane(head: &Parts, framing: Framing, forward: &Forward<'_>) -> LaneRequest {
    let cookies = joined_cookies(head);
    let fields = fields_of_http1(head, framing, cookies.as_deref());
    let line = (head.method.as_str().as_bytes(), target(head));
    LaneRequest::of(line, fields, (framing, expects(head)), forward)
}

/// Sends the body of an answer as the client has room for it.
async fn answer_slowly(mut stream: Stream, answered: Answered, stall: Duration) -> Finished {
    let mut body = answered.answer().body().clone();
    while !body.is_empty() {
        let room = stream.sending.room(body.len(), stall).await;
        let sent = room.and_then(|room| stream.sending.send(body.split_to(room), body.is_empty()));
        if sent.is_err() {
            answered.record(false);
            return Finished::Over;
        }
    }
    Finished::Answered(stream, answered)
}

/// Has the lane forward a request.
#[expect(clippy::manual_async_fn, reason = "the future of an `async fn` has room for the client twice")]
fn through_lane(
    lane: &Lane,
    mut client: Http2Client,
    ticket: Ticket,
    request: LaneRequest,
) -> impl Future<Output = Finished> + Send {
    async move {
        let (after, record) = Exchange::new(lane, &mut client, ticket, request).run_unrecorded().await;
        let mut stream = client.into_stream();
        if after != After::BrokenOff {
            return Finished::PassedOn(stream, Some(record));
        }
        record.finish(true);
        if stream.sending.is_gone() {
            return Finished::Reset;
        }
        // The client gets what came before.
        yield_now().await;
        stream.sending.reset(Reason::INTERNAL_ERROR);
        Finished::Over
    }
}

/// Has Pingora forward a request.
async fn through_memory<A>(request: InMemory, app: Arc<A>, stop: ShutdownWatch, stream: Stream) -> Finished
where
    A: HttpServerApp + Send + Sync + 'static,
{
    match request.pass_on(app, stop, stream).await {
        Some(stream) => Finished::PassedOn(stream, None),
        None => Finished::Reset,
    }
}

pub(super) async fn read_on(stream: Stream) -> Finished {
    stream.read_on().await;
    Finished::Over
}
