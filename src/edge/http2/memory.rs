//! [`InMemory`]: a request over HTTP/2 that Pingora forwards. It gets a connection in memory, over
//! which Pingora sees one request of HTTP/1.1 and nothing else.
//!
//! The body of the request is passed on as fast as Pingora takes it, and the response as fast as
//! the client takes it. A stream that ends early ends the connection in memory, and with it the
//! request at the origin.

use super::head::{fields_of_http1, head_of_http2, joined_cookies, target};
use super::output::Output;
use super::session::{Finished, Unrecorded};
use super::stream::{Gone, Sending, Stream};
use crate::edge::buffers::Buffer;
use crate::edge::chunks::BadChunk;
use crate::edge::connection::Connection;
use crate::edge::door::{Edge, IN_PINGORA};
use crate::edge::lane::{
    BadResponse, BadTrailers, Incoming, Lines, Outgoing, Parsed, ResponseFraming, check_trailers,
    poll_read, write_head,
};
use crate::requests::{ClientConnection, Framing, Ticket};
use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::Method;
use http::request::Parts;
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use std::future::{pending, poll_fn};
use std::io;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::yield_now;

/// Octets that wait in memory, in each direction.
const WAITING: usize = 16 * 1024;
/// Bytes that a request holds on this way beside what one in the lane holds.
pub const IN_MEMORY: usize = 2 * WAITING + IN_PINGORA;

/// Why a response ended before its end.
#[derive(Debug, thiserror::Error)]
enum Cut {
    /// The client's stream is over.
    #[error(transparent)]
    Gone(#[from] Gone),
    /// Pingora ended it, because the origin did.
    #[error("the response broke off")]
    Response,
    #[error(transparent)]
    Head(#[from] BadResponse),
    #[error("the response has a malformed chunk")]
    Chunk(#[from] BadChunk),
    #[error("the request has too many trailers")]
    Trailers,
    #[error(transparent)]
    Io(#[from] io::Error),
}

pub struct InMemory {
    /// Pingora's end.
    connection: Box<Connection>,
    near: DuplexStream,
    framing: Framing,
    is_head: bool,
    output: Output,
}

impl InMemory {
    /// Writes the head of a request, as HTTP/1.1, into a connection in memory, and leaves its
    /// ticket for Pingora's gateway. `framing` is the body's; `stall` is how long the client may
    /// take nothing.
    pub fn new(
        client: ClientConnection,
        head: &Parts,
        framing: Framing,
        ticket: Ticket,
        stall: Duration,
        output: Output,
    ) -> InMemory {
        let (near, far) = duplex(WAITING);
        client.hand_on(ticket);
        let mut connection = Box::new(Connection::new(Box::new(far), None, client, None, stall));
        let cookies = joined_cookies(head);
        let mut lines = Lines::default();
        lines.take(fields_of_http1(head, framing, cookies.as_deref()));
        let mut octets = Vec::with_capacity(1024);
        let method = head.method.as_str().as_bytes();
        write_head(method, target(head), &lines, &mut octets);
        connection.open_for(octets, framing);
        InMemory {
            connection,
            near,
            framing,
            is_head: head.method == Method::HEAD,
            output,
        }
    }

    /// Has Pingora forward the request and carries both bodies. `Sent` with what the gateway
    /// recorded if the response came whole: the client may still have to take its end. If the
    /// response broke off, records that, and resets the stream: `Reset` if the client had reset it
    /// before, else `Sent` without a record.
    pub async fn pass_on(self, edge: &Edge, stop: ShutdownWatch, mut stream: Stream) -> Finished {
        let InMemory {
            connection,
            near,
            framing,
            is_head,
            output,
        } = self;
        let client = connection.client.clone();
        let session = ServerSession::new_http1(connection);
        // The connection that Pingora gives back is closed: the next request has one of its own.
        let process = async {
            if let Some(app) = &edge.app {
                drop(app.process(session, &stop).await);
            }
        };
        let ((), carried) =
            tokio::join!(process, carry(near, &mut stream, framing, is_head, &output));
        let record = client.take_record();
        let Err(cut) = carried else {
            return Finished::Sent(stream, record.map(Unrecorded::Response));
        };
        tracing::debug!(%cut, "a response over HTTP/2 broke off");
        if let Some(record) = record {
            record.finish(false);
        }
        let was_reset = matches!(cut, Cut::Gone(Gone));
        // The client gets what came before: a reset throws away what h2 has not written. Of a
        // stream that is over it does nothing.
        yield_now().await;
        stream.sending.reset(Reason::INTERNAL_ERROR);
        if was_reset {
            Finished::Reset
        } else {
            Finished::Sent(stream, None)
        }
    }
}

/// Carries a request and its response between a stream and memory (`near`). The end of the response
/// ends both directions; so does a failure of either one.
async fn carry(
    near: DuplexStream,
    stream: &mut Stream,
    framing: Framing,
    is_head: bool,
    output: &Output,
) -> Result<(), Cut> {
    let (read, write) = split(near);
    let Stream {
        sending,
        body,
        ahead,
    } = stream;
    let mut request = Outgoing::new(Buffer::default(), framing);
    request.add(&std::mem::take(ahead));
    let upload = async {
        upload(body, request, write, output).await?;
        // The response ends the exchange.
        pending().await
    };
    let mut download = Download {
        read,
        sending,
        response: Incoming::default(),
        output,
    };
    tokio::select! {
        carried = download.run(is_head) => carried,
        cut = upload => cut,
    }
}

/// Carries the body of a request. Ends with `Ok` also if Pingora takes no more of it. Trailers are
/// checked and stay behind: Pingora passes none on (Pingora 0.9.1).
async fn upload(
    body: &mut RecvStream,
    mut request: Outgoing,
    mut write: WriteHalf<DuplexStream>,
    output: &Output,
) -> Result<(), Cut> {
    while !request.is_sent() {
        match body.data().await {
            Some(piece) => {
                let piece = piece.map_err(|_| Gone)?;
                output.note_moved(piece.len());
                request.add(&piece);
                // Pingora may have enough of it. Its response says so.
                if write.write_all(request.waiting()).await.is_err() {
                    return Ok(());
                }
                let _ = body.flow_control().release_capacity(piece.len());
            }
            None => {
                if let Ok(Some(trailers)) = body.trailers().await {
                    check_trailers(&trailers).map_err(|BadTrailers| Cut::Trailers)?;
                }
                request.end();
                let _ = write.write_all(request.waiting()).await;
            }
        }
        request.wrote(request.waiting().len());
    }
    Ok(())
}

/// A response on its way to the client.
struct Download<'s> {
    read: ReadHalf<DuplexStream>,
    sending: &'s mut Sending,
    /// The octets that came and were not passed on.
    response: Incoming,
    output: &'s Output,
}

impl Download<'_> {
    /// Passes the response on: informational heads, the final head, then the body as fast as the
    /// client takes it. `is_head` says whether the request was HEAD. Fails if the response ends
    /// early or is malformed, and when the client's stream is over.
    async fn run(&mut self, is_head: bool) -> Result<(), Cut> {
        while self.response.is_before_body() {
            let mut sent = Ok(());
            let taken = self
                .response
                .take_head(is_head, |parsed| sent = pass_head(self.sending, parsed))?;
            sent?;
            if taken.is_none() {
                self.more().await?;
            }
        }
        // Pingora frames every response to HTTP/1.1. Of one without framing, a part looks like the
        // whole.
        if self.response.ends_by_close() {
            return Err(Cut::Response);
        }
        loop {
            let (piece, _) = self.response.piece();
            if !piece.is_empty() {
                let wanted = piece.len();
                let count = poll_fn(|context| {
                    let polled = self.sending.poll_room(wanted, context);
                    if polled.is_pending() {
                        self.response.settle();
                    }
                    polled
                });
                let count = count.await?;
                let (piece, ends) = self.response.piece();
                let ends = ends && count == piece.len();
                self.sending
                    .send(Bytes::copy_from_slice(&piece[..count]), ends)?;
                self.response.passed_on(count);
            } else if self.response.is_body_over() {
                if !self.response.has_length() {
                    self.sending.send(Bytes::new(), true)?;
                }
                return Ok(());
            } else if !self.response.next_piece()? {
                self.more().await?;
            }
        }
    }

    /// Reads more of the response. Fails with `Cut::Gone` if the client's stream is over, and with
    /// `Cut::Response` at the end of Pingora's connection.
    async fn more(&mut self) -> Result<(), Cut> {
        let count = poll_fn(|context| {
            if let Poll::Ready(gone) = self.sending.poll_gone(context) {
                return Poll::Ready(Err(Cut::Gone(gone)));
            }
            let read = poll_read(&mut self.read, self.response.room(), context);
            self.response.received();
            read.map_err(Cut::from)
        });
        let count = count.await?;
        if count == 0 {
            return Err(Cut::Response);
        }
        self.output.note_moved(count);
        Ok(())
    }
}

/// Sends an informational or the final head to the client, without the fields of one hop. A final
/// one without a body ends the stream.
fn pass_head(sending: &mut Sending, parsed: &Parsed<'_, '_>) -> Result<(), Gone> {
    let head = parsed.head;
    let response = head_of_http2(
        head.status,
        parsed.fields.iter().map(|field| (field.name, field.value)),
    );
    if head.status.is_informational() {
        return sending.inform(response);
    }
    sending.head(
        response,
        matches!(
            head.framing,
            ResponseFraming::None | ResponseFraming::Length(0)
        ),
    )
}
