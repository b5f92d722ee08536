//! [`Http1Client`]: the client's side of an exchange over HTTP/1.1: frames what the client gets, and gathers what is small.
//! Must not know the origin.

use crate::answers::Answer;
use crate::edge::chunks::{BadChunk, Chunks};
use crate::edge::connection::Connection;
use crate::edge::date::with_date;
use crate::edge::head::fields_of;
use crate::edge::lane::{
    BadTrailers, BodyError, Buffer, Client, ClientHead, LaneRequest, Outgoing, ResponseFraming, ResponseHead,
    read_trailers, write_chunk,
};
use crate::edge::linger::LINGER_LIMIT;
use crate::requests::{self, Framing};
use http::{HeaderMap, StatusCode};
use httparse::Header;
use pingora_core::server::ShutdownWatch;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Octets that are gathered before they are sent.
const GATHERED: usize = 16 * 1024;

/// Octets of a body that are read at a time.
const READ: usize = 32 * 1024;

/// What may be left of a body after the response, so that the connection goes on.
const LEFT: u64 = 64 * 1024;

/// What is still to come of the request's body. The others lead to `Over`.
enum Body {
    /// So many octets.
    Length(u64),
    Chunked(Chunks),
    Over,
}

impl Body {
    fn of(framing: Framing) -> Body {
        match framing {
            Framing::None => Body::Over,
            Framing::Length(length) => Body::Length(length),
            Framing::Chunked => Body::Chunked(Chunks::default()),
        }
    }

    /// Adds what has come of it to the request.
    fn poll_read(
        &mut self,
        connection: &mut Connection,
        request: &mut Outgoing,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), BodyError>> {
        let is_over = match self {
            Body::Over => true,
            Body::Length(left) => {
                *left -= ready!(poll_length(*left, connection, request, context))? as u64;
                *left == 0
            }
            Body::Chunked(chunks) => {
                if connection.seen().is_empty() {
                    some(ready!(connection.poll_see(context))?)?;
                }
                let (seen, mut read) = (connection.seen(), 0);
                while read < seen.len() && !chunks.is_over() {
                    let (data, count) = chunks.piece(&seen[read..]).map_err(|BadChunk| BodyError::Malformed)?;
                    request.add(data);
                    read += count;
                }
                connection.discard(read);
                if chunks.is_over() {
                    add_trailers(chunks.trailers(), request)?;
                }
                chunks.is_over()
            }
        };
        if is_over {
            *self = Body::Over;
        }
        Poll::Ready(Ok(()))
    }
}

/// Adds at most so many octets to the request. Ready with how many there were.
fn poll_length(
    left: u64,
    connection: &mut Connection,
    request: &mut Outgoing,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    let most = usize::try_from(left).unwrap_or(usize::MAX);
    if connection.seen().is_empty() {
        let mut room = [const { MaybeUninit::uninit() }; READ];
        let mut buffer = ReadBuf::uninit(&mut room);
        let count = some(ready!(connection.poll_read_unseen(most, &mut buffer, context))?)?;
        request.add(buffer.filled());
        return Poll::Ready(Ok(count));
    }
    let count = connection.seen().len().min(most);
    request.add(&connection.seen()[..count]);
    connection.discard(count);
    Poll::Ready(Ok(count))
}

fn add_trailers(lines: &[u8], request: &mut Outgoing) -> Result<(), BodyError> {
    let added = read_trailers(lines, |trailers| {
        trailers.iter().for_each(|trailer| request.add_trailer(trailer.name, trailer.value));
    });
    added.map_err(|BadTrailers| BodyError::Malformed)
}

/// So many octets were read; none is the end of the connection.
fn some(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(count) }
}

/// A client in an exchange.
pub(super) struct Http1Client<'c> {
    connection: &'c mut Connection,
    /// The request as it came.
    head: &'c [u8],
    body: Body,
    /// Whether it sends the body only after a 100.
    expects: bool,
    leaving: &'c ShutdownWatch,
    /// What was not written yet, from `written` on.
    output: Buffer,
    written: usize,
    is_unflushed: bool,
    /// Whether the response has no length.
    sends_chunks: bool,
    keeps_alive: bool,
}

impl<'c> Http1Client<'c> {
    /// The client of one request, which came with this head.
    pub(super) fn new(
        connection: &'c mut Connection,
        head: &'c [u8],
        request: &LaneRequest,
        leaving: &'c ShutdownWatch,
    ) -> Http1Client<'c> {
        Http1Client {
            connection,
            head,
            body: Body::of(request.body),
            expects: request.expects,
            leaving,
            output: Buffer::default(),
            written: 0,
            is_unflushed: false,
            sends_chunks: false,
            keeps_alive: !request.closes,
        }
    }

    /// Throws away what is still to come of the body. Whether the connection goes on after a whole response.
    pub(super) async fn goes_on(&mut self) -> bool {
        self.connection.set_deadline(LINGER_LIMIT);
        while self.keeps_alive
            && let Body::Length(left) = &mut self.body
        {
            let count = self.connection.seen().len().min(usize::try_from(*left).unwrap_or(usize::MAX));
            self.connection.discard(count);
            *left -= count as u64;
            if *left == 0 {
                self.body = Body::Over;
            } else {
                self.keeps_alive = matches!(self.connection.see().await, Ok(1..));
            }
        }
        self.keeps_alive
    }

    /// Whether what is still to come of the body is so little that it can be thrown away after the response. A client that
    /// waits for a 100 may send the body, or go on with another request.
    fn may_be_read_to_its_end(&self) -> bool {
        match self.body {
            Body::Over => true,
            Body::Length(left) => left <= LEFT && !self.expects,
            Body::Chunked(_) => false,
        }
    }

    fn write_head(&mut self, head: &ClientHead<'_, '_>) {
        if self.output.capacity() == 0 {
            self.output = Buffer::take();
        }
        // A proxy answers in its own version, whatever the origin's (RFC 9112 section 2.3).
        for part in ["HTTP/1.1 ", head.status.as_str(), " ", head.reason, "\r\n"] {
            self.output.extend_from_slice(part.as_bytes());
        }
        head.lines.write(&mut self.output);
    }

    /// Writes some of what waits, and of these octets. Ready with how many of them were taken.
    fn poll_write(&mut self, octets: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let waiting = &self.output[self.written..];
        let length = waiting.len();
        let written = ready!(self.connection.poll_write_both(waiting, octets, context))?;
        self.is_unflushed = true;
        if written < length {
            self.written += written;
            return Poll::Ready(Ok(0));
        }
        self.output.clear();
        self.written = 0;
        Poll::Ready(Ok(written - length))
    }

    /// Writes what waits.
    fn poll_output(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.output.is_empty() {
            ready!(self.poll_write(&[], context))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl Client for Http1Client<'_> {
    fn connection(&self) -> requests::Connection<'_> {
        self.connection.client.behind(None)
    }

    fn asked(&self) -> HeaderMap {
        fields_of(self.head)
    }

    fn poll_body(&mut self, request: &mut Outgoing, context: &mut Context<'_>) -> Poll<Result<bool, BodyError>> {
        ready!(self.body.poll_read(self.connection, request, context))?;
        self.expects = false;
        Poll::Ready(Ok(matches!(self.body, Body::Over)))
    }

    fn inform(&mut self, head: &ClientHead<'_, '_>) {
        self.expects &= head.status != StatusCode::CONTINUE;
        self.write_head(head);
        self.output.extend_from_slice(b"\r\n");
    }

    fn begin(&mut self, head: &ClientHead<'_, '_>, origins: &ResponseHead) {
        self.keeps_alive &= !*self.leaving.borrow() && self.may_be_read_to_its_end();
        self.sends_chunks = matches!(origins.framing, ResponseFraming::Chunked | ResponseFraming::UntilClose);
        self.write_head(head);
        if origins.framing == ResponseFraming::UntilClose {
            self.output.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        self.output.extend_from_slice(b"Date: ");
        with_date(|date| self.output.extend_from_slice(date));
        let connection = if self.keeps_alive { "keep-alive" } else { "close" };
        for part in ["\r\nConnection: ", connection, "\r\n\r\n"] {
            self.output.extend_from_slice(part.as_bytes());
        }
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.output.len() - self.written > GATHERED { self.poll_output(context) } else { Poll::Ready(Ok(())) }
    }

    fn poll_send(&mut self, octets: &[u8], _ends: bool, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.sends_chunks {
            ready!(self.poll_room(context))?;
            write_chunk(octets, &mut self.output);
            return Poll::Ready(Ok(octets.len()));
        }
        while self.output.len() - self.written + octets.len() > GATHERED {
            let count = ready!(self.poll_write(octets, context))?;
            if count > 0 {
                return Poll::Ready(Ok(count));
            }
        }
        self.output.extend_from_slice(octets);
        Poll::Ready(Ok(octets.len()))
    }

    fn end(&mut self, _trailers: &[Header<'_>]) {
        self.output.extend_from_slice(b"0\r\n\r\n");
    }

    fn answer(&mut self, answer: &Answer) {
        with_date(|date| answer.write_http1(date, false, &mut self.output));
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_output(context))?;
        if self.is_unflushed {
            ready!(Pin::new(&mut *self.connection).poll_flush(context))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.connection.poll_client_gone(context)
    }

    fn has_passed(&mut self, moment: Instant, context: &mut Context<'_>) -> bool {
        self.connection.set_deadline_at(moment);
        self.connection.has_deadline_passed(context)
    }
}
