//! [`RoundTrip::poll_transfer`] moves the bytes of an HTTP request to the origin, and the bytes of
//! the response to the client. Request and response move at the same time, because an origin may
//! answer before it has the whole request. Bytes are read from one side only as fast as the other
//! side takes them. Bytes that were read are sent on before the function waits for more.

use super::{ContinueState, OriginConnection, RoundTrip};
use crate::edge::forwarder::client_side::{BodyError, ClientSide};
use crate::edge::forwarder::field_lines::FieldLines;
use crate::edge::forwarder::origin_io::{self, client_error, origin_error, origin_error_from};
use crate::edge::slow_client::PlaceReleaseTimer;
use WaitingFor::{Client, Nothing, Origin};
use http::StatusCode;
use pingora_core::ErrorType::{
    ConnectionClosed, HTTPStatus, InvalidHTTPHeader, ReadError, ReadTimedout, WriteError,
    WriteTimedout,
};
use pingora_core::protocols::Stream;
use pingora_core::{Error, Result};
use std::io;
use std::pin::Pin;
use std::task::{
    Context,
    Poll::{self, Pending, Ready},
    ready,
};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::Instant;

/// After this time without the origin's 100, crawlgate sends one. curl waits as long for a 100.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

/// The side that a direction waits for.
#[derive(PartialEq, Eq)]
pub enum WaitingFor {
    /// Neither: this direction is over.
    Nothing,
    Origin,
    Client,
}

/// Why a round trip waits. Each has its own timeout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitReason {
    /// The origin has to take more of the request.
    OriginWrite,
    /// The origin has to send more of the response.
    OriginRead,
    /// The client has to send more of the body.
    ClientBody,
    /// The client waits for a 100.
    Continue,
}

/// The state of both directions, except for their buffers.
#[derive(Default)]
pub struct TransferState {
    /// The present wait and its end. `None` after bytes moved.
    wait: Option<(WaitReason, Instant)>,
    /// Whether bytes of the request were written and not flushed.
    is_unflushed: bool,
    pub slow_client: PlaceReleaseTimer,
    /// Why the origin takes no more of the request. It may have answered all the same.
    write_error: Option<io::Error>,
}

impl TransferState {
    /// Whether everything that was written was flushed, and no write failed.
    pub fn is_request_flushed(&self) -> bool {
        self.write_error.is_none() && !self.is_unflushed
    }
}

impl<C: ClientSide> RoundTrip<'_, C> {
    /// Moves the bytes in both directions as far as possible. Ready at the end of the response.
    /// Fails if a side fails, the client leaves, or a timeout passes.
    pub(super) fn poll_transfer(
        &mut self,
        origin: &mut OriginConnection,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let request = self.poll_request(&mut origin.stream, context)?;
        let response = self.poll_response(&mut origin.stream, context)?;
        if response == Nothing {
            return Ready(Ok(()));
        }
        if response == Origin
            && let Ready(Err(error)) = self.client.poll_flush(context)
        {
            return Ready(Err(client_error(WriteError, error)));
        }
        if (request == Nothing || self.request.is_complete)
            && let Ready(gone) = self.client.poll_client_left(context)
        {
            return Ready(Err(client_error(WriteError, gone)));
        }
        self.poll_time_limits(origin, request, response, context)
    }

    /// Called when nothing can move; `request` and `response` are what the two directions wait for.
    /// Pending until the timeout of that wait. Then it fails, except for `WaitReason::Continue`:
    /// then the client gets a 100. A client that has to take the response has its own timeout
    /// ([`ClientSide`]). A wait for the client also fails if the request loses its place at the
    /// origin and may not go on without one.
    fn poll_time_limits(
        &mut self,
        origin: &OriginConnection,
        request: WaitingFor,
        response: WaitingFor,
        context: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        use WaitReason::*;

        if request != Client && response != Client {
            self.transfer.slow_client.end_wait();
        } else if !self.track_client_wait(context) {
            let kind = if self.has_sent_head {
                WriteError
            } else {
                ReadTimedout
            };
            return Ready(Err(client_error(kind, io::ErrorKind::TimedOut.into())));
        }
        let timeouts = origin.route.timeouts;
        let (reason, limit) = match (request, response) {
            (_, Client) => {
                self.transfer.wait = None;
                return Pending;
            }
            // The origin has answered, so the rest of the body has no timeout of its own.
            (Client, _) if self.has_sent_head => (OriginRead, timeouts.read),
            (Client, _) if self.continue_state == ContinueState::Expected => {
                (Continue, CONTINUE_TIMEOUT)
            }
            (Client, _) => (ClientBody, self.forwarder.stall),
            (Origin, _) => (OriginWrite, timeouts.write),
            (Nothing, _) => (OriginRead, timeouts.read),
        };
        let until = match self.transfer.wait {
            Some((before, until)) if before == reason => until,
            _ => Instant::now() + limit,
        };
        self.transfer.wait = Some((reason, until));
        ready!(self.client.poll_elapsed(until, context));
        Ready(Err(match reason {
            Continue => {
                // The next poll flushes it.
                let lines = FieldLines::default();
                self.client
                    .send_informational(StatusCode::CONTINUE, "Continue", &lines);
                self.continue_state = ContinueState::SentHere;
                self.transfer.wait = None;
                context.waker().wake_by_ref();
                return Pending;
            }
            OriginWrite => origin_error(WriteTimedout, "the origin takes nothing"),
            OriginRead => origin_error(ReadTimedout, "the origin sends nothing"),
            ClientBody => client_error(ReadTimedout, io::ErrorKind::TimedOut.into()),
        }))
    }

    /// Measures how long the request waits for its client. Returns whether it may go on.
    fn track_client_wait(&mut self, context: &mut Context<'_>) -> bool {
        let Some(place) = self.attempts.releasable_place() else {
            return true;
        };
        let client = &mut self.client;
        self.transfer.slow_client.continue_wait(place, |moment| {
            if client.poll_elapsed(moment, context).is_ready() {
                context.waker().wake_by_ref();
            }
        })
    }

    /// Moves the request to the origin as far as possible. Waits for nothing when it is sent, or
    /// when the origin takes no more (`write_error`). Fails if not even its first byte can be
    /// written.
    fn poll_request(
        &mut self,
        stream: &mut Stream,
        context: &mut Context<'_>,
    ) -> Result<WaitingFor> {
        loop {
            let has_read = self.read_client_body(context)?.is_ready();
            if self.transfer.write_error.is_some() {
                return Ok(Nothing);
            }
            match self.poll_write(stream, context) {
                Pending => return Ok(Origin),
                Ready(Ok(())) if self.request.is_complete => {
                    self.ticket.release_body_space();
                    return Ok(Nothing);
                }
                Ready(Ok(())) if !has_read => return Ok(Client),
                Ready(Ok(())) => {}
                Ready(Err(error)) if !self.request.is_partly_written => {
                    return Err(origin_error_from(
                        WriteError,
                        "while sending the request",
                        error,
                    ));
                }
                Ready(Err(error)) => self.transfer.write_error = Some(error),
            }
        }
    }

    /// Reads the client's body while the request has capacity. Pending if nothing more has come;
    /// ready if there is no capacity, the body is over, or the origin takes no more.
    fn read_client_body(&mut self, context: &mut Context<'_>) -> Result<Poll<()>> {
        while !self.request.is_complete
            && self.request.has_capacity()
            && self.transfer.write_error.is_none()
        {
            match self.client.poll_body(&mut self.request, context) {
                Pending => return Ok(Pending),
                Ready(Ok(is_over)) => {
                    self.transfer.wait = None;
                    self.count_body_bytes()?;
                    if is_over {
                        self.request.finish_body();
                    }
                }
                Ready(Err(BodyError::ClientLeft(error))) => {
                    return Err(client_error(ReadError, error));
                }
                Ready(Err(error @ BodyError::Malformed(_))) => {
                    let error =
                        Error::because(InvalidHTTPHeader, "while reading the request", error);
                    return Err(error.into_down());
                }
            }
        }
        Ok(Ready(()))
    }

    /// Counts the bytes of the body that were read. Fails if the body is too large or too slow. A
    /// client that sends it does not wait for a 100.
    fn count_body_bytes(&mut self) -> Result<()> {
        let count = std::mem::take(&mut self.request.uncounted_body_bytes);
        if count > 0 && self.continue_state == ContinueState::Expected {
            self.continue_state = ContinueState::None;
        }
        self.transfer.slow_client.end_wait();
        self.ticket.count_body_bytes(count).map_err(|error| {
            Error::because(
                HTTPStatus(error.status()),
                "while reading the request",
                error,
            )
            .into_down()
        })
    }

    /// Writes and flushes the unwritten bytes of the request.
    fn poll_write(
        &mut self,
        stream: &mut Stream,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.request.unwritten().is_empty() {
            let count = ready!(origin_io::poll_write(
                stream,
                self.request.unwritten(),
                context
            ))?;
            self.request.mark_written(count);
            self.transfer.is_unflushed = true;
            self.transfer.wait = None;
        }
        if self.transfer.is_unflushed {
            ready!(Pin::new(stream).poll_flush(context))?;
            self.transfer.is_unflushed = false;
        }
        Ready(Ok(()))
    }

    /// Reads from the origin and passes on, as long as bytes come and the client takes them.
    fn poll_response(
        &mut self,
        stream: &mut Stream,
        context: &mut Context<'_>,
    ) -> Result<WaitingFor> {
        loop {
            let waiting_for = if self.response.is_before_body() {
                self.relay_heads(context)?
            } else {
                self.relay_body(context)?
            };
            if waiting_for != Origin {
                return Ok(waiting_for);
            }
            if !self.response.is_before_body() {
                match self.client.poll_capacity(context) {
                    Pending => {
                        self.response.shrink_buffer();
                        return Ok(Client);
                    }
                    Ready(capacity) => capacity.map_err(|error| client_error(WriteError, error))?,
                }
            }
            let read = origin_io::poll_read(stream, self.response.input_buffer(), context);
            self.response.mark_read();
            match read {
                Pending => return Ok(Origin),
                Ready(Ok(1..)) => self.transfer.wait = None,
                Ready(Ok(0)) => return self.handle_origin_close(),
                Ready(Err(error)) => {
                    return Err(origin_error_from(
                        ReadError,
                        "while reading the response",
                        error,
                    ));
                }
            }
        }
    }

    /// Called when the origin has closed. That ends a body without length and chunks. Otherwise it
    /// is an error: that of writing the request, if there was one.
    fn handle_origin_close(&mut self) -> Result<WaitingFor> {
        if self.response.ends_by_close() {
            self.client.end_body(&[]);
            return Ok(Nothing);
        }
        if let Some(error) = self.transfer.write_error.take() {
            return Err(origin_error_from(
                WriteError,
                "while sending the request",
                error,
            ));
        }
        let what = if self.response.is_before_body() {
            "the origin closed before the head of a response"
        } else {
            "the origin closed before the end of its response"
        };
        Err(origin_error(ConnectionClosed, what))
    }
}
