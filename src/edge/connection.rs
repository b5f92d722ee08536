//! [`Connection`]: a client's connection, for the edge and for Pingora. Pingora can read one
//! request at a time and not an octet more, so that octets after a request are never lost and never
//! taken for a part of it. A client that takes nothing of what is written is given up.

use super::buffered::Buffered;
use super::chunks::{BadChunk, Rest};
use super::pace::Pace;
use super::timer::{Stall, Timer};
use super::transport::Transport;
use crate::requests::{ClientConnection, Framing};
use crate::telemetry::OpenConnection;
use async_trait::async_trait;
use http::StatusCode;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use pingora_http::ResponseHeader;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Instant;

/// Octets of further requests that are read while one is answered. The rest waits in the socket.
const READ_AHEAD: usize = 16 * 1024;

/// Octets of a request that are still read after its answer, while the connection is being closed.
/// A connection that is closed while the client still sends is reset, and the client may lose the
/// answer.
pub const LINGERING: usize = 1024 * 1024;
/// How long these octets are read.
pub const LINGER_LIMIT: Duration = Duration::from_secs(2);

/// What Pingora may read. A connection begins with `Everything`, and each request of HTTP/1 with
/// `Head`, which leads to `Body`. A switch of protocols leads from the end of the body to
/// `Everything`.
#[derive(Debug)]
enum Gate {
    /// All octets: of HTTP/2, or of another protocol.
    Everything,
    /// So many octets of the head, and then the body.
    Head { left: usize, body: Framing },
    /// The rest of the body.
    Body(Rest),
}

/// A client's connection.
#[derive(Debug)]
pub struct Connection {
    pub stream: Buffered<Transport>,
    gate: Gate,
    /// The facts that the edge and the gateway share.
    pub client: Arc<ClientConnection>,
    /// The client's address, as far as the connection tells.
    address: Option<SocketAddr>,
    pub counted: Option<Arc<OpenConnection>>,
    /// The end of the wait for octets that are read ahead.
    deadline: Instant,
    pub timer: Timer,
    stall: Stall,
    /// Of the request that Pingora forwards.
    pace: Pace,
}

impl Connection {
    /// `address` is the client's, as far as the connection tells. `counted` is its place in the
    /// metrics of open connections. A client that takes nothing for `stall` is given up. Pingora
    /// may read everything until [`Connection::open_for`] is called.
    pub fn new(
        transport: Transport,
        address: Option<SocketAddr>,
        client: ClientConnection,
        counted: Option<OpenConnection>,
        stall: Duration,
    ) -> Connection {
        Connection {
            stream: Buffered::new(transport),
            gate: Gate::Everything,
            client: Arc::new(client),
            address,
            counted: counted.map(Arc::new),
            deadline: Instant::now(),
            timer: Timer::default(),
            stall: Stall::new(stall),
            pace: Pace::default(),
        }
    }

    /// Records in the metrics whether a request is being received or answered from now on. Does
    /// nothing for a connection that is not counted.
    pub fn set_active(&self, active: bool) {
        if let Some(counted) = &self.counted {
            counted.set_active(active);
        }
    }

    /// Sets the deadline of all further reading ahead ([`Connection::see`]) to `after` from now.
    pub fn set_deadline(&mut self, after: Duration) {
        self.deadline = Instant::now() + after;
    }

    /// Reads more bytes ahead and returns their number; 0 is the end of the connection. Fails with
    /// `TimedOut` when the deadline of [`Connection::set_deadline`] passes.
    pub async fn see(&mut self) -> io::Result<usize> {
        poll_fn(|context| match self.stream.poll_see(context) {
            Poll::Pending => {
                let elapsed = self.timer.poll_elapsed(self.deadline, context);
                elapsed.map(|()| Err(io::ErrorKind::TimedOut.into()))
            }
            polled => polled,
        })
        .await
    }

    /// Reads a body ahead, until its end or `most` bytes of it (with chunk sizes) are there. A body
    /// that is malformed also ends the reading, with `Ok`: the reader that comes later refuses it.
    /// Fails if the connection ends before, and at the deadline.
    pub async fn see_body(&mut self, framing: Framing, most: usize) -> io::Result<()> {
        let mut rest = Rest::from(framing);
        let mut read = 0;
        loop {
            while read < self.stream.seen().len() && !rest.is_over() {
                match rest.piece(&self.stream.seen()[read..]) {
                    Ok((_, count)) => read += count,
                    Err(BadChunk) => return Ok(()),
                }
            }
            if rest.is_over() || read >= most {
                return Ok(());
            }
            if self.see().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Whether the connection begins with these octets, which stay where they are. Known at the
    /// first octet that differs, at the last one of `beginning`, or at the end of the stream. A
    /// stream that ends before its first octet is an error.
    pub async fn begins_with(&mut self, beginning: &[u8]) -> io::Result<bool> {
        while self.stream.seen().len() < beginning.len()
            && beginning.starts_with(self.stream.seen())
        {
            match (self.see().await?, self.stream.seen().is_empty()) {
                (0, true) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (0, false) => break,
                _ => {}
            }
        }
        Ok(self.stream.seen().starts_with(beginning))
    }

    /// Lets Pingora read one request: this head, which is put back in front of what was seen, and a
    /// body with this framing. The time that the request waits for its client begins at zero.
    pub fn open_for(&mut self, head: Vec<u8>, body: Framing) {
        self.gate = Gate::Head {
            left: head.len(),
            body,
        };
        self.pace = Pace::default();
        self.stream.put_back(head);
    }

    /// Whether Pingora has read the request that it may read to its last byte. False after a switch
    /// of the protocol: the connection cannot take another request then.
    pub fn is_request_over(&self) -> bool {
        matches!(&self.gate, Gate::Body(rest) if rest.is_over())
            && !self.client.has_switched_protocol()
    }

    /// Reads a part of the request's body for Pingora, never beyond the body's end; chunks pass as
    /// they came. Ready without bytes at the end of the connection. A malformed chunk is
    /// `InvalidData`.
    fn poll_body(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Gate::Body(rest) = &mut self.gate else {
            return Poll::Ready(Ok(()));
        };
        match rest {
            Rest::Length(left) => {
                let limit = usize::try_from(*left).unwrap_or(usize::MAX);
                let count = if self.stream.seen().is_empty() {
                    ready!(self.stream.poll_read_unseen(limit, context, buffer))?
                } else {
                    self.stream.read_seen(limit, buffer)
                };
                *left -= count as u64;
            }
            Rest::Chunked(chunks) => {
                if self.stream.seen().is_empty() && ready!(self.stream.poll_see(context))? == 0 {
                    return Poll::Ready(Ok(()));
                }
                let seen = self.stream.seen();
                let count = chunks.read(&seen[..seen.len().min(buffer.remaining())]);
                let count =
                    count.map_err(|BadChunk| io::Error::from(io::ErrorKind::InvalidData))?;
                self.stream.read_seen(count, buffer);
            }
            Rest::UntilClose => {}
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what was gathered. Fails, and marks the client as given up, if it does not take all of
    /// it within the time of `stall`.
    pub fn poll_gathered(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.stream.poll_gathered(context);
        self.watch(polled, context)
    }

    /// Reads further requests ahead while one is answered, up to `READ_AHEAD`. Ready with `Ok` when
    /// the client has closed and no byte of it waits, with an error when the connection broke;
    /// pending otherwise, also if the client has closed after bytes that wait.
    pub fn poll_client_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.stream.seen().len() < READ_AHEAD {
            if ready!(self.stream.poll_see(context))? == 0 {
                return if self.stream.seen().is_empty() {
                    Poll::Ready(Ok(()))
                } else {
                    Poll::Pending
                };
            }
        }
        Poll::Pending
    }

    /// Ends a connection to a client that may still be sending: closes its writing side, then reads
    /// and throws away at most `most` bytes for at most `LINGER_LIMIT`. They are never read as a
    /// request.
    pub async fn linger(&mut self, most: usize) {
        if AsyncWriteExt::shutdown(self).await.is_err() {
            return;
        }
        self.set_deadline(LINGER_LIMIT);
        let mut left = most;
        loop {
            let seen = self.stream.seen().len();
            self.stream.discard(seen);
            match left.checked_sub(seen) {
                Some(rest) => left = rest,
                None => return,
            }
            if !matches!(self.see().await, Ok(1..)) {
                return;
            }
        }
    }

    /// Measures how long the request that Pingora forwards waits for its client. `polled` is the
    /// result of a read from, or write to, the client: pending is a wait. A slow client gives its
    /// place at the origin up while people wait for it. Fails if the request may not go on without
    /// a place.
    fn keep_pace<T>(&mut self, polled: &Poll<T>, context: &mut Context<'_>) -> io::Result<()> {
        if polled.is_ready() {
            self.pace.pause();
            return Ok(());
        }
        let Some(place) = self.client.place() else {
            return Ok(());
        };
        let timer = &mut self.timer;
        let may_go_on = self.pace.wait(&place, |moment| {
            if timer.poll_elapsed(moment, context).is_ready() {
                context.waker().wake_by_ref();
            }
        });
        if may_go_on {
            Ok(())
        } else {
            Err(io::ErrorKind::TimedOut.into())
        }
    }

    /// Passes on `polled`, the result of a write to the client. If the client has taken nothing for
    /// the time of `stall`, marks it as given up and fails with `TimedOut`.
    fn watch<T>(
        &mut self,
        polled: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if !self.stall.record(&polled, context) {
            return polled;
        }
        self.client.give_up();
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    /// Reads as much as the `Gate` allows. After the body of the request, Pingora reads everything
    /// if the protocol was switched; otherwise it reads nothing and waits until the client is gone.
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let is_over = matches!(&this.gate, Gate::Body(rest) if rest.is_over());
        if is_over && this.client.has_switched_protocol() {
            this.gate = Gate::Everything;
        }
        match &mut this.gate {
            Gate::Everything => Pin::new(&mut this.stream).poll_read(context, buffer),
            Gate::Head { left, body } => {
                *left -= this.stream.read_seen(*left, buffer);
                if *left == 0 {
                    this.gate = Gate::Body((*body).into());
                }
                Poll::Ready(Ok(()))
            }
            Gate::Body(_) if is_over => this.poll_client_gone(context),
            Gate::Body(_) => {
                let polled = this.poll_body(context, buffer);
                this.keep_pace(&polled, context)?;
                polled
            }
        }
    }
}

impl AsyncWrite for Connection {
    /// Writes to the client. Fails if it takes nothing for too long, and if the request that
    /// Pingora forwards may not wait any longer.
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        octets: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, octets);
        this.keep_pace(&polled, context)?;
        this.watch(polled, context)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_flush(context);
        this.keep_pace(&polled, context)?;
        this.watch(polled, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_shutdown(context);
        this.watch(polled, context)
    }
}

#[async_trait]
impl Shutdown for Connection {
    /// Closes the writing side. That the client has closed before is only logged, for
    /// `RUST_LOG=debug`.
    async fn shutdown(&mut self) {
        if let Err(error) = AsyncWriteExt::shutdown(self).await {
            tracing::debug!(%error, "the client closed a connection before crawlgate did");
        }
    }
}

impl UniqueID for Connection {
    fn id(&self) -> UniqueIDType {
        self.stream.inner().descriptor()
    }
}

impl Ssl for Connection {}

impl Peek for Connection {}

impl GetTimingDigest for Connection {
    /// None: crawlgate measures no times for Pingora.
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for Connection {
    /// Gives Pingora the [`ClientConnection`], in Pingora's slot for the data of a connection. The
    /// slot is meant for the response of a proxy, so that an empty response goes along. Made when
    /// Pingora asks: an idle connection has none.
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        let response = ResponseHeader::build(StatusCode::OK, Some(0)).ok()?;
        Some(Arc::new(ProxyDigest::new(
            Box::new(response),
            Some(Box::new(self.client.clone())),
        )))
    }
}

impl GetSocketDigest for Connection {
    /// The socket, with the client's address in place of that of the peer, which may be a proxy.
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        let digest = SocketDigest::from_raw_fd(self.stream.inner().descriptor());
        // The cell is new, so it is not set yet.
        let _ = digest.peer_addr.set(self.address.map(Into::into));
        Some(Arc::new(digest))
    }
}

#[cfg(test)]
mod tests;
