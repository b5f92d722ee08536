//! [`Exchange`]: one request that the lane forwards, from the choice of a server to the record of
//! what was sent.

mod ask;
mod response;
mod transfer;

use super::Lane;
use super::client::Client;
use super::incoming::Incoming;
use super::outgoing::Outgoing;
use super::request::LaneRequest;
use super::wire::of_client;
use crate::answers::{Answer, Asked, Field};
use crate::requests::{EndedBy, Record, Ticket};
use crate::upstreams::{Attempts, Reached, Route, failure_status};
use http::Method;
use pingora_core::protocols::Stream;
use pingora_core::{Error, ErrorType, Result};
use std::future::poll_fn;
use transfer::Transfer;

/// A connection to a server.
struct Origin {
    stream: Stream,
    route: Route,
    /// Whether it was used before.
    is_kept: bool,
}

/// Whether the client waits for a 100 before it sends the body.
#[derive(Debug, PartialEq, Eq)]
enum Expectation {
    /// It does not wait, or the origin's 100 was passed on.
    None,
    Asked,
    /// crawlgate told it to go on, so that it does not need the origin's 100.
    Told,
}

/// What the client got of an exchange.
#[derive(Debug, PartialEq, Eq)]
pub enum After {
    /// The whole response of the origin.
    Whole,
    /// An answer of crawlgate's in its place.
    Answered,
    /// A part of a response, or nothing: the client must see that something is missing.
    BrokenOff,
}

/// One request and its response.
pub struct Exchange<'e, C> {
    lane: &'e Lane,
    client: &'e mut C,
    ticket: Ticket,
    request: Outgoing,
    is_head: bool,
    /// Whether the request may be sent again when an origin has perhaps seen it.
    may_repeat: bool,
    attempts: Attempts,
    response: Incoming,
    informational: u8,
    /// Bytes of their heads. Beyond [`SMALL`](crate::requests::SMALL) they are passed on without
    /// fields.
    informational_bytes: usize,
    transfer: Transfer,
    expectation: Expectation,
    /// Whether the origin keeps the connection.
    keeps_origin: bool,
    /// The values of X-Robots-Tag that were sent, each with a line's end.
    tags: Vec<u8>,
    /// The status that the client got, or is about to get; 0 before.
    status: u16,
    /// Whether that is the final one.
    has_begun: bool,
    body_octets: u64,
}

impl<'e, C: Client> Exchange<'e, C> {
    /// An exchange of which nothing was sent yet.
    pub fn new(
        lane: &'e Lane,
        client: &'e mut C,
        ticket: Ticket,
        request: LaneRequest,
    ) -> Exchange<'e, C> {
        let LaneRequest {
            head,
            body,
            is_head,
            may_repeat,
            expects,
            ..
        } = request;
        Exchange {
            lane,
            client,
            ticket,
            request: Outgoing::new(head, body),
            is_head,
            may_repeat,
            attempts: Attempts::default(),
            response: Incoming::default(),
            informational: 0,
            informational_bytes: 0,
            transfer: Transfer::default(),
            expectation: if expects {
                Expectation::Asked
            } else {
                Expectation::None
            },
            keeps_origin: false,
            tags: Vec::new(),
            status: 0,
            has_begun: false,
            body_octets: 0,
        }
    }

    /// Forwards the request, passes its response on, and records what was sent. Returns what the
    /// client got.
    pub async fn run(self) -> After {
        let (after, record) = self.run_unrecorded().await;
        record.finish(true);
        after
    }

    /// [`Exchange::run`] for a client whose octets leave later: the caller finishes the [`Record`]
    /// then.
    #[expect(
        clippy::manual_async_fn,
        reason = "the future of an `async fn` has room for the exchange twice"
    )]
    pub fn run_unrecorded(mut self) -> impl Future<Output = (After, Record)> + use<'e, C> {
        async move {
            let passed_on = self.pass_on().await;
            let after = match &passed_on {
                Ok(()) => After::Whole,
                Err(error) => self.fail(error).await,
            };
            let Exchange {
                ticket,
                tags,
                status,
                body_octets,
                ..
            } = self;
            let ended_by = match &passed_on {
                Ok(()) => EndedBy::Complete,
                Err(error) => EndedBy::Error(error.etype().as_str()),
            };
            (
                after,
                Record {
                    ticket,
                    tags,
                    status,
                    bytes: body_octets,
                    ended_by,
                },
            )
        }
    }

    /// Gets the response and passes it on, until the client's side has flushed all of it.
    async fn pass_on(&mut self) -> Result<()> {
        self.ask().await?;
        // What the origin sent has left its buffer, and the client may take its time.
        self.response = Incoming::default();
        self.flush().await
    }

    /// Reports to `upstreams` that the server failed, and how far the request had come (`reached`).
    /// Returns whether the request may be sent once more.
    fn note_failure(&mut self, reached: Reached, error: &Error) -> bool {
        let wanted = self
            .ticket
            .wanted(self.may_repeat || !self.request.is_begun);
        self.attempts
            .failed(&self.lane.upstreams, &wanted, reached, error)
    }

    /// Ends an exchange that failed. If nothing of a response was sent, the client gets an error
    /// answer, which replaces status, tags and bytes for the record (`Answered`). If it has the
    /// head, it gets the part that came; that, or a client that left, is `BrokenOff`.
    async fn fail(&mut self, error: &Error) -> After {
        // A failure before the body was reported when it happened.
        self.note_failure(Reached::Body, error);
        let status = failure_status(error);
        if status == 0 {
            tracing::debug!(%error, "the client left before its response was passed on");
            return After::BrokenOff;
        }
        if self.has_begun {
            // The client gets the part of the response that came.
            let _ = self.flush().await;
            return After::BrokenOff;
        }
        let answer = self.answer(status);
        self.tags.clear();
        for tag in answer.values(Field::XRobotsTag) {
            self.tags.extend(tag.as_bytes().iter().chain(b"\n"));
        }
        self.client.answer(&answer);
        // A client without a window may take its time, and the answer takes the place of what the
        // origin sent.
        self.response = Incoming::default();
        self.status = status;
        match self.flush().await {
            Ok(()) => {
                self.body_octets = answer.body().len() as u64;
                After::Answered
            }
            Err(_) => After::BrokenOff,
        }
    }

    /// The answer in place of the origin's response. `status` is for a failure after a server was
    /// chosen; if none was found, the answer says that instead.
    fn answer(&self, status: u16) -> Answer {
        let method = Method::from_bytes(self.ticket.method()).unwrap_or_default();
        let asked = Asked {
            method: &method,
            headers: &self.client.asked(),
        };
        let forward = self.ticket.forward(self.client.connection());
        forward.unanswered(status, &self.attempts, &asked)
    }

    /// Waits until all that was sent has left.
    async fn flush(&mut self) -> Result<()> {
        let flushed = poll_fn(|context| self.client.poll_flush(context)).await;
        flushed.map_err(|error| of_client(ErrorType::WriteError, error))
    }
}
