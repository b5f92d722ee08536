//! [`Exchange`]: one request in the lane, from the choice of a server to the record of what was sent. Must not know how a
//! head is read, nor how octets move.

mod ask;
mod relay;

use super::Lane;
use super::request::LaneRequest;
use crate::answers::{Answer, Asked, Field};
use crate::edge::connection::Connection;
use crate::edge::date::with_date;
use crate::edge::head::fields_of;
use crate::origin::{Attempts, FailedRequest, Route, failure_reason, failure_status};
use crate::requests::{EndedBy, Sent, Ticket};
use http::Method;
use pingora_core::protocols::Stream;
use pingora_core::{Error, ErrorSource, Result};

/// A connection to a server.
struct Origin {
    stream: Stream,
    route: Route,
    /// Whether it was used before.
    is_kept: bool,
}

/// How a client's connection goes on after an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// With the next request.
    GoesOn,
    /// It ends, and the client has all that it gets.
    Ends,
    /// It breaks off: the client must see that something is missing.
    BreaksOff,
}

/// One request and its response.
pub struct Exchange<'e> {
    lane: &'e Lane,
    client: &'e mut Connection,
    ticket: Ticket,
    request: LaneRequest,
    attempts: Attempts,
    /// How far the input was read.
    read: usize,
    /// The status that the client got, or is about to get; 0 before.
    status: u16,
    /// Whether that is the final one.
    has_begun: bool,
    body_octets: u64,
    /// Whether the client's connection goes on.
    keeps_alive: bool,
}

impl<'e> Exchange<'e> {
    /// Before anything was sent.
    pub fn new(lane: &'e Lane, client: &'e mut Connection, ticket: Ticket, request: LaneRequest) -> Exchange<'e> {
        Exchange {
            keeps_alive: !request.closes,
            lane,
            client,
            ticket,
            request,
            attempts: Attempts::default(),
            read: 0,
            status: 0,
            has_begun: false,
            body_octets: 0,
        }
    }

    /// Passes the request and its response on. `head` is the request as it came; `stops` says whether the server is about
    /// to stop.
    pub async fn run(mut self, head: &[u8], stops: impl Fn() -> bool) -> After {
        let passed_on = self.pass_on(stops).await;
        let after = match &passed_on {
            Ok(()) if self.keeps_alive => After::GoesOn,
            Ok(()) => After::Ends,
            Err(error) => self.fail(error, head).await,
        };
        self.record(passed_on.err().as_deref());
        after
    }

    async fn pass_on(&mut self, stops: impl Fn() -> bool) -> Result<()> {
        let (origin, head) = self.ask(stops).await?;
        self.relay(origin, head).await
    }

    /// Counts that the server did not answer.
    fn count_failure(&mut self, reason: &'static str, error: &dyn std::fmt::Display) {
        let (host, target, at) = (self.ticket.host(), self.ticket.target(), self.lane.clock.moment());
        self.attempts.failed(&self.lane.origins, &FailedRequest { host, target, reason, error, at });
    }

    /// Answers for an origin that did not, if nothing of a response was sent yet.
    async fn fail(&mut self, error: &Error, head: &[u8]) -> After {
        if *error.esource() == ErrorSource::Upstream {
            let reason = failure_reason(error.etype());
            self.lane.metrics.upstream_failure(self.attempts.place(), reason);
            self.count_failure(reason, error);
        }
        let status = failure_status(error);
        if status == 0 {
            tracing::debug!(%error, "the client left before its response was passed on");
            return After::BreaksOff;
        }
        if self.has_begun {
            // What came of the response is the client's.
            let _ = self.send().await;
            return After::BreaksOff;
        }
        let answer = self.answer(status, head);
        let tags = answer.fields().filter(|(field, _)| *field == Field::XRobotsTag).map(|(_, value)| value.as_bytes());
        let buffers = &mut self.request.buffers;
        buffers.tags.clear();
        tags.for_each(|tag| buffers.tags.extend(tag.iter().chain(b"\n")));
        buffers.output.clear();
        with_date(|date| answer.write_http1(date, false, &mut buffers.output));
        match self.send().await {
            Ok(()) => {
                (self.status, self.body_octets) = (status, answer.body().len() as u64);
                After::Ends
            }
            Err(_) => After::BreaksOff,
        }
    }

    fn answer(&self, status: u16, head: &[u8]) -> Answer {
        let method = Method::from_bytes(self.ticket.method()).unwrap_or_default();
        let asked = Asked { method: &method, headers: &fields_of(head) };
        let forward = self.ticket.forward(self.client.client.behind(None));
        if self.attempts.has_no_origin() { forward.has_no_origin(&asked) } else { forward.fail(status, &asked) }
    }

    fn record(self, error: Option<&Error>) {
        let tags = self.request.buffers.tags.split(|octet| *octet == b'\n').filter(|tag| !tag.is_empty());
        self.ticket.finish(&Sent {
            status: self.status,
            tags: tags.collect(),
            octets: self.body_octets,
            ended_by: error.map_or(EndedBy::Complete, |error| EndedBy::Error(error.etype().as_str())),
        });
    }
}
