//! [`Http2ClientSide`]: the client's side of a forwarded request over HTTP/2 (it implements
//! [`ClientSide`]). HTTP/2 flow control makes the client send the request's body only as fast as
//! the origin takes it. Likewise, crawlgate reads the response from the origin only as fast as the
//! client takes it, one buffer at a time.

use super::batched_io::BatchedIo;
use super::head::{answer_head, response_head, trailer_map};
use super::request_stream::{RequestStream, StreamClosed};
use crate::answers::Answer;
use crate::edge::date::with_date;
use crate::edge::forwarder::{
    BodyError, ClientSide, FieldLines, RequestBuffer, ResponseFraming, ResponseHead, check_trailers,
};
use crate::edge::timer::Timer;
use crate::requests::{ClientConnection, ConnectionFacts};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use httparse::Header;
use std::io;
use std::sync::Arc;
use std::task::{
    Context,
    Poll::{self, Ready},
    ready,
};
use tokio::time::Instant;

/// A client of HTTP/2, during one request.
pub struct Http2ClientSide {
    pub stream: RequestStream,
    client: Arc<ClientConnection>,
    fields: HeaderMap,
    output: BatchedIo,
    /// The part of an answer's body that h2 does not have yet.
    unsent: Bytes,
    /// Whether something could not be sent, because the stream is over.
    has_failed: bool,
    timer: Timer,
}

impl Http2ClientSide {
    pub fn new(
        stream: RequestStream,
        client: Arc<ClientConnection>,
        fields: HeaderMap,
        output: BatchedIo,
    ) -> Http2ClientSide {
        Http2ClientSide {
            stream,
            client,
            fields,
            output,
            unsent: Bytes::new(),
            has_failed: false,
            timer: Timer::default(),
        }
    }

    /// Ready with how many of the `wanted` bytes the client can take: at least one.
    fn poll_send_capacity(
        &mut self,
        wanted: usize,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.stream
            .sending
            .poll_capacity(wanted, context)
            .map_err(connection_reset)
    }

    /// Remembers if something could not be sent, for [`ClientSide::poll_flush`].
    fn record_sent<T>(&mut self, sent: Result<T, StreamClosed>) {
        self.has_failed |= sent.is_err();
    }
}

fn connection_reset(_: StreamClosed) -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl ClientSide for Http2ClientSide {
    const SUPPORTS_TRAILERS: bool = true;

    fn connection(&self) -> ConnectionFacts<'_> {
        self.client.facts(None)
    }

    fn request_fields(&self) -> HeaderMap {
        self.fields.clone()
    }

    /// Also lets the client send as much again.
    fn poll_body(
        &mut self,
        request: &mut RequestBuffer,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, BodyError>> {
        let RequestStream {
            body,
            buffered_body,
            ..
        } = &mut self.stream;
        if !buffered_body.is_empty() {
            request.push_body(&std::mem::take(buffered_body));
            return Ready(Ok(body.is_end_stream()));
        }
        match ready!(body.poll_data(context)) {
            Some(Ok(piece)) => {
                request.push_body(&piece);
                self.output.count_progress(piece.len());
                let _ = body.flow_control().release_capacity(piece.len());
                Ready(Ok(body.is_end_stream()))
            }
            Some(Err(_)) => Ready(Err(BodyError::ClientLeft(connection_reset(StreamClosed)))),
            None => {
                if let Ok(Some(trailers)) = ready!(body.poll_trailers(context)) {
                    check_trailers(&trailers)?;
                    trailers.iter().for_each(|(name, value)| {
                        request.add_trailer(name.as_str(), value.as_bytes().trim_ascii())
                    });
                }
                Ready(Ok(true))
            }
        }
    }

    fn send_informational(&mut self, status: StatusCode, _reason: &str, lines: &FieldLines<'_>) {
        let sent = self
            .stream
            .sending
            .send_informational(response_head(status, lines.iter()));
        self.record_sent(sent);
    }

    /// Adds Date.
    fn send_head(&mut self, head: &ResponseHead, _reason: &str, lines: &FieldLines<'_>) {
        let ends = matches!(
            head.framing,
            ResponseFraming::None | ResponseFraming::Length(0)
        );
        let mut response = response_head(head.status, lines.iter());
        response
            .headers_mut()
            .insert(header::DATE, with_date(HeaderValue::clone));
        let sent = self.stream.sending.send_head(response, ends);
        self.record_sent(sent);
    }

    fn poll_capacity(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.poll_capacity(context).map(Ok)
    }

    fn poll_send_body(
        &mut self,
        bytes: &[u8],
        ends: bool,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.output.poll_capacity(context));
        let count = ready!(self.poll_send_capacity(bytes.len(), context))?;
        self.output.count_progress(count);
        let sent = self.stream.sending.send_data(
            Bytes::copy_from_slice(&bytes[..count]),
            ends && count == bytes.len(),
        );
        Ready(sent.map(|()| count).map_err(connection_reset))
    }

    fn end_body(&mut self, trailers: &[Header<'_>]) {
        let sending = &mut self.stream.sending;
        let fields = trailer_map(trailers.iter().map(|field| (field.name, field.value)));
        let sent = if fields.is_empty() {
            sending.send_data(Bytes::new(), true)
        } else {
            sending.send_trailers(fields)
        };
        self.record_sent(sent);
    }

    /// Sends the head. [`ClientSide::poll_flush`] sends the body.
    fn send_answer(&mut self, answer: &Answer) {
        self.unsent = answer.body().clone();
        let sent = self
            .stream
            .sending
            .send_head(answer_head(answer), self.unsent.is_empty());
        self.record_sent(sent);
    }

    /// Ready when h2 has all bytes, those of `rest` included. The connection's task sends them
    /// before it records the round trip. Fails if the stream ended before something could be sent.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.has_failed {
            return Ready(Err(connection_reset(StreamClosed)));
        }
        while !self.unsent.is_empty() {
            let capacity = ready!(self.poll_send_capacity(self.unsent.len(), context))?;
            let piece = self.unsent.split_to(capacity);
            self.stream
                .sending
                .send_data(piece, self.unsent.is_empty())
                .map_err(connection_reset)?;
        }
        Ready(Ok(()))
    }

    fn poll_client_left(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.stream
            .sending
            .poll_reset(context)
            .map(connection_reset)
    }

    fn poll_elapsed(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        self.timer.poll_elapsed(moment, context)
    }
}
