//! [`Exchange::poll_transfer`] moves the bodies of the request and the response at the same time,
//! because an origin may answer before it has the whole request. It reads from one side no more
//! than the other side takes. Octets that have arrived are sent before it waits.

use super::{Exchange, Expectation, Origin};
use crate::edge::lane::client::{BodyError, Client, ClientHead};
use crate::edge::lane::lines::Lines;
use crate::edge::lane::wire::{self, because, of_client, of_origin};
use crate::edge::pace::Pace;
use http::StatusCode;
use pingora_core::protocols::Stream;
use pingora_core::{Error, ErrorType, Result};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::Instant;

/// How long an origin may say nothing to a client that waits for its 100. curl waits as long and
/// goes on then.
const CONTINUE: Duration = Duration::from_secs(1);

/// The end that a direction waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// None: there is nothing more in this direction.
    Done,
    Origin,
    Client,
}

/// The event that an exchange waits for, with a timeout for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    /// The origin takes more of the request.
    Writing,
    /// The origin sends more of the response.
    Reading,
    /// The client sends more of the request's body.
    Body,
    /// The origin says whether it wants the body.
    Continue,
}

/// The state of both directions, beside the octets that were read and written.
#[derive(Debug, Default)]
pub struct Transfer {
    /// The awaited event, and the end of the wait. `None` after something moved.
    wait: Option<(Awaited, Instant)>,
    is_unflushed: bool,
    pub pace: Pace,
    /// Why the origin takes no more of the request. It may have answered all the same.
    write_error: Option<io::Error>,
}

impl Transfer {
    /// Whether all that was written of the request was flushed, and no write failed.
    pub fn takes_request(&self) -> bool {
        self.write_error.is_none() && !self.is_unflushed
    }
}

impl<C: Client> Exchange<'_, C> {
    /// Passes on the bytes that can be, in both directions. Ready at the end of the response; fails
    /// if a side fails, the client is gone, or a timeout passes.
    pub(super) fn poll_transfer(
        &mut self,
        origin: &mut Origin,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let request = self.poll_request(&mut origin.stream, context)?;
        let response = self.poll_response(&mut origin.stream, context)?;
        if response == WaitsFor::Done {
            return Poll::Ready(Ok(()));
        }
        // A client that takes nothing is being waited for already.
        if response == WaitsFor::Origin
            && let Poll::Ready(Err(error)) = self.client.poll_flush(context)
        {
            return Poll::Ready(Err(of_client(ErrorType::WriteError, error)));
        }
        if (request == WaitsFor::Done || self.request.is_whole)
            && let Poll::Ready(gone) = self.client.poll_gone(context)
        {
            return Poll::Ready(Err(of_client(ErrorType::WriteError, gone)));
        }
        self.poll_wait(origin, request, response, context)
    }

    /// Called when nothing can move; `request` and `response` say which side each waits for.
    /// Pending until the timeout of that wait. Then it fails, but where only the origin's 100 is
    /// awaited it sends the client a 100 and goes on. It has no timeout while the client has to
    /// take the response. A wait for the client also fails once the request has to give up its
    /// place at the origin and must not go on without one.
    fn poll_wait(
        &mut self,
        origin: &Origin,
        request: WaitsFor,
        response: WaitsFor,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if request != WaitsFor::Client && response != WaitsFor::Client {
            self.transfer.pace.pause();
        } else if !self.wait_for_client(context) {
            let kind = if self.has_begun {
                ErrorType::WriteError
            } else {
                ErrorType::ReadTimedout
            };
            return Poll::Ready(Err(of_client(kind, io::ErrorKind::TimedOut.into())));
        }
        let timeouts = origin.route.timeouts;
        let (awaited, limit) = match (request, response) {
            // The client's side gives up one that takes nothing.
            (_, WaitsFor::Client) => {
                self.transfer.wait = None;
                return Poll::Pending;
            }
            // The origin has answered, so the rest of the body has no timeout of its own.
            (WaitsFor::Client, _) if self.has_begun => (Awaited::Reading, timeouts.read),
            (WaitsFor::Client, _) if self.expectation == Expectation::Asked => {
                (Awaited::Continue, CONTINUE)
            }
            (WaitsFor::Client, _) => (Awaited::Body, self.lane.stall),
            (WaitsFor::Origin, _) => (Awaited::Writing, timeouts.write),
            (WaitsFor::Done, _) => (Awaited::Reading, timeouts.read),
        };
        let until = match self.transfer.wait {
            Some((before, until)) if before == awaited => until,
            _ => Instant::now() + limit,
        };
        self.transfer.wait = Some((awaited, until));
        ready!(self.client.poll_elapsed(until, context));
        Poll::Ready(Err(match awaited {
            Awaited::Continue => {
                // In the place of an origin that says nothing. The 100 has to be flushed.
                let lines = Lines::default();
                self.client.inform(&ClientHead {
                    status: StatusCode::CONTINUE,
                    reason: "Continue",
                    lines: &lines,
                });
                self.expectation = Expectation::Told;
                self.transfer.wait = None;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Awaited::Writing => of_origin(ErrorType::WriteTimedout, "the origin takes nothing"),
            Awaited::Reading => of_origin(ErrorType::ReadTimedout, "the origin sends nothing"),
            Awaited::Body => of_client(ErrorType::ReadTimedout, io::ErrorKind::TimedOut.into()),
        }))
    }

    /// Counts the time that this request waits for its client. A slow client gives its place at the
    /// origin up while people wait for one. Returns whether the request may go on.
    fn wait_for_client(&mut self, context: &mut Context<'_>) -> bool {
        let Some(place) = self.attempts.place() else {
            return true;
        };
        let client = &mut self.client;
        self.transfer.pace.wait(place, |moment| {
            if client.poll_elapsed(moment, context).is_ready() {
                context.waker().wake_by_ref();
            }
        })
    }

    /// Moves the request to the origin as far as possible, and returns the side it waits for:
    /// `Done` when it is sent, or when the origin takes no more (`write_error`; it may have
    /// answered all the same). An error before its first byte was written fails.
    fn poll_request(&mut self, stream: &mut Stream, context: &mut Context<'_>) -> Result<WaitsFor> {
        loop {
            let has_come = self.take_body(context)?.is_ready();
            if self.transfer.write_error.is_some() {
                return Ok(WaitsFor::Done);
            }
            match self.poll_write(stream, context) {
                Poll::Pending => return Ok(WaitsFor::Origin),
                Poll::Ready(Ok(())) if self.request.is_whole => {
                    self.ticket.release_upload();
                    return Ok(WaitsFor::Done);
                }
                Poll::Ready(Ok(())) if !has_come => return Ok(WaitsFor::Client),
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) if !self.request.is_begun => {
                    return Err(because(
                        ErrorType::WriteError,
                        "while sending the request",
                        error,
                    ));
                }
                Poll::Ready(Err(error)) => self.transfer.write_error = Some(error),
            }
        }
    }

    /// Takes the bytes of the body that have come, as far as there is room. Pending if there is
    /// room and nothing more has come; ready if there is no room, the body is over, or the origin
    /// takes no more.
    fn take_body(&mut self, context: &mut Context<'_>) -> Result<Poll<()>> {
        while !self.request.is_whole
            && self.request.has_room()
            && self.transfer.write_error.is_none()
        {
            match self.client.poll_body(&mut self.request, context) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(is_over)) => {
                    self.transfer.wait = None;
                    self.count_upload()?;
                    if is_over {
                        self.request.end();
                    }
                }
                Poll::Ready(Err(BodyError::Gone(error))) => {
                    return Err(of_client(ErrorType::ReadError, error));
                }
                Poll::Ready(Err(error @ BodyError::Malformed)) => {
                    let error = Error::because(
                        ErrorType::InvalidHTTPHeader,
                        "while reading the request",
                        error,
                    );
                    return Err(error.into_down());
                }
            }
        }
        Ok(Poll::Ready(()))
    }

    /// Counts the bytes of the body that came, which fails if the body is too large or too slow. A
    /// client that sends them does not wait for a 100.
    fn count_upload(&mut self) -> Result<()> {
        let count = std::mem::take(&mut self.request.body_octets);
        if count > 0 && self.expectation == Expectation::Asked {
            self.expectation = Expectation::None;
        }
        self.transfer.pace.pause();
        self.ticket.count_upload(count).map_err(|error| {
            Error::because(
                ErrorType::HTTPStatus(error.status()),
                "while reading the request",
                error,
            )
            .into_down()
        })
    }

    /// Writes and flushes the bytes of the request that wait. Ready when none is left.
    fn poll_write(
        &mut self,
        stream: &mut Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.request.waiting().is_empty() {
            let count = ready!(wire::poll_write(stream, self.request.waiting(), context))?;
            self.request.wrote(count);
            self.transfer.is_unflushed = true;
            self.transfer.wait = None;
        }
        if self.transfer.is_unflushed {
            ready!(Pin::new(stream).poll_flush(context))?;
            self.transfer.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Reads from the origin and passes on, as long as bytes come and the client takes them.
    /// Returns the side that the response waits for.
    fn poll_response(
        &mut self,
        stream: &mut Stream,
        context: &mut Context<'_>,
    ) -> Result<WaitsFor> {
        loop {
            let is_before_body = self.response.is_before_body();
            let side = if is_before_body {
                self.take_heads(context)?
            } else {
                self.pass_body(context)?
            };
            if side != WaitsFor::Origin {
                return Ok(side);
            }
            if !self.response.is_before_body() {
                match self.client.poll_room(context) {
                    Poll::Pending => {
                        self.response.settle();
                        return Ok(WaitsFor::Client);
                    }
                    Poll::Ready(room) => {
                        room.map_err(|error| of_client(ErrorType::WriteError, error))?
                    }
                }
            }
            let read = wire::poll_read(stream, self.response.room(), context);
            self.response.received();
            match read {
                Poll::Pending => return Ok(WaitsFor::Origin),
                Poll::Ready(Ok(1..)) => self.transfer.wait = None,
                Poll::Ready(Ok(0)) => return self.end_of_connection(),
                Poll::Ready(Err(error)) => {
                    return Err(because(
                        ErrorType::ReadError,
                        "while reading the response",
                        error,
                    ));
                }
            }
        }
    }

    /// Handles that the origin closed: that ends a body without length or chunks (`Done`).
    /// Otherwise it is an error: that of writing the request, if there was one.
    fn end_of_connection(&mut self) -> Result<WaitsFor> {
        if self.response.ends_by_close() {
            self.client.end(&[]);
            return Ok(WaitsFor::Done);
        }
        if let Some(error) = self.transfer.write_error.take() {
            return Err(because(
                ErrorType::WriteError,
                "while sending the request",
                error,
            ));
        }
        let what = if self.response.is_before_body() {
            "the origin closed before the head of a response"
        } else {
            "the origin closed before the end of its response"
        };
        Err(of_origin(ErrorType::ConnectionClosed, what))
    }
}
