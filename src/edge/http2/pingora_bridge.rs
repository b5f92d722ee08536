//! [`PingoraBridge`] lets Pingora's proxy forward a request that came over HTTP/2. Pingora sees one
//! HTTP/1.1 request on a connection in memory. The bridge relays the body as fast as Pingora takes
//! it, and the response as fast as the client takes it. If the client resets its stream, the bridge
//! ends the connection in memory, and Pingora then ends the request at the origin.

use super::batched_io::BatchedIo;
use super::head::{http1_fields, joined_cookies, request_target, response_head};
use super::request_stream::{RequestStream, ResponseSender, StreamClosed};
use super::session::{RequestOutcome, UnrecordedResponse};
use crate::edge::client_stream::ClientStream;
use crate::edge::context::{EdgeContext, PINGORA_BUFFER_BYTES};
use crate::edge::forwarder::{
    FieldLines, ParsedResponse, RequestBuffer, ResponseFraming, ResponseReader, check_trailers,
    poll_read, write_request_head,
};
use crate::edge::pooled_buffer::PooledBuffer;
use crate::requests::{BodyFraming, ClientConnection, Ticket};
use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::Method;
use http::request::Parts;
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use std::error::Error;
use std::future::{pending, poll_fn};
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::yield_now;

/// Bytes of the connection in memory, in each direction.
const DUPLEX_BUFFER_BYTES: usize = 16 * 1024;
/// Bytes of memory that such a request takes in addition to one in the forwarder.
pub const BRIDGE_BYTES: usize = 2 * DUPLEX_BUFFER_BYTES + PINGORA_BUFFER_BYTES;

/// Why a request or its response broke off. [`StreamClosed`] if the client has reset the stream.
type BridgeError = Box<dyn Error + Send + Sync>;

/// The response broke off because the origin, and so Pingora, ended it.
const BROKEN_OFF: &str = "the response broke off";

/// A connection in memory between an HTTP/2 stream and Pingora.
pub struct PingoraBridge {
    pingora_end: Box<ClientStream>,
    local_end: DuplexStream,
    framing: BodyFraming,
    is_head: bool,
    output: BatchedIo,
}

impl PingoraBridge {
    /// Writes the head of a request as HTTP/1.1 into a connection in memory, and leaves the ticket
    /// for the gateway. `framing` is the body's; `stall` is how long the client may take nothing.
    pub fn new(
        client: ClientConnection,
        head: &Parts,
        framing: BodyFraming,
        ticket: Ticket,
        stall: Duration,
        output: BatchedIo,
    ) -> PingoraBridge {
        let (local_end, far_end) = duplex(DUPLEX_BUFFER_BYTES);
        client.put_ticket(ticket);
        let mut pingora_end = Box::new(ClientStream::new(
            Box::new(far_end),
            None,
            client,
            None,
            stall,
        ));
        let cookies = joined_cookies(head);
        let mut lines = FieldLines::default();
        lines.extend(http1_fields(head, framing, cookies.as_deref()));
        let mut bytes = Vec::with_capacity(1024);
        let method = head.method.as_str().as_bytes();
        write_request_head(method, request_target(head), &lines, &mut bytes);
        pingora_end.let_pingora_read_request(bytes, framing);
        PingoraBridge {
            pingora_end,
            local_end,
            framing,
            is_head: head.method == Method::HEAD,
            output,
        }
    }

    /// Has Pingora forward the request. If the response came whole, returns `Sent` with the
    /// gateway's record: the client may still have to take its end. If it broke off, records that
    /// and resets the stream. Returns `Reset` if the client had reset it before, else `Sent`
    /// without a record.
    pub async fn run(
        self,
        edge: &EdgeContext,
        stop: ShutdownWatch,
        mut stream: RequestStream,
    ) -> RequestOutcome {
        let client = self.pingora_end.client.clone();
        let session = ServerSession::new_http1(self.pingora_end);
        // The connection that Pingora returns is dropped: the next request has its own.
        let process = async {
            if let Some(pingora) = &edge.pingora {
                drop(pingora.process(session, &stop).await);
            }
        };
        let ((), relayed) = tokio::join!(
            process,
            relay(
                self.local_end,
                &mut stream,
                self.framing,
                self.is_head,
                &self.output
            )
        );
        let record = client.take_record();
        let Err(error) = relayed else {
            return RequestOutcome::Sent(stream, record.map(UnrecordedResponse::Response));
        };
        tracing::debug!(%error, "a response over HTTP/2 broke off");
        if let Some(record) = record {
            record.finish(false);
        }
        let was_reset = error.is::<StreamClosed>();
        // h2 writes first what came before: a reset discards what is not written.
        yield_now().await;
        stream.sending.reset(Reason::INTERNAL_ERROR);
        if was_reset {
            RequestOutcome::Reset
        } else {
            RequestOutcome::Sent(stream, None)
        }
    }
}

/// Relays a request and its response between a stream and `local_end`. The end of the response ends
/// both directions; so does a failure of either one.
async fn relay(
    local_end: DuplexStream,
    stream: &mut RequestStream,
    framing: BodyFraming,
    is_head: bool,
    output: &BatchedIo,
) -> Result<(), BridgeError> {
    let (read, write) = split(local_end);
    let RequestStream {
        sending,
        body,
        buffered_body,
    } = stream;
    let mut request = RequestBuffer::new(PooledBuffer::default(), framing);
    request.push_body(&std::mem::take(buffered_body));
    let upload = async {
        relay_request_body(body, request, write, output).await?;
        // The response ends the round trip.
        pending().await
    };
    let mut response_relay = ResponseRelay {
        read,
        sending,
        response: ResponseReader::default(),
        output,
    };
    tokio::select! {
        relayed = response_relay.run(is_head) => relayed,
        result = upload => result,
    }
}

/// Relays the body of a request. `Ok` also if Pingora takes no more of it. Trailers are checked and
/// dropped: Pingora passes none on (Pingora 0.9.1).
async fn relay_request_body(
    body: &mut RecvStream,
    mut request: RequestBuffer,
    mut write: WriteHalf<DuplexStream>,
    output: &BatchedIo,
) -> Result<(), BridgeError> {
    while !request.is_sent() {
        match body.data().await {
            Some(piece) => {
                let piece = piece.map_err(|_| StreamClosed)?;
                output.count_progress(piece.len());
                request.push_body(&piece);
                // Pingora may take no more of it, which is no error.
                if write.write_all(request.unwritten()).await.is_err() {
                    return Ok(());
                }
                let _ = body.flow_control().release_capacity(piece.len());
            }
            None => {
                if let Ok(Some(trailers)) = body.trailers().await {
                    check_trailers(&trailers)?;
                }
                request.finish_body();
                let _ = write.write_all(request.unwritten()).await;
            }
        }
        request.mark_written(request.unwritten().len());
    }
    Ok(())
}

/// Relays a response to the client.
struct ResponseRelay<'s> {
    read: ReadHalf<DuplexStream>,
    sending: &'s mut ResponseSender,
    response: ResponseReader,
    output: &'s BatchedIo,
}

impl ResponseRelay<'_> {
    /// Relays informational heads, the final head, and the body as fast as the client takes it.
    /// `is_head` is whether the request was HEAD.
    async fn run(&mut self, is_head: bool) -> Result<(), BridgeError> {
        while self.response.is_before_body() {
            let mut sent = Ok(());
            let parsed_head = self
                .response
                .parse_head(is_head, |parsed| sent = relay_head(self.sending, parsed))?;
            sent?;
            if parsed_head.is_none() {
                self.read_more().await?;
            }
        }
        // Pingora frames every response to HTTP/1.1. Of one without framing, a part looks like the
        // whole.
        if self.response.ends_by_close() {
            return Err(BROKEN_OFF.into());
        }
        loop {
            let (data, _) = self.response.data();
            if !data.is_empty() {
                let wanted = data.len();
                let count = poll_fn(|context| {
                    let polled = self.sending.poll_capacity(wanted, context);
                    if polled.is_pending() {
                        self.response.shrink_buffer();
                    }
                    polled
                });
                let count = count.await?;
                let (data, ends) = self.response.data();
                let ends = ends && count == data.len();
                self.sending
                    .send_data(Bytes::copy_from_slice(&data[..count]), ends)?;
                self.response.consume(count);
            } else if self.response.is_body_finished() {
                if !self.response.has_known_length() {
                    self.sending.send_data(Bytes::new(), true)?;
                }
                return Ok(());
            } else if !self.response.decode_more()? {
                self.read_more().await?;
            }
        }
    }

    /// Reads more of the response. The end of Pingora's connection is an error.
    async fn read_more(&mut self) -> Result<(), BridgeError> {
        let count = poll_fn(|context| {
            if let Poll::Ready(gone) = self.sending.poll_reset(context) {
                return Poll::Ready(Err(BridgeError::from(gone)));
            }
            let read = poll_read(&mut self.read, self.response.input_buffer(), context);
            self.response.mark_read();
            read.map_err(BridgeError::from)
        });
        let count = count.await?;
        if count == 0 {
            return Err(BROKEN_OFF.into());
        }
        self.output.count_progress(count);
        Ok(())
    }
}

/// Sends a head to the client, without hop-by-hop fields. A final head without a body ends the
/// stream.
fn relay_head(
    sending: &mut ResponseSender,
    parsed: &ParsedResponse<'_, '_>,
) -> Result<(), StreamClosed> {
    let head = parsed.head;
    let response = response_head(
        head.status,
        parsed.fields.iter().map(|field| (field.name, field.value)),
    );
    if head.status.is_informational() {
        return sending.send_informational(response);
    }
    sending.send_head(
        response,
        matches!(
            head.framing,
            ResponseFraming::None | ResponseFraming::Length(0)
        ),
    )
}
