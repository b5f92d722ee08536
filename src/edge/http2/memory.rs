//! Requests over HTTP/2 that Pingora forwards. Each gets a connection in memory, over which Pingora sees one request of
//! HTTP/1.1 and nothing else. The main type is [`InMemory`]. Must not know what a request is about.
//!
//! What the client sends goes on as far as Pingora takes it, and what Pingora answers as far as the client has room for it. A
//! stream that ends early ends the connection in memory, and with it the request at the origin.

use super::head::{fields_of_http1, framing, head_of_http2, joined_cookies, target};
use super::stream::{Gone, Sending, Stream};
use crate::edge::chunks::{BadChunk, Chunks};
use crate::edge::connection::Connection;
use crate::edge::lane::{BadResponse, ResponseFraming, ResponseHead, read_response};
use crate::edge::transport::Transport;
use crate::requests::{ClientConnection, Framing, Ticket};
use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::Method;
use http::request::Parts;
use pingora_core::apps::HttpServerApp;
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream, ReadBuf, ReadHalf, WriteHalf, duplex, split};
use tokio::task::yield_now;

/// Octets that wait in memory, in each direction.
pub(super) const WAITING: usize = 16 * 1024;
/// Octets of a response that are read at a time.
const READ: usize = 16 * 1024;

/// Why a response ended before its end.
#[derive(Debug, thiserror::Error)]
enum Cut {
    /// The client's side.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// Pingora ended it, because the origin did.
    #[error("the response broke off")]
    Response,
    #[error(transparent)]
    Head(#[from] BadResponse),
    #[error("the response has a malformed chunk")]
    Chunk,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<BadChunk> for Cut {
    fn from(BadChunk: BadChunk) -> Cut {
        Cut::Chunk
    }
}

/// A request on its way into memory.
pub(super) struct InMemory {
    /// Pingora's end.
    connection: Box<Connection>,
    near: DuplexStream,
    framing: Framing,
    is_head: bool,
    stall: Duration,
}

impl InMemory {
    /// A request of this client, which was received. Pingora takes its ticket over.
    pub(super) fn new(
        client: ClientConnection,
        head: &Parts,
        stream: &Stream,
        ticket: Ticket,
        stall: Duration,
    ) -> InMemory {
        let framing = framing(head, stream.is_received());
        let (near, far) = duplex(WAITING);
        client.hand_on(ticket);
        let mut connection = Box::new(Connection::new(Transport::Memory(far), None, client, None, stall));
        connection.open_for(written(head, framing), framing);
        InMemory { connection, near, framing, is_head: head.method == Method::HEAD, stall }
    }

    /// Has Pingora forward the request. Gives the stream back, if it was not reset before the response ended.
    pub(super) async fn pass_on<A>(self, app: Arc<A>, stop: ShutdownWatch, mut stream: Stream) -> Option<Stream>
    where
        A: HttpServerApp + Send + Sync + 'static,
    {
        let InMemory { connection, near, framing, is_head, stall } = self;
        let session = ServerSession::new_http1(connection);
        // What Pingora gives back is closed: the next request has a connection of its own.
        let process = async { drop(app.process_new_http(session, &stop).await) };
        let ((), carried) = tokio::join!(process, carry(near, &mut stream, (framing, is_head), stall));
        let Err(cut) = carried else { return Some(stream) };
        tracing::debug!(%cut, "a response over HTTP/2 broke off");
        let was_reset = matches!(cut, Cut::Gone(Gone));
        // The client gets what came before: a reset throws away what h2 has not written. Of a stream that is over it does
        // nothing.
        yield_now().await;
        stream.sending.reset(Reason::INTERNAL_ERROR);
        (!was_reset).then_some(stream)
    }
}

/// The head of a request as Pingora reads it.
fn written(head: &Parts, framing: Framing) -> Vec<u8> {
    let cookies = joined_cookies(head);
    let mut octets = Vec::with_capacity(1024);
    for part in [head.method.as_str().as_bytes(), b" ", target(head), b" HTTP/1.1\r\n"] {
        octets.extend_from_slice(part);
    }
    for (name, value) in fields_of_http1(head, framing, cookies.as_deref()) {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            octets.extend_from_slice(part);
        }
    }
    octets.extend_from_slice(b"\r\n");
    octets
}

/// Carries a request and its response between a stream and memory.
async fn carry(
    near: DuplexStream,
    stream: &mut Stream,
    (framing, is_head): (Framing, bool),
    stall: Duration,
) -> Result<(), Cut> {
    let (read, write) = split(near);
    let Stream { sending, body } = stream;
    let upload = async {
        upload(body, framing, write).await?;
        // The response ends the exchange.
        pending().await
    };
    let mut download = Download { read, sending, input: Vec::new(), stall };
    tokio::select! {
        carried = download.run(is_head) => carried,
        cut = upload => cut,
    }
}

/// Carries the body of a request. Trailers stay behind: Pingora passes none on (Pingora 0.9.1).
async fn upload(body: &mut RecvStream, framing: Framing, mut write: WriteHalf<DuplexStream>) -> Result<(), Gone> {
    if framing == Framing::None {
        return Ok(());
    }
    while let Some(piece) = body.data().await {
        let piece = piece.map_err(|_| Gone)?;
        // Pingora may have enough of it. Its response says so.
        if send(&mut write, framing, &piece).await.is_err() {
            return Ok(());
        }
        let _ = body.flow_control().release_capacity(piece.len());
    }
    if framing == Framing::Chunked {
        let _ = write.write_all(b"0\r\n\r\n").await;
    }
    Ok(())
}

async fn send(write: &mut WriteHalf<DuplexStream>, framing: Framing, piece: &[u8]) -> io::Result<()> {
    if framing != Framing::Chunked {
        return write.write_all(piece).await;
    }
    // An empty chunk would be the last one.
    if piece.is_empty() {
        return Ok(());
    }
    write.write_all(format!("{:X}\r\n", piece.len()).as_bytes()).await?;
    write.write_all(piece).await?;
    write.write_all(b"\r\n").await
}

/// The way of a response.
struct Download<'s> {
    read: ReadHalf<DuplexStream>,
    sending: &'s mut Sending,
    /// What came and was not passed on.
    input: Vec<u8>,
    stall: Duration,
}

impl Download<'_> {
    async fn run(&mut self, is_head: bool) -> Result<(), Cut> {
        let head = self.head(is_head).await?;
        match head.framing {
            ResponseFraming::None | ResponseFraming::Length(0) => Ok(()),
            ResponseFraming::Length(length) => self.length(length).await,
            ResponseFraming::Chunked => self.chunks().await,
            // Pingora frames every response to HTTP/1.1. What is not framed, nobody can tell from its beginning.
            ResponseFraming::UntilClose => Err(Cut::Response),
        }
    }

    /// Passes heads on up to the final one.
    async fn head(&mut self, is_head: bool) -> Result<ResponseHead, Cut> {
        loop {
            let sending = &mut *self.sending;
            let read = match self.input.as_slice() {
                [] => Ok(None),
                octets => read_response(octets, is_head, |parsed| {
                    let head = parsed.head;
                    let ends = matches!(head.framing, ResponseFraming::None | ResponseFraming::Length(0));
                    let lines = parsed.fields.iter().map(|field| (field.name, field.value));
                    let response = head_of_http2(head.status, lines);
                    let sent = match head.status.is_informational() {
                        true => sending.inform(response),
                        false => sending.head(response, ends),
                    };
                    sent.map(|()| head)
                }),
            };
            match read?.transpose()? {
                Some(head) => {
                    self.input.drain(..head.length);
                    if !head.status.is_informational() {
                        return Ok(head);
                    }
                }
                None => self.more().await?,
            }
        }
    }

    async fn length(&mut self, mut left: u64) -> Result<(), Cut> {
        while left > 0 {
            if self.input.is_empty() {
                self.more().await?;
            }
            let room = self.sending.room(self.input.len(), self.stall).await?;
            let count = usize::try_from(left).map_or(room, |left| left.min(room));
            left -= count as u64;
            let piece = Bytes::from_iter(self.input.drain(..count));
            self.sending.send(piece, left == 0)?;
        }
        Ok(())
    }

    async fn chunks(&mut self) -> Result<(), Cut> {
        let mut chunks = Chunks::of_response();
        while !chunks.is_over() {
            if self.input.is_empty() {
                self.more().await?;
            }
            let (piece, count) = chunks.piece(&self.input)?;
            let mut piece = Bytes::copy_from_slice(piece);
            self.input.drain(..count);
            while !piece.is_empty() {
                let room = self.sending.room(piece.len(), self.stall).await?;
                self.sending.send(piece.split_to(room), false)?;
            }
        }
        Ok(self.sending.send(Bytes::new(), true)?)
    }

    /// Reads more, unless the client does not want it any more.
    async fn more(&mut self) -> Result<(), Cut> {
        let input = &mut self.input;
        let count = poll_fn(|context| {
            if let Poll::Ready(gone) = self.sending.poll_gone(context) {
                return Poll::Ready(Err(Cut::Gone(gone)));
            }
            // Not in the exchange, which would have room for it as long as it lasts.
            let mut octets = [0; READ];
            let mut buffer = ReadBuf::new(&mut octets);
            ready!(Pin::new(&mut self.read).poll_read(context, &mut buffer))?;
            input.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(buffer.filled().len()))
        });
        match count.await? {
            0 => Err(Cut::Response),
            _ => Ok(()),
        }
    }
}
