//! [`Http1ClientSide`]: the client's side of a forwarded request over HTTP/1.1 (it implements
//! [`ClientSide`]). It reads the body of the request from the client, and writes the response with
//! its framing (length or chunks).

use crate::answers::Answer;
use crate::edge::body_decoder::BodyDecoder;
use crate::edge::buffered_stream::WRITE_BUFFER_BYTES;
use crate::edge::client_stream::{ClientStream, LINGER_TIMEOUT};
use crate::edge::date::with_date;
use crate::edge::forwarder::{
    BodyError, ClientSide, FieldLines, OriginRequest, RequestBuffer, ResponseFraming, ResponseHead,
    read_trailers, write_chunk,
};
use crate::edge::http1_head::parse_answer_fields;
use crate::requests;
use http::{HeaderMap, StatusCode};
use httparse::Header;
use pingora_core::server::ShutdownWatch;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{
    Context,
    Poll::{self, Ready},
    ready,
};
use tokio::io::{AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Bytes of a body that are read at a time.
const BODY_READ_BYTES: usize = 32 * 1024;

/// The most bytes of a request's body that are discarded after the response. If more are left, the
/// connection ends.
const MAX_UNREAD_BODY: u64 = 64 * 1024;

/// Reads a part of the body from the client and adds it to the request, without chunk framing, and
/// at its end the trailers. Ready at once if the body is over. A connection that ends before the
/// body is an error.
fn poll_read_body(
    rest: &mut BodyDecoder,
    connection: &mut ClientStream,
    request: &mut RequestBuffer,
    context: &mut Context<'_>,
) -> Poll<Result<(), BodyError>> {
    if rest.is_finished() {
        return Ready(Ok(()));
    }
    if connection.stream.read_buffer().is_empty() {
        if let BodyDecoder::Length(left) = rest {
            let limit = usize::try_from(*left).unwrap_or(usize::MAX);
            let mut memory = [const { MaybeUninit::uninit() }; BODY_READ_BYTES];
            let mut buffer = ReadBuf::uninit(&mut memory);
            *left -= check_not_eof(ready!(connection.stream.poll_read_direct(
                limit,
                context,
                &mut buffer
            ))?)? as u64;
            request.push_body(buffer.filled());
            return Ready(Ok(()));
        }
        check_not_eof(ready!(connection.stream.poll_fill(context))?)?;
    }
    let input = connection.stream.read_buffer();
    let mut read = 0;
    while read < input.len() && !rest.is_finished() {
        let (data, count) = rest.next_data(&input[read..])?;
        request.push_body(data);
        read += count;
    }
    connection.stream.discard(read);
    if rest.is_finished() {
        read_trailers(rest.trailers(), |trailers| {
            for trailer in trailers {
                request.add_trailer(trailer.name, trailer.value);
            }
        })?;
    }
    Ready(Ok(()))
}

/// Returns the number of bytes that were read. 0, the end of the connection, is an error.
fn check_not_eof(count: usize) -> io::Result<usize> {
    if count == 0 {
        Err(io::ErrorKind::UnexpectedEof.into())
    } else {
        Ok(count)
    }
}

/// A client of HTTP/1.1, during one request.
pub struct Http1ClientSide<'c> {
    connection: &'c mut ClientStream,
    /// The head of the request as it came.
    head: &'c [u8],
    body: BodyDecoder,
    /// Whether the client sends the body only after a 100.
    expects_continue: bool,
    draining: &'c ShutdownWatch,
    /// Whether the response has no length.
    sends_chunks: bool,
    keeps_alive: bool,
}

impl<'c> Http1ClientSide<'c> {
    pub fn new(
        connection: &'c mut ClientStream,
        head: &'c [u8],
        request: &OriginRequest,
        draining: &'c ShutdownWatch,
    ) -> Http1ClientSide<'c> {
        Http1ClientSide {
            connection,
            head,
            body: request.body.into(),
            expects_continue: request.expects_continue,
            draining,
            sends_chunks: false,
            keeps_alive: !request.wants_close,
        }
    }

    /// Discards the rest of the request's body after a whole response, for at most
    /// `LINGER_TIMEOUT`. Returns whether the connection can take another request: not if the rest
    /// is too long.
    pub async fn finish_request(&mut self) -> bool {
        self.connection.set_deadline(LINGER_TIMEOUT);
        while self.keeps_alive
            && let BodyDecoder::Length(left @ 1..) = &mut self.body
        {
            let count = self
                .connection
                .stream
                .read_buffer()
                .len()
                .min(usize::try_from(*left).unwrap_or(usize::MAX));
            self.connection.stream.discard(count);
            *left -= count as u64;
            if *left > 0 {
                self.keeps_alive = matches!(self.connection.fill().await, Ok(1..));
            }
        }
        self.keeps_alive
    }

    fn write_head(&mut self, status: StatusCode, reason: &str, lines: &FieldLines<'_>) {
        let output = self.output();
        // A proxy answers in its own version, whatever the origin's (RFC 9112 section 2.3).
        for part in ["HTTP/1.1 ", status.as_str(), " ", reason, "\r\n"] {
            output.extend_from_slice(part.as_bytes());
        }
        lines.write(output);
    }

    /// The write buffer: sent with the next flush, or before.
    fn output(&mut self) -> &mut Vec<u8> {
        self.connection.stream.write_buffer()
    }
}

impl ClientSide for Http1ClientSide<'_> {
    const SUPPORTS_TRAILERS: bool = false;

    fn connection(&self) -> requests::ConnectionFacts<'_> {
        self.connection.client.facts(None)
    }

    fn request_fields(&self) -> HeaderMap {
        parse_answer_fields(self.head)
    }

    /// After a part of the body, the client counts as one that does not wait for a 100.
    fn poll_body(
        &mut self,
        request: &mut RequestBuffer,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, BodyError>> {
        ready!(poll_read_body(
            &mut self.body,
            self.connection,
            request,
            context
        ))?;
        self.expects_continue = false;
        Ready(Ok(self.body.is_finished()))
    }

    fn send_informational(&mut self, status: StatusCode, reason: &str, lines: &FieldLines<'_>) {
        self.expects_continue &= status != StatusCode::CONTINUE;
        self.write_head(status, reason, lines);
        self.output().extend_from_slice(b"\r\n");
    }

    /// Writes the final head, with Date, Connection and the framing. A body without a length is
    /// sent in chunks.
    fn send_head(&mut self, head: &ResponseHead, reason: &str, lines: &FieldLines<'_>) {
        // A small rest of the body can be discarded after the response. But a client that waits for
        // a 100 may send the body, or another request instead.
        let is_rest_small = self.body.is_finished()
            || matches!(self.body, BodyDecoder::Length(..=MAX_UNREAD_BODY) if !self.expects_continue);
        self.keeps_alive &= is_rest_small && !*self.draining.borrow();
        self.sends_chunks = matches!(
            head.framing,
            ResponseFraming::Chunked | ResponseFraming::UntilClose
        );
        self.write_head(head.status, reason, lines);
        let connection = if self.keeps_alive {
            "keep-alive"
        } else {
            "close"
        };
        let output = self.output();
        if head.framing == ResponseFraming::UntilClose {
            output.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        output.extend_from_slice(b"Date: ");
        with_date(|date| output.extend_from_slice(date.as_bytes()));
        for part in ["\r\nConnection: ", connection, "\r\n\r\n"] {
            output.extend_from_slice(part.as_bytes());
        }
    }

    /// Writes the write buffer if it has more than `WRITE_BUFFER_BYTES`.
    fn poll_capacity(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.connection.stream.unwritten_len() > WRITE_BUFFER_BYTES {
            self.connection.poll_write_buffer(context)
        } else {
            Ready(Ok(()))
        }
    }

    /// Sends bytes of the body as they are, or as one chunk, which is taken whole. `_ends` is not
    /// needed: the client knows the end by the length, or by the last chunk.
    fn poll_send_body(
        &mut self,
        bytes: &[u8],
        _ends: bool,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.sends_chunks {
            ready!(self.poll_capacity(context))?;
            write_chunk(bytes, self.output());
            return Ready(Ok(bytes.len()));
        }
        Pin::new(&mut *self.connection).poll_write(context, bytes)
    }

    /// Writes the last chunk, without trailers.
    fn end_body(&mut self, _trailers: &[Header<'_>]) {
        self.output().extend_from_slice(b"0\r\n\r\n");
    }

    /// Sends the answer with `Connection: close`.
    fn send_answer(&mut self, answer: &Answer) {
        with_date(|date| answer.write_http1(date.as_bytes(), false, self.output()));
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.connection).poll_flush(context)
    }

    /// Reads further requests ahead meanwhile. A regular end is `UnexpectedEof`.
    fn poll_client_left(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let gone = self.connection.poll_client_left(context);
        gone.map(|gone| {
            gone.err()
                .unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())
        })
    }

    fn poll_elapsed(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        self.connection.timer.poll_elapsed(moment, context)
    }
}
