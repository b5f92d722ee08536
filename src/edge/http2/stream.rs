//! [`Stream`]: one request over HTTP/2. [`Sending`] is its half for the response: it sends as much
//! as the flow control of the client allows, and notices when the client is gone.

use super::output::Output;
use crate::edge::timer::Stall;
use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Response};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::time::timeout;

/// How long a client may go on sending a request that was answered, and how many octets of it are
/// thrown away. A client that has not sent all of its request when its stream is reset may lose the
/// answer (curl 7.88).
const READ_ON: Duration = Duration::from_secs(2);
const THROWN_AWAY: usize = 1024 * 1024;

/// The stream was reset, or its connection is over.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the stream is over")]
pub struct Gone;

pub struct Sending {
    respond: SendResponse<Bytes>,
    /// Set when the head of the response was sent.
    body: Option<SendStream<Bytes>>,
    stall: Stall,
}

pub struct Stream {
    pub sending: Sending,
    pub body: RecvStream,
    /// The part of the body that was read before the request was forwarded.
    pub ahead: BytesMut,
}

impl Stream {
    /// A stream. If its client has no room for anything of a response for `stall`, the stream is
    /// reset.
    pub fn new(respond: SendResponse<Bytes>, body: RecvStream, stall: Duration) -> Stream {
        Stream {
            sending: Sending {
                respond,
                body: None,
                stall: Stall::new(stall),
            },
            body,
            ahead: BytesMut::new(),
        }
    }

    /// Whether the client has sent all of its request.
    pub fn is_received(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Reads the body into `ahead`, until its end or until `most` bytes of it are there. The client
    /// may send as much again at once: if half-sent bodies filled the connection's window, none of
    /// them could be completed. Fails if the stream is over.
    pub async fn read_ahead(&mut self, most: usize, output: &Output) -> Result<(), Gone> {
        while self.ahead.len() < most
            && let Some(piece) = self.body.data().await
        {
            let piece = piece.map_err(|_| Gone)?;
            self.ahead.extend_from_slice(&piece);
            output.note_moved(piece.len());
            let _ = self.body.flow_control().release_capacity(piece.len());
        }
        Ok(())
    }

    /// Reads and throws away what the client still sends of a request that was answered, for at
    /// most `READ_ON`. If that is not its end, the stream is reset.
    pub async fn read_on(mut self, output: &Output) {
        if timeout(READ_ON, throw_away(&mut self.body, output))
            .await
            .is_err()
        {
            self.sending.reset(Reason::NO_ERROR);
        }
    }
}

/// Reads and throws away what the client sends, until its end or an error. After `THROWN_AWAY`
/// bytes the client is not allowed to send more, beyond the window that it has; this then waits.
pub async fn throw_away(body: &mut RecvStream, output: &Output) {
    let mut left = THROWN_AWAY;
    while let Some(Ok(piece)) = body.data().await {
        output.note_moved(piece.len());
        left = left.saturating_sub(piece.len());
        if left > 0 {
            // The client learns of it with the next window.
            let _ = body.flow_control().release_capacity(piece.len());
        }
    }
    // h2 holds trailers until they are taken: a few octets on the wire may be a map of thousands of
    // fields.
    let _ = body.trailers().await;
}

impl Sending {
    /// Sends an informational head.
    pub fn inform(&mut self, head: Response<()>) -> Result<(), Gone> {
        self.respond.send_informational(head).map_err(|_| Gone)
    }

    /// Sends the head of the response; `ends` if nothing follows.
    pub fn head(&mut self, head: Response<()>, ends: bool) -> Result<(), Gone> {
        self.body = Some(self.respond.send_response(head, ends).map_err(|_| Gone)?);
        Ok(())
    }

    /// Ready with how many of the `wanted` bytes the client has room for: at least one. If the
    /// client has no room for `stall`, the stream is reset, and the result is [`Gone`].
    pub fn poll_room(
        &mut self,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, Gone>> {
        let polled = self.poll_capacity(wanted, context);
        if !self.stall.record(&polled, context) {
            return polled;
        }
        self.reset(Reason::CANCEL);
        Poll::Ready(Err(Gone))
    }

    /// Asks h2 for room. Ready with at least one byte of room and at most `wanted`; [`Gone`] if the
    /// stream is over, or its head was not sent yet.
    fn poll_capacity(
        &mut self,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, Gone>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(Err(Gone));
        };
        body.reserve_capacity(wanted);
        loop {
            match body.capacity() {
                0 => match ready!(body.poll_capacity(context)) {
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Poll::Ready(Err(Gone)),
                },
                room => return Poll::Ready(Ok(room.min(wanted))),
            }
        }
    }

    /// For how many of the `wanted` bytes the client has room now; 0 before the head was sent.
    pub fn room_now(&mut self, wanted: usize) -> usize {
        self.body.as_mut().map_or(0, |body| {
            body.reserve_capacity(wanted);
            body.capacity().min(wanted)
        })
    }

    /// Waits for room: see [`Sending::poll_room`].
    pub async fn room(&mut self, wanted: usize) -> Result<usize, Gone> {
        poll_fn(|context| self.poll_room(wanted, context)).await
    }

    /// Sends bytes that there is room for. With `ends`, they are the last ones. Fails if the stream
    /// is over, or its head was not sent.
    pub fn send(&mut self, octets: Bytes, ends: bool) -> Result<(), Gone> {
        self.body
            .as_mut()
            .ok_or(Gone)?
            .send_data(octets, ends)
            .map_err(|_| Gone)
    }

    /// Ends the response with trailers. Fails if the stream is over, or its head was not sent.
    pub fn end_with(&mut self, trailers: HeaderMap) -> Result<(), Gone> {
        self.body
            .as_mut()
            .ok_or(Gone)?
            .send_trailers(trailers)
            .map_err(|_| Gone)
    }

    /// Ends the stream early.
    pub fn reset(&mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }

    /// Ready when the client does not want the response any more: it has reset the stream, or the
    /// connection is over.
    pub fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<Gone> {
        let polled = match &mut self.body {
            Some(body) => body.poll_reset(context),
            None => self.respond.poll_reset(context),
        };
        polled.map(|_| Gone)
    }

    /// Polls once whether the client does not want the response any more. The task is not woken for
    /// it later, not by an earlier `poll_gone` either.
    pub fn check_gone(&mut self) -> bool {
        self.poll_gone(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }
}
