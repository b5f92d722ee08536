//! [`ClientStream`]: the byte stream of a client's connection. Both crawlgate's own code and
//! Pingora read it. Pingora gets the bytes of exactly one request, so that the bytes of the next
//! request are neither lost nor taken for a part of the first. If the client takes no written bytes
//! for too long, the stream fails.

use super::body_decoder::{BodyDecoder, MalformedBody};
use super::buffered_stream::BufferedStream;
use super::slow_client::PlaceReleaseTimer;
use super::timer::{StallTimer, Timer};
use super::transport::BoxedTransport;
use crate::requests::{BodyFraming, ClientConnection};
use crate::telemetry::ConnectionGaugeGuard;
use PingoraReadLimit::{Body, Everything, Head};
use async_trait::async_trait;
use http::StatusCode;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use pingora_http::ResponseHeader;
use std::future::poll_fn;
use std::io::{
    self,
    ErrorKind::{InvalidData, TimedOut, UnexpectedEof},
};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{
    Context,
    Poll::{self, Pending, Ready},
    ready,
};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Instant;

/// The most bytes of further requests that are read while one is answered.
const MAX_READ_AHEAD: usize = 16 * 1024;

/// The most bytes that are read and discarded while a connection is closed. Without that, a client
/// that is still sending gets a reset and may lose the answer.
pub const MAX_LINGER_BYTES: usize = 1024 * 1024;
/// How long they are read.
pub const LINGER_TIMEOUT: Duration = Duration::from_secs(2);

/// What Pingora may read. A connection begins with `Everything`. An HTTP/1 request begins with
/// `Head`, and then is `Body`. After a switch of protocols, `Everything` follows the end of the
/// body.
#[derive(Debug)]
enum PingoraReadLimit {
    /// All bytes: of HTTP/2, or of another protocol.
    Everything,
    /// This many more bytes of the head, and then the body.
    Head { left: usize, body: BodyFraming },
    /// The rest of the body.
    Body(BodyDecoder),
}

/// The stream of a client's connection.
#[derive(Debug)]
pub struct ClientStream {
    pub stream: BufferedStream<BoxedTransport>,
    read_limit: PingoraReadLimit,
    /// What the edge and the gateway share about the connection.
    pub client: Arc<ClientConnection>,
    /// The client's address: of the peer, or from its PROXY header.
    address: Option<SocketAddr>,
    pub gauge: Option<Arc<ConnectionGaugeGuard>>,
    /// When [`ClientStream::fill`] fails.
    deadline: Instant,
    pub timer: Timer,
    stall: StallTimer,
    /// For the request that Pingora forwards.
    slow_client: PlaceReleaseTimer,
}

impl ClientStream {
    /// Pingora may read everything until [`ClientStream::let_pingora_read_request`] is called. A client that
    /// takes nothing for `stall` is given up.
    pub fn new(
        transport: BoxedTransport,
        address: Option<SocketAddr>,
        client: ClientConnection,
        gauge: Option<ConnectionGaugeGuard>,
        stall: Duration,
    ) -> ClientStream {
        ClientStream {
            stream: BufferedStream::new(transport),
            read_limit: Everything,
            client: Arc::new(client),
            address,
            gauge: gauge.map(Arc::new),
            deadline: Instant::now(),
            timer: Timer::default(),
            stall: StallTimer::new(stall),
            slow_client: PlaceReleaseTimer::default(),
        }
    }

    /// Sets in the metrics whether a request is being received or answered. Does nothing without a
    /// gauge.
    pub fn set_active(&self, active: bool) {
        if let Some(gauge) = &self.gauge {
            gauge.set_active(active);
        }
    }

    /// Sets the deadline of [`ClientStream::fill`] to `after` from now.
    pub fn set_deadline(&mut self, after: Duration) {
        self.deadline = Instant::now() + after;
    }

    /// Reads more bytes into the read buffer and returns their number; 0 is the end of the
    /// connection. Fails with `TimedOut` at the deadline ([`ClientStream::set_deadline`]).
    pub async fn fill(&mut self) -> io::Result<usize> {
        poll_fn(|context| match self.stream.poll_fill(context) {
            Pending => {
                let elapsed = self.timer.poll_elapsed(self.deadline, context);
                elapsed.map(|()| Err(TimedOut.into()))
            }
            polled => polled,
        })
        .await
    }

    /// Reads a body into the read buffer: all of it, or `max_bytes` bytes with chunk sizes. A
    /// malformed body is `Ok` here, because it is read again later. Fails if the connection ends
    /// before, and at the deadline.
    pub async fn fill_body(&mut self, framing: BodyFraming, max_bytes: usize) -> io::Result<()> {
        let mut rest = BodyDecoder::from(framing);
        let mut read = 0;
        loop {
            while read < self.stream.read_buffer().len() && !rest.is_finished() {
                match rest.next_data(&self.stream.read_buffer()[read..]) {
                    Ok((_, count)) => read += count,
                    Err(MalformedBody) => return Ok(()),
                }
            }
            if rest.is_finished() || read >= max_bytes {
                return Ok(());
            }
            if self.fill().await? == 0 {
                return Err(UnexpectedEof.into());
            }
        }
    }

    /// Whether the connection begins with these bytes, which stay in the read buffer. Reads until
    /// the first byte that differs. A stream that ends before its first byte is an error.
    pub async fn begins_with(&mut self, beginning: &[u8]) -> io::Result<bool> {
        while self.stream.read_buffer().len() < beginning.len()
            && beginning.starts_with(self.stream.read_buffer())
        {
            match (self.fill().await?, self.stream.read_buffer().is_empty()) {
                (0, true) => return Err(UnexpectedEof.into()),
                (0, false) => break,
                _ => {}
            }
        }
        Ok(self.stream.read_buffer().starts_with(beginning))
    }

    /// Lets Pingora read one request: this head, which is put back into the read buffer, and a body
    /// with this framing. Resets the timer of slow clients.
    pub fn let_pingora_read_request(&mut self, head: Vec<u8>, body: BodyFraming) {
        self.read_limit = Head {
            left: head.len(),
            body,
        };
        self.slow_client = PlaceReleaseTimer::default();
        self.stream.put_back(head);
    }

    /// Whether Pingora has read the request to its last byte. False after a switch of protocols:
    /// then no other request can follow.
    pub fn is_request_over(&self) -> bool {
        matches!(&self.read_limit, Body(rest) if rest.is_finished())
            && !self.client.has_switched_protocol()
    }

    /// Reads a part of the request's body for Pingora, never beyond its end. Chunks stay as they
    /// came. Ready without bytes at the end of the connection. A malformed chunk is `InvalidData`.
    fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Body(rest) = &mut self.read_limit else {
            return Ready(Ok(()));
        };
        match rest {
            BodyDecoder::Length(left) => {
                let limit = usize::try_from(*left).unwrap_or(usize::MAX);
                let count = if self.stream.read_buffer().is_empty() {
                    ready!(self.stream.poll_read_direct(limit, context, buffer))?
                } else {
                    self.stream.read_buffered(limit, buffer)
                };
                *left -= count as u64;
            }
            BodyDecoder::Chunked(chunks) => {
                if self.stream.read_buffer().is_empty()
                    && ready!(self.stream.poll_fill(context))? == 0
                {
                    return Ready(Ok(()));
                }
                let input = self.stream.read_buffer();
                let count = chunks.read(&input[..input.len().min(buffer.remaining())]);
                let count = count.map_err(|MalformedBody| io::Error::from(InvalidData))?;
                self.stream.read_buffered(count, buffer);
            }
            BodyDecoder::UntilClose => {}
        }
        Ready(Ok(()))
    }

    /// Writes the write buffer. Fails, and marks the client as given up, if it stalls.
    pub fn poll_write_buffer(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.stream.poll_write_buffer(context);
        self.fail_if_client_stalled(polled, context)
    }

    /// Reads further requests into the read buffer while one is answered, up to `MAX_READ_AHEAD`.
    /// Ready with `Ok` if the client has closed and the buffer is empty, with an error if the
    /// connection broke. Pending otherwise, also if the client has closed after another request.
    pub fn poll_client_left(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.stream.read_buffer().len() < MAX_READ_AHEAD {
            if ready!(self.stream.poll_fill(context))? == 0 {
                return if self.stream.read_buffer().is_empty() {
                    Ready(Ok(()))
                } else {
                    Pending
                };
            }
        }
        Pending
    }

    /// Ends a connection to a client that may still be sending: closes the writing side, then reads
    /// and discards at most `max_bytes` bytes for at most `LINGER_TIMEOUT`.
    pub async fn linger(&mut self, max_bytes: usize) {
        if AsyncWriteExt::shutdown(self).await.is_err() {
            return;
        }
        self.set_deadline(LINGER_TIMEOUT);
        let mut left = max_bytes;
        loop {
            let count = self.stream.read_buffer().len();
            self.stream.discard(count);
            match left.checked_sub(count) {
                Some(rest) => left = rest,
                None => return,
            }
            if !matches!(self.fill().await, Ok(1..)) {
                return;
            }
        }
    }

    /// Measures how long the request that Pingora forwards waits for its client: `polled` is the
    /// result of a read or write, and pending is a wait. Fails if the client is too slow and the
    /// request may not go on without its place at the origin.
    fn measure_client_wait<T>(
        &mut self,
        polled: &Poll<T>,
        context: &mut Context<'_>,
    ) -> io::Result<()> {
        if polled.is_ready() {
            self.slow_client.end_wait();
            return Ok(());
        }
        let Some(place) = self.client.place() else {
            return Ok(());
        };
        let timer = &mut self.timer;
        let may_go_on = self.slow_client.continue_wait(&place, |moment| {
            if timer.poll_elapsed(moment, context).is_ready() {
                context.waker().wake_by_ref();
            }
        });
        if may_go_on {
            Ok(())
        } else {
            Err(TimedOut.into())
        }
    }

    /// Returns `polled`, the result of a write to the client. If the client stalls, marks it as
    /// given up and fails with `TimedOut`.
    fn fail_if_client_stalled<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if !self.stall.record_write(&polled, context) {
            return polled;
        }
        self.client.mark_stalled();
        Ready(Err(TimedOut.into()))
    }
}

impl AsyncRead for ClientStream {
    /// Reads what Pingora may read. After the body of the request, that is everything if the
    /// protocol was switched. Otherwise it is nothing, and the read ends when the client leaves.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let is_over = matches!(&this.read_limit, Body(rest) if rest.is_finished());
        if is_over && this.client.has_switched_protocol() {
            this.read_limit = Everything;
        }
        match &mut this.read_limit {
            Everything => Pin::new(&mut this.stream).poll_read(context, buffer),
            Head { left, body } => {
                *left -= this.stream.read_buffered(*left, buffer);
                if *left == 0 {
                    this.read_limit = Body((*body).into());
                }
                Ready(Ok(()))
            }
            Body(_) if is_over => this.poll_client_left(context),
            Body(_) => {
                let polled = this.poll_body(context, buffer);
                this.measure_client_wait(&polled, context)?;
                polled
            }
        }
    }
}

impl AsyncWrite for ClientStream {
    /// Fails if the client stalls, and if the request that Pingora forwards may not wait any
    /// longer.
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.measure_client_wait(&polled, context)?;
        this.fail_if_client_stalled(polled, context)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(context);
        this.measure_client_wait(&polled, context)?;
        this.fail_if_client_stalled(polled, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_shutdown(context);
        this.fail_if_client_stalled(polled, context)
    }
}

#[async_trait]
impl Shutdown for ClientStream {
    /// Closes the writing side. It is no error if the client has closed before.
    async fn shutdown(&mut self) {
        if let Err(error) = AsyncWriteExt::shutdown(self).await {
            tracing::debug!(%error, "the client closed a connection before crawlgate did");
        }
    }
}

impl UniqueID for ClientStream {
    fn id(&self) -> UniqueIDType {
        self.stream.inner().raw_fd()
    }
}

impl Ssl for ClientStream {}

impl Peek for ClientStream {}

impl GetTimingDigest for ClientStream {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for ClientStream {
    /// Passes the [`ClientConnection`] to the gateway, as the user data of a proxy's response. The
    /// response itself is empty. Made when Pingora asks for it: an idle connection has none.
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        let response = ResponseHeader::build(StatusCode::OK, Some(0)).ok()?;
        Some(Arc::new(ProxyDigest::new(
            Box::new(response),
            Some(Box::new(self.client.clone())),
        )))
    }
}

impl GetSocketDigest for ClientStream {
    /// The socket, with the client's address as that of the peer, which may be a proxy.
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        let digest = SocketDigest::from_raw_fd(self.stream.inner().raw_fd());
        // The cell is new, so it is not set yet.
        let _ = digest.peer_addr.set(self.address.map(Into::into));
        Some(Arc::new(digest))
    }
}

#[cfg(test)]
mod tests;
