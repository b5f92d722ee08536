//! [`serve`]: HTTP/1 on a connection. It reads one head after the other, answers the requests that
//! need no origin, and hands the others to the lane (`lane` forwards most requests itself) or to
//! Pingora's proxy. Both give the connection back.
//!
//! A connection is idle, receives a head, or has a request. After the request it is idle again, or
//! it ends. When crawlgate stops, an idle connection ends at once, and every other one after its
//! request.

mod client;
mod decide;

use super::answered::{Extent, record};
use super::connection::{Connection, LINGERING};
use super::date::with_date;
use super::door::{Door, Edge};
use super::head::target_for_origin;
use super::lane::{After, Exchange};
use super::scan::Scanner;
use super::stops::Stops;
use crate::answers::{Answer, Asked};
use crate::requests::{Framing, Mistake, Responded, Ticket};
use crate::settings::Limits;
use client::Http1Client;
use decide::{Course, decide};
use http::{HeaderMap, Method};
use pingora_core::protocols::http::ServerSession;
use pingora_core::server::ShutdownWatch;
use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use tokio::io::AsyncWriteExt;

/// Octets of a proxy's question that are still read after its answer: more than any proxy allows a
/// head (Go: 1 MiB). A proxy that cannot read the refusal would let the request pass.
const LINGERING_FOR_PROXIES: usize = 2 * 1024 * 1024;

/// Serves a connection to its end, one request after the other. A head with a mistake, or one that
/// comes too late, is refused, and the connection ends.
pub async fn serve(door: &Door, mut connection: Box<Connection>, stops: Stops) {
    let Stops {
        leaving,
        mut closing,
    } = stops;
    // An error means that the sender is gone, and no later stop could arrive.
    let mut closed = pin!(closing.wait_for(|closing| *closing));
    loop {
        let next = match next_head(&mut connection, door.edge.limits(), closed.as_mut()).await {
            Ok(Some(head)) => one(door, connection, head, &leaving).await,
            Ok(None) => {
                let _ = connection.shutdown().await;
                None
            }
            Err(mistake) => {
                let seen = connection.stream.take(0..connection.stream.seen().len());
                let refused = door.edge.requests.refuse(
                    &seen,
                    mistake,
                    &connection.client.behind(door.redirect),
                );
                answer_here(&door.edge, &mut connection, refused.into(), false).await;
                None
            }
        };
        let Some(next) = next else { return };
        connection = next;
        connection.set_active(false);
    }
}

/// Waits for the next head. Returns its place in the bytes that were seen, where it stays. `None`
/// if the client is gone, or if it was idle for `limits.idle` or the server stops before the head
/// has begun. From its first byte on the connection counts as active and the head has
/// `limits.head`.
///
/// # Errors
/// The first mistake in the head; `HeadTimeout` if it was begun and is late.
pub async fn next_head(
    connection: &mut Connection,
    limits: &Limits,
    mut closed: Pin<&mut impl Future>,
) -> Result<Option<Range<usize>>, Mistake> {
    let mut scanner = Scanner::new(limits);
    let mut has_begun = false;
    connection.set_deadline(limits.idle);
    loop {
        if !connection.stream.seen().is_empty() {
            let is_first = !std::mem::replace(&mut has_begun, true);
            if is_first {
                connection.set_active(true);
            }
            if let Some(head) = scanner.scan(connection.stream.seen())? {
                return Ok(Some(head));
            }
            if is_first {
                connection.set_deadline(limits.head);
            }
        }
        let read = tokio::select! {
            biased;
            read = connection.see() => read,
            _ = &mut closed, if !has_begun => return Ok(None),
        };
        match read {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut && has_begun => {
                return Err(Mistake::HeadTimeout);
            }
            Ok(0) | Err(_) => return Ok(None),
        }
    }
}

/// Serves the request whose head is at this place of the seen bytes: answers it, or forwards it
/// through the lane or Pingora. Returns the connection if it goes on.
async fn one(
    door: &Door,
    mut connection: Box<Connection>,
    head: Range<usize>,
    leaving: &ShutdownWatch,
) -> Option<Box<Connection>> {
    let edge = &*door.edge;
    let mut head = connection.stream.take(head);
    match decide(edge, &head, &connection.client.behind(door.redirect)) {
        Course::Answer(responded, may_go_on) => {
            let keeps_alive = may_go_on && !*leaving.borrow();
            answer_here(edge, &mut connection, *responded, keeps_alive)
                .await
                .then_some(connection)
        }
        Course::Lane(mut ticket, mut request) => {
            let expects = std::mem::take(&mut request.expects);
            match body_first(edge, &mut connection, &mut ticket, request.body, expects).await {
                Ok(still_expects) => request.expects = still_expects,
                Err(status) => return without_body(edge, &mut connection, ticket, status).await,
            }
            let mut client = Http1Client::new(&mut connection, &head, &request, leaving);
            // In a box, or each connection would have room for it between its requests.
            let after =
                Box::pin(Exchange::new(edge.lane.as_ref()?, &mut client, ticket, *request).run())
                    .await;
            match after {
                After::Whole if client.goes_on().await => Some(connection),
                After::Whole | After::Answered => {
                    connection.linger(LINGERING).await;
                    None
                }
                After::BrokenOff => None,
            }
        }
        Course::Forward(mut ticket, body, expects) => {
            if let Err(status) = body_first(edge, &mut connection, &mut ticket, body, expects).await
            {
                return without_body(edge, &mut connection, ticket, status).await;
            }
            if let Cow::Owned(target) = target_for_origin(ticket.target()) {
                let begin = ticket.method().len() + 1;
                head.splice(begin..begin + ticket.target().len(), target);
            }
            connection.client.hand_on(ticket);
            connection.open_for(head, body);
            forward(edge, connection, leaving).await
        }
    }
}

/// Waits for the first part of a request's body (`Edge::body_first`), where the origin has few
/// places. A client that waits for a 100 (`expects`) gets it. Returns whether the client still
/// waits for a 100: `expects` itself where no part is needed.
///
/// # Errors
/// The status of the answer: 503 without buffer space, 408 if the body is late. `None` if the
/// client left.
async fn body_first(
    edge: &Edge,
    connection: &mut Connection,
    ticket: &mut Ticket,
    framing: Framing,
    expects: bool,
) -> Result<bool, Option<u16>> {
    let most = edge.body_first(ticket, framing);
    if most == 0 {
        return Ok(expects);
    }
    ticket.hold(most);
    if ticket.lacks_space() {
        return Err(Some(503));
    }
    connection.set_deadline(edge.limits().stall);
    let seen = async {
        if expects {
            connection
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
            connection.flush().await?;
        }
        connection.see_body(framing, most).await
    };
    // In a box: few requests need the room for it.
    match Box::pin(seen).await {
        Ok(()) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(Some(408)),
        Err(_) => Err(None),
    }
}

/// Ends a request whose body did not come, and its connection (always `None`). Sends the answer
/// with this status; sends none if there is no status, because the client left.
async fn without_body(
    edge: &Edge,
    connection: &mut Connection,
    ticket: Ticket,
    status: Option<u16>,
) -> Option<Box<Connection>> {
    let method = Method::from_bytes(ticket.method()).unwrap_or_default();
    let asked = Asked {
        method: &method,
        headers: &HeaderMap::new(),
    };
    let answer = ticket
        .forward(connection.client.behind(None))
        .fail(status?, &asked);
    answer_here(edge, connection, (ticket, answer).into(), false).await;
    None
}

/// Sends an answer and records it. Returns whether the connection goes on: `keeps_alive` allows it,
/// the answer does not forbid it, and all was written. Otherwise reads on for a while, so that the
/// client gets the answer (`Connection::linger`).
async fn answer_here(
    edge: &Edge,
    connection: &mut Connection,
    responded: Responded,
    keeps_alive: bool,
) -> bool {
    let keeps_alive = keeps_alive && !responded.answer.closes();
    let extent = write(connection, &responded.answer, keeps_alive).await;
    record(responded, extent);
    let is_sent = extent == Extent::Whole;
    if is_sent && !keeps_alive {
        connection
            .linger(if edge.responder.is_some() {
                LINGERING_FOR_PROXIES
            } else {
                LINGERING
            })
            .await;
    }
    is_sent && keeps_alive
}

/// Writes an answer and returns how much of it was written. After an error with no byte of a body
/// written it is `Nothing`; an answer without a body is `Begun(0)` then.
pub async fn write(connection: &mut Connection, answer: &Answer, keeps_alive: bool) -> Extent {
    // Room for most heads.
    let mut head = Vec::with_capacity(1024);
    with_date(|date| answer.write_http1_head(date, keeps_alive, &mut head));
    // All requests share the body: of a copy, each slow client would hold one.
    let mut rest = &answer.body()[..];
    let written = async {
        connection.write_all(&head).await?;
        connection.write_all_buf(&mut rest).await?;
        connection.flush().await
    };
    let Err(error) = written.await else {
        return Extent::Whole;
    };
    tracing::debug!(%error, "the client left before its answer was written");
    match answer.body().len() - rest.len() {
        0 if !rest.is_empty() => Extent::Nothing,
        sent => Extent::Begun(sent as u64),
    }
}

/// Hands a request to Pingora. Returns the connection if it goes on: Pingora gave it back, and has
/// read the request to its end.
async fn forward(
    edge: &Edge,
    connection: Box<Connection>,
    leaving: &ShutdownWatch,
) -> Option<Box<Connection>> {
    let mut session = ServerSession::new_http1(connection);
    session.set_keepalive(Some(edge.limits().idle.as_secs().max(1)));
    let (stream, _) = edge
        .app
        .as_ref()?
        .process(session, leaving)
        .await?
        .consume();
    let connection = stream.into_any().downcast::<Connection>().ok()?;
    connection.is_request_over().then_some(connection)
}
