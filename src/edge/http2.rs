//! HTTP/2 on a connection, by ALPN or from the first octet on ("prior knowledge", RFC 9113 section 3.3), on the `h2` crate.
//! The main function is [`serve`]. Must not know what a request is about.
//!
//! One task drives a connection and all its requests, in turns: it takes the requests that have come, moves each one on as
//! far as it goes, and writes at once what all of them have to say. An answer is recorded when its last octet was written.
//!
//! A connection takes requests, or is ending: then it has sent a GOAWAY, and ends with its last request. A stop, or `idle`
//! without a request, moves it on. Whatever it ends by, its last GOAWAY names the last request that crawlgate has taken, so
//! that the client can send later ones again elsewhere. A client that floods is shown out, and all its requests end.

mod client;
mod gather;
mod head;
mod memory;
mod names;
mod stream;
mod turn;
mod watch;

use super::answered::Answered;
use super::connection::Connection;
use super::desk::Desk;
use super::door::{Door, Edge};
use super::lane::{After, Exchange, Lane, LaneRequest, Record};
use super::linger::{LINGERING, linger};
use super::notices::Reason as Notice;
use crate::requests::{
    Arrival, ClientConnection, Connection as Asker, Forward, Framing, Next, Received, RequestHead, Respond, Ticket,
};
use crate::settings::Limits;
use crate::telemetry::OpenConnection;
use bytes::Bytes;
use client::Http2Client;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use gather::{Gather, Output, gather};
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use head::{asked, fields_of_http1, framing, head_of, joined_cookies, mapped, target};
use http::StatusCode;
use http::header::EXPECT;
use http::request::Parts;
use memory::InMemory;
use pingora_core::apps::HttpServerApp;
use pingora_core::server::ShutdownWatch;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use stream::{Sending, Stream};
use tokio::task::yield_now;
use tokio::time::timeout;
use turn::Turn;
use watch::{Due, RESETS, Resets, Watch};

/// The first octets of a client (RFC 9113 section 3.4).
pub(super) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Malformed requests of a connection before it is closed, as in Pingora's own loop (Pingora 0.9.1).
const MALFORMED: usize = 32;
/// Octets of request bodies that a client may send before the origin takes them.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Octets of a response that wait for the client. The rest waits at the origin.
const SEND_BUFFER: usize = 64 * 1024;
/// What an open request takes, with its connection to the origin.
const REQUEST: usize = 24 * 1024;
/// How often its head is in memory, at most.
const COPIES: usize = 4;

/// A request on its way, until the client has all of its response.
type InFlight<'e> = Pin<Box<dyn Future<Output = Finished> + Send + 'e>>;

/// How a request ended.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once, and a box would be an allocation")]
enum Finished {
    /// An answer was sent whole.
    Answered(Stream, Answered),
    /// A response was passed on whole.
    PassedOn(Stream, Option<Record>),
    /// Its stream was reset before, and that is recorded.
    Reset,
    /// There is nothing left of it.
    Over,
}

/// What is recorded when it has left.
#[expect(clippy::large_enum_variant, reason = "few of them wait, and not for long")]
enum Given {
    Answer(Answered),
    Response(Record),
}

impl Given {
    fn record(self, has_left: bool) {
        match self {
            Given::Answer(answered) => answered.record(has_left),
            Given::Response(record) => record.finish(has_left),
        }
    }
}

/// Why a connection ended before its time.
struct End {
    notice: Notice,
    detail: String,
}

impl End {
    fn broken(error: &h2::Error) -> Result<(), End> {
        // A client that left is nothing to speak of; one that broke the protocol is.
        if error.is_io() {
            tracing::debug!(%error, "an HTTP/2 connection broke");
            return Ok(());
        }
        Err(End { notice: Notice::Http2, detail: error.to_string() })
    }
}

fn builder(limits: &Limits) -> server::Builder {
    // HTTP/2 counts 32 more octets for each field. What is longer still, h2 refuses by itself, with neither a body nor a
    // line in the log.
    let list = limits.headers.saturating_add(limits.target).saturating_mul(4);
    let mut builder = server::Builder::new();
    builder
        .max_header_list_size(u32::try_from(list).unwrap_or(u32::MAX))
        .max_concurrent_streams(limits.streams)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(Some(RESETS))
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buffer_size(SEND_BUFFER);
    builder
}

/// Serves a connection to its end: the client closes it, `limits.idle` passes without a request, or the server leaves.
pub(super) async fn serve<A>(door: &Door<A>, connection: Box<Connection>, stop: ShutdownWatch)
where
    A: HttpServerApp + Send + Sync + 'static,
{
    let edge = &*door.edge;
    let (client, counted) = (connection.client.clone(), connection.counted.clone());
    let address = client.peer.address;
    let (io, output) = gather(connection);
    let limits = edge.desk.limits();
    let handshake = output.flushing(builder(limits).handshake(io));
    let mut connection = match timeout(limits.handshake, handshake).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return edge.notices.closed(Notice::Http2, address, &error),
        Err(late) => return edge.notices.closed(Notice::HandshakeTimeout, address, &late),
    };
    let mut session = Session {
        edge,
        stop,
        client,
        counted,
        watch: Watch::new(limits, connection.ping_pong()),
        connection,
        output,
        exchanges: FuturesUnordered::new(),
        given: Vec::new(),
        leaving: Vec::new(),
        turn: Turn::new(),
        resets: Resets::new(),
        malformed: 0,
        shown_out: None,
    };
    let end = session.run().await;
    let connection = session.finish().await;
    if let Err(End { notice, detail }) = end {
        // At once: a client that floods would go on.
        return edge.notices.closed(notice, address, &detail);
    }
    if let Some(mut connection) = connection.filter(|connection| !connection.client.is_given_up()) {
        linger(&mut connection, LINGERING).await;
    }
}

/// A connection and its requests.
struct Session<'e, A> {
    edge: &'e Edge<A>,
    stop: ShutdownWatch,
    client: Arc<ClientConnection>,
    counted: Option<Arc<OpenConnection>>,
    connection: server::Connection<Gather, Bytes>,
    output: Output,
    exchanges: FuturesUnordered<InFlight<'e>>,
    /// What h2 has to write, with the streams on which the client may still refuse it.
    given: Vec<(Option<Sending>, Given)>,
    /// What is in the output.
    leaving: Vec<Given>,
    turn: Turn,
    watch: Watch,
    resets: Resets,
    malformed: usize,
    /// Why the client is shown out.
    shown_out: Option<&'static str>,
}

impl<'e, A: HttpServerApp + Send + Sync + 'static> Session<'e, A> {
    async fn run(&mut self) -> Result<(), End> {
        let mut stop = self.stop.clone();
        let mut stopped = pin!(stop.wait_for(|stop| *stop));
        poll_fn(|context| {
            // An error means that the sender is gone, and no later stop could arrive.
            if !self.watch.is_ending() && stopped.as_mut().poll(context).is_ready() {
                self.say_goodbye();
            }
            self.poll(context)
        })
        .await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        loop {
            if let Poll::Ready(end) = self.poll_turn(context) {
                return Poll::Ready(end);
            }
            let is_active = !self.exchanges.is_empty();
            if let Some(counted) = &self.counted {
                counted.set_active(is_active);
            }
            match ready!(self.watch.poll(is_active, context)) {
                Due::Goodbye => self.say_goodbye(),
                Due::LastWord => self.say_last_word(),
                Due::End => return Poll::Ready(Ok(())),
                Due::Lost => return Poll::Ready(Err(End { notice: Notice::NoPong, detail: "no pong".to_owned() })),
            }
        }
    }

    /// Sends a GOAWAY and goes on with the requests that the client sends until it has read that. A second GOAWAY then says
    /// which was the last one (RFC 9113 section 6.8).
    fn say_goodbye(&mut self) {
        self.watch.begin_to_end();
        self.connection.graceful_shutdown();
    }

    /// The client has not read the GOAWAY in time. The second one is sent without its answer: a request that is under way
    /// is not taken, and the client can tell (RFC 9113 section 6.8).
    fn say_last_word(&mut self) {
        self.watch.begin_to_end();
        self.connection.abrupt_shutdown(Reason::NO_ERROR);
    }

    /// Ends the connection and all its requests.
    fn show_out(&mut self, why: &'static str) {
        if self.shown_out.is_none() {
            self.shown_out = Some(why);
            self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
    }

    /// Does all that can be done now. Ready when the connection is over.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        loop {
            if let Poll::Ready(end) = self.poll_requests(context) {
                return Poll::Ready(end);
            }
            let was_full = self.output.is_full();
            if !was_full {
                self.let_leave();
            }
            if let Err(error) = ready!(self.output.poll_flush(context)) {
                tracing::debug!(%error, "an HTTP/2 connection broke");
                return Poll::Ready(Ok(()));
            }
            self.leaving.drain(..).for_each(|given| given.record(true));
            // Otherwise h2 has more to write.
            if !was_full {
                return Poll::Pending;
            }
        }
    }

    /// Moves all requests on, and takes those that have come. What there is room for is in the output then.
    fn poll_requests(&mut self, context: &mut Context<'_>) -> Poll<Result<(), End>> {
        let (requests, connection) = (self.turn.requests.clone(), self.turn.connection.clone());
        let mut over = None;
        self.turn.begin(context.waker());
        while over.is_none() {
            while let Poll::Ready(Some(finished)) = self.exchanges.poll_next_unpin(&mut Context::from_waker(&requests))
            {
                self.settle(finished);
            }
            self.turn.have_moved();
            // This also hands to the output what was said since.
            match self.accept(&mut Context::from_waker(&connection)) {
                ControlFlow::Continue(has_taken) if self.turn.goes_on(has_taken) => {}
                ControlFlow::Continue(_) => break,
                ControlFlow::Break(end) => over = Some(end),
            }
        }
        self.turn.end(context.waker());
        over.map_or(Poll::Pending, Poll::Ready)
    }

    /// Takes the requests that have come, and says whether there were some. Breaks when the connection is over.
    fn accept(&mut self, context: &mut Context<'_>) -> ControlFlow<Result<(), End>, bool> {
        let mut has_taken = false;
        while let Poll::Ready(accepted) = self.connection.poll_accept(context) {
            match (accepted, self.shown_out) {
                (Some(Ok((request, respond))), None) => self.take(request, respond),
                (Some(Ok(_)), Some(_)) => {}
                (None, None) => return ControlFlow::Break(Ok(())),
                (Some(Err(error)), None) => return ControlFlow::Break(End::broken(&error)),
                (None | Some(Err(_)), Some(why)) => {
                    return ControlFlow::Break(Err(End { notice: Notice::Http2, detail: why.to_owned() }));
                }
            }
            has_taken = true;
        }
        ControlFlow::Continue(has_taken)
    }

    /// Answers a request, or begins to pass it on.
    fn take(&mut self, request: http::Request<RecvStream>, respond: SendResponse<Bytes>) {
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

    /// Sends an answer: at once if the client has room for all of it.
    fn answer(&mut self, mut stream: Stream, answered: Answered) {
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
        match is_sent {
            true => self.settle(Finished::Answered(stream, answered)),
            false => self.begin(answer_slowly(stream, answered, self.edge.desk.limits().stall)),
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

    fn begin(&mut self, exchange: impl Future<Output = Finished> + Send + 'e) {
        self.exchanges.push(Box::pin(exchange));
    }

    fn settle(&mut self, finished: Finished) {
        let (stream, given) = match finished {
            Finished::Answered(stream, answered) => (stream, Some(Given::Answer(answered))),
            Finished::PassedOn(stream, record) => (stream, record.map(Given::Response)),
            Finished::Reset => {
                if self.resets.count() {
                    self.show_out("too many resets");
                }
                return;
            }
            Finished::Over => return,
        };
        let is_received = stream.is_received();
        let sending = match is_received {
            true => Some(stream.sending),
            false => {
                self.begin(read_on(stream));
                None
            }
        };
        self.given.extend(given.map(|given| (sending, given)));
    }

    /// What h2 was given is in the output, but for what clients did not wait for.
    fn let_leave(&mut self) {
        for (sending, given) in self.given.drain(..) {
            match sending.is_some_and(|mut sending| sending.is_gone()) {
                true => given.record(false),
                false => self.leaving.push(given),
            }
        }
    }

    /// Ends all requests, and gives the connection back. Requests notice that the client is gone, and are counted and logged
    /// before a stop is complete.
    async fn finish(self) -> Option<Box<Connection>> {
        let Session { connection, mut exchanges, output, given, leaving, counted, .. } = self;
        drop(connection);
        given.into_iter().map(|(_, given)| given).chain(leaving).for_each(|given| given.record(false));
        while let Some(finished) = exchanges.next().await {
            match finished {
                Finished::Answered(_, answered) => answered.record(false),
                Finished::PassedOn(_, record) => record.into_iter().for_each(|record| record.finish(false)),
                Finished::Reset | Finished::Over => {}
            }
        }
        drop(exchanges);
        if let Some(counted) = counted {
            counted.set_active(false);
        }
        output.into_connection()
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

async fn read_on(stream: Stream) -> Finished {
    stream.read_on().await;
    Finished::Over
}
