//! [`Http1Client`]: the client's side of a request that the lane (`lane`) forwards, over HTTP/1.1.
//! It reads the body of the request, frames the response, and gathers small writes into larger
//! ones.

use crate::answers::Answer;
use crate::edge::buffered::GATHERED;
use crate::edge::chunks::{BadChunk, Rest};
use crate::edge::connection::{Connection, LINGER_LIMIT};
use crate::edge::date::with_date;
use crate::edge::head::fields_of;
use crate::edge::lane::{
    BadTrailers, BodyError, Client, ClientHead, LaneRequest, Outgoing, ResponseFraming,
    ResponseHead, read_trailers, write_chunk,
};
use crate::requests;
use http::{HeaderMap, StatusCode};
use httparse::Header;
use pingora_core::server::ShutdownWatch;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Octets of a body that are read at a time.
const READ: usize = 32 * 1024;

/// Octets of a body that may be left after the response. If more are left, the connection ends.
const LEFT: u64 = 64 * 1024;

/// Reads a piece of the body from the client and adds it to the request, without chunk framing; at
/// the end of a body in chunks also the trailers. Ready at once if the body is over. A connection
/// that ends before the body is an error.
fn poll_read(
    rest: &mut Rest,
    connection: &mut Connection,
    request: &mut Outgoing,
    context: &mut Context<'_>,
) -> Poll<Result<(), BodyError>> {
    if rest.is_over() {
        return Poll::Ready(Ok(()));
    }
    if connection.stream.seen().is_empty() {
        if let Rest::Length(left) = rest {
            let most = usize::try_from(*left).unwrap_or(usize::MAX);
            let mut room = [const { MaybeUninit::uninit() }; READ];
            let mut buffer = ReadBuf::uninit(&mut room);
            *left -= some(ready!(connection.stream.poll_read_unseen(
                most,
                context,
                &mut buffer
            ))?)? as u64;
            request.add(buffer.filled());
            return Poll::Ready(Ok(()));
        }
        some(ready!(connection.stream.poll_see(context))?)?;
    }
    let seen = connection.stream.seen();
    let mut read = 0;
    while read < seen.len() && !rest.is_over() {
        let (data, count) = rest
            .piece(&seen[read..])
            .map_err(|BadChunk| BodyError::Malformed)?;
        request.add(data);
        read += count;
    }
    connection.stream.discard(read);
    if rest.is_over() {
        let added = read_trailers(rest.trailers(), |trailers| {
            for trailer in trailers {
                request.add_trailer(trailer.name, trailer.value);
            }
        });
        added.map_err(|BadTrailers| BodyError::Malformed)?;
    }
    Poll::Ready(Ok(()))
}

/// The number of octets that were read. 0 is the end of the connection, and an error.
fn some(count: usize) -> io::Result<usize> {
    if count == 0 {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(count)
    }
}

pub struct Http1Client<'c> {
    connection: &'c mut Connection,
    /// The request as it came.
    head: &'c [u8],
    body: Rest,
    /// Whether it sends the body only after a 100.
    expects: bool,
    leaving: &'c ShutdownWatch,
    /// Whether the response has no length.
    sends_chunks: bool,
    keeps_alive: bool,
}

impl<'c> Http1Client<'c> {
    pub fn new(
        connection: &'c mut Connection,
        head: &'c [u8],
        request: &LaneRequest,
        leaving: &'c ShutdownWatch,
    ) -> Http1Client<'c> {
        Http1Client {
            connection,
            head,
            body: request.body.into(),
            expects: request.expects,
            leaving,
            sends_chunks: false,
            keeps_alive: !request.closes,
        }
    }

    /// Called after a whole response. Throws away the rest of a body with a length, for at most
    /// `LINGER_LIMIT`. Returns whether the connection goes on; `begin` has ruled it out where the
    /// rest is too long.
    pub async fn goes_on(&mut self) -> bool {
        self.connection.set_deadline(LINGER_LIMIT);
        while self.keeps_alive
            && let Rest::Length(left @ 1..) = &mut self.body
        {
            let count = self
                .connection
                .stream
                .seen()
                .len()
                .min(usize::try_from(*left).unwrap_or(usize::MAX));
            self.connection.stream.discard(count);
            *left -= count as u64;
            if *left > 0 {
                self.keeps_alive = matches!(self.connection.see().await, Ok(1..));
            }
        }
        self.keeps_alive
    }

    fn write_head(&mut self, head: &ClientHead<'_, '_>) {
        let output = self.output();
        // A proxy answers in its own version, whatever the origin's (RFC 9112 section 2.3).
        for part in ["HTTP/1.1 ", head.status.as_str(), " ", head.reason, "\r\n"] {
            output.extend_from_slice(part.as_bytes());
        }
        head.lines.write(output);
    }

    /// Octets that are sent with the next flush, or before.
    fn output(&mut self) -> &mut Vec<u8> {
        self.connection.stream.gather()
    }
}

impl Client for Http1Client<'_> {
    const TAKES_TRAILERS: bool = false;

    fn connection(&self) -> requests::Connection<'_> {
        self.connection.client.behind(None)
    }

    fn asked(&self) -> HeaderMap {
        fields_of(self.head)
    }

    /// Adds a piece of the body. Ready with whether the body is over. From then on the client
    /// counts as one that does not wait for a 100.
    fn poll_body(
        &mut self,
        request: &mut Outgoing,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, BodyError>> {
        ready!(poll_read(&mut self.body, self.connection, request, context))?;
        self.expects = false;
        Poll::Ready(Ok(self.body.is_over()))
    }

    /// Writes an informational head. After a 100 the client waits for none any more.
    fn inform(&mut self, head: &ClientHead<'_, '_>) {
        self.expects &= head.status != StatusCode::CONTINUE;
        self.write_head(head);
        self.output().extend_from_slice(b"\r\n");
    }

    /// Writes the final head, with Date, Connection and the framing. The connection goes on only if
    /// it was to, if the rest of the body is small, and if the server does not leave. A body
    /// without a length is sent in chunks.
    fn begin(&mut self, head: &ClientHead<'_, '_>, origins: &ResponseHead) {
        // A small rest of the body can be thrown away after the response. A client that waits for a
        // 100 may send the body, or go on with another request.
        let is_small =
            self.body.is_over() || matches!(self.body, Rest::Length(..=LEFT) if !self.expects);
        self.keeps_alive &= is_small && !*self.leaving.borrow();
        self.sends_chunks = matches!(
            origins.framing,
            ResponseFraming::Chunked | ResponseFraming::UntilClose
        );
        self.write_head(head);
        let connection = if self.keeps_alive {
            "keep-alive"
        } else {
            "close"
        };
        let output = self.output();
        if origins.framing == ResponseFraming::UntilClose {
            output.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        output.extend_from_slice(b"Date: ");
        with_date(|date| output.extend_from_slice(date));
        for part in ["\r\nConnection: ", connection, "\r\n\r\n"] {
            output.extend_from_slice(part.as_bytes());
        }
    }

    /// Ready when no more than `GATHERED` bytes wait for the client. Writes them if more wait.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.connection.stream.gathered() > GATHERED {
            self.connection.poll_gathered(context)
        } else {
            Poll::Ready(Ok(()))
        }
    }

    /// Sends bytes of the body: as one chunk, which is taken whole, or as they are. `_ends` needs
    /// no work: the length tells the client, or `Client::end`.
    fn poll_send(
        &mut self,
        octets: &[u8],
        _ends: bool,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.sends_chunks {
            ready!(self.poll_room(context))?;
            write_chunk(octets, self.output());
            return Poll::Ready(Ok(octets.len()));
        }
        Pin::new(&mut *self.connection).poll_write(context, octets)
    }

    /// Writes the last chunk. The trailers are left out: a client of HTTP/1.1 gets none.
    fn end(&mut self, _trailers: &[Header<'_>]) {
        self.output().extend_from_slice(b"0\r\n\r\n");
    }

    /// Gathers a whole answer, with `Connection: close`.
    fn answer(&mut self, answer: &Answer) {
        with_date(|date| answer.write_http1(date, false, self.output()));
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.connection).poll_flush(context)
    }

    /// Ready with the error when the client is gone; a regular end is `UnexpectedEof`. Reads
    /// further requests ahead meanwhile.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let gone = self.connection.poll_client_gone(context);
        gone.map(|gone| {
            gone.err()
                .unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())
        })
    }

    fn poll_elapsed(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        self.connection.timer.poll_elapsed(moment, context)
    }
}
