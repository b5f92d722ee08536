//! [`Session`]: a connection over HTTP/2 with all its requests, driven by one task until its last
//! request is over.

mod requests;

use super::output::Output;
use super::stream::{Sending, Stream};
use super::timeouts::{Due, Resets, Timeouts};
use super::wakes::Wakes;
use crate::edge::answered::{Extent, record};
use crate::edge::close_log::CloseReason;
use crate::edge::connection::Connection;
use crate::edge::door::Edge;
use crate::requests::{ClientConnection, Record, Responded};
use crate::telemetry::OpenConnection;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
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

#[expect(
    clippy::large_enum_variant,
    reason = "it is taken apart at once, and a box would be an allocation"
)]
pub enum Finished {
    /// An answer or a response was sent whole. It is recorded later.
    Sent(Stream, Option<Unrecorded>),
    /// Its stream was reset before. It is recorded.
    Reset,
    /// Nothing is left to do.
    Over,
}

/// An answer or a response, to be recorded when its octets have left.
#[expect(
    clippy::large_enum_variant,
    reason = "few of them wait, and not for long"
)]
pub enum Unrecorded {
    Answer(Responded),
    Response(Record),
}

impl Unrecorded {
    /// Records it. `has_left` says whether all its bytes have left; if not, an answer counts as one
    /// of which no byte of the body was sent.
    fn record(self, has_left: bool) {
        match self {
            Unrecorded::Answer(responded) => record(
                responded,
                if has_left {
                    Extent::Whole
                } else {
                    Extent::Begun(0)
                },
            ),
            Unrecorded::Response(record) => record.finish(has_left),
        }
    }
}

/// The end of a connection: as usual, or for a reason, with a detail for the log.
pub type End = Result<(), (CloseReason, String)>;

/// The end of a connection after an error of h2: `Ok` if the client just left (an I/O error), else
/// `CloseReason::Http2` with the error, because the client broke the protocol.
fn broken(error: &h2::Error) -> End {
    // A client that left is not worth a line in the log. One that broke the protocol is.
    if error.is_io() {
        tracing::debug!(%error, "an HTTP/2 connection broke");
        return Ok(());
    }
    Err((CloseReason::Http2, error.to_string()))
}

pub struct Session<'e> {
    edge: &'e Edge,
    stop: ShutdownWatch,
    client: Arc<ClientConnection>,
    counted: Option<Arc<OpenConnection>>,
    connection: server::Connection<Output, Bytes>,
    output: Output,
    exchanges: FuturesUnordered<InFlight<'e>>,
    /// What h2 still has to write, with the streams that the client may still reset.
    in_h2: Vec<(Option<Sending>, Unrecorded)>,
    /// What h2 has written into the output.
    in_output: Vec<Unrecorded>,
    wakes: Arc<Wakes>,
    timeouts: Timeouts,
    resets: Resets,
    malformed: usize,
    /// Why the connection is closed before its time.
    closed_for: Option<&'static str>,
}

impl<'e> Session<'e> {
    pub fn new(
        edge: &'e Edge,
        stop: ShutdownWatch,
        client: Arc<ClientConnection>,
        counted: Option<Arc<OpenConnection>>,
        mut connection: server::Connection<Output, Bytes>,
        output: Output,
    ) -> Session<'e> {
        Session {
            edge,
            stop,
            client,
            counted,
            timeouts: Timeouts::new(edge.limits(), connection.ping_pong()),
            connection,
            output,
            exchanges: FuturesUnordered::new(),
            in_h2: Vec::new(),
            in_output: Vec::new(),
            wakes: Arc::default(),
            resets: Resets::new(),
            malformed: 0,
            closed_for: None,
        }
    }

    /// Serves the connection until it is over, and returns how it ended. Announces the end to the
    /// client when `stop` is signalled.
    pub async fn run(&mut self) -> End {
        let mut stop = self.stop.clone();
        let mut stopped = pin!(stop.wait_for(|stop| *stop));
        poll_fn(|context| {
            // An error means that the sender is gone, and no later stop could arrive.
            if !self.timeouts.is_ending() && stopped.as_mut().poll(context).is_ready() {
                self.announce_end();
            }
            self.poll(context)
        })
        .await
    }

    /// Takes turns and does what the timeouts ask for. Ready when the connection is over: in a
    /// turn, because it is still open a while after the last GOAWAY (`Ok`), or because a ping was
    /// not answered.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<End> {
        loop {
            if let Poll::Ready(end) = self.poll_turn(context) {
                return Poll::Ready(end);
            }
            let is_active = !self.exchanges.is_empty();
            if let Some(counted) = &self.counted {
                counted.set_active(is_active);
            }
            match ready!(self.timeouts.poll(is_active, context)) {
                Due::FirstGoaway => self.announce_end(),
                // The client has not read the first one in time. A request that is under way is not
                // taken, and the client can tell (RFC 9113 section 6.8).
                Due::LastGoaway => {
                    self.timeouts.begin_to_end();
                    self.connection.abrupt_shutdown(Reason::NO_ERROR);
                }
                Due::Close => return Poll::Ready(Ok(())),
                Due::Lost => return Poll::Ready(Err((CloseReason::NoPong, "no pong".to_owned()))),
            }
        }
    }

    /// Sends a GOAWAY that names no last request, and goes on with the requests that the client
    /// sends until it has read that. A second GOAWAY then says which was the last one (RFC 9113
    /// section 6.8).
    fn announce_end(&mut self) {
        self.timeouts.begin_to_end();
        self.connection.graceful_shutdown();
    }

    /// Sends a GOAWAY that ends the connection and all its requests, and keeps `why` for the log.
    /// Only the first call does something.
    fn close_for(&mut self, why: &'static str) {
        if self.closed_for.is_none() {
            self.closed_for = Some(why);
            self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
        }
    }

    /// Takes a turn: advances all requests, checks for floods, writes the output, and records what
    /// has left. Repeats that while h2 has more to write than the output had room for. Ready when
    /// the connection is over, which is `Ok` if writing failed.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<End> {
        loop {
            if let Poll::Ready(end) = self.poll_requests(context) {
                return Poll::Ready(end);
            }
            if self.closed_for.is_none() && !self.client.peer.is_trusted && self.output.is_flooded()
            {
                self.close_for("too many frames that move nothing");
                continue;
            }
            let was_full = self.output.is_full();
            if !was_full {
                self.let_leave();
            }
            if let Err(error) = ready!(self.output.poll_flush(context)) {
                tracing::debug!(%error, "an HTTP/2 connection broke");
                return Poll::Ready(Ok(()));
            }
            self.in_output
                .drain(..)
                .for_each(|unrecorded| unrecorded.record(true));
            // Otherwise h2 has more to write.
            if !was_full {
                return Poll::Pending;
            }
        }
    }

    /// Advances all requests and takes new ones, until nothing more can be done now. The output
    /// then has everything that there is room for. Ready when the connection is over.
    fn poll_requests(&mut self, context: &mut Context<'_>) -> Poll<End> {
        let connection = Waker::from(self.wakes.clone());
        let mut is_due = true;
        self.output.look_again();
        self.wakes.note(context.waker());
        loop {
            while let Poll::Ready(Some(finished)) = self.exchanges.poll_next_unpin(context) {
                self.settle(finished);
            }
            if self.wakes.pass_on() {
                is_due = true;
                self.output.look_again();
            }
            if !is_due {
                return Poll::Pending;
            }
            // This also has h2 write into the output what the requests have sent.
            let accepted = self
                .connection
                .poll_accept(&mut Context::from_waker(&connection));
            self.wakes.note(context.waker());
            is_due = accepted.is_ready();
            if let Poll::Ready(accepted) = accepted
                && let ControlFlow::Break(end) = self.accept(accepted)
            {
                return Poll::Ready(end);
            }
        }
    }

    /// Handles what h2 gave: takes a new request, or drops it if the connection is being closed.
    /// Breaks with the end of the connection: with the reason of `Session::close_for`, if it was
    /// called.
    fn accept(&mut self, accepted: Option<Accepted>) -> ControlFlow<End> {
        match (accepted, self.closed_for) {
            (Some(Ok((request, respond))), None) => self.take(request, respond),
            (Some(Ok(_)), Some(_)) => {}
            (None, None) => return ControlFlow::Break(Ok(())),
            (Some(Err(error)), None) => return ControlFlow::Break(broken(&error)),
            (None | Some(Err(_)), Some(why)) => {
                return ControlFlow::Break(Err((CloseReason::Http2, why.to_owned())));
            }
        }
        ControlFlow::Continue(())
    }

    /// Adds a request to those that the session advances until they end.
    fn begin(&mut self, exchange: impl Future<Output = Finished> + Send + 'e) {
        self.exchanges.push(Box::pin(exchange));
    }

    /// Handles a request that has ended. A reset counts, and too many of them close the connection.
    /// A response that was sent waits in `in_h2` for its record. If the client still sends its
    /// request, the rest is read and thrown away.
    fn settle(&mut self, finished: Finished) {
        let (stream, unrecorded) = match finished {
            Finished::Sent(stream, unrecorded) => (stream, unrecorded),
            Finished::Reset => {
                if !self.client.peer.is_trusted && self.resets.count() {
                    self.close_for("too many resets");
                }
                return;
            }
            Finished::Over => return,
        };
        let sending = if stream.is_received() {
            Some(stream.sending)
        } else {
            self.begin(read_on(stream, self.output.clone()));
            None
        };
        self.in_h2
            .extend(unrecorded.map(|unrecorded| (sending, unrecorded)));
    }

    /// Called when h2 has written all that it was given into the output. Moves the waiting records
    /// from `in_h2` to `in_output`; those of streams that the client has reset are recorded as cut
    /// off.
    fn let_leave(&mut self) {
        for (sending, unrecorded) in self.in_h2.drain(..) {
            if sending.is_some_and(|mut sending| sending.check_gone()) {
                unrecorded.record(false);
            } else {
                self.in_output.push(unrecorded);
            }
        }
    }

    /// Ends all requests, and returns the connection if h2 has let go of it. Requests notice that
    /// the client is gone, and are counted and logged before a stop is complete. What has not left
    /// is recorded as cut off.
    pub async fn finish(self) -> Option<Box<Connection>> {
        let Session {
            connection,
            mut exchanges,
            output,
            in_h2,
            in_output,
            counted,
            ..
        } = self;
        drop(connection);
        let in_h2 = in_h2.into_iter().map(|(_, unrecorded)| unrecorded);
        for unrecorded in in_h2.chain(in_output) {
            unrecorded.record(false);
        }
        while let Some(finished) = exchanges.next().await {
            if let Finished::Sent(_, Some(unrecorded)) = finished {
                unrecorded.record(false);
            }
        }
        drop(exchanges);
        if let Some(counted) = counted {
            counted.set_active(false);
        }
        output.into_connection()
    }
}
