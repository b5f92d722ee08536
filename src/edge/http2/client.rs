//! [`Http2Client`]: the client's side of a request that the lane (`lane`) forwards, over a stream
//! of HTTP/2.
//!
//! The client may send more of its body as the origin takes it (flow control of HTTP/2). Of a
//! response, crawlgate reads from the origin as much as one buffer holds. It reads more when the
//! client and its connection have taken that.

use super::head::{head_of, head_of_http2, trailers as trailers_of};
use super::output::Output;
use super::stream::{Gone, Stream};
use crate::answers::Answer;
use crate::edge::date::date_value;
use crate::edge::lane::{
    BadTrailers, BodyError, Client, ClientHead, Outgoing, ResponseFraming, ResponseHead,
    check_trailers,
};
use crate::edge::timer::Timer;
use crate::requests::{ClientConnection, Connection};
use bytes::Bytes;
use http::{HeaderMap, header};
use httparse::Header;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::time::Instant;

pub struct Http2Client {
    pub stream: Stream,
    client: Arc<ClientConnection>,
    fields: HeaderMap,
    output: Output,
    /// The part of an answer that the client has no room for yet.
    rest: Bytes,
    /// Whether something could not be sent, because the stream is over.
    is_cut: bool,
    timer: Timer,
}

impl Http2Client {
    pub fn new(
        stream: Stream,
        client: Arc<ClientConnection>,
        fields: HeaderMap,
        output: Output,
    ) -> Http2Client {
        Http2Client {
            stream,
            client,
            fields,
            output,
            rest: Bytes::new(),
            is_cut: false,
            timer: Timer::default(),
        }
    }

    /// Ready with how many of the `wanted` bytes the client has room for: at least one. Fails if
    /// the stream is over.
    fn poll_window(&mut self, wanted: usize, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.stream.sending.poll_room(wanted, context).map_err(cut)
    }

    /// Notes in `is_cut` if something could not be sent.
    fn note<T>(&mut self, sent: Result<T, Gone>) {
        self.is_cut |= sent.is_err();
    }
}

fn cut(_: Gone) -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl Client for Http2Client {
    const TAKES_TRAILERS: bool = true;

    fn connection(&self) -> Connection<'_> {
        self.client.behind(None)
    }

    fn asked(&self) -> HeaderMap {
        self.fields.clone()
    }

    /// Adds the part of the body that was read ahead, or the next one, and lets the client send as
    /// much again. Ready with whether that was the end of the body. Trailers are added at the end.
    fn poll_body(
        &mut self,
        request: &mut Outgoing,
        context: &mut Context<'_>,
    ) -> Poll<Result<bool, BodyError>> {
        let Stream { body, ahead, .. } = &mut self.stream;
        if !ahead.is_empty() {
            request.add(&std::mem::take(ahead));
            return Poll::Ready(Ok(body.is_end_stream()));
        }
        match ready!(body.poll_data(context)) {
            Some(Ok(piece)) => {
                request.add(&piece);
                self.output.note_moved(piece.len());
                let _ = body.flow_control().release_capacity(piece.len());
                Poll::Ready(Ok(body.is_end_stream()))
            }
            Some(Err(_)) => Poll::Ready(Err(BodyError::Gone(cut(Gone)))),
            None => {
                if let Ok(Some(trailers)) = ready!(body.poll_trailers(context)) {
                    check_trailers(&trailers).map_err(|BadTrailers| BodyError::Malformed)?;
                    trailers.iter().for_each(|(name, value)| {
                        request.add_trailer(name.as_str(), value.as_bytes().trim_ascii())
                    });
                }
                Poll::Ready(Ok(true))
            }
        }
    }

    fn inform(&mut self, head: &ClientHead<'_, '_>) {
        let sent = self
            .stream
            .sending
            .inform(head_of_http2(head.status, head.lines.iter()));
        self.note(sent);
    }

    /// Sends the final head, with Date. It ends the stream if there is no body, or one of length 0.
    fn begin(&mut self, head: &ClientHead<'_, '_>, origins: &ResponseHead) {
        let ends = matches!(
            origins.framing,
            ResponseFraming::None | ResponseFraming::Length(0)
        );
        let mut response = head_of_http2(head.status, head.lines.iter());
        response.headers_mut().insert(header::DATE, date_value());
        let sent = self.stream.sending.head(response, ends);
        self.note(sent);
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.output.poll_room(context).map(Ok)
    }

    /// Sends as many of these bytes as the connection and the client have room for: at least one.
    /// Ready with their number. With `ends`, the stream ends if all of them were sent.
    fn poll_send(
        &mut self,
        octets: &[u8],
        ends: bool,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.output.poll_room(context));
        let count = ready!(self.poll_window(octets.len(), context))?;
        self.output.note_moved(count);
        let sent = self.stream.sending.send(
            Bytes::copy_from_slice(&octets[..count]),
            ends && count == octets.len(),
        );
        Poll::Ready(sent.map(|()| count).map_err(cut))
    }

    /// Ends the body, with the trailers if there are any.
    fn end(&mut self, trailers: &[Header<'_>]) {
        let sending = &mut self.stream.sending;
        let fields = trailers_of(trailers.iter().map(|field| (field.name, field.value)));
        let sent = if fields.is_empty() {
            sending.send(Bytes::new(), true)
        } else {
            sending.end_with(fields)
        };
        self.note(sent);
    }

    /// Sends the head of an answer. Its body waits in `rest` for `Client::poll_flush`.
    fn answer(&mut self, answer: &Answer) {
        self.rest = answer.body().clone();
        let sent = self
            .stream
            .sending
            .head(head_of(answer), self.rest.is_empty());
        self.note(sent);
    }

    /// Ready when h2 has all bytes, those of `rest` included. The connection's task sends them
    /// before it records the exchange. Fails if the stream ended before something could be sent.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_cut {
            return Poll::Ready(Err(cut(Gone)));
        }
        while !self.rest.is_empty() {
            let room = ready!(self.poll_window(self.rest.len(), context))?;
            let piece = self.rest.split_to(room);
            self.stream
                .sending
                .send(piece, self.rest.is_empty())
                .map_err(cut)?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.stream.sending.poll_gone(context).map(cut)
    }

    fn poll_elapsed(&mut self, moment: Instant, context: &mut Context<'_>) -> Poll<()> {
        self.timer.poll_elapsed(moment, context)
    }
}
