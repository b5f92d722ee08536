//! [`serve`]: serves HTTP/1 on a client's connection. It reads one request head after the other,
//! answers the requests that need no origin, and passes the others to the forwarder or to Pingora's
//! proxy. When a request that was passed on is done, [`serve`] gets the connection back.
//!
//! A connection is idle, or receives a request's head, or handles a request. After the request, the
//! connection is idle again, or ends. When crawlgate stops, an idle connection ends at once. A
//! connection that is not idle ends after its request.

mod client;
mod decide;

use super::client_stream::{ClientStream, MAX_LINGER_BYTES};
use super::context::EdgeContext;
use super::date::with_date;
use super::forwarder::{RoundTrip, RoundTripOutcome};
use super::head_scanner::HeadScanner;
use super::http1_head::target_for_origin;
use super::sent_answer::{SentAmount, record_answer};
use super::stop_signals::StopSignals;
use crate::answers::Answer;
use crate::requests::{BodyFraming, HeadError, HttpsRedirect, OutgoingAnswer, Ticket};
use crate::settings::Limits;
use SentAmount::*;
use client::Http1ClientSide;
use decide::{Handling, decide};
use http::HeaderMap;
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use tokio::io::AsyncWriteExt;

/// `MAX_LINGER_BYTES` in the decision service: more than any proxy allows for a head (Go: 1 MiB). A
/// proxy that cannot read the answer would let the request pass.
const MAX_LINGER_BYTES_FOR_PROXIES: usize = 2 * 1024 * 1024;

/// Serves a connection to its end, one request after the other. A malformed or late head gets an
/// error, and the connection ends.
pub async fn serve(
    edge: &EdgeContext,
    redirect: Option<HttpsRedirect>,
    mut connection: Box<ClientStream>,
    stops: StopSignals,
) {
    let StopSignals {
        draining,
        mut closing,
        ..
    } = stops;
    // An error means that the sender is gone, and no later stop could arrive.
    let mut closed = pin!(closing.wait_for(|closing| *closing));
    loop {
        let next = match read_head(&mut connection, edge.limits(), closed.as_mut()).await {
            Ok(Some(head)) => serve_request(edge, redirect, connection, head, &draining).await,
            Ok(None) => {
                let _ = connection.shutdown().await;
                None
            }
            Err(error) => {
                let head = connection
                    .stream
                    .take_range(0..connection.stream.read_buffer().len());
                let refused =
                    edge.requests
                        .reject_bytes(&head, error, &connection.client.facts(redirect));
                send_answer(edge, &mut connection, refused.into(), false).await;
                None
            }
        };
        let Some(next) = next else { return };
        connection = next;
        connection.set_active(false);
    }
}

/// Waits for the next head. Returns its range in the read buffer, where it stays. `None` if the
/// client has left, or if no byte came within `limits.idle` or before a stop. From the first byte
/// on, the connection counts as active and `limits.head` applies.
///
/// # Errors
/// The first error in the head; `HeadTimeout` if it is late.
pub async fn read_head(
    connection: &mut ClientStream,
    limits: &Limits,
    mut closed: Pin<&mut impl Future>,
) -> Result<Option<Range<usize>>, HeadError> {
    let mut scanner = HeadScanner::new(limits);
    let mut has_begun = false;
    connection.set_deadline(limits.idle);
    loop {
        if !connection.stream.read_buffer().is_empty() {
            let is_first = !std::mem::replace(&mut has_begun, true);
            if is_first {
                connection.set_active(true);
            }
            if let Some(head) = scanner.scan(connection.stream.read_buffer())? {
                return Ok(Some(head));
            }
            if is_first {
                connection.set_deadline(limits.head);
            }
        }
        let read = tokio::select! {
            biased;
            read = connection.fill() => read,
            _ = &mut closed, if !has_begun => return Ok(None),
        };
        match read {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut && has_begun => {
                return Err(HeadError::HeadTimeout);
            }
            Ok(0) | Err(_) => return Ok(None),
        }
    }
}

/// Serves the request whose head is at this range of the read buffer. Returns the connection if it
/// can take another request.
async fn serve_request(
    edge: &EdgeContext,
    redirect: Option<HttpsRedirect>,
    mut connection: Box<ClientStream>,
    head: Range<usize>,
    draining: &ShutdownWatch,
) -> Option<Box<ClientStream>> {
    let mut head = connection.stream.take_range(head);
    match decide(edge, &head, &connection.client.facts(redirect)) {
        Handling::Answer {
            answer,
            may_keep_alive,
        } => {
            let keeps_alive = may_keep_alive && !*draining.borrow();
            send_answer(edge, &mut connection, *answer, keeps_alive)
                .await
                .then_some(connection)
        }
        Handling::Forwarder(ticket, mut request) => {
            let (ticket, expects_continue) = wait_for_body_start(
                edge,
                &mut connection,
                ticket,
                request.body,
                request.expects_continue,
            )
            .await?;
            request.expects_continue = expects_continue;
            let mut client = Http1ClientSide::new(&mut connection, &head, &request, draining);
            // Boxed: otherwise each connection would have memory for it between its requests.
            let outcome = Box::pin(
                RoundTrip::new(edge.forwarder.as_ref()?, &mut client, ticket, *request).run(),
            )
            .await;
            match outcome {
                RoundTripOutcome::Whole if client.finish_request().await => Some(connection),
                RoundTripOutcome::BrokenOff => None,
                _ => {
                    connection.linger(MAX_LINGER_BYTES).await;
                    None
                }
            }
        }
        Handling::Pingora {
            ticket,
            body,
            expects_continue,
        } => {
            let (ticket, _) =
                wait_for_body_start(edge, &mut connection, ticket, body, expects_continue).await?;
            if let Cow::Owned(target) = target_for_origin(ticket.target()) {
                let begin = ticket.method().len() + 1;
                head.splice(begin..begin + ticket.target().len(), target);
            }
            connection.client.put_ticket(ticket);
            connection.let_pingora_read_request(head, body);
            forward_by_pingora(edge, connection, draining).await
        }
    }
}

/// Waits for the first part of a request's body, if [`EdgeContext::required_body_bytes`] says so.
/// Then a client that waits for a 100 (`expects_continue`) gets it here. Returns the ticket, and
/// whether the client still waits for a 100. `None` ends the connection: the client left, or got an
/// answer (503 without buffer space, 408 if the body is late).
async fn wait_for_body_start(
    edge: &EdgeContext,
    connection: &mut ClientStream,
    mut ticket: Ticket,
    framing: BodyFraming,
    expects_continue: bool,
) -> Option<(Ticket, bool)> {
    let required = edge.required_body_bytes(&ticket, framing);
    if required == 0 {
        return Some((ticket, expects_continue));
    }
    ticket.reserve_buffers(required);
    let status = if ticket.lacks_buffer_space() {
        503
    } else {
        connection.set_deadline(edge.limits().stall);
        let received = async {
            if expects_continue {
                connection
                    .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                    .await?;
                connection.flush().await?;
            }
            connection.fill_body(framing, required).await
        };
        // Boxed: few requests need it.
        match Box::pin(received).await {
            Ok(()) => return Some((ticket, false)),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => 408,
            Err(_) => return None,
        }
    };
    let answer = ticket
        .head_writer(connection.client.facts(None))
        .failure_answer(status, &HeaderMap::new());
    send_answer(edge, connection, (ticket, answer).into(), false).await;
    None
}

/// Sends an answer and records it. Returns whether the connection can take another request.
/// Otherwise it lingers ([`ClientStream::linger`]), so that the client gets the answer.
async fn send_answer(
    edge: &EdgeContext,
    connection: &mut ClientStream,
    answer: OutgoingAnswer,
    keeps_alive: bool,
) -> bool {
    let keeps_alive = keeps_alive && !answer.answer.closes_connection();
    let sent = write_answer(connection, &answer.answer, keeps_alive).await;
    record_answer(answer, sent);
    let is_sent = sent == Whole;
    if is_sent && !keeps_alive {
        connection
            .linger(if edge.responder.is_some() {
                MAX_LINGER_BYTES_FOR_PROXIES
            } else {
                MAX_LINGER_BYTES
            })
            .await;
    }
    is_sent && keeps_alive
}

/// Writes an answer and returns how much of it was written. If the write fails before the first
/// byte of the body, that is `Nothing`; for an answer without a body it is `Partial(0)`.
pub async fn write_answer(
    connection: &mut ClientStream,
    answer: &Answer,
    keeps_alive: bool,
) -> SentAmount {
    // Enough for most heads.
    let mut head = Vec::with_capacity(1024);
    with_date(|date| answer.write_http1_head(date.as_bytes(), keeps_alive, &mut head));
    // Not a copy: each slow client would hold one.
    let mut rest = &answer.body()[..];
    let written = async {
        connection.write_all(&head).await?;
        connection.write_all_buf(&mut rest).await?;
        connection.flush().await
    };
    let Err(error) = written.await else {
        return Whole;
    };
    tracing::debug!(%error, "the client left before its answer was written");
    match answer.body().len() - rest.len() {
        0 if !rest.is_empty() => Nothing,
        sent => Partial(sent as u64),
    }
}

/// Hands a request to Pingora. Returns the connection if it can take another request: Pingora has
/// returned it, and has read the request to its end.
async fn forward_by_pingora(
    edge: &EdgeContext,
    connection: Box<ClientStream>,
    draining: &ShutdownWatch,
) -> Option<Box<ClientStream>> {
    let mut session = ServerSession::new_http1(connection);
    session.set_keepalive(Some(edge.limits().idle.as_secs().max(1)));
    let (stream, _) = edge
        .pingora
        .as_ref()?
        .process(session, draining)
        .await?
        .consume();
    let connection = stream.into_any().downcast::<ClientStream>().ok()?;
    connection.is_request_over().then_some(connection)
}
