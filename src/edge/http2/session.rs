//! [`Session`]: a connection and its requests, in turns of one task, from its first request to its last. Must not know what
//! becomes of a request.

mod requests;

use super::calls::Calls;
use super::gather::{Gather, Output};
use super::stream::{Sending, Stream};
use super::watch::{Due, Resets, Watch};
use crate::edge::answered::Answered;
use crate::edge::connection::Connection;
use crate::edge::door::Edge;
use crate::edge::lane::Record;
use crate::edge::notices::Reason as Notice;
use crate::requests::ClientConnection;
use crate::telemetry::OpenConnection;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use pingora_core::apps::HttpServerApp;
use pingora_core::server::ShutdownWatch;
use requests::read_on;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

/// A request on its way, until the client has all of its response.
type InFlight<'e> = Pin<Box<dyn Future<Output = Finished> + Send + 'e>>;

/// A request that h2 has taken, or why there are no more.
type Accepted = Result<(http::Request<RecvStream>, SendResponse<Bytes>), h2::Error>;

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
pub(super) struct End {
    pub(super) notice: Notice,
    pub(super) detail: String,
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

/// A connection and its requests.
pub(super) struct Session<'e, A> {
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
    calls: Arc<Calls>,
    watch: Watch,
    resets: Resets,
    malformed: usize,
    /// Why the client is shown out.
    shown_out: Option<&'static str>,
}

impl<'e, A: HttpServerApp + Send + Sync + 'static> Session<'e, A> {
    pub(super) fn new(
        edge: &'e Edge<A>,
        stop: ShutdownWatch,
        (client, counted): (Arc<ClientConnection>, Option<Arc<OpenConnection>>),
        (mut connection, output): (server::Connection<Gather, Bytes>, Output),
    ) -> Session<'e, A> {
        Session {
            edge,
            stop,
            client,
            counted,
            watch: Watch::new(edge.desk.limits(), connection.ping_pong()),
            connection,
            output,
            exchanges: FuturesUnordered::new(),
            given: Vec::new(),
            leaving: Vec::new(),
            calls: Arc::default(),
            resets: Resets::new(),
            malformed: 0,
            shown_out: None,
        }
    }

    /// Serves it until it has to end.
    pub(super) async fn run(&mut self) -> Result<(), End> {
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
        let connection = Waker::from(self.calls.clone());
        let mut is_due = true;
        self.calls.note(context.waker());
        loop {
            while let Poll::Ready(Some(finished)) = self.exchanges.poll_next_unpin(context) {
                self.settle(finished);
            }
            is_due |= self.calls.pass_on();
            if !is_due {
                return Poll::Pending;
            }
            // This also hands to the output what was said since.
            let accepted = self.connection.poll_accept(&mut Context::from_waker(&connection));
            self.calls.note(context.waker());
            is_due = accepted.is_ready();
            if let Poll::Ready(accepted) = accepted
                && let ControlFlow::Break(end) = self.accept(accepted)
            {
                return Poll::Ready(end);
            }
        }
    }

    /// Takes a request that has come. Breaks when the connection is over.
    fn accept(&mut self, accepted: Option<Accepted>) -> ControlFlow<Result<(), End>> {
        match (accepted, self.shown_out) {
            (Some(Ok((request, respond))), None) => self.take(request, respond),
            (Some(Ok(_)), Some(_)) => {}
            (None, None) => return ControlFlow::Break(Ok(())),
            (Some(Err(error)), None) => return ControlFlow::Break(End::broken(&error)),
            (None | Some(Err(_)), Some(why)) => {
                return ControlFlow::Break(Err(End { notice: Notice::Http2, detail: why.to_owned() }));
            }
        }
        ControlFlow::Continue(())
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
    pub(super) async fn finish(self) -> Option<Box<Connection>> {
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
