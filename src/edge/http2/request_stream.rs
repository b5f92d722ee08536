//! [`RequestStream`]: the HTTP/2 stream of one request. Its [`ResponseSender`] sends as much of the
//! response as the client's flow control allows, and notices when the client has reset the stream.

use super::batched_io::BatchedIo;
use crate::edge::timer::StallTimer;
use bytes::{Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Response};
use std::task::{
    Context,
    Poll::{self, Ready},
    Waker, ready,
};
use std::time::Duration;
use tokio::time::timeout;

/// How long, and how many bytes of, a request are drained after its answer. A client whose stream
/// is reset before it has sent its request may lose the answer (curl 7.88).
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_DRAINED_BYTES: usize = 1024 * 1024;

/// The stream was reset, or its connection is over.
#[derive(Debug, thiserror::Error)]
#[error("the stream is over")]
pub struct StreamClosed;

/// The half of a stream for the response.
pub struct ResponseSender {
    respond: SendResponse<Bytes>,
    /// Set when the head of the response was sent.
    body: Option<SendStream<Bytes>>,
    stall: StallTimer,
}

/// The HTTP/2 stream of one request.
pub struct RequestStream {
    pub sending: ResponseSender,
    pub body: RecvStream,
    /// The part of the body that was read before the request was forwarded.
    pub buffered_body: BytesMut,
}

impl RequestStream {
    /// If the client takes nothing of the response for `stall`, the stream is reset.
    pub fn new(respond: SendResponse<Bytes>, body: RecvStream, stall: Duration) -> RequestStream {
        RequestStream {
            sending: ResponseSender {
                respond,
                body: None,
                stall: StallTimer::new(stall),
            },
            body,
            buffered_body: BytesMut::new(),
        }
    }

    /// Whether the client has sent the whole request.
    pub fn is_received(&self) -> bool {
        self.body.is_end_stream()
    }

    /// Reads `required` bytes of the body, or all of it, into `buffered_body`. The client may send
    /// as much again at once: if incomplete bodies filled the connection's window, none could be
    /// completed.
    pub async fn buffer_body(
        &mut self,
        required: usize,
        output: &BatchedIo,
    ) -> Result<(), StreamClosed> {
        while self.buffered_body.len() < required
            && let Some(piece) = self.body.data().await
        {
            let piece = piece.map_err(|_| StreamClosed)?;
            self.buffered_body.extend_from_slice(&piece);
            output.count_progress(piece.len());
            let _ = self.body.flow_control().release_capacity(piece.len());
        }
        Ok(())
    }

    /// Discards what the client still sends of a request that was answered. After `DRAIN_TIMEOUT`
    /// the stream is reset.
    pub async fn drain(mut self, output: &BatchedIo) {
        if timeout(DRAIN_TIMEOUT, discard_body(&mut self.body, output))
            .await
            .is_err()
        {
            self.sending.reset(Reason::NO_ERROR);
        }
    }
}

/// Discards what the client sends, until its end or an error. After `MAX_DRAINED_BYTES` the
/// client's window is not extended any more.
pub async fn discard_body(body: &mut RecvStream, output: &BatchedIo) {
    let mut left = MAX_DRAINED_BYTES;
    while let Some(Ok(piece)) = body.data().await {
        output.count_progress(piece.len());
        left = left.saturating_sub(piece.len());
        if left > 0 {
            let _ = body.flow_control().release_capacity(piece.len());
        }
    }
    // h2 keeps trailers until they are taken: a few bytes on the wire may be thousands of fields.
    let _ = body.trailers().await;
}

impl ResponseSender {
    /// Sends an informational head.
    pub fn send_informational(&mut self, head: Response<()>) -> Result<(), StreamClosed> {
        self.respond
            .send_informational(head)
            .map_err(|_| StreamClosed)
    }

    /// Sends the head of the response; `ends` if nothing follows.
    pub fn send_head(&mut self, head: Response<()>, ends: bool) -> Result<(), StreamClosed> {
        self.body = Some(
            self.respond
                .send_response(head, ends)
                .map_err(|_| StreamClosed)?,
        );
        Ok(())
    }

    /// Ready with how many of the `wanted` bytes the client can take: at least one. If it stalls,
    /// the stream is reset, and the result is [`StreamClosed`].
    pub fn poll_capacity(
        &mut self,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, StreamClosed>> {
        let polled = self.poll_h2_capacity(wanted, context);
        if !self.stall.record_write(&polled, context) {
            return polled;
        }
        self.reset(Reason::CANCEL);
        Ready(Err(StreamClosed))
    }

    /// Like `poll_capacity`, but without the stall timer. Fails before the head was sent.
    fn poll_h2_capacity(
        &mut self,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, StreamClosed>> {
        let Some(body) = &mut self.body else {
            return Ready(Err(StreamClosed));
        };
        body.reserve_capacity(wanted);
        loop {
            match body.capacity() {
                0 => match ready!(body.poll_capacity(context)) {
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return Ready(Err(StreamClosed)),
                },
                room => return Ready(Ok(room.min(wanted))),
            }
        }
    }

    /// How many of the `wanted` bytes the client can take now; 0 before the head was sent.
    pub fn available_capacity(&mut self, wanted: usize) -> usize {
        self.body.as_mut().map_or(0, |body| {
            body.reserve_capacity(wanted);
            body.capacity().min(wanted)
        })
    }

    /// Sends bytes within the capacity. `ends` if they are the last ones.
    pub fn send_data(&mut self, bytes: Bytes, ends: bool) -> Result<(), StreamClosed> {
        self.body
            .as_mut()
            .ok_or(StreamClosed)?
            .send_data(bytes, ends)
            .map_err(|_| StreamClosed)
    }

    /// Ends the response with trailers.
    pub fn send_trailers(&mut self, trailers: HeaderMap) -> Result<(), StreamClosed> {
        self.body
            .as_mut()
            .ok_or(StreamClosed)?
            .send_trailers(trailers)
            .map_err(|_| StreamClosed)
    }

    /// Ends the stream early.
    pub fn reset(&mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }

    /// Ready when the client has reset the stream, or the connection is over.
    pub fn poll_reset(&mut self, context: &mut Context<'_>) -> Poll<StreamClosed> {
        let polled = match &mut self.body {
            Some(body) => body.poll_reset(context),
            None => self.respond.poll_reset(context),
        };
        polled.map(|_| StreamClosed)
    }

    /// Polls [`ResponseSender::poll_reset`] once. The task will not be woken for it, not even by an
    /// earlier call.
    pub fn check_reset(&mut self) -> bool {
        self.poll_reset(&mut Context::from_waker(Waker::noop()))
            .is_ready()
    }
}
